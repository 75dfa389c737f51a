/* Where the messages of a measurement leave from and land: areas that are distinct where they have to be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/buffers/arena.h"
#include "bench/backends/backend.h"
#include "bench/buffers/memory.h"
#include "bench/buffers/pattern.h"

static const struct bench_backend_ops backend = {.name = "weft", .moves_data = true};
static const struct bench_backend_choice backends[] = {{"weft", &backend}, {NULL, NULL}};

/* Interrupts nothing until the pieces are used up. */
static int pieces_left;

int bench_control_check(struct bench_control *control, struct wf_status *status)
{
    assert_null(control);
    return pieces_left-- > 0 ? 0 : wf_fail(status, -4, "interrupted");
}

static const struct bench_gpus none; /* all is host memory */

/* So nobody asks for GPU memory. */
int weft_gpu_alloc(struct weft_context *context, int gpu, uint64_t bytes, void **out, struct weft_error *err)
{
    (void)context, (void)gpu, (void)bytes, (void)out, (void)err;
    fail();
    return -1;
}

void weft_gpu_free(struct weft_context *context, int gpu, void *memory)
{
    (void)context, (void)gpu, (void)memory;
    fail();
}

int weft_gpu_copy(struct weft_context *context, void *to, const void *from, uint64_t bytes, struct weft_error *err)
{
    (void)context, (void)to, (void)from, (void)bytes, (void)err;
    fail();
    return -1;
}

struct setting {
    enum wf_setting_id id;
    const char *text;
};

static int plan_of(struct bench_plan *plan, enum bench_command command, bool latency, const struct setting *settings,
                   int count, struct wf_status *status)
{
    static struct wf_config config;
    struct bench_options options = {.command = command, .config = &config, .latency = latency, .backends = backends};

    wf_config_init(&config);
    for (int i = 0; i < count; i++)
        assert_int_equal(wf_config_set(&config, settings[i].id, settings[i].text, WF_ORIGIN_COMMAND, "test", status),
                         0);
    pieces_left = 1000;
    return bench_plan_init(plan, &options, status);
}

#define PLAN(plan, command, latency, settings, status)                                                                 \
    plan_of(plan, command, latency, settings, (int)(sizeof(settings) / sizeof(settings[0])), status)

static bool overlap(const uint8_t *one, const uint8_t *other, uint64_t size)
{
    return one < other + size && other < one + size;
}

static void messages_take_turns_in_as_many_areas_as_asked_for(void **state)
{
    const struct setting settings[] = {
        {WF_SET_SIZE, "5000"}, {WF_SET_INFLIGHT, "2"}, {WF_SET_BUFFERS, "3"}, {WF_SET_ITERS, "20"}};
    struct bench_plan plan;
    struct bench_arena arena;
    struct wf_status status;

    (void)state;
    assert_int_equal(PLAN(&plan, BENCH_PAIR, false, settings, &status), 0);
    assert_int_equal(bench_plan_areas(&plan, 5000), 3);
    assert_int_equal(bench_arena_init(&arena, &plan, 1, &none, NULL, NULL, &status), 0);
    for (uint64_t i = 0; i < 20; i++) {
        struct bench_origin one = {.size = 5000, .iteration = i};
        const uint8_t *data = bench_arena_data(&arena, &plan, &one);
        assert_true(data >= arena.stream && data + 5000 <= arena.stream + arena.stream_bytes);
        for (uint64_t j = 0; j < i; j++) {
            struct bench_origin other = {.size = 5000, .iteration = j};
            const uint8_t *earlier = bench_arena_data(&arena, &plan, &other);
            if (i % 3 == j % 3)
                assert_ptr_equal(data, earlier);
            else
                assert_false(overlap(data, earlier, 5000) || memcmp(data, earlier, 5000) == 0);
        }
    }
    assert_true(bench_arena_landing(&arena, 0, 5000, 2) + 5000 + BENCH_GUARD <=
                arena.places[0].landings + arena.places[0].landing_bytes);
    assert_true(bench_arena_landing(&arena, 0, 5000, 3) + 5000 >
                arena.places[0].landings + arena.places[0].landing_bytes);
    bench_arena_fini(&arena);
    bench_plan_fini(&plan);
}

static void senders_of_a_phase_do_not_share_areas(void **state)
{
    const struct setting settings[] = {{WF_SET_SIZE, "64K"},   {WF_SET_ENDPOINTS, "2"}, {WF_SET_BUFFERS, "2"},
                                       {WF_SET_ITERS, "4"},    {WF_SET_INFLIGHT, "1"},  {WF_SET_PATTERN, "mesh"},
                                       {WF_SET_MODE, "loaded"}};
    const uint64_t size = 64 << 10;
    struct bench_plan plan;
    struct bench_arena arena;
    struct wf_status status;

    (void)state;
    assert_int_equal(PLAN(&plan, BENCH_MESH, false, settings, &status), 0);
    assert_int_equal(bench_plan_senders(&plan, BENCH_LOADED, 0), 4);
    assert_int_equal(bench_arena_init(&arena, &plan, 0, &none, NULL, NULL, &status), 0);
    for (uint32_t i = 0; i < 8; i++) {
        struct bench_origin one = {.sender = i / 2, .size = size, .iteration = i % 2};
        const uint8_t *data = bench_arena_data(&arena, &plan, &one);
        assert_true(data >= arena.stream && data + size <= arena.stream + arena.stream_bytes);
        for (uint32_t j = 0; j < i; j++) {
            struct bench_origin other = {.sender = j / 2, .size = size, .iteration = j % 2};
            assert_false(overlap(data, bench_arena_data(&arena, &plan, &other), size));
        }
    }
    bench_arena_fini(&arena);
    bench_plan_fini(&plan);
}

static void ping_and_pong_differ_with_one_buffer(void **state)
{
    const struct setting settings[] = {{WF_SET_SIZE, "8"}, {WF_SET_BUFFERS, "1"}};
    struct bench_origin ping = {.size = 8, .iteration = 6}, pong = {.size = 8, .iteration = 7};
    struct bench_plan plan;
    struct bench_arena arena;
    struct wf_status status;

    (void)state;
    assert_int_equal(PLAN(&plan, BENCH_PAIR, true, settings, &status), 0);
    assert_int_equal(bench_arena_init(&arena, &plan, 0, &none, NULL, NULL, &status), 0);
    assert_memory_not_equal(bench_arena_data(&arena, &plan, &ping), bench_arena_data(&arena, &plan, &pong), 8);
    bench_arena_fini(&arena);
    bench_plan_fini(&plan);
}

static void what_cannot_be_verified_is_refused(void **state)
{
    const struct setting shared[] = {{WF_SET_SIZE, "1M"}, {WF_SET_INFLIGHT, "4"}, {WF_SET_BUFFERS, "3"}};
    const struct setting unchecked[] = {
        {WF_SET_SIZE, "1M"}, {WF_SET_INFLIGHT, "4"}, {WF_SET_BUFFERS, "3"}, {WF_SET_CHECK, "0"}};
    const struct setting enough[] = {{WF_SET_SIZE, "1M"}, {WF_SET_INFLIGHT, "4"}, {WF_SET_BUFFERS, "4"}};
    struct bench_plan plan;
    struct wf_status status;

    (void)state;
    assert_int_equal(PLAN(&plan, BENCH_PAIR, false, shared, &status), -22);
    assert_non_null(strstr(status.text, "--buffers 3"));
    assert_non_null(strstr(status.text, "--inflight 3"));
    bench_plan_fini(&plan);
    assert_int_equal(PLAN(&plan, BENCH_PAIR, false, unchecked, &status), 0);
    bench_plan_fini(&plan);
    assert_int_equal(PLAN(&plan, BENCH_PAIR, false, enough, &status), 0);
    bench_plan_fini(&plan);
}

static void areas_count_as_memory(void **state)
{
    const struct setting few[] = {
        {WF_SET_SIZE, "1M"}, {WF_SET_INFLIGHT, "1"}, {WF_SET_ITERS, "1000"}, {WF_SET_BUFFERS, "1"}};
    const struct setting many[] = {
        {WF_SET_SIZE, "1M"}, {WF_SET_INFLIGHT, "1"}, {WF_SET_ITERS, "1000"}, {WF_SET_BUFFERS, "500"}};
    struct bench_plan plan;
    struct wf_status status;
    uint64_t before[2];

    (void)state;
    assert_int_equal(PLAN(&plan, BENCH_PAIR, false, few, &status), 0);
    for (int node = 0; node < 2; node++)
        before[node] = bench_memory_need(&plan, node, &none);
    bench_plan_fini(&plan);
    assert_int_equal(PLAN(&plan, BENCH_PAIR, false, many, &status), 0);
    /* Either node holds what is sent, to send or to verify it; the receiver its landings as well. */
    assert_true(bench_memory_need(&plan, 0, &none) >= before[0] + (490ull << 20));
    assert_true(bench_memory_need(&plan, 1, &none) >= before[1] + (989ull << 20));
    bench_plan_fini(&plan);
}

/* A MiB is 3 pieces by default, and with small chunks as many as are kept at each end of a message. */
static void pieces_of_a_profile_count_as_memory(void **state)
{
    const struct setting large[] = {{WF_SET_SIZE, "1M"}, {WF_SET_ENDPOINTS, "1"}, {WF_SET_ITERS, "1000"}};
    const struct setting small[] = {
        {WF_SET_SIZE, "1M"}, {WF_SET_ENDPOINTS, "1"}, {WF_SET_ITERS, "1000"}, {WF_SET_CHUNK, "4K"}};
    const uint64_t ends = 2ull * 1000 * 2, piece = 2 * 56;
    struct bench_plan plan;
    struct wf_status status;

    (void)state;
    assert_int_equal(PLAN(&plan, BENCH_PROFILE, false, large, &status), 0);
    assert_int_equal(plan.pair_count, 2);
    uint64_t before = bench_memory_need(&plan, 0, &none);
    bench_plan_fini(&plan);
    assert_int_equal(PLAN(&plan, BENCH_PROFILE, false, small, &status), 0);
    uint64_t pieces = bench_memory_need(&plan, 0, &none);
    assert_in_range(pieces - before, ends * piece * 125, ends * piece * 126);
    /* Where either end is GPU memory, each piece is copied there. */
    for (int node = 0; node < 2; node++)
        bench_plan_set_memory(&plan, node, BENCH_CUDA, 1);
    assert_in_range(bench_memory_need(&plan, 0, &none) - pieces, ends * piece * 128, ends * piece * 129);
    bench_plan_fini(&plan);
}

static void preparing_memory_can_be_interrupted(void **state)
{
    const struct setting settings[] = {{WF_SET_SIZE, "1M"}, {WF_SET_INFLIGHT, "128"}, {WF_SET_ITERS, "1000"}};
    struct bench_plan plan;
    struct bench_arena arena;
    struct wf_status status;
    int used;

    (void)state;
    assert_int_equal(PLAN(&plan, BENCH_PAIR, false, settings, &status), 0);
    assert_int_equal(bench_arena_init(&arena, &plan, 1, &none, NULL, NULL, &status), 0);
    used = 1000 - pieces_left;
    assert_true(used >= 1 + 3); /* a stream of 5 MiB, landings of more than 128 MiB */
    bench_arena_fini(&arena);
    pieces_left = used - 1;
    assert_int_equal(bench_arena_init(&arena, &plan, 1, &none, NULL, NULL, &status), -4);
    bench_arena_fini(&arena);
    bench_plan_fini(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_take_turns_in_as_many_areas_as_asked_for),
        cmocka_unit_test(senders_of_a_phase_do_not_share_areas),
        cmocka_unit_test(ping_and_pong_differ_with_one_buffer),
        cmocka_unit_test(what_cannot_be_verified_is_refused),
        cmocka_unit_test(areas_count_as_memory),
        cmocka_unit_test(pieces_of_a_profile_count_as_memory),
        cmocka_unit_test(preparing_memory_can_be_interrupted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
