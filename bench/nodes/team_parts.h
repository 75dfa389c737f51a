/*
 * team_parts.h: what the files of a team share.
 */
#ifndef WF_BENCH_TEAM_PARTS_H
#define WF_BENCH_TEAM_PARTS_H

#include <pthread.h>

#include "team.h"

/* A node with which there is a session, or a conversation. */
struct bench_partner {
    struct bench_partner *next;
    int node;
    bool near;   /* parent or child in the tree: the conversation lives as long as the team */
    bool counts; /* measured with now: its rails are those of this node */
    struct weft_peer *peer;
    struct bench_control *control; /* NULL: it is over */
    struct weft_rail_stats *before;
    int rails;
};

struct bench_team {
    struct bench_link *link;
    struct weft_group *group;
    int rank, size;
    struct bench_control *all, *alone;
    struct bench_partner *up, *down[2]; /* NULL: none */
    pthread_mutex_t lock;               /* of what follows: the signal thread looks at it */
    struct bench_partner *partners;     /* owned */
    struct weft_rail_stats carried[BENCH_RAILS_MAX];
    int rail_count;
    int culprit;
    bool ended; /* what has ended it was passed on */
};

/* --- team_end.c --- */

/* What the nodes that this one talks to have said, and whether the group works. `context` is the team. */
int bench_team_look(void *context, struct wf_status *status);
void bench_team_abort(void *context, const char *reason, int exit_status, int signal);
bool bench_team_aborted(void *context, int *exit_status, int *signal);

/* --- team_tree.c --- */

extern const struct bench_control_ops bench_team_of_all, bench_team_of_one;

#endif
