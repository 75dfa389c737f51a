/*
 * affinity_planned.h: for tests of plans: makes the plan of one machine and looks at it. After cmocka.h.
 */
#ifndef WF_TESTS_AFFINITY_PLANNED_H
#define WF_TESTS_AFFINITY_PLANNED_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "affinity_machines.h"

/* The machine of a test, and what came of it. */
static struct wf_machine machine;
static struct wf_plan plan;
static char why[512];

static inline void make(struct wf_plan_request request)
{
    if (wf_plan_make(&machine, &request, &plan, why, sizeof(why)) != 0)
        fail_msg("%s", why);
}

static inline void refused(struct wf_plan_request request, const char *words)
{
    struct wf_plan before = plan;
    why[0] = '\0';
    assert_int_equal(wf_plan_make(&machine, &request, &plan, why, sizeof(why)), -EINVAL);
    if (!strstr(why, words))
        fail_msg("'%s' is not in: %s", words, why);
    assert_memory_equal(&plan, &before, sizeof(plan));
}

static inline void expect_set(const struct wf_cpus *set, const char *text)
{
    char have[256];
    assert_string_equal(wf_cpus_text(set, have, sizeof(have)), text);
}

static inline void expect_cores(int rail, const char *tx, const char *rx)
{
    expect_set(&plan.rails[rail].tx, tx);
    expect_set(&plan.rails[rail].rx, rx);
}

/* "eth1 eth2 | eth3": those that carry traffic, then the rest. */
static inline void expect_rails(int endpoint, const char *text)
{
    const struct wf_plan_endpoint *one = &plan.endpoints[endpoint];
    char have[512] = "";
    for (int i = 0; i < plan.rail_count; i++) {
        size_t used = strlen(have);
        snprintf(have + used, sizeof(have) - used, "%s%s%s", used ? " " : "", i == one->rail_count ? "| " : "",
                 plan.rails[one->rails[i]].name);
    }
    assert_string_equal(have, text);
}

static inline void expect_note(const char *words)
{
    if (!strstr(plan.notes, words))
        fail_msg("'%s' is not in the notes: %s", words, plan.notes);
}

#endif
