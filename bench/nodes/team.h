/*
 * team.h: this node and many others: a group (weft_coll.h), the tree by which they tell each other things, and a
 * session with the node that this one measures with:
 *
 *     node r has the parent (r - 1) / 2 and the children 2r + 1 and 2r + 2;  what goes up or down passes through memory
 *     for one text
 *
 * All nodes make the same calls of the tree in the same order. Whatever one of them gives up for, all others hear
 * within the setting `timeout`.
 */
#ifndef WF_BENCH_TEAM_H
#define WF_BENCH_TEAM_H

#include "collective/weft_coll.h"
#include "control.h"
#include "link.h"

struct bench_team; /* Owner: the measuring thread; the signal thread may ask for rails, and give up */

/* Waits until all nodes have come, as weft_group_create() does, over the link's context; the link has its number and
 * the team then. -EINVAL: wrong options, or who this is cannot be found. */
int bench_team_join(struct bench_link *link, const struct weft_group_options *options, struct bench_team **out,
                    struct wf_status *status);
/* Leaves, before the link is closed; and frees it, after that: requests may be under way until then. After a failure,
 * too. NULL is allowed. */
void bench_team_leave(struct bench_team *team);
void bench_team_free(struct bench_team *team);

int bench_team_size(const struct bench_team *team);
/* Sessions with other nodes now. */
uint32_t bench_team_sessions(const struct bench_team *team);
/* In one line, how this node was found; and who was refused while the team came together, "": nobody. */
const char *bench_team_source(const struct bench_team *team);
const char *bench_team_refused(const struct bench_team *team);

/* Stands for all nodes; and for this one alone, as if it were all. */
struct bench_control *bench_team_control(const struct bench_team *team);
struct bench_control *bench_team_alone(const struct bench_team *team);

/* Opens a session with another node, which does the same: the link's `peer`, `other` and `control` until the next one.
 * Of both nodes' sessions with each other this is the only one. */
int bench_team_meet(struct bench_team *team, int other, struct wf_status *status);
/* The conversation with that node is over, and its session stays: counted, until bench_team_part(). */
void bench_team_hang_up(struct bench_team *team, int other);
/* Both: nothing is under way, and nothing of this session is used any more. */
void bench_team_part(struct bench_team *team, int other);

/* What node0 says to all: its `*text`, and a new reference at the others. */
int bench_team_spread(struct bench_team *team, json_t **text, struct wf_status *status);

/* What all say to node0: each node is asked by `tell` for its texts (new references; NULL: no more), and node0 takes
 * those of the others by `take`. */
struct bench_gathering {
    json_t *(*tell)(void *context);
    int (*take)(void *context, const json_t *text, struct wf_status *status);
    void *context;
};
int bench_team_gather(struct bench_team *team, const struct bench_gathering *gathering, struct wf_status *status);

/* As bench_link_rails(). */
int bench_team_rails(struct bench_team *team, struct weft_rail_stats *stats);

/* The node for which the run ended, as far as it is known here; -1: it is not. */
int bench_team_culprit(const struct bench_team *team);

#endif
