#include "parts.h"

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
    return coll_write_result(everything(plan, found, end), "overlap.json", plan->options, status);
}
