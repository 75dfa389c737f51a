/* What a comparison says before its first case. */
#include <stdio.h>
#include <string.h>

#include "calibrate.h"
#include "foresee.h"
#include "page.h"
#include "report.h"

#define FIELD 11 /* columns of the names of fields */

static void put_name(const struct peers_page *page, const char *name)
{
    fprintf(page->out, "%-*s", FIELD, name);
}

/* --- tools --- */

static void put_candidate(const struct peers_plan *plan, const struct peers_candidate *candidate, char *list,
                          size_t room)
{
    size_t used = strlen(list);

    used += (size_t)snprintf(list + used, room - used, "%s%s", used ? ", " : "", candidate->tool->name);
    if (used < room && candidate->version[0])
        used += (size_t)snprintf(list + used, room - used, " %s", candidate->version);
    if (used < room && candidate->tool->aside)
        used += (size_t)snprintf(list + used, room - used, " (%s)", candidate->tool->aside);
    if (used < room && candidate->cases < plan->case_count)
        snprintf(list + used, room - used, " (%d of %d cases)", candidate->cases, plan->case_count);
}

static void put_runnable(const struct peers_plan *plan, const struct peers_forecast *forecast,
                         const struct peers_page *page)
{
    char list[512] = "";

    for (int i = 0; i < plan->tool_count; i++)
        if (forecast->tools[i].cases > 0)
            put_candidate(plan, &forecast->tools[i], list, sizeof list);
    put_name(page, "tools");
    peers_put_text(page, FIELD, list[0] ? list : "none");
}

static void put_absent(const struct peers_candidate *candidate, const struct peers_page *page)
{
    const struct peer_tool *tool = candidate->tool;

    if (tool->package)
        peers_put_line(page, FIELD, "%s: Debian package %s%s%s", tool->name, tool->package,
                       tool->at_build ? ", and Weft built with " : "", tool->at_build ? tool->at_build : "");
    else
        peers_put_line(page, FIELD, "%s: %s", tool->name, candidate->why);
}

/* Those that are not here, or cannot do any of the cases. */
static void put_missing(const struct peers_plan *plan, const struct peers_forecast *forecast,
                        const struct peers_page *page)
{
    const char *name = "not here";

    for (int i = 0; i < plan->tool_count; i++)
        if (forecast->tools[i].absent) {
            put_name(page, name);
            put_absent(&forecast->tools[i], page);
            name = "";
        }
    name = "left out";
    for (int i = 0; i < plan->tool_count; i++)
        if (!forecast->tools[i].absent && forecast->tools[i].cases == 0) {
            put_name(page, name);
            peers_put_line(page, FIELD, "%s: %s", forecast->tools[i].tool->name, forecast->tools[i].why);
            name = "";
        }
    if (!plan->place.one_machine) {
        put_name(page, "");
        peers_put_text(page, FIELD, "these are the tools of this node; a tool has to be on both");
    }
}

/* --- where, what, how long --- */

static void put_place(const struct peer_place *place, const struct peers_page *page)
{
    char list[PEER_RAILS_MAX * 60] = "";

    for (int i = 0; i < place->rail_count; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", place->rails[i]);
    put_name(page, "rails");
    peers_put_line(page, FIELD, "%s%s", list, place->one_machine ? "" : " of the other node");
    if (peers_on_loopback(place)) {
        put_name(page, "");
        peers_put_text(page, FIELD, "loopback: says nothing about a network");
    }
    put_name(page, "memory");
    peers_put_line(page, FIELD, "%s%s; nothing is verified", place->memory ? place->memory : "host",
                   place->memory && strstr(place->memory, "emulated") ? ": no GPU was measured" : "");
}

static void add_size(const struct peer_case *asked, const char *mark, char *list, size_t room)
{
    size_t used = strlen(list);
    char size[48];

    used += (size_t)snprintf(list + used, room - used, "%s%s", mark, peers_size_text(asked->size, size, sizeof size));
    if (used < room && asked->buffers > 1)
        snprintf(list + used, room - used, " with %u buffers", asked->buffers);
}

static void put_cases(const struct peers_plan *plan, const struct peers_page *page)
{
    static const enum peer_metric metrics[] = {PEER_LATENCY, PEER_RATE, PEER_BANDWIDTH}; /* as they are measured */
    const char *name = "cases";

    for (int m = 0; m < 3; m++) {
        char list[64 * PEERS_CASES_MAX];
        int count = 0;
        snprintf(list, sizeof list, "%s of ", peers_metric_title(metrics[m]));
        for (int i = 0; i < plan->case_count; i++)
            if (plan->cases[i].metric == metrics[m])
                add_size(&plan->cases[i], count++ ? ", " : "", list, sizeof list);
        if (count == 0)
            continue;
        put_name(page, name);
        peers_put_text(page, FIELD, list);
        name = "";
    }
}

static bool any_trials(const struct peers_plan *plan, const struct peers_forecast *forecast)
{
    int most = 0; /* runs without any */

    for (int i = 0; i < plan->tool_count; i++)
        most += forecast->tools[i].cases * PEERS_FINALISTS * plan->rounds;
    for (int i = 0; i < plan->case_count; i++)
        most += peers_has_first_run(plan, &plan->cases[i]);
    return forecast->runs > most;
}

static void put_effort(const struct peers_plan *plan, const struct peers_forecast *forecast,
                       const struct peers_page *page)
{
    char time[48];

    put_name(page, "rounds");
    peers_put_line(page, FIELD, "%d of every tool in each case, in turns%s", plan->rounds,
                   any_trials(plan, forecast) ? "; trials before them find the two best ways to call a tool, and of "
                                                "these the better one counts"
                                              : "");
    put_name(page, "takes");
    peers_put_line(page, FIELD, "about %s: an estimate for an idle machine, of %d runs at most%s",
                   peers_duration(forecast->seconds, time, sizeof time), forecast->runs,
                   plan->fixed_messages ? ", before anything is known of their speed (--iters)" : "");
}

static void put_legend(const struct peers_page *page)
{
    fputc('\n', page->out);
    peers_put_text(page, 0,
                   "Values are medians of the rounds. spread: (largest - smallest round) / median. weft/tool: Weft's "
                   "value over the tool's, the median of the rounds' ratios: above 1 Weft is ahead, but below 1 in "
                   "half round trips. CPU: processor seconds of both sides per 10^9 bytes.");
}

/* --- nothing to compare with --- */

static const char *why_no_rival(const struct peers_plan *plan, const struct peers_forecast *forecast)
{
    int asked = 0, absent = 0;

    for (int i = 0; i < plan->tool_count; i++) {
        asked += peers_is_rival(plan->tools[i]);
        absent += peers_is_rival(plan->tools[i]) && forecast->tools[i].absent;
    }
    return asked == 0   ? "--tools names no other tool"
           : absent > 0 ? "no other tool that can measure this is here"
                        : "none of the other tools here can measure this";
}

static bool has_tool(const struct peers_plan *plan, const char *name)
{
    for (int i = 0; i < plan->tool_count; i++)
        if (strcmp(plan->tools[i]->name, name) == 0)
            return true;
    return false;
}

/* All that there are, as the ones asked for may be few. */
static void put_packages(const struct peers_page *page)
{
    static const struct peer_tool *const tools[] = {&peer_iperf3, &peer_ucx, &peer_libfabric, &peer_openmpi};

    peers_put_text(page, 0, "Tools to compare with come with these Debian packages:");
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        fprintf(page->out, "  %-11s", tools[i]->name);
        peers_put_line(page, FIELD + 2, "%s%s%s", tools[i]->package, tools[i]->at_build ? ", and Weft built with " : "",
                       tools[i]->at_build ? tools[i]->at_build : "");
    }
}

void peers_put_no_rival(const struct peers_plan *plan, const char *reason, const struct peers_page *page)
{
    bool floor = has_tool(plan, peer_raw.name), weft = has_tool(plan, peer_weft.name);

    fputc('\n', page->out);
    peers_put_line(page, 0, "NOTHING TO COMPARE WITH: %s.%s", reason,
                   !weft   ? " Weft itself is not among --tools either."
                   : floor ? " This is Weft beside plain sockets (weft raw), the least that any tool must cost: how "
                             "far Weft is from that floor. It is no comparison with another tool."
                           : " This is Weft alone. 'weft raw' has the floor: what plain sockets reach here.");
    put_packages(page);
}

void peers_report_head(const struct peers_plan *plan, const struct peers_forecast *forecast,
                       const struct peers_page *page)
{
    peers_put_text(page, 0, "weft peers: the same messages on Weft and on other tools");
    put_runnable(plan, forecast, page);
    put_missing(plan, forecast, page);
    put_place(&plan->place, page);
    put_cases(plan, page);
    put_effort(plan, forecast, page);
    if (peers_rivals(plan, forecast) == 0)
        peers_put_no_rival(plan, why_no_rival(plan, forecast), page);
    put_legend(page);
    fflush(page->out);
}
