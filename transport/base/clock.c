#include "base/clock.h"

#include <time.h>

static int64_t monotonic_now(const struct wf_clock *clock)
{
    struct timespec now;

    (void)clock;
    /* Cannot fail: the clock exists on every Linux, and `now` is a variable here. */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * WF_NS_PER_S + now.tv_nsec;
}

const struct wf_clock wf_clock_monotonic = {.now_ns = monotonic_now};

int64_t wf_deadline_after_ms(int64_t now_ns, int64_t timeout_ms)
{
    int64_t timeout_ns, deadline;

    if (timeout_ms < 0 || __builtin_mul_overflow(timeout_ms, WF_NS_PER_MS, &timeout_ns) ||
        __builtin_add_overflow(now_ns, timeout_ns, &deadline))
        return WF_NEVER;
    return deadline;
}
