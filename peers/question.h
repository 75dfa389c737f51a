/*
 * question.h: what one node asks of the other, as it goes over the wire, and what may pass:
 *
 *     a name out of the table of tools, numbers within bounds, addresses
 *
 * Nothing else gets into a command line.
 */
#ifndef WF_PEERS_QUESTION_H
#define WF_PEERS_QUESTION_H

#include <jansson.h>
#include <stdbool.h>

#include "peers.h"

struct peers_question {
    const struct peer_tool *tool;
    int variant;
    struct peer_case asked;
};

/* {"run": TOOL, "variant", "metric", "size", ...}; a new reference. */
json_t *peers_question_to_json(const struct peers_question *question);

/*
 * The other way. `plan` has the tools that are allowed, `place` where they would run. -EINVAL: not what this build
 * asks, or a tool that is not allowed; -ENOENT: it is not here; -EOPNOTSUPP: it cannot measure that.
 */
int peers_question_from_json(const json_t *json, const struct peers_plan *plan, const struct peer_place *place,
                             struct peers_question *question, struct wf_status *status);

/* Whether `text` is an IPv4 or IPv6 address, a link-local one with its interface. */
bool peers_is_address(const char *text);

#endif
