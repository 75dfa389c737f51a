/*
 * clock.h: the source of time. Protocol code never asks the system for the time. Its caller passes a `now` or a
 * wf_clock, so the simulator can run a minute in a millisecond.
 */
#ifndef WF_BASE_CLOCK_H
#define WF_BASE_CLOCK_H

#include <stdint.h>

#define WF_NS_PER_US 1000LL
#define WF_NS_PER_MS 1000000LL
#define WF_NS_PER_S 1000000000LL
#define WF_NEVER INT64_MAX /* a deadline that never passes */

struct wf_clock {
    int64_t (*now_ns)(const struct wf_clock *clock); /* monotonic; any thread */
};

/* CLOCK_MONOTONIC. */
extern const struct wf_clock wf_clock_monotonic;

static inline int64_t wf_clock_now(const struct wf_clock *clock)
{
    return clock->now_ns(clock);
}

/* now + timeout_ms without overflow; -1 is WF_NEVER. */
int64_t wf_deadline_after_ms(int64_t now_ns, int64_t timeout_ms);

#endif
