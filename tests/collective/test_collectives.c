/*
 * test_collectives.c: every collective, type and operation among processes, in place and not, against the reference, to
 * the bit; twice, the second time several at once.
 */
#include "calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reduces(int kind)
{
    return kind == WEFT_ALL_REDUCE || kind == WEFT_REDUCE_SCATTER;
}

/* --- every call --- */

enum { CALLS_MAX = 2 * 7 * 4 + 4 * 7 };

#define MANY 100000 /* elements, of which all calls together would not fit into memory */

/* Of many elements each rank has its part, where all ranks' arrays are one. */
static uint64_t elements_of(const struct group_process *process, int kind, uint64_t count)
{
    bool parts = kind == WEFT_REDUCE_SCATTER || kind == WEFT_ALL_GATHER || kind == WEFT_ALL_TO_ALL;
    return parts && count > MANY ? count / process->size | 1 : count;
}

/* All calls of one count, each with inputs of another kind in turn. How many. */
static uint32_t all_calls(const struct group_process *process, uint64_t count, bool in_place, struct call *calls)
{
    uint32_t number = 0;
    for (int kind = 0; kind < 6; kind++)
        for (int type = 0; type < 7; type++)
            for (int op = 0; op < (reduces(kind) ? 4 : 1); op++, number++)
                calls[number] = (struct call){
                    .what = {.kind = (enum weft_collective)kind,
                             .type = (enum weft_type)type,
                             .op = (enum weft_op)op,
                             .size = process->size,
                             .root = number % process->size,
                             .by = (int)(number % 5) - 2,
                             .count = elements_of(process, kind, count)},
                    .inputs = (enum inputs)((number + number / 3) % INPUTS_KINDS),
                    .in_place = in_place ^ (number % 2),
                };
    return number;
}

static int one_by_one(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct call calls[CALLS_MAX];
    uint32_t count = all_calls(process, process->number, false, calls);
    int result = 0;
    for (uint32_t i = 0; i < count && result == 0; i++) {
        call_init(&calls[i], process->rank);
        result = call_make(&calls[i], group, true, err);
        if (result == 0)
            call_check(&calls[i], process->rank);
        call_fini(&calls[i]);
        if (process->number > MANY)
            loop_tell(process->out, 1); /* it goes on: the test waits for so long */
    }
    return result;
}

/* Inputs and results are computed before the time of the first call begins. */
static int prepare(struct weft_group *group, struct call *calls, uint32_t count, struct weft_error *err)
{
    for (uint32_t i = 0; i < count; i++)
        call_init(&calls[i], weft_group_rank(group));
    return weft_group_barrier(group, -1, err);
}

/* And every result has the bits of the reference again. */
static int all_together(struct group_process *process, uint64_t elements, struct weft_group *group,
                        struct weft_error *err)
{
    struct call calls[CALLS_MAX];
    struct weft_completion completion;
    uint32_t count = all_calls(process, elements, true, calls);
    int result = prepare(group, calls, count, err);
    for (uint32_t i = 0; i < count && result == 0; i++)
        result = call_make(&calls[i], group, false, err);
    for (uint32_t i = 0; i < count && result == 0; i++) {
        LOOP_CHECK(weft_group_wait(group, GROUP_MS, &completion, 1) == 1, "no completion");
        result = completion.status;
        snprintf(err->text, sizeof err->text, "%s", completion.text);
        if (result == 0)
            call_check(completion.user_data, process->rank);
    }
    for (uint32_t i = 0; i < count; i++)
        call_fini(&calls[i]);
    return result;
}

static int twice(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    bool many = process->number > MANY;
    uint64_t counts[] = {0, 1, process->size - 1, many ? 2 : process->number};
    int result = one_by_one(process, group, err);
    if (result == 0 && many)
        result = one_by_one(process, group, err);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && result == 0; i++)
        result = all_together(process, counts[i], group, err);
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void with(uint32_t size, uint64_t count, const char *settings,
                 int (*body)(struct group_process *, struct weft_group *, struct weft_error *))
{
    struct group_world world;
    loop_note("%u members, %llu elements, %s", size, (unsigned long long)count, settings ? settings : "no setting");
    group_world_create(&world, size, body);
    for (uint32_t i = 0; i < size; i++) {
        world.process[i].number = count;
        world.process[i].settings = settings;
    }
    group_start_all(&world);
    for (uint32_t i = 0; i < 2 * CALLS_MAX * size && count > MANY; i++)
        loop_hear(world.process[i % size].child.in);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    group_world_destroy(&world);
}

/* Every member computes what all have: so with more of them, fewer elements. */
static void every_call(void)
{
    for (uint32_t size = 1; size <= (uint32_t)LOOP_COUNT(7, 5); size++)
        with(size, LOOP_SANITIZED ? 1009 : size <= 4 ? 10007 : 3001, NULL, twice);
}

static void large(void)
{
    for (uint32_t size = 2; size <= (uint32_t)LOOP_COUNT(7, 4); size++)
        with(size, 1000003, NULL, twice);
}

/* --- several at once --- */

enum { AT_ONCE = 64 };

static struct reference one_of_many(const struct group_process *process, int number)
{
    return (struct reference){
        .kind = (enum weft_collective)(number % 6),
        .type = (enum weft_type)(number % 7),
        .op = (enum weft_op)(number % 4),
        .size = process->size,
        .root = (uint32_t)number % process->size,
        .by = number % 3 - 1,
        .count = (uint64_t)(number % 5 == 4 ? process->number : (uint64_t)number * 13),
    };
}

static int start_all(struct group_process *process, struct weft_group *group, struct call *calls,
                     struct weft_error *err)
{
    for (int i = 0; i < AT_ONCE; i++)
        calls[i] = (struct call){
            .what = one_of_many(process, i), .inputs = (enum inputs)(i % INPUTS_KINDS), .in_place = i % 2};
    int result = prepare(group, calls, AT_ONCE, err);
    for (int i = 0; i < AT_ONCE && result == 0; i++) {
        result = call_make(&calls[i], group, false, err);
        if (result == 0 && i % 16 == 7)
            result = weft_group_barrier_start(group, GROUP_MS, NULL, err);
    }
    return result;
}

/* Messages of the user's own between neighbours, on connections of the group, while collectives are under way. */
static void exchange(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    uint32_t next = (process->rank + 1) % process->size, last = (process->rank + process->size - 1) % process->size;
    struct weft_connection *to, *from;
    uint64_t told = process->rank, heard = 0;
    LOOP_CALL(weft_group_connection(group, next, GROUP_MS, &to, err), err);
    LOOP_CALL(weft_group_connection(group, last, GROUP_MS, &from, err), err);
    struct weft_options any = {.flags = WEFT_ANY_TAG};
    struct weft_request *receive;
    LOOP_CHECK(weft_recv(from, &heard, sizeof heard, 0, &any, &receive) == 0, "%s", weft_last_error());
    struct weft_request *send = loop_send(to, &told, sizeof told, 1ull << 40);
    loop_done(send, 0, sizeof told);
    loop_done(receive, 0, sizeof heard);
    LOOP_CHECK(heard == last, "rank %u heard %llu", process->rank, (unsigned long long)heard);
}

static int at_once(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct call *calls = calloc(AT_ONCE, sizeof *calls);
    struct weft_completion completions[8];
    int left = AT_ONCE + AT_ONCE / 16, result = start_all(process, group, calls, err);
    if (result == 0)
        exchange(process, group, err);
    while (result == 0 && left > 0) {
        int count = weft_group_wait(group, GROUP_MS, completions, 8);
        LOOP_CHECK(count > 0 && count <= left, "%d completions, and %d are left", count, left);
        left -= count;
        for (int i = 0; i < count; i++) {
            struct call *call = completions[i].user_data;
            LOOP_CHECK(completions[i].status == 0, "%s", completions[i].text);
            if (call)
                call_check(call, process->rank);
        }
    }
    for (int i = 0; i < AT_ONCE; i++)
        call_fini(&calls[i]);
    free(calls);
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void many_at_once(void)
{
    static const uint32_t sizes[] = {2, 5, 4};
    for (size_t i = 0; i < (size_t)LOOP_COUNT(3, 2); i++)
        with(sizes[i], LOOP_SANITIZED ? 3001 : 70001, NULL, at_once);
}

/* More is started than there are requests: barriers and collectives wait for one, and nothing that members say is lost.
 */
static int crowded(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    enum { STARTED = 8 };
    struct weft_completion completion;
    uint64_t count = process->number;
    int32_t *sums = malloc(STARTED * count * sizeof *sums);
    int result = 0;
    for (uint64_t i = 0; i < STARTED * count; i++)
        sums[i] = (int32_t)(process->rank + i);
    for (int i = 0; i < STARTED && result == 0; i++) {
        int32_t *at = sums + (uint64_t)i * count;
        result = weft_group_all_reduce_start(group, at, at, count, WEFT_INT32, WEFT_SUM, 0, NULL, err);
        if (result == 0)
            result = weft_group_barrier_start(group, GROUP_MS, NULL, err);
    }
    for (int i = 0; i < 2 * STARTED && result == 0; i++) {
        LOOP_CHECK(weft_group_wait(group, GROUP_MS, &completion, 1) == 1, "%d of %d have ended", i, 2 * STARTED);
        LOOP_CHECK(completion.status == 0, "%s", completion.text);
    }
    int32_t ranks = (int32_t)process->size;
    for (uint64_t i = 0; i < STARTED * count && result == 0; i++)
        LOOP_CHECK(sums[i] == ranks * (ranks - 1) / 2 + ranks * (int32_t)i, "element %llu is %d", (unsigned long long)i,
                   sums[i]);
    free(sums);
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void few_requests(void)
{
    with(4, LOOP_SANITIZED ? 10001 : 100000, "requests=16", crowded);
    with(7, 3001, "requests=16", crowded);
}

/* --- a bad network --- */

static int under_faults(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_fault_stats faults = {0};
    int result = 0, rounds = 0;
    while (result == 0 && rounds++ < 4)
        result = at_once(process, group, err);
    weft_context_faults(process->context, &faults);
    process->world->shared->value[process->slot] = faults.flips + faults.resets + faults.drops;
    return result;
}

static void with_faults(const char *settings)
{
    struct group_world world;
    uint64_t sum = 0;
    loop_note("%s", settings);
    group_world_create(&world, 4, under_faults);
    for (int i = 0; i < 4; i++) {
        world.process[i].number = LOOP_SANITIZED ? 3001 : 70001;
        world.process[i].settings = settings;
    }
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    for (int i = 0; i < 4; i++)
        sum += world.shared->value[i];
    LOOP_CHECK(sum > 0, "no fault was injected");
    group_world_destroy(&world);
}

static void flipped(void)
{
    with_faults(LOOP_SANITIZED ? "crc=on crc_limit=0 log=error fault=flip_every=200K"
                               : "crc=on crc_limit=0 log=error fault=flip_every=3M");
}

static void rails_lost(void)
{
    with_faults(LOOP_SANITIZED ? "chunk=64K log=error fault=reset_every=400K"
                               : "chunk=64K log=error fault=reset_every=4M,drop=1@400+1000");
}

/* --- what is refused --- */

static int wrong_calls(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    float in[8] = {0}, out[8] = {0};
    struct weft_error why = {0};
    int sum = weft_group_all_reduce(group, NULL, out, 4, WEFT_FLOAT32, WEFT_SUM, GROUP_MS, &why);
    LOOP_CHECK(sum == -EINVAL && strstr(why.text, "in is NULL"), "%d '%s'", sum, why.text);
    sum = weft_group_all_reduce(group, in, in + 1, 4, WEFT_FLOAT32, WEFT_SUM, GROUP_MS, &why);
    LOOP_CHECK(sum == -EINVAL && strstr(why.text, "overlap"), "%d '%s'", sum, why.text);
    sum = weft_group_all_reduce(group, in, (char *)out + 1, 4, WEFT_FLOAT32, WEFT_SUM, GROUP_MS, &why);
    LOOP_CHECK(sum == -EINVAL && strstr(why.text, "4 bytes"), "%d '%s'", sum, why.text);
    sum = weft_group_all_reduce(group, in, out, 4, (enum weft_type)7, WEFT_SUM, GROUP_MS, &why);
    LOOP_CHECK(sum == -EINVAL && strstr(why.text, "no type 7"), "%d '%s'", sum, why.text);
    sum = weft_group_all_reduce(group, in, out, 4, WEFT_FLOAT32, (enum weft_op)4, GROUP_MS, &why);
    LOOP_CHECK(sum == -EINVAL && strstr(why.text, "no operation 4"), "%d '%s'", sum, why.text);
    sum = weft_group_broadcast(group, in, out, 4, WEFT_FLOAT32, process->size, GROUP_MS, &why);
    LOOP_CHECK(sum == -EINVAL && strstr(why.text, "root"), "%d '%s'", sum, why.text);
    sum = weft_group_all_reduce_start(group, in, out, 4, WEFT_FLOAT32, WEFT_SUM, -1, NULL, &why);
    LOOP_CHECK(sum == -EINVAL && strstr(why.text, "below 0"), "%d '%s'", sum, why.text);
    sum = weft_group_all_gather(group, in, out, UINT64_MAX / 2, WEFT_FLOAT32, GROUP_MS, &why);
    LOOP_CHECK(sum == -EINVAL && strstr(why.text, "more than any memory"), "%d '%s'", sum, why.text);
    sum = weft_group_all_reduce(NULL, in, out, 4, WEFT_FLOAT32, WEFT_SUM, GROUP_MS, NULL);
    LOOP_CHECK(sum == -EINVAL, "%d", sum);
    sum = weft_group_all_reduce(group, in, out, 8, WEFT_FLOAT32, WEFT_MAX, GROUP_MS, err); /* nothing has begun */
    const void *unread = process->rank == 1 ? (char *)in : (char *)in + 1;
    if (sum == 0) /* `in` is the root's alone */
        sum = weft_group_broadcast(group, unread, out, 4, WEFT_FLOAT32, 1, GROUP_MS, err);
    return sum < 0 ? sum : group_pass(process, group, GROUP_MS, err);
}

static void refused(void)
{
    with(3, 0, NULL, wrong_calls);
}

/* docs/collectives.md has the table as it is. */
static void check_page(const char *text)
{
    static char page[65536];
    FILE *file = fopen(COLLECTIVES_PAGE, "r");
    LOOP_CHECK(file, "%s: %s", COLLECTIVES_PAGE, strerror(errno));
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    LOOP_CHECK(strstr(page, text), "%s has not this table:\n%s", COLLECTIVES_PAGE, text);
}

static void table(void)
{
    char text[2048], little[8];
    int length = weft_group_algorithms(text, sizeof text);
    LOOP_CHECK(length > 0 && length < (int)sizeof text && strlen(text) == (size_t)length, "%d", length);
    check_page(text);
    LOOP_CHECK(strstr(text, "all-reduce") && strstr(text, "ring") && strstr(text, "shift"), "%s", text);
    LOOP_CHECK(weft_group_algorithms(little, sizeof little) == length && strlen(little) == sizeof little - 1, "%s",
               little);
    LOOP_CHECK(weft_group_algorithms(NULL, 0) == length, "the length without room");
    LOOP_CHECK(strcmp(weft_group_algorithm(WEFT_ALL_REDUCE, 1 << 30, 4), "ring") == 0, "a large all-reduce");
    LOOP_CHECK(strcmp(weft_group_algorithm(WEFT_ALL_REDUCE, 1024, 4), "doubling") == 0, "a small all-reduce");
    LOOP_CHECK(strcmp(weft_group_algorithm((enum weft_collective)6, 1024, 4), "") == 0, "no collective");
    LOOP_CHECK(weft_type_bytes(WEFT_BFLOAT16) == 2 && weft_type_bytes((enum weft_type)7) == 0, "bytes of a type");
}

int main(int argc, char **argv)
{
    bool is_large = argc > 1 && strcmp(argv[1], "large") == 0;
    loop_begin(is_large ? 1 : argc, argv);
    const struct CMUnitTest quick[] = {
        LOOP_CASE(every_call, 110), LOOP_CASE(many_at_once, 60), LOOP_CASE(few_requests, 60), LOOP_CASE(flipped, 60),
        LOOP_CASE(rails_lost, 60),  LOOP_CASE(refused, 20),      LOOP_CASE(table, 5),
    };
    const struct CMUnitTest full[] = {
        LOOP_CASE(large, 3000),
    };
    return is_large ? cmocka_run_group_tests(full, NULL, NULL) : cmocka_run_group_tests(quick, NULL, NULL);
}
