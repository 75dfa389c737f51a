/* table.h: what people read, in the columns of nccl-tests. */
#ifndef WF_BENCH_COLLECTIVE_TABLE_H
#define WF_BENCH_COLLECTIVE_TABLE_H

#include <stdio.h>

#include "found.h"

/* The samples of one run, once it has ended: those of its backend, way and ranks. */
void coll_table_run(FILE *out, const struct coll_plan *plan, const struct coll_found *found, const struct coll_run *run,
                    const json_t *facts);

/* Backends side by side, where there are several, and the end: wrong elements, the peak, what is n/a and what failed.
 */
void coll_table_end(FILE *out, const struct coll_plan *plan, const struct coll_found *found);

/* Of --self-test: a line for each backend. */
void coll_table_self_test(FILE *out, const struct coll_plan *plan, const struct coll_found *found);

#endif
