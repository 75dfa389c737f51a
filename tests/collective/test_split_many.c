/* test_split_many.c: threads that split one group at the same time, and as many groups as a process may have. */
#include "group_support.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 4, THREADS = 2, ROUNDS = 10, IDS = 65535 };

/* --- at once --- */

/* Whichever calls of the others this one has met: the group is one of all members, and computes. */
static void *split_again(void *argument)
{
    struct weft_group *parent = argument;
    uint32_t rank = weft_group_rank(parent);
    struct weft_error err = {0};
    for (int i = 0; i < ROUNDS; i++) {
        struct weft_group *group = NULL;
        float mine = (float)(rank + 1), sum = 0;
        LOOP_CALL(weft_group_split(parent, 0, -(int)rank, GROUP_MS, &group, &err), &err);
        LOOP_CHECK(weft_group_size(group) == SIZE && weft_group_rank(group) == SIZE - 1 - rank, "rank %u of %u",
                   weft_group_rank(group), weft_group_size(group));
        LOOP_CALL(weft_group_all_reduce(group, &mine, &sum, 1, WEFT_FLOAT32, WEFT_SUM, GROUP_MS, &err), &err);
        LOOP_CHECK(sum == SIZE * (SIZE + 1) / 2, "the sum is %g", (double)sum);
        LOOP_CALL(weft_group_barrier(group, GROUP_MS, &err), &err);
        weft_group_destroy(group); /* the other thread may be in the same call */
    }
    return NULL;
}

static int split_at_once(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        LOOP_CHECK(pthread_create(&threads[i], NULL, split_again, group) == 0, "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return group_pass(process, group, GROUP_MS, err);
}

static void at_once(void)
{
    group_run_all(SIZE, split_at_once);
}

/* --- the most --- */

static int one_more(struct weft_group *whole, struct weft_group **out, struct weft_error *err)
{
    *out = NULL;
    return weft_group_split(whole, 0, 0, GROUP_MS, out, err);
}

/* In a group of one member. When a group has gone there is room for another one. */
static void the_most(void)
{
    if (LOOP_SANITIZED) /* its books of so many groups take minutes */
        skip();
    static const char *const address[] = {"127.0.0.1:0"};
    struct weft_context *context = loop_context(NULL, 1);
    struct weft_group **groups = calloc(IDS, sizeof *groups), *whole, *another;
    struct weft_error err = {0};
    LOOP_CALL(weft_group_create_from(context, address, 1, 0, NULL, GROUP_MS, &whole, &err), &err);
    for (int i = 0; i < IDS; i++)
        LOOP_CALL(one_more(whole, &groups[i], &err), &err);
    LOOP_CHECK(one_more(whole, &another, &err) == -ENOMEM && !another, "one more group");
    LOOP_CHECK(strstr(err.text, "no number, for one more group"), "'%s'", err.text);
    LOOP_CALL(weft_group_status(whole, &err), &err);
    weft_group_destroy(groups[IDS / 2]);
    LOOP_CALL(one_more(whole, &groups[IDS / 2], &err), &err);
    LOOP_CALL(weft_group_barrier(groups[IDS / 2], GROUP_MS, &err), &err);
    for (int i = 0; i < IDS; i++)
        weft_group_destroy(groups[i]);
    free(groups);
    weft_group_destroy(whole);
    loop_context_end(context);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {LOOP_CASE(at_once, 60), LOOP_CASE(the_most, 120)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
