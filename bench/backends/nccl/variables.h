/*
 * variables.h: what NCCL is told by the environment. What a user has set stays; what nobody has set is set so that NCCL
 * is measured on the same rails as Weft: over sockets on their interfaces, also where all ranks are on one machine.
 */
#ifndef WF_BENCH_NCCL_VARIABLES_H
#define WF_BENCH_NCCL_VARIABLES_H

#include <jansson.h>

#include "base/status.h"
#include "weft.h"

/* Owner: the measuring thread. */
struct nccl_variables {
    char set_by_us[8][64]; /* NCCL_NET and the like */
    int count;
};

/* Before anything but its version is asked of the library. `host`: what NCCL shall take this process's host for; NULL:
 * what it is. */
int nccl_variables_set(struct nccl_variables *variables, struct weft_context *context, const char *host,
                       struct wf_status *status);

/* All of NCCL's that are set, with who has set them; a new reference. */
json_t *nccl_variables_to_json(const struct nccl_variables *variables);

#endif
