/*
 * grid.h: the samples of a run as a table: a row for each set (backend, test, mode, size), a column for each pair.
 */
#ifndef WF_REPORT_GRID_H
#define WF_REPORT_GRID_H

#include "run.h"

/* A directed pair of endpoints. */
struct report_pair {
    uint32_t src, dst; /* of the run's `ends` */
    int way;           /* an index into the grid's `ways` */
};

struct report_set {
    uint32_t backend;
    enum report_mode mode;
    bool latency;
    uint64_t size;
};

/* Of two nodes a way is from which to which. Of more, all pairs between nodes are one, and all within nodes another. */
#define REPORT_WAYS_MAX 4
#define REPORT_ANY_NODE (-2)
#define REPORT_OTHER_NODE (-3)
#define REPORT_CELLS_MOST (32u << 20) /* sets times pairs */

/* Owner: who has opened it. The run outlives it. */
struct report_grid {
    const struct report_run *run;
    struct report_set *sets; /* by backend, test, mode and size */
    size_t set_count;
    struct report_pair *pairs; /* by way, and the names of source and destination */
    size_t pair_count;
    const struct report_sample **cells; /* [set * pair_count + pair]; NULL: there is none */
    int ways[REPORT_WAYS_MAX][2];       /* source's and destination's node */
    int way_count;
    bool many; /* it is of more than two nodes */
};

/* -E2BIG: it has more sets times pairs than anybody can look at, and the grid has none. */
int report_grid_init(struct report_grid *grid, const struct report_run *run, struct wf_status *status);
void report_grid_fini(struct report_grid *grid);

static inline const struct report_sample *report_cell(const struct report_grid *grid, size_t set, size_t pair)
{
    return grid->cells[set * grid->pair_count + pair];
}

static inline const char *report_backend(const struct report_grid *grid, size_t set)
{
    return grid->run->backends.list[grid->sets[set].backend];
}

static inline const char *report_mode_name(enum report_mode mode)
{
    return mode == REPORT_LOADED ? "loaded" : "isolated";
}

/* The rates above 0 of a set's pairs of a way, sorted; way -1: of all pairs. Returns how many; `rates` has room for
 * pair_count of them. */
size_t report_rates(const struct report_grid *grid, size_t set, int way, double *rates);

/* "node0 > node1", "between nodes" */
const char *report_way_name(const struct report_grid *grid, int way, char *text, size_t room);

/* The set of another mode and otherwise the same; the set of another size; SIZE_MAX: there is none. */
size_t report_set_find(const struct report_grid *grid, const struct report_set *set);

/* The pair of two endpoints; SIZE_MAX: there is none. */
size_t report_pair_find(const struct report_grid *grid, uint32_t src, uint32_t dst);

#endif
