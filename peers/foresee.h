/*
 * foresee.h: what a comparison will run, and how long it will take, before anything is measured.
 */
#ifndef WF_PEERS_FORESEE_H
#define WF_PEERS_FORESEE_H

#include <stdbool.h>

#include "base/status.h"
#include "peers.h"

/* A tool before anything was measured with it. */
struct peers_candidate {
    const struct peer_tool *tool;
    bool absent;      /* it is not on this machine */
    char version[32]; /* "": it did not tell */
    int cases;        /* of the plan that it can measure */
    char why[252];    /* there is a case that it cannot measure: the reason for the last; "": there is none */
};

struct peers_forecast {
    struct peers_candidate tools[PEERS_TOOLS_MAX]; /* as many as the plan has, in its order */
    int runs;                                      /* at most */
    double seconds;                                /* about that long; a guess where the plan fixes the messages */
};

/* Looks at the tools of the plan without measuring: runs what tells their versions. 0, or what `stop` said. */
int peers_foresee(const struct peers_plan *plan, struct peers_forecast *forecast, struct wf_status *status);

/* Tools, other than Weft and its floor, that can measure a case of the plan. */
int peers_rivals(const struct peers_plan *plan, const struct peers_forecast *forecast);

#endif
