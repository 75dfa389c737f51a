#include "backends.h"

#include <string.h>

const struct bench_backend_ops *bench_backend_find(const char *name)
{
    static const struct bench_backend_ops *const all[] = {&bench_backend_weft, &bench_backend_null, &bench_backend_nccl,
                                                          &bench_backend_nccl_emulated};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

int bench_backends_check(struct bench_plan *plan, const struct wf_config *config, int node, struct wf_status *status)
{
    int rc = 0;

    for (int i = 0; i < plan->backend_count && rc == 0; i++)
        if (plan->backends[i]->check)
            rc = plan->backends[i]->check(&plan->backends[i], plan, config, node, status);
    return rc;
}
