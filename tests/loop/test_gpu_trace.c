/* test_gpu_trace.c: every byte that a GPU's memory gave or took is in one event of a copy. */
#include "gpu.h"
#include "tracing.h"

#define SMALL 1000
#define LARGE (3 * 1024 * 1024 + 5)
#define SETTINGS "chunk=64K"

static struct tracing tracing[2];

/* The GPU of each event of this kind. */
static void check_gpu(const struct tracing *trace, int kind, int gpu)
{
    for (int i = 0; i < trace->count; i++)
        if (trace->events[i].kind == kind)
            LOOP_CHECK(trace->events[i].gpu == gpu, "GPU %d, not %d", trace->events[i].gpu, gpu);
}

static void copies_add_up(void)
{
    static const size_t sizes[] = {LARGE, SMALL};

    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    for (int side = 0; side < 2; side++)
        tracing_start(&tracing[side], astray_pair.node[side].context);
    int64_t begin_ns = loop_world_now_ns();
    for (uint64_t i = 0; i < 2; i++) {
        gpu_exchange(0, 1, sizes[i], i);
        tracing_covers(&tracing[0], WEFT_TRACE_COPIED_OUT, i, sizes[i], begin_ns);
        tracing_covers(&tracing[0], WEFT_TRACE_SENT, i, sizes[i], begin_ns);
        tracing_covers(&tracing[1], WEFT_TRACE_RECEIVED, i, sizes[i], begin_ns);
        tracing_covers(&tracing[1], WEFT_TRACE_COPIED_IN, i, sizes[i], begin_ns);
        LOOP_CHECK(tracing_bytes(&tracing[0], WEFT_TRACE_COPIED_IN, i) == 0, "the sender has copied into its GPU");
        LOOP_CHECK(tracing_bytes(&tracing[1], WEFT_TRACE_COPIED_OUT, i) == 0, "the receiver has copied out");
    }
    check_gpu(&tracing[0], WEFT_TRACE_COPIED_OUT, 0);
    check_gpu(&tracing[1], WEFT_TRACE_COPIED_IN, 1);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

/* Copies of host memory are none. */
static void host_memory_has_none(void)
{
    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    for (int side = 0; side < 2; side++)
        tracing_start(&tracing[side], astray_pair.node[side].context);
    int64_t begin_ns = loop_world_now_ns();
    gpu_exchange(HOST, HOST, LARGE, 1);
    tracing_covers(&tracing[1], WEFT_TRACE_RECEIVED, 1, LARGE, begin_ns);
    for (int side = 0; side < 2; side++) {
        tracing_take(&tracing[side]);
        LOOP_CHECK(tracing_events(&tracing[side], WEFT_TRACE_COPIED_OUT, 1) == 0, "side %d has copied out", side);
        LOOP_CHECK(tracing_events(&tracing[side], WEFT_TRACE_COPIED_IN, 1) == 0, "side %d has copied in", side);
    }
    loop_pair_destroy(&astray_pair);
}

/* Both are of one context: one copy, of the sender. */
static void straight_copies_are_of_the_sender(void)
{
    gpu_self_create(SETTINGS);
    tracing_start(&tracing[0], astray_pair.node[0].context);
    int64_t begin_ns = loop_world_now_ns();
    gpu_exchange(2, 1, LARGE, 5);
    tracing_covers(&tracing[0], WEFT_TRACE_COPIED_OUT, 5, LARGE, begin_ns);
    const struct weft_trace_event *event = &tracing[0].events[0];
    LOOP_CHECK(tracing[0].count == 1, "%d events of one copy", tracing[0].count);
    LOOP_CHECK(event->gpu == 2 && event->endpoint == 1 && event->remote == 0, "GPU %d, endpoint %u, remote %u",
               event->gpu, event->endpoint, event->remote);
    gpu_self_destroy();
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    loop_sim_memory();
    const struct CMUnitTest tests[] = {
        LOOP_CASE(copies_add_up, 20),
        LOOP_CASE(host_memory_has_none, 20),
        LOOP_CASE(straight_copies_are_of_the_sender, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
