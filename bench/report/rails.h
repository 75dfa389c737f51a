/*
 * rails.h: what a rail carried, and what it should have.
 */
#ifndef WF_REPORT_RAILS_H
#define WF_REPORT_RAILS_H

#include "run.h"

/* Whether the line rates of all rails of the rail's node are known. */
bool report_rail_known(const json_t *rails, const json_t *rail);

/* The rail's part of the line rates of its node; an equal part where one is not known. */
double report_rail_fair(const json_t *rails, const json_t *rail);

/* The rail's part of the bytes of the largest size that came to its node; NaN: none came. */
double report_rail_share(const struct report_run *run, const json_t *rail);

/* Whether every rail was to serve every endpoint: else shares follow from who sent, and say nothing of the rails. */
bool report_all_rails_serve(const struct report_run *run);

#endif
