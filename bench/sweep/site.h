/*
 * site.h: one run of a sweep: `weft pair` or `weft mesh` as a program of its own, so that a setting with which it
 * crashes, hangs or finds no memory costs that run alone. Between two nodes, node0's half is started by node0; see
 * far.h.
 */
#ifndef WF_BENCH_SITE_H
#define WF_BENCH_SITE_H

#include <jansson.h>

#include "bench/nodes/asking.h"
#include "peers/run.h"
#include "reading.h"
#include "space.h"

/* Where a sweep runs, and what all of its runs have in common. Owner: the measuring thread. */
struct bench_site {
    const struct bench_options *options; /* the sweep's */
    const struct bench_space *space;
    enum bench_command command; /* mesh or pair */
    char program[1024];         /* weft itself */
    char rails[BENCH_RAILS_MAX][64];
    int rail_count;              /* of both nodes, what each has; 0: not known */
    struct bench_asking *asking; /* the way to node0; NULL: both nodes are here */
    json_t *answer;              /* node0's last */
    json_t *server;              /* its command for the last run; NULL: there was none */
    peer_stop *stop;
    void *context;
    struct peer_commands commands; /* of the last run */
};

/* Finds this program and the rails of this node. -EINVAL: wrong usage. */
int bench_site_init(struct bench_site *site, struct bench_options *options, struct wf_status *status);
void bench_site_fini(struct bench_site *site);

/* Runs a point. 0 also where the run failed; else what ends the sweep. */
int bench_site_run(struct bench_site *site, uint32_t point, struct bench_reading *reading, struct wf_status *status);
/* Whether a setting of the sweep acts on its runs and is passed on to them: none of outputs, ports, waiting. */
bool bench_site_passes(const struct bench_site *site, enum wf_setting_id id);

/* The value that a run gets for what a point has on an axis: a number of rails becomes their names. */
int bench_site_value(const struct bench_site *site, const struct bench_axis *axis, const char *value, char *text,
                     size_t room, struct wf_status *status);

/* node0's half of a run: `asked` has the settings of the point by name. -EINVAL: it has something else, too. */
int bench_site_server(struct bench_site *site, const json_t *asked, int port, struct peer_command *command,
                      struct wf_status *status);

#endif
