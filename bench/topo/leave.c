/* How weft topo ends: what went wrong is told, and stands in the JSON. */
#include <errno.h>
#include <stdio.h>

#include "bench/words/heard.h"
#include "bench/words/json.h"
#include "topo.h"

int bench_topo_leave(const struct bench_options *options, json_t *root, struct wf_status *status, int exit_status)
{
    const char *path = wf_config_text(options->config, WF_SET_JSON);

    if (status->code)
        fprintf(stderr, "weft: %s\n", status->text);
    json_object_set_new(root, "error", status->code ? bench_heard_string(status->text) : json_null());
    json_object_set_new(root, "error_code", bench_error_code_to_json(status->code));
    json_object_set_new(root, "exit_status", json_integer(exit_status));
    if (path[0] && bench_write_json(root, path, status) != 0) {
        fprintf(stderr, "weft: %s\n", status->text);
        exit_status = exit_status == BENCH_PASSED ? BENCH_FAILED : exit_status;
    }
    json_decref(root);
    return exit_status;
}

int bench_topo_refused(const struct bench_options *options, struct wf_status *status)
{
    int exit_status = status->code == -EINVAL || status->code == -ENOENT ? BENCH_USAGE
                      : status->code == -EOPNOTSUPP                      ? BENCH_UNAVAILABLE
                                                                         : BENCH_FAILED;

    return bench_topo_leave(options,
                            options->in_force
                                ? json_pack("{s:s, s:n}", "schema", "weft.topo/1", "in_force")
                                : json_pack("{s:s, s:n, s:n, s:n, s:[], s:[], s:n}", "schema", "weft.topo/1", "machine",
                                            "plan", "gpu_path", "paths", "obstacles", "device_memory"),
                            status, exit_status);
}
