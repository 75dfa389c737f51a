/* The simulated memory of tests/support, in as many ways as there are seeds. */
#include "memory_contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim.h"
#include "sim_memory.h"

/* The host is the memory, as its table of functions wants it; one world at a time has its time here. */
static struct wf_sim *time_of_world;

static void *simulated_create(uint64_t seed)
{
    struct wf_sim_memory *host = wf_sim_memory_create(&(struct wf_sim_memory_options){
        .seed = seed, .devices = DEVICES, .device_bytes = DEVICE_BYTES, .exports = seed % 2});

    time_of_world = wf_sim_create(&(struct wf_sim_options){.seed = seed});
    assert_non_null(host);
    assert_non_null(time_of_world);
    wf_sim_memory_join(host, time_of_world);
    return host;
}

/* Both abort where anything is left. */
static void simulated_destroy(void *host)
{
    for (int i = 0; i < DEVICES; i++)
        assert_int_equal(wf_sim_memory_counts(host, i).allocations, 0);
    assert_int_equal(wf_sim_memory_pins(host), 0);
    wf_sim_memory_join(host, NULL);
    wf_sim_memory_destroy(host);
    wf_sim_destroy(time_of_world);
}

static void simulated_pass(void *host)
{
    (void)host;
    if (!wf_sim_step(time_of_world))
        wf_sim_advance(time_of_world, wf_sim_now(time_of_world) + WF_NS_PER_US);
}

static void simulated_fail_copy(void *host, int device, enum wf_copy_way way)
{
    wf_sim_memory_fail_copy(host, device, way, 1, false);
}

static void simulated_fail_alloc(void *host, int device)
{
    wf_sim_memory_fail_alloc(host, device, 1);
}

static void simulated_fail_pin(void *host)
{
    wf_sim_memory_fail_pin(host, 1);
}

static void simulated_lose(void *host, int device)
{
    wf_sim_memory_lose(host, device);
}

static void *simulated_stream_create(void *host, int device)
{
    return wf_sim_stream_create(host, device);
}

static void simulated_stream_destroy(void *host, void *stream)
{
    while (!wf_sim_stream_idle(stream))
        simulated_pass(host);
    wf_sim_stream_destroy(stream);
}

static void *simulated_stream_handle(void *host, void *stream)
{
    (void)host;
    return stream;
}

static void simulated_stream_block(void *host, void *stream)
{
    (void)host;
    wf_sim_stream_work(stream, WF_NEVER);
}

static void simulated_stream_release(void *host, void *stream)
{
    (void)host;
    wf_sim_stream_release(stream);
}

struct writing {
    struct wf_sim_memory *host;
    void *to;
    const void *from;
    uint64_t bytes;
};

static void write_now(void *argument)
{
    struct writing *writing = argument;

    wf_sim_memory_copy(writing->host, writing->to, writing->from, writing->bytes);
    free(writing);
}

static void simulated_stream_write(void *host, void *stream, void *to, const void *from, uint64_t bytes)
{
    struct writing *writing = malloc(sizeof(*writing));

    assert_non_null(writing);
    *writing = (struct writing){.host = host, .to = to, .from = from, .bytes = bytes};
    wf_sim_stream_call(stream, write_now, writing);
}

static uint64_t simulated_copies(void *host, int device)
{
    struct wf_sim_memory_counts counts = wf_sim_memory_counts(host, device);

    return counts.copies[WF_COPY_OUT] + counts.copies[WF_COPY_IN] + counts.copies[WF_COPY_PEER];
}

const struct memory_kind memory_simulated = {
    .name = "simulated",
    .ops = &wf_memory_sim,
    .seeds = 5,
    .create = simulated_create,
    .destroy = simulated_destroy,
    .pass = simulated_pass,
    .fail_copy = simulated_fail_copy,
    .fail_alloc = simulated_fail_alloc,
    .fail_pin = simulated_fail_pin,
    .lose = simulated_lose,
    .stream_create = simulated_stream_create,
    .stream_destroy = simulated_stream_destroy,
    .stream_handle = simulated_stream_handle,
    .stream_block = simulated_stream_block,
    .stream_release = simulated_stream_release,
    .stream_write = simulated_stream_write,
    .copies = simulated_copies,
};
