#include "core/channel/lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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
    atomic_store(&lines->heard_ns, wf_world_now(guard->world));
    return 0;
}

void wf_lines_fini(struct wf_lines *lines)
{
    WF_LINES_EACH (channel, lines) {
        wf_channel_fini(channel);
        free(channel); /* the first member of what its session has made */
    }
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
    wf_list_init(&rail->idle[WF_CHANNEL_EXPRESS]);
    wf_list_init(&rail->idle[WF_CHANNEL_BULK]);
    wf_list_init(&rail->behind);
}

int wf_lines_expect(struct wf_lines *lines, int count)
{
    int rails = count < WF_RAILS_MAX ? count : WF_RAILS_MAX;
    lines->channels = calloc((size_t)count, sizeof *lines->channels);
    lines->lost_by_peer = calloc((size_t)count, sizeof *lines->lost_by_peer);
    lines->rails = calloc((size_t)rails, sizeof *lines->rails);
    if (lines->channels && lines->lost_by_peer && lines->rails) {
        for (int i = 0; i < rails; i++)
            init_rail(&lines->rails[i]);
        lines->channel_count = count;
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
