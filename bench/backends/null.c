/*
 * The backend that moves nothing: what it measures is the harness. Sends and receives are done as soon as they are
 * asked about.
 */
#include "backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct bench_backend {
    int next; /* where the next search starts, so that no request starves */
};

static int null_open(struct bench_link *link, const struct bench_plan *plan, struct bench_backend **out,
                     struct wf_status *status)
{
    (void)link;
    (void)plan;
    *out = calloc(1, sizeof **out);
    return *out ? 0 : wf_fail(status, -ENOMEM, "no memory for the null backend");
}

static int null_meet(struct bench_backend *backend, uint32_t first, uint32_t count, struct wf_status *status)
{
    (void)backend;
    (void)first;
    (void)count;
    (void)status;
    return 0;
}

static void null_part(struct bench_backend *backend, uint32_t first, uint32_t count)
{
    (void)backend;
    (void)first;
    (void)count;
}

/* A request is nothing but its length, plus one so that it is never NULL. */
static int null_post(uint64_t length, bench_request *out)
{
    *out = (bench_request)(uintptr_t)(length + 1);
    return 0;
}

static int null_send(struct bench_backend *backend, uint32_t pair, const void *data, uint64_t length, uint64_t tag,
                     bench_request *out)
{
    (void)backend;
    (void)pair;
    (void)data;
    (void)tag;
    return null_post(length, out);
}

static int null_recv(struct bench_backend *backend, uint32_t pair, void *landing, uint64_t length, uint64_t tag,
                     bench_request *out)
{
    (void)backend;
    (void)pair;
    (void)landing;
    (void)tag;
    return null_post(length, out);
}

static int null_wait(struct bench_backend *backend, bench_request *requests, int count, int timeout_ms, int *index,
                     struct weft_completion *completion)
{
    (void)timeout_ms;
    for (int i = 0; i < count; i++) {
        int at = (backend->next + i) % count;
        if (!requests[at])
            continue;
        backend->next = at + 1;
        memset(completion, 0, sizeof *completion);
        completion->bytes = (uint64_t)(uintptr_t)requests[at] - 1;
        completion->completed_ns = wf_clock_now(&wf_clock_monotonic);
        *index = at;
        return 0;
    }
    return -ENOENT;
}

static int null_rails(struct bench_backend *backend, bool intra, struct weft_rail_stats *stats, int max)
{
    (void)backend;
    (void)intra;
    (void)stats;
    (void)max;
    return 0;
}

static int null_expect(struct bench_backend *backend, uint64_t count, struct wf_status *status)
{
    (void)backend;
    (void)count;
    (void)status;
    return 0;
}

static void null_close(struct bench_backend *backend)
{
    free(backend);
}

const struct bench_backend_ops bench_backend_null = {
    .name = "null",
    .moves_data = false,
    .open = null_open,
    .meet = null_meet,
    .part = null_part,
    .send = null_send,
    .recv = null_recv,
    .expect = null_expect,
    .wait = null_wait,
    .rails = null_rails,
    .close = null_close,
};
