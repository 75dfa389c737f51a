#include "backends.h"

#include "bench/backends/nccl/backend.h"
#include "bench/backends/plugin/backend.h"

const struct bench_backend_choice bench_backends[] = {
    {"weft", &bench_backend_weft},     {"null", &bench_backend_null},
    {"nccl", &bench_backend_nccl},     {"nccl (emulated)", &bench_backend_nccl_emulated},
    {"plugin", &bench_backend_plugin}, {NULL, NULL}};

int bench_backends_check(struct bench_plan *plan, const struct wf_config *config, int node, struct wf_status *status)
{
    int result = 0;

    for (int i = 0; i < plan->backend_count && result == 0; i++)
        if (plan->backends[i]->check)
            result = plan->backends[i]->check(&plan->backends[i], plan, config, node, status);
    return result;
}
