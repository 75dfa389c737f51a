/*
 * test_split.c: groups of some members of a group: what they compute, that they cost no thread and no descriptor, and
 * which of them end when something is wrong.
 */
#include "calls.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 6, ROW = 3, MANY = 64, WAIT_MS = 1200 * LOOP_SLOWER };

#define NEVER_COMES -1 /* milliseconds to wait for it */

static struct weft_group *split(struct weft_group *parent, int color, int key, struct weft_error *err)
{
    struct weft_group *group = parent;
    LOOP_CALL(weft_group_split(parent, color, key, GROUP_MS, &group, err), err);
    LOOP_CHECK((group == NULL) == (color < 0), "color %d: %p", color, (void *)group);
    return group;
}

static void is(struct weft_group *group, uint32_t rank, uint32_t size)
{
    char words[32];
    snprintf(words, sizeof words, "rank %u (", rank);
    LOOP_CHECK(weft_group_rank(group) == rank && weft_group_size(group) == size, "rank %u of %u, not %u of %u",
               weft_group_rank(group), weft_group_size(group), rank, size);
    LOOP_CHECK(strncmp(weft_group_member_name(group, rank), words, strlen(words)) == 0, "'%s', not '%s...'",
               weft_group_member_name(group, rank), words);
}

/* --- what they compute --- */

static struct call one_call(const struct weft_group *group, uint32_t number)
{
    static const uint64_t counts[] = {1, 3001, 40009};
    uint32_t size = weft_group_size(group), round = number / 6 % 3;
    return (struct call){
        .what = {.kind = (enum weft_collective)(number % 6),
                 .type = (enum weft_type)((number + round) % (round == 1 ? 7 : 4)),
                 .op = round == 1 ? WEFT_AVG : WEFT_SUM,
                 .size = size,
                 .root = number % size,
                 .by = (int)(number % 5) - 2,
                 .count = counts[round] / (LOOP_SANITIZED ? 4 : 1) + 1},
        .inputs = round == 1 ? (enum inputs)(number % INPUTS_KINDS) : INPUTS_REAL,
        .in_place = number % 2,
    };
}

/* Every collective, with several counts, then a barrier: to the bit, in the order of summation of that many members. */
static int compute(struct weft_group *group, struct weft_error *err)
{
    int result = 0;
    for (uint32_t number = 0; group && number < 18 && result == 0; number++) {
        struct call call = one_call(group, number);
        call_init(&call, weft_group_rank(group));
        result = call_make(&call, group, true, err);
        if (result == 0)
            call_check(&call, weft_group_rank(group));
        call_fini(&call);
    }
    return result < 0 || !group ? result : weft_group_barrier(group, GROUP_MS, err);
}

static int shapes(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    uint32_t rank = process->rank;
    struct weft_group *made[] = {
        split(group, (int)(rank % 2), 0, err),                     /* even and odd */
        split(group, (int)(rank / ROW), (int)rank, err),           /* the rows of a grid */
        split(group, (int)(rank % ROW), 7, err),                   /* its columns */
        split(group, rank < 4 ? 0 : -1, INT_MIN, err),             /* two that overlap */
        split(group, rank >= 2 ? INT_MAX : INT_MIN, INT_MAX, err), /* the other one */
        split(group, (int)rank, 0, err),                           /* each alone */
        split(group, 0, -(int)rank, err),                          /* the other way round */
        split(group, -1, 0, err),                                  /* none */
    };
    is(made[0], rank / 2, SIZE / 2);
    is(made[1], rank % ROW, ROW);
    is(made[2], rank / ROW, SIZE / ROW);
    if (made[3])
        is(made[3], rank, 4);
    if (made[4])
        is(made[4], rank - 2, 4);
    is(made[5], 0, 1);
    is(made[6], SIZE - 1 - rank, SIZE);
    struct weft_group *again = split(made[6], weft_group_rank(made[6]) < 4 ? 1 : 2, 0, err); /* of a split */
    is(again, rank >= 2 ? SIZE - 1 - rank : 1 - rank, rank >= 2 ? 4 : 2);
    int result = compute(again, err);
    for (size_t i = 0; i < sizeof made / sizeof made[0] && result == 0; i++)
        result = compute(made[i], err);
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        weft_group_destroy(made[i]);
    if (result == 0) /* its parent is gone, and it goes on */
        result = compute(again, err);
    weft_group_destroy(again);
    return result;
}

static void of_all_shapes(void)
{
    group_run_all(SIZE, shapes);
}

/* --- many at once --- */

static int entries(const char *folder)
{
    int count = 0;
    DIR *open = opendir(folder);
    LOOP_CHECK(open, "%s: %s", folder, strerror(errno));
    while (readdir(open))
        count++;
    closedir(open);
    return count;
}

/* Sessions between all members, so that no operation opens one. One side dials. */
static void meet_all(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_connection *connection;
    for (uint32_t rank = process->rank + 1; rank < process->size; rank++)
        LOOP_CALL(weft_group_connection(group, rank, GROUP_MS, &connection, err), err);
    LOOP_CALL(group_pass(process, group, GROUP_MS, err), err);
}

static int wait_for(struct weft_group *group, struct call *call, struct weft_error *err)
{
    struct weft_completion completion;
    LOOP_CHECK(weft_group_wait(group, GROUP_MS, &completion, 1) == 1, "no completion");
    LOOP_CHECK(completion.status < 0 || completion.user_data == call, "the completion of another group");
    snprintf(err->text, sizeof err->text, "%s", completion.text);
    if (completion.status == 0)
        call_check(call, weft_group_rank(group));
    return completion.status;
}

static int many(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_group *groups[MANY + 1] = {group};
    struct call *calls = calloc(MANY + 1, sizeof *calls);
    meet_all(process, group, err);
    int threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd"), result = 0;
    for (uint32_t i = 1; i <= MANY; i++) {
        groups[i] = split(group, (int)((process->rank + i % 7) % (1 + i % 4)), (int)(process->rank * i % 5), err);
        calls[i] = one_call(groups[i], i);
    }
    calls[0] = one_call(group, 0);
    for (uint32_t i = 0; i <= MANY; i++)
        call_init(&calls[i], weft_group_rank(groups[i]));
    for (uint32_t i = 0; i <= MANY && result == 0; i++)
        result = call_make(&calls[i], groups[i], false, err);
    LOOP_CHECK(entries("/proc/self/task") == threads, "%d threads, not %d", entries("/proc/self/task"), threads);
    LOOP_CHECK(entries("/proc/self/fd") <= descriptors, "%d descriptors, and there were %d", entries("/proc/self/fd"),
               descriptors); /* of a session that was closed before, the last may still go */
    for (uint32_t i = MANY + 1; i-- > 0 && result == 0;) /* not in the order in which they were started */
        result = wait_for(groups[i], &calls[i], err);
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    for (uint32_t i = 0; i <= MANY; i++)
        call_fini(&calls[i]);
    free(calls);
    for (uint32_t i = 1; i <= MANY; i++)
        weft_group_destroy(groups[i]);
    return result;
}

static void many_at_once(void)
{
    group_run_all(SIZE, many);
}

/* --- a call that waits sleeps --- */

static int64_t cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Though an operation of another group has ended, and nobody takes it. */
static int sleep_meanwhile(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    enum { LONG_MS = 1000 };
    float one = 1, sum = 0;
    struct weft_completion completion;
    struct weft_group *row = split(group, (int)(process->rank / ROW), 0, err);
    LOOP_CALL(weft_group_all_reduce_start(row, &one, &sum, 1, WEFT_FLOAT32, WEFT_SUM, 0, NULL, err), err);
    LOOP_CALL(group_pass(process, group, GROUP_MS, err), err);
    int64_t before_ms = cpu_ms();
    LOOP_CHECK(weft_group_wait(group, LONG_MS, &completion, 1) == -ETIMEDOUT, "a completion of the parent");
    LOOP_CHECK(cpu_ms() - before_ms < LONG_MS / 10, "%lld ms of a processor while there was nothing to do",
               (long long)(cpu_ms() - before_ms));
    LOOP_CHECK(weft_group_wait(row, GROUP_MS, &completion, 1) == 1 && completion.status == 0 && sum == ROW,
               "no completion of the row: '%s'", completion.text);
    weft_group_destroy(row);
    return group_pass(process, group, GROUP_MS, err);
}

static void sleeps_meanwhile(void)
{
    group_run_all(SIZE, sleep_meanwhile);
}

/* --- what ends, and what goes on --- */

/* How many have come so far. */
static uint64_t *came(struct group_process *process)
{
    return &process->world->shared->value[SIZE];
}

static void wait_until(struct group_process *process, uint64_t count)
{
    int64_t limit_ms = loop_now_ms() + LOOP_WAIT_MS;
    while (__atomic_load_n(came(process), __ATOMIC_SEQ_CST) < count) {
        LOOP_CHECK(loop_now_ms() < limit_ms, "the others do not come so far");
        loop_sleep_ms(5);
    }
}

static void ended(int result, const struct weft_error *err, int status, const char *begins, const char *words)
{
    LOOP_CHECK(status == 0 ? result < 0 : result == status, "%d '%s'", result, err->text);
    LOOP_CHECK(strncmp(err->text, begins, strlen(begins)) == 0 && strstr(err->text, words), "'%s', not '%s... %s'",
               err->text, begins, words);
}

/* Two rows; the victim is a member of one of them. */
static int lose_one(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    uint32_t victim = (uint32_t)process->number;
    char of_all[32], of_row[32];
    struct weft_group *row = split(group, (int)(process->rank / ROW), 0, err);
    snprintf(of_all, sizeof of_all, "rank %u (", victim);
    snprintf(of_row, sizeof of_row, "rank %u (", victim % ROW);
    int result = group_pass(process, group, GROUP_MS, err);
    __atomic_add_fetch(came(process), 1, __ATOMIC_SEQ_CST);
    if (result == 0 && process->rank == victim) {
        wait_until(process, SIZE); /* nobody is in that barrier any more */
        loop_tell(process->out, 1);
        loop_hear(process->in);
    }
    if (result == 0 && process->rank / ROW == victim / ROW)
        ended(weft_group_barrier(row, NEVER_COMES, err), err, 0, of_row, "is lost");
    ended(weft_group_barrier(group, NEVER_COMES, err), err, 0, of_all, "is lost");
    if (process->rank / ROW != victim / ROW)
        result = compute(row, err);
    weft_group_destroy(row);
    return result;
}

static void killed(void)
{
    static const uint32_t victims[] = {4, 0};
    for (size_t i = 0; i < 2; i++) {
        struct group_world world;
        loop_note("rank %u is killed", victims[i]);
        group_world_create(&world, SIZE, lose_one);
        for (int j = 0; j < SIZE; j++) {
            world.process[j].number = victims[i];
            world.process[j].settings = "timeout=3";
        }
        group_start_all(&world);
        loop_hear(world.process[victims[i]].child.in);
        loop_child_kill(&world.process[victims[i]].child);
        group_join_all(&world);
        group_check_all(&world, (int)victims[i], 0, NULL);
        group_world_destroy(&world);
    }
}

/* One of the second row is late: that row ends, and names it by its rank there. */
static int come_late(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    bool late = process->rank == ROW + process->number, first = process->rank < ROW;
    struct weft_group *row = split(group, first ? 0 : 1, 0, err);
    char words[48];
    snprintf(words, sizeof words, "barrier 1: rank %u (", (uint32_t)process->number);
    int result = compute(first ? row : NULL, err);
    if (late)
        wait_until(process, ROW - 1);
    if (late && weft_group_barrier(row, WAIT_MS, err) == 0)
        loop_note("the others' messages were there: it hears in its next call"); /* or it has heard already */
    if (!first)
        ended(weft_group_barrier(row, WAIT_MS, err), err, -ETIMEDOUT, words, "did not enter it within");
    __atomic_add_fetch(came(process), !first, __ATOMIC_SEQ_CST);
    if (result == 0)
        result = group_pass(process, group, LOOP_WAIT_MS, err);
    weft_group_destroy(row);
    return result;
}

static void late(void)
{
    for (uint64_t who = 0; who < ROW; who++) {
        struct group_world world;
        loop_note("rank %d of a row is late", (int)who);
        group_world_create(&world, SIZE, come_late);
        for (int i = 0; i < SIZE; i++)
            world.process[i].number = who;
        group_start_all(&world);
        group_join_all(&world);
        group_check_all(&world, -1, 0, NULL);
        group_world_destroy(&world);
    }
}

/* Rank 1 of a row leaves it. What it has done is done; what it has not ends the row, and nothing else. */
static int leave(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_group *row = split(group, (int)(process->rank / ROW), 0, err);
    float one = 1, sum = 0;
    int result = compute(row, err);
    if (result == 0) /* who is told that the group has failed stops, also in an operation before the one that failed */
        result = group_pass(process, group, GROUP_MS, err);
    if (process->rank % ROW == 1)
        weft_group_destroy(row);
    else if (result == 0)
        ended(weft_group_all_reduce(row, &one, &sum, 1, WEFT_FLOAT32, WEFT_SUM, NEVER_COMES, err), err, -ESHUTDOWN,
              "rank 1 (", "has left the group");
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    if (process->rank % ROW != 1)
        weft_group_destroy(row);
    return result;
}

static void leaves(void)
{
    group_run_all(SIZE, leave);
}

/* Ranks 0 and 3 are a pair, and have no session. Rank 0 leaves it before rank 3 needs it. `number`: after an operation
 * that rank 3 was late for. */
static int leave_unseen(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_group *pair = split(group, process->rank % ROW == 0, 0, err);
    float one = 1, sum = 0;
    if (process->rank == 0 && process->number)
        ended(weft_group_all_reduce(pair, &one, &sum, 1, WEFT_FLOAT32, WEFT_SUM, WAIT_MS, err), err, -ETIMEDOUT,
              "collective 1 (all-reduce): rank 1 (", "did not start it");
    if (process->rank == 0) {
        weft_group_destroy(pair);
        __atomic_add_fetch(came(process), 1, __ATOMIC_SEQ_CST);
    }
    if (process->rank == ROW) {
        wait_until(process, 1);
        int late = weft_group_all_reduce(pair, &one, &sum, 1, WEFT_FLOAT32, WEFT_SUM, NEVER_COMES, err);
        if (late == 0) { /* rank 0's number was there before its word that it left: it hears in its next call */
            LOOP_CHECK(process->number && sum == 2, "%g, and rank 0 has not begun it", (double)sum);
            late = weft_group_all_reduce(pair, &one, &sum, 1, WEFT_FLOAT32, WEFT_SUM, NEVER_COMES, err);
        }
        if (process->number && late == -ETIMEDOUT) /* the session was there in time: rank 0 has said what ended it */
            ended(late, err, -ETIMEDOUT, "collective 1 (all-reduce): rank 1 (", "did not start it");
        else
            ended(late, err, -ESHUTDOWN, "rank 0 (", "has left the group");
    }
    int result = group_pass(process, group, GROUP_MS, err);
    if (process->rank > 0)
        weft_group_destroy(pair);
    return result;
}

static void leaves_unseen(void)
{
    for (uint64_t late = 0; late < 2; late++) {
        struct group_world world;
        loop_note(late ? "after an operation" : "at once");
        group_world_create(&world, SIZE, leave_unseen);
        for (int i = 0; i < SIZE; i++)
            world.process[i].number = late;
        group_start_all(&world);
        group_join_all(&world);
        group_check_all(&world, -1, 0, NULL);
        group_world_destroy(&world);
    }
}

/* --- wrong use --- */

static int differ(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    float in[64] = {0}, out[64];
    struct weft_group *row = split(group, (int)(process->rank / ROW), 0, err), *none = row;
    uint64_t count = process->rank == 1 ? 63 : 64;
    int result = weft_group_all_reduce(row, in, out, count, WEFT_FLOAT32, WEFT_SUM, GROUP_MS, err);
    if (process->rank < ROW) {
        ended(result, err, -EPROTO, "rank ", "the same count");
        ended(weft_group_split(row, 0, 0, GROUP_MS, &none, err), err, -EPROTO, "rank ", "the same count");
        LOOP_CHECK(none == row, "a result, though it failed");
    } else {
        LOOP_CHECK(result == 0, "%d '%s'", result, err->text);
    }
    ended(weft_group_split(NULL, 0, 0, GROUP_MS, &none, err), err, -EINVAL, "weft_group_split: ", "parent is NULL");
    ended(weft_group_split(group, 0, 0, GROUP_MS, NULL, err), err, -EINVAL, "weft_group_split: ", "out is NULL");
    LOOP_CHECK(weft_group_split(NULL, 0, 0, GROUP_MS, NULL, NULL) == -EINVAL, "without a place for the error");
    result = group_pass(process, group, GROUP_MS, err);
    weft_group_destroy(row);
    return result;
}

static void wrong_use(void)
{
    group_run_all(SIZE, differ);
}

/* One does not split: the parent ends, with its name. */
static int split_late(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_group *row = NULL;
    if (process->rank == 2)
        wait_until(process, SIZE - 1);
    ended(weft_group_split(group, 0, 0, WAIT_MS, &row, err), err, -ETIMEDOUT, "collective 1 (split): rank 2 (",
          "did not start it");
    LOOP_CHECK(!row, "a group all the same");
    __atomic_add_fetch(came(process), 1, __ATOMIC_SEQ_CST);
    return 0;
}

static void late_in_a_split(void)
{
    group_run_all(SIZE, split_late);
}

/* The parent is destroyed first, with an operation of the other one under way that nobody ends. */
static int keep(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    static char in[200000], out[200000];
    process->kept = split(group, 0, 0, err);
    int result = weft_group_barrier(process->kept, GROUP_MS, err);
    if (result == 0 && process->rank == 0)
        result = weft_group_all_reduce_start(process->kept, in, out, sizeof in, WEFT_UINT8, WEFT_MAX, 0, NULL, err);
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void destroyed_last(void)
{
    group_run_all(SIZE, keep);
}

/* What is left says why it has ended. */
static void says_why_it_ended(void)
{
    static const char *const address[] = {"127.0.0.1:0"};
    struct weft_context *context = loop_context(NULL, 1);
    struct weft_group *whole, *part;
    struct weft_completion completion;
    struct weft_error err = {0};
    char byte = 0;
    LOOP_CALL(weft_group_create_from(context, address, 1, 0, NULL, GROUP_MS, &whole, &err), &err);
    LOOP_CALL(weft_group_split(whole, 3, 0, GROUP_MS, &part, &err), &err);
    LOOP_CALL(weft_group_barrier(part, GROUP_MS, &err), &err);
    weft_group_destroy(whole);
    loop_context_end(context);
    ended(weft_group_status(part, &err), &err, -ESHUTDOWN, "the group", "has been destroyed");
    ended(weft_group_barrier(part, GROUP_MS, &err), &err, -ESHUTDOWN, "the group", "has been destroyed");
    ended(weft_group_all_reduce(part, &byte, &byte, 1, WEFT_UINT8, WEFT_SUM, GROUP_MS, &err), &err, -ESHUTDOWN,
          "the group", "has been destroyed");
    LOOP_CHECK(weft_group_poll(part, &completion, 1) == 0 && weft_group_sessions(part) == 0, "something is left");
    is(part, 0, 1);
    weft_group_destroy(part);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(of_all_shapes, 60),
        LOOP_CASE(many_at_once, 60),
        LOOP_CASE(sleeps_meanwhile, 30),
        LOOP_CASE(killed, 60),
        LOOP_CASE(late, 60),
        LOOP_CASE(leaves, 20),
        LOOP_CASE(leaves_unseen, 30),
        LOOP_CASE(wrong_use, 20),
        LOOP_CASE(late_in_a_split, 20),
        LOOP_CASE(destroyed_last, 20),
        LOOP_CASE(says_why_it_ended, 10),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
