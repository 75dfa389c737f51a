/* The tools, in the order in which they are reported. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "peers.h"

static const struct peer_tool *const all[] = {&peer_weft,      &peer_raw,     &peer_iperf3, &peer_ucx,
                                              &peer_libfabric, &peer_openmpi, &peer_nccl,   &peer_plugin};

#define ALL_COUNT ((int)(sizeof all / sizeof all[0]))

_Static_assert(ALL_COUNT <= PEERS_TOOLS_MAX, "a plan has room for all");

const struct peer_tool *peers_find_tool(const char *name)
{
    for (int i = 0; i < ALL_COUNT; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

bool peers_is_weft(const struct peer_tool *tool)
{
    return strcmp(tool->name, peer_weft.name) == 0;
}

bool peers_is_rival(const struct peer_tool *tool)
{
    return !peers_is_weft(tool) && !tool->aside;
}

static int unknown_tool(const char *name, struct wf_status *status)
{
    char names[128] = "";

    for (int i = 0; i < ALL_COUNT; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", all[i]->name);
    return wf_fail(status, -EINVAL, "--tools: '%.40s' is none of %s", name, names);
}

int peers_choose_tools(const char *list, struct peers_plan *plan, struct wf_status *status)
{
    bool except = list[0] == '^', named[ALL_COUNT] = {false};
    char words[256], *rest = words, *word;

    if (strlen(list) >= sizeof words)
        return wf_fail(status, -EINVAL, "--tools %.40s...: the list is too long", list);
    snprintf(words, sizeof words, "%s", list + except);
    while ((word = strsep(&rest, ",")) && (list[0] || *word)) {
        int found = -1;
        for (int i = 0; i < ALL_COUNT; i++)
            if (strcmp(all[i]->name, word) == 0)
                found = i;
        if (found < 0)
            return unknown_tool(word, status);
        named[found] = true;
    }
    plan->tool_count = 0;
    for (int i = 0; i < ALL_COUNT; i++)
        if (!list[0] || named[i] != except)
            plan->tools[plan->tool_count++] = all[i];
    if (plan->tool_count == 0)
        return wf_fail(status, -EINVAL, "--tools %.60s: leaves no tool to measure", list);
    return 0;
}
