/*
 * version.h: which version of a tool is here, as the tool tells it.
 */
#ifndef WF_PEERS_VERSION_H
#define WF_PEERS_VERSION_H

#include "peers.h"

/* "" in `version` where the tool does not tell, or takes too long for it. 0, or what the plan's `stop` said. */
int peers_find_version(const struct peers_plan *plan, const struct peer_tool *tool, char *version, size_t room,
                       struct wf_status *status);

/* The first number with a point in it, with what stands right behind it: "5.0.7rc1". False: there is none. */
bool peers_read_version(const char *text, char *version, size_t room);

#endif
