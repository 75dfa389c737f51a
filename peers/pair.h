/*
 * pair.h: `weft pair` as a tool: with Weft itself, and with a backend of it that is another library.
 */
#ifndef WF_PEERS_PAIR_H
#define WF_PEERS_PAIR_H

#include "peer.h"

/* As the functions of a tool. `backend` NULL: Weft itself. */
int peer_pair_commands(const char *backend, const struct peer_case *asked, const struct peer_place *place,
                       struct peer_commands *out);
int peer_pair_read(const struct peer_case *asked, const struct peer_output *server, const struct peer_output *client,
                   struct peer_reading *out, struct wf_status *status);

#endif
