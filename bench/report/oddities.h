/*
 * oddities.h: what is odd among the nodes and pairs of a run, its rails and its GPUs. The rule for pairs is
 * bench/result/odd.h, that for nodes and the rails of more than two bench/result/slow.h. The rails of two nodes:
 *
 *     a rail is slow  where  its share of the bytes < 0.8 * its share of the line rates, and there is a network
 *     a GPU is hot    where  it slows down for heat or power, or is at 85 °C or more, or 15 °C above the median of the
 *                            others of its model, of at least 3
 */
#ifndef WF_REPORT_ODDITIES_H
#define WF_REPORT_ODDITIES_H

#include "bench/result/findings.h"
#include "grid.h"

#define REPORT_SLOW_RAIL 0.8
#define REPORT_HOT_C 85
#define REPORT_HOTTER_C 15

struct report_oddity {
    struct bench_odd odd; /* its `src` and `dst` are of the run's `ends` */
    uint32_t backend;
    int way;
    enum report_mode mode; /* the first in which it is */
    uint64_t size;         /* the largest, of which its rates are */
};

#define REPORT_ODDITIES_MAX 64

struct report_oddities {
    struct bench_findings nodes; /* of more than two; their rails are of the run's `names` */
    struct report_oddity list[REPORT_ODDITIES_MAX];
    size_t count;
    size_t more; /* that the list has no room for */
};

/* Looks at isolated and loaded; what both have is noted of isolated. Between host memory over loopback there are no
 * links, and none is odd. 0 or -ENOMEM. */
int report_oddities_find(const struct report_grid *grid, struct report_oddities *odd, struct wf_status *status);

/* A word on a pair in a set: "slow", "slow one way", or NULL where nothing is odd about it. */
const char *report_oddity_of(const struct report_oddities *odd, const struct report_grid *grid, size_t set,
                             size_t pair);

/* The samples of a backend and mode as the rule for nodes takes them. Owner: the caller. */
struct report_readings {
    struct bench_readings of;
    double *bytes, *lines;
    uint64_t largest; /* size */
};

/* 0 or -ENOMEM; can be given to fini either way. */
int report_readings_init(struct report_readings *readings, const struct report_grid *grid, uint32_t backend,
                         enum report_mode mode);
void report_readings_fini(struct report_readings *readings);

/* Part of report_oddities_find() for more than two nodes; in nodes.c. 0 or -ENOMEM. */
int report_nodes_look(const struct report_grid *grid, struct report_oddities *odd);

/* Adds what is odd of a pair or endpoint, unless it is said already. */
void report_oddities_note(struct report_oddities *odd, const struct report_oddity *oddity);

/* A GPU, and the most that was seen of it. */
struct report_gpu {
    char name[64]; /* "node0 gpu3" */
    char model[96];
    double celsius; /* NaN: not known */
    char throttling[160];
};

#define REPORT_GPUS_MAX 128

struct report_gpus {
    struct report_gpu list[REPORT_GPUS_MAX];
    size_t count;
};

/* Adds what a result or a temperatures.csv says of GPUs. */
void report_gpus_add(struct report_gpus *gpus, const struct report_run *run);

/* Whether a GPU is hot, and why, in words. */
bool report_gpu_is_hot(const struct report_gpus *gpus, size_t at, char *why, size_t room);

#endif
