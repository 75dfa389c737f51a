#include "core/channel/lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/channel/carry.h"
#include "core/channel/payload.h"

int wf_lines_init(struct wf_lines *lines, struct wf_guard *guard, const struct wf_terms *terms, struct wf_kicks *kicks)
{
    lines->rosters = calloc((size_t)kicks->count, sizeof *lines->rosters);
    if (!lines->rosters)
        return -ENOMEM;
    for (int i = 0; i < kicks->count; i++)
        wf_roster_init(&lines->rosters[i], i);
    lines->guard = guard;
    lines->terms = terms;
    lines->kicks = kicks;
    wf_list_init(&lines->untold);
    wf_list_init(&lines->owing);
    wf_list_init(&lines->parked);
    wf_list_init(&lines->spent);
    for (int strand = 0; strand < WF_STRANDS_MAX; strand++)
        wf_list_init(&lines->strands[strand].idle);
    atomic_store(&lines->heard_ns, wf_world_now(guard->world));
    return 0;
}

void wf_lines_fini(struct wf_lines *lines)
{
    struct wf_link *link;
    WF_LINES_EACH (channel, lines) {
        wf_channel_fini(channel);
        free(channel); /* the first member of what its session has made */
    }
    while (lines->guard && (link = wf_list_pop_front(&lines->parked)))
        wf_list_push_back(&lines->spent, link);
    if (lines->guard)
        wf_payloads_close(&lines->spent);
    free(lines->channels);
    free(lines->lost_by_peer);
    free(lines->rails);
    free(lines->rosters);
}

/* A pair of rails that the dialer has made, with no channel yet. */
static void init_rail(struct wf_session_rail *rail)
{
    rail->local = -1;
    snprintf(rail->name, sizeof rail->name, "unmet");
    for (int group = 0; group < WF_GROUPS; group++)
        wf_list_init(&rail->idle[group]);
    for (int traffic = 0; traffic < WF_CLASSES; traffic++)
        wf_list_init(&rail->behind[traffic]);
}

int wf_lines_expect(struct wf_lines *lines, int count)
{
    int rails = count < WF_RAILS_MAX ? count : WF_RAILS_MAX;
    int parts = lines->terms->features & WF_FEATURE_DEVICE    ? WF_CLASSES + WF_STRANDS_MAX
                : lines->terms->features & WF_FEATURE_CLASSES ? WF_CLASSES
                                                              : 1;
    int room = parts * count;
    lines->channels = calloc((size_t)room, sizeof *lines->channels);
    lines->lost_by_peer = calloc((size_t)room, sizeof *lines->lost_by_peer);
    lines->rails = calloc((size_t)rails, sizeof *lines->rails);
    if (lines->channels && lines->lost_by_peer && lines->rails) {
        for (int i = 0; i < rails; i++)
            init_rail(&lines->rails[i]);
        lines->per_class = count;
        lines->room = room;
        wf_lines_use(lines, 0);
        return 0;
    }
    free(lines->channels);
    free(lines->lost_by_peer);
    free(lines->rails);
    lines->channels = NULL;
    lines->lost_by_peer = NULL;
    lines->rails = NULL;
    return -ENOMEM;
}

/* Each class in use has one group that carries it, for each kind. Session lock. */
static void choose_carriers(struct wf_lines *lines, enum wf_channel_kind kind)
{
    unsigned lowest = 0;
    while (lowest < WF_CLASSES && lines->up_of[wf_group(lowest, kind)] == 0)
        lowest += 1;
    int common = wf_group(lowest < WF_CLASSES ? lowest : 0, kind);
    for (unsigned traffic = 0; traffic < WF_CLASSES; traffic++)
        lines->carried[wf_group(traffic, kind)] = 0;
    WF_CLASSES_EACH (traffic, lines->classes) {
        int own = wf_group(traffic, kind);
        lines->carried[lines->up_of[own] > 0 ? own : common] |= (uint8_t)(1u << traffic);
    }
}

void wf_lines_use(struct wf_lines *lines, unsigned traffic)
{
    int end = ((int)traffic + 1) * lines->per_class;
    lines->classes |= 1u << traffic;
    if (lines->channel_count < end)
        lines->channel_count = end;
    choose_carriers(lines, WF_CHANNEL_EXPRESS);
    choose_carriers(lines, WF_CHANNEL_BULK);
}

void wf_lines_use_strand(struct wf_lines *lines, int strand)
{
    int end = (WF_CLASSES + strand + 1) * lines->per_class;
    lines->strands_used |= UINT32_C(1) << strand;
    if (lines->channel_count < end)
        lines->channel_count = end;
}

int wf_lines_workers(struct wf_lines *lines, int rail)
{
    struct wf_session_rail *pair = &lines->rails[rail];
    if (pair->workers == 0)
        pair->workers = (pair->local < 0 ? 0 : pair->local) + 1;
    return pair->workers - 1;
}

/* A device channel has come up, or is up no more: the session lives by the others. */
static void count_strand(struct wf_lines *lines, const struct wf_channel *changed, int by)
{
    struct wf_strand *strand = &lines->strands[changed->strand];
    strand->up += by;
    strand->rails = 0;
    WF_LINES_EACH (channel, lines) {
        int local = lines->rails[channel->rail].local;
        bool counts = channel == changed ? by > 0 : channel->up;
        if (counts && channel->strand == changed->strand && local >= 0)
            strand->rails |= UINT64_C(1) << local;
    }
}

void wf_lines_count_up(struct wf_lines *lines, const struct wf_channel *channel, int by)
{
    if (channel->strand >= 0) {
        count_strand(lines, channel, by);
        return;
    }
    int before = lines->up_of[channel->group];
    lines->up_count += by;
    lines->up_of[channel->group] += by;
    if (before == 0 || before + by == 0)
        choose_carriers(lines, channel->kind);
}
