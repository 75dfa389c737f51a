#include "parts.h"

#include "bench/words/folder.h"
#include "bench/words/json.h"

static json_t *definitions(void)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "wall_s", "median over the iterations of the slowest rank's time",
                     "hidden", "(serial - overlapped) / communicate, of each iteration", "hidden_at_most",
                     "where each bucket begins when its layers are done and the one before it is through, and costs "
                     "the computation nothing",
                     "cores_to_communicate", "processor time of a rank while it only communicates, over that time");
}

static json_t *everything(const struct coll_plan *plan, const struct overlap_found *found, const struct coll_end *end)
{
    json_t *root = coll_head_to_json("weft.overlap/1", plan->options, end);
    bool passed = end->exit_status == BENCH_PASSED;

    json_object_set_new(root, "definitions", definitions());
    json_object_set(root, "runs", found->runs);
    json_object_set(root, "cases", found->cases);
    json_object_set(root, "not_available", found->absent);
    json_object_set_new(root, "summary",
                        json_pack("{s:b, s:b, s:o, s:I}", "passed", passed, "verified", passed && plan->asked.check,
                                  "wrong_elements",
                                  plan->asked.check ? json_integer((json_int_t)found->wrong) : json_null(), "failures",
                                  (json_int_t)found->failures));
    return root;
}

int overlap_write_files(const struct coll_plan *plan, const struct overlap_found *found, const struct coll_end *end,
                        struct wf_status *status)
{
    const struct wf_config *config = plan->options->config;
    const char *out = wf_config_text(config, WF_SET_OUT), *json = wf_config_text(config, WF_SET_JSON);
    json_t *root = everything(plan, found, end);
    char path[WF_VALUE_MAX + 32];
    int result = 0;

    if (out[0]) {
        snprintf(path, sizeof path, "%s/overlap.json", out);
        result = bench_make_folder(out, status);
        if (result == 0)
            result = bench_write_json(root, path, status);
    }
    if (json[0] && result == 0)
        result = bench_write_json(root, json, status);
    json_decref(root);
    return result;
}
