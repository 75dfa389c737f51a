/*
 * run_parts.h: what the files of a run share: what there is of it, and what comes before anything is measured.
 */
#ifndef WF_BENCH_RUN_PARTS_H
#define WF_BENCH_RUN_PARTS_H

#include "bench/measure/measure.h"
#include "bench/nodes/team.h"
#include "bench/profile/profile.h"
#include "ending.h"
#include "local.h"
#include "visit.h"
#include "watch.h"

/* Large: on the heap. */
struct bench_run {
    struct bench_options *options;
    struct bench_visit *visit; /* of a server that stays; NULL: the node is there for this run alone */
    struct bench_gpus gpus;    /* chosen before the other node has its say */
    struct bench_plan plan;
    struct bench_plan outer; /* the same of whole nodes, for the result; without pairs where `plan` is that */
    struct bench_link link;
    struct bench_team *team; /* NULL: there are two nodes */
    uint32_t at_once;        /* node pairs of a team that measure isolated */
    struct bench_control *control;
    struct bench_arena arena;
    struct bench_bed bed;
    struct bench_result result;
    struct bench_progress progress;
    struct bench_child child;
    struct bench_ending ending;
    struct bench_profile_lock lock;
    struct bench_watch watch;
    bool made_out; /* the folder of --out was not there before */
    bool prepared; /* settings are sound: from here on a failure is a failure of the run */
    bool unready;  /* it failed before the other node had any part in it */
    bool agreed;   /* with the other node on what is measured */
    bool passed;
};

/* Where people read what goes on; NULL: nowhere. */
FILE *bench_run_news(const struct bench_run *run);

/* Everything that can be refused before anything is started. */
int bench_run_prepare(struct bench_run *run, struct wf_status *status);

/* The nodes meet; or they have met in the lobby. */
int bench_run_meet(struct bench_run *run, struct wf_status *status);
void bench_run_receive(struct bench_run *run);

/* On what is measured. */
int bench_run_agree(struct bench_run *run, struct wf_status *status);

#endif
