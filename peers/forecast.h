/*
 * forecast.h: what a tool can measure, and how many runs that makes, before anything is run.
 */
#ifndef WF_PEERS_FORECAST_H
#define WF_PEERS_FORECAST_H

#include "peers.h"

#define PEERS_WHY_MAX 252

/* How many variants `tool` has for a case; 0: none, and `why` says so. `absent`: it is not on this machine. */
int peers_count_variants(const struct peers_plan *plan, const struct peer_case *asked, const struct peer_tool *tool,
                         bool *absent, char why[PEERS_WHY_MAX]);

/* Whether a tool with so many variants has trials, in which the best are found. */
bool peers_has_trials(int variant_count);

/* Trials of such a tool; never more than rounds. */
int peers_trial_count(const struct peers_plan *plan);

/* Runs of all tools in a case, at most; without the first one of Weft (peers_has_first_run()). */
int peers_runs_of_case(const struct peers_plan *plan, const struct peer_case *asked);

/* How long so many messages of a case take, before anything is known of their speed. */
double peers_guess_seconds(const struct peer_case *asked, double messages);

#endif
