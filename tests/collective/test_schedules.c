/*
 * test_schedules.c: the algorithms without a network. All members of a group in this thread, and a wire that holds
 * every message until chance lets it go: in any order, late, or never.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collective/ops/ops.h"
#include "inputs.h"

#define SIZE_MAX_HERE 9
#define OPS_MAX 3
#define POSTS_MAX 4096

/* A post of a member, which waits for the other side's, or for its own end. */
struct posted {
    struct wf_transfer *transfer;
    const char *from;
    char *to;
    uint64_t tag;
    uint32_t rank, other; /* who has posted it, and for whom */
    bool delivered;       /* of a send: the bytes have gone, the end has not been told */
};

struct world;

struct member {
    struct wf_port port;
    struct world *world;
    uint32_t rank;
};

struct world {
    uint64_t random;
    uint32_t size;
    struct member member[SIZE_MAX_HERE];
    struct posted posted[POSTS_MAX];
    uint32_t count;
    bool refuses;      /* one post in eight is refused with -EAGAIN */
    uint32_t requests; /* of a member at once, more are refused; 0: any number */
};

static uint32_t chance(struct world *world, uint32_t below)
{
    return (uint32_t)(inputs_random(&world->random) % below);
}

static uint32_t posts_of(const struct world *world, uint32_t rank)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->count; i++)
        count += world->posted[i].rank == rank;
    return count;
}

static int post(struct wf_port *port, struct wf_transfer *transfer, const void *from, void *to, uint64_t tag)
{
    struct member *member = (struct member *)port;
    struct world *world = member->world;
    if (world->refuses && chance(world, 8) == 0)
        return -EAGAIN;
    if (world->requests > 0 && posts_of(world, member->rank) >= world->requests)
        return -EAGAIN;
    assert_true(world->count < POSTS_MAX && transfer->rank < world->size && transfer->rank != member->rank);
    for (uint32_t i = 0; i < world->count; i++)
        assert_false(world->posted[i].tag == tag && world->posted[i].rank == member->rank &&
                     world->posted[i].other == transfer->rank &&
                     world->posted[i].transfer->receives == transfer->receives && !world->posted[i].delivered);
    world->posted[world->count++] = (struct posted){
        .transfer = transfer, .from = from, .to = to, .tag = tag, .rank = member->rank, .other = transfer->rank};
    return 0;
}

static int post_send(struct wf_port *port, struct wf_transfer *transfer, const void *bytes, uint64_t tag)
{
    return post(port, transfer, bytes, NULL, tag);
}

static int post_receive(struct wf_port *port, struct wf_transfer *transfer, void *place, uint64_t tag)
{
    return post(port, transfer, NULL, place, tag);
}

static void cancel(struct wf_port *port, struct wf_transfer *transfer)
{
    (void)port;
    assert_true(transfer->busy);
}

static void end_of(struct world *world, uint32_t index, int status)
{
    struct wf_transfer *transfer = world->posted[index].transfer;
    world->posted[index] = world->posted[--world->count];
    wf_op_transfer_ended(transfer, status);
}

/* What lands must not lie where something is sent from that has not landed itself. */
static void assert_left(const struct world *world, const struct posted *to)
{
    for (uint32_t i = 0; i < world->count; i++) {
        const struct posted *at = &world->posted[i];
        if (at->rank == to->rank && at->from && !at->delivered)
            assert_true(to->to + to->transfer->bytes <= at->from || at->from + at->transfer->bytes <= to->to);
    }
}

/* Something of what can happen: a message arrives, or a sender learns that its own has. False: nothing can. */
static bool happen(struct world *world)
{
    if (world->count == 0)
        return false;
    uint32_t first = chance(world, world->count);
    for (uint32_t i = 0; i < world->count; i++) {
        struct posted *at = &world->posted[(first + i) % world->count];
        if (at->delivered) {
            end_of(world, (uint32_t)(at - world->posted), 0);
            return true;
        }
        for (uint32_t j = 0; j < world->count && !at->to; j++) {
            struct posted *to = &world->posted[j];
            if (!to->to || to->tag != at->tag || to->rank != at->other || to->other != at->rank)
                continue;
            assert_int_equal(to->transfer->bytes, at->transfer->bytes);
            assert_left(world, to);
            memcpy(to->to, at->from, at->transfer->bytes);
            at->delivered = true;
            end_of(world, j, 0);
            return true;
        }
    }
    return false;
}

static void world_init(struct world *world, uint32_t size, uint64_t seed)
{
    memset(world, 0, sizeof *world);
    world->random = seed;
    world->size = size;
    for (uint32_t i = 0; i < size; i++)
        world->member[i] = (struct member){{post_send, post_receive, cancel}, world, i};
}

/* --- one collective of all members --- */

struct job {
    struct reference what;
    bool in_place;
    void *in[SIZE_MAX_HERE], *out[SIZE_MAX_HERE], *expected[SIZE_MAX_HERE];
    void *kept[SIZE_MAX_HERE]; /* the inputs, which stay */
    struct wf_op *op[SIZE_MAX_HERE];
};

static void *place_of(const struct job *job, uint32_t rank, char *array, bool reads)
{
    uint64_t part = job->what.count * weft_type_bytes(job->what.type);
    bool own_part = reads ? job->what.kind == WEFT_ALL_GATHER : job->what.kind == WEFT_REDUCE_SCATTER;
    return array + (own_part ? rank * part : 0);
}

static void job_init(struct job *job, const struct reference *what, bool in_place, enum inputs inputs, uint64_t seed)
{
    uint64_t width = weft_type_bytes(what->type), in = reference_in(what) * width, out = reference_out(what) * width;
    *job = (struct job){.what = *what, .in_place = in_place};
    for (uint32_t i = 0; i < what->size; i++) {
        uint64_t both = in > out ? in : out;
        job->kept[i] = malloc(in + 1);
        job->expected[i] = malloc(out + 1);
        inputs_fill(inputs, what->type, job->kept[i], reference_in(what), seed + i);
        job->out[i] = malloc(both + 1);
        job->in[i] = in_place ? place_of(job, i, job->out[i], true) : memcpy(malloc(in + 1), job->kept[i], in);
        if (in_place)
            memcpy(job->in[i], job->kept[i], in);
    }
    job->what.in = (const void *const *)job->kept;
    for (uint32_t i = 0; i < what->size; i++)
        reference_result(&job->what, i, job->expected[i]);
}

static void job_fini(struct job *job)
{
    for (uint32_t i = 0; i < job->what.size; i++) {
        wf_op_destroy(job->op[i]);
        free(job->kept[i]);
        free(job->expected[i]);
        if (!job->in_place)
            free(job->in[i]);
        free(job->out[i]);
    }
}

static void job_start(struct job *job, struct world *world, uint32_t rank, uint64_t number)
{
    const struct reference *what = &job->what;
    struct wf_ask ask = {
        .kind = what->kind,
        .type = what->type,
        .op = what->op,
        .rank = rank,
        .size = what->size,
        .root = what->root,
        .by = (uint32_t)((what->by % (int)what->size + (int)what->size) % (int)what->size),
        .count = what->count,
        .in = job->in[rank],
        .out = job->in_place ? place_of(job, rank, job->out[rank], false) : job->out[rank],
    };
    assert_int_equal(wf_op_create(&ask, number, &world->member[rank].port, &job->op[rank]), 0);
    assert_int_equal(wf_op_bytes(job->op[rank]), reference_out(what) * weft_type_bytes(what->type));
}

static void job_check(const struct job *job)
{
    const struct reference *what = &job->what;
    uint64_t width = weft_type_bytes(what->type), in = reference_in(what) * width, out = reference_out(what) * width;
    for (uint32_t i = 0; i < what->size; i++) {
        const char *got = job->in_place ? place_of(job, i, job->out[i], false) : job->out[i];
        assert_true(wf_op_done(job->op[i]));
        if (memcmp(got, job->expected[i], out) != 0)
            fail_msg("%s of %llu elements of type %d, operation %d, by %u: rank %u has another result",
                     wf_op_name(job->op[i]), (unsigned long long)what->count, (int)what->type, (int)what->op,
                     what->size, i);
        if (!job->in_place)
            assert_memory_equal(job->in[i], job->kept[i], in);
    }
}

static void advance(struct job *jobs, uint32_t count, uint32_t rank)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(wf_op_advance(jobs[i].op[rank]), 0);
}

/* Members start the jobs in their order, and go on, each at its own time. Ends when all have had their turn many times,
 * and nothing has happened. */
static void run(struct world *world, struct job *jobs, uint32_t count)
{
    uint32_t started[SIZE_MAX_HERE] = {0}, left = world->size * count;
    while (left > 0) {
        uint32_t rank = chance(world, world->size);
        if (started[rank] < count && chance(world, 3) == 0) {
            job_start(&jobs[started[rank]], world, rank, started[rank] + 1);
            started[rank]++;
            left--;
        }
        advance(jobs, started[rank], rank);
        for (uint32_t i = chance(world, 3); i > 0; i--)
            happen(world);
    }
    for (uint32_t quiet = 0; quiet < 20; quiet++) {
        for (uint32_t rank = 0; rank < world->size; rank++)
            advance(jobs, count, rank);
        for (uint32_t i = chance(world, 2 * world->size); i > 0; i--)
            quiet = happen(world) ? 0 : quiet;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t rank = 0; rank < world->size; rank++)
            if (!wf_op_done(jobs[i].op[rank]))
                fail_msg("%s of %llu elements: rank %u of %u waits for ever", wf_op_name(jobs[i].op[rank]),
                         (unsigned long long)jobs[i].what.count, rank, world->size);
    assert_int_equal(world->count, 0);
}

static const uint64_t counts[] = {0, 1, 2, 3, 5, 8, 37, 300, 5000, 33333, 150000};

static struct reference random_job(struct world *world, uint32_t size)
{
    uint32_t most = sizeof counts / sizeof counts[0], which = chance(world, most * 8);
    return (struct reference){
        .kind = (enum weft_collective)chance(world, 6),
        .type = (enum weft_type)chance(world, 7),
        .op = (enum weft_op)chance(world, 4),
        .size = size,
        .root = chance(world, size),
        .by = (int)chance(world, 20) - 10,
        .count = counts[which < most ? which : which % (most - 3)],
    };
}

static void one_schedule(uint64_t seed, uint32_t requests)
{
    struct world *world = malloc(sizeof *world);
    struct job jobs[OPS_MAX];
    uint64_t random = seed;
    uint32_t size = 1 + (uint32_t)(inputs_random(&random) % SIZE_MAX_HERE);
    world_init(world, size, random);
    uint32_t count = 1 + chance(world, OPS_MAX);
    world->refuses = requests == 0 && chance(world, 4) == 0;
    world->requests = requests;
    for (uint32_t i = 0; i < count; i++) {
        struct reference what = random_job(world, size);
        job_init(&jobs[i], &what, chance(world, 2), (enum inputs)chance(world, INPUTS_KINDS), random + 100 * i);
    }
    run(world, jobs, count);
    for (uint32_t i = 0; i < count; i++) {
        job_check(&jobs[i]);
        job_fini(&jobs[i]);
    }
    free(world);
}

static void any_order(void **state)
{
    const char *number = getenv("WEFT_TEST_SCHEDULES");
    uint64_t count = number ? strtoull(number, NULL, 10) : 1000;
    (void)state;
    for (uint64_t seed = 1; seed <= count; seed++) {
        if (seed % 1000 == 0)
            print_message("[          ] schedule %llu\n", (unsigned long long)seed);
        one_schedule(seed, 0);
    }
}

/* With 2 to 5 requests for a member's operations: a send is never kept from going by receives that can wait. */
static void few_requests(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++)
        one_schedule(seed, 2 + seed % 4);
}

/* Every collective, number of members and size of the table, in place and not. */
static void every_algorithm(void **state)
{
    /* The fifth: only where no array has N of them. The last: only an all-reduce of few, in several segments. */
    static const uint64_t sizes[] = {1, 1000, 9000, 70000, 300000, 600000};
    (void)state;
    for (uint32_t size = 1; size <= SIZE_MAX_HERE; size++)
        for (int kind = 0; kind < 6; kind++)
            for (int i = 0; i < (kind != WEFT_ALL_REDUCE ? 8 : size <= 4 ? 12 : 10); i++) {
                struct world *world = malloc(sizeof *world);
                struct job job;
                struct reference what = {.kind = (enum weft_collective)kind,
                                         .type = WEFT_FLOAT32,
                                         .op = i % 2 ? WEFT_AVG : WEFT_SUM,
                                         .size = size,
                                         .root = size / 2,
                                         .by = i - 3,
                                         .count = sizes[i / 2]};
                world_init(world, size, (uint64_t)(size * 100 + (uint32_t)i));
                job_init(&job, &what, i % 2, INPUTS_REAL, size);
                run(world, &job, 1);
                job_check(&job);
                job_fini(&job);
                free(world);
            }
}

/* A transfer fails at some time: the operation posts nothing more, and what is under way can be waited for. */
static void one_failure(uint64_t seed)
{
    struct world *world = malloc(sizeof *world);
    struct job job;
    uint32_t size = 2 + (uint32_t)(seed % 8);
    world_init(world, size, seed);
    struct reference what = random_job(world, size);
    job_init(&job, &what, chance(world, 2), INPUTS_WHOLE, seed);
    for (uint32_t i = 0; i < size; i++)
        job_start(&job, world, i, 1);
    for (uint32_t i = chance(world, 40); i > 0; i--) {
        for (uint32_t rank = 0; rank < size; rank++)
            wf_op_advance(job.op[rank]);
        happen(world);
    }
    for (uint32_t rank = 0; rank < size; rank++)
        wf_op_stop(job.op[rank]);
    uint32_t before = world->count;
    for (uint32_t rank = 0; rank < size; rank++)
        wf_op_advance(job.op[rank]);
    assert_int_equal(world->count, before);
    while (world->count > 0)
        end_of(world, chance(world, world->count), -ECONNRESET);
    for (uint32_t rank = 0; rank < size; rank++) {
        wf_op_advance(job.op[rank]);
        assert_true(wf_op_idle(job.op[rank]));
    }
    assert_int_equal(world->count, 0);
    job_fini(&job);
    free(world);
}

static void failures(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++)
        one_failure(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm),
        cmocka_unit_test(any_order),
        cmocka_unit_test(few_requests),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
