#include "criteria.h"

#include <inttypes.h>

#define STEADY_SHARE 0.95   /* of the configurations */
#define DRIFT_MOST_PPM 1000 /* 0.1 % */
#define KINDS_DIFFER 1.1
#define RESIDUAL_MOST 0.2

static enum bench_verdict met_if(bool condition)
{
    return condition ? BENCH_MET : BENCH_NOT_MET;
}

#define FOUND(criterion, ...) snprintf((criterion)->found, sizeof(criterion)->found, __VA_ARGS__)

static void not_applicable(struct bench_criterion *criterion, const char *reason)
{
    criterion->verdict = BENCH_NOT_APPLICABLE;
    FOUND(criterion, "%s", reason);
}

/* --- it ran --- */

static void judge_complete(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    criterion->verdict = met_if(input->configs > 0 && input->complete == input->configs && input->errors == 0);
    FOUND(criterion, "%" PRIu64 " of %" PRIu64 " complete, %" PRIu64 " errors", input->complete, input->configs,
          input->errors);
}

static void judge_traces(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    criterion->verdict = met_if(input->ranks > 0 && input->traces == input->ranks);
    FOUND(criterion, "of %" PRIu32 " of %" PRIu32 " ranks", input->traces, input->ranks);
}

static void judge_sizes(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    criterion->verdict = met_if(input->sizes > 0 && input->sizes_complete == input->sizes);
    FOUND(criterion, "%" PRIu32 " of %" PRIu32, input->sizes_complete, input->sizes);
}

static void judge_order(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    criterion->verdict = met_if(input->digest != NULL);
    FOUND(criterion, "seed %" PRIu64 ", order %.100s", input->seed, input->digest ? input->digest : "not stated");
}

/* --- it is good --- */

static void judge_variance(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    if (input->repeated == 0) {
        not_applicable(criterion, "nothing was repeated");
        return;
    }
    double share = (double)input->steady / input->repeated;
    criterion->verdict = met_if(share >= STEADY_SHARE);
    FOUND(criterion, "%.1f %% of %" PRIu32 " configurations below 5 %%, median %.1f %%", 100 * share, input->repeated,
          100 * input->cv_median);
}

static void judge_bandwidth(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    if (input->large == 0) {
        not_applicable(criterion, "no pair has two sizes of which one is 1M or more");
        return;
    }
    criterion->verdict = met_if(input->near == input->large);
    FOUND(criterion, "%" PRIu32 " of %" PRIu32 " pairs, the least has %.0f %% of its best", input->near, input->large,
          100 * input->near_least);
}

static void judge_latency(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    if (input->small == 0) {
        not_applicable(criterion, "no pair has two sizes up to 1K");
        return;
    }
    criterion->verdict = met_if(input->even == input->small);
    FOUND(criterion, "%" PRIu32 " of %" PRIu32 " pairs, the largest spread is %.1f %%", input->even, input->small,
          100 * input->small_spread);
}

static void judge_drift(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    if (input->drift_ppm < 0) {
        not_applicable(criterion, "it was not measured");
        return;
    }
    criterion->verdict = met_if(input->drift_ppm < DRIFT_MOST_PPM);
    FOUND(criterion, "%.2f ppm at most, of nodes and GPUs, errors included", input->drift_ppm);
}

static void judge_throttling(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    if (!input->watched) {
        not_applicable(criterion, "no GPU was watched");
        return;
    }
    criterion->verdict = met_if(input->throttled == 0);
    FOUND(criterion, "during %" PRIu64 " messages", input->throttled);
}

/* --- it tells something --- */

static void judge_curves(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    criterion->verdict = met_if(input->links > 0 && input->clear == input->links);
    if (input->fitted == 0)
        FOUND(criterion, "0 of %" PRIu32 " pairs have a model", input->links);
    else
        FOUND(criterion, "%" PRIu32 " of %" PRIu32 " pairs, the least R2 is %.3f", input->clear, input->links,
              input->r2_least);
}

static void judge_regimes(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    if (input->fitted == 0) {
        not_applicable(criterion, "no pair has a model");
        return;
    }
    criterion->verdict = met_if(input->crossed == input->fitted);
    FOUND(criterion, "%" PRIu32 " of %" PRIu32 " pairs", input->crossed, input->fitted);
}

static void judge_topology(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    if (input->link_kinds < 2) {
        not_applicable(criterion, "there are no pairs of GPUs with different links");
        return;
    }
    criterion->verdict = met_if(input->kinds_ratio >= KINDS_DIFFER);
    FOUND(criterion, "%" PRIu32 " kinds, the best has %.2f times the bandwidth of the worst", input->link_kinds,
          input->kinds_ratio);
}

static void judge_model(const struct bench_criteria_input *input, struct bench_criterion *criterion)
{
    criterion->verdict = met_if(input->model_written && input->residual >= 0 && input->residual <= RESIDUAL_MOST);
    if (input->residual < 0)
        FOUND(criterion, "no pair has a model");
    else
        FOUND(criterion, "%s, the median residual is %.1f %%", input->model_written ? "written" : "not written",
              100 * input->residual);
}

static const struct {
    const char *name, *wanted;
    void (*judge)(const struct bench_criteria_input *input, struct bench_criterion *criterion);
} table[BENCH_CRITERIA] = {
    {"all configurations ran", "all complete without errors", judge_complete},
    {"traces of all ranks", "a trace of every rank", judge_traces},
    {"all sizes complete", "every size on every pair", judge_sizes},
    {"reproducible", "a seed, and the digest of the order", judge_order},
    {"low variance", "CV below 5 % in 95 % of the configurations", judge_variance},
    {"bandwidth of large messages", "the two largest sizes within 10 % of the pair's best", judge_bandwidth},
    {"latency of small messages", "medians of the sizes up to 1K within 20 %", judge_latency},
    {"clock drift", "below 1000 ppm", judge_drift},
    {"no throttling", "no message while a GPU is throttled", judge_throttling},
    {"clear curves", "R2 of every pair's model at least 0.9", judge_curves},
    {"two regimes", "a crossover within the sizes of every pair", judge_regimes},
    {"effects of topology", "kinds of links 10 % apart", judge_topology},
    {"comparable to a simulator", "median residual of model.json up to 20 %", judge_model},
};

void bench_criteria_judge(const struct bench_criteria_input *input, struct bench_criterion criteria[BENCH_CRITERIA])
{
    for (int i = 0; i < BENCH_CRITERIA; i++) {
        criteria[i] = (struct bench_criterion){.name = table[i].name, .wanted = table[i].wanted};
        table[i].judge(input, &criteria[i]);
    }
}

/* --- forms of it --- */

void bench_criteria_print(FILE *out, const struct bench_criterion *criteria, size_t count)
{
    static const char *const words[] = {
        [BENCH_NOT_MET] = "not met", [BENCH_MET] = "met", [BENCH_NOT_APPLICABLE] = "n/a"};

    for (size_t i = 0; i < count; i++)
        fprintf(out, "%-8s %s: %s\n", words[criteria[i].verdict], criteria[i].name, criteria[i].found);
}

static json_t *criterion_to_json(const struct bench_criterion *criterion)
{
    bool applies = criterion->verdict != BENCH_NOT_APPLICABLE;

    return json_pack("{s:s, s:s, s:s?, s:o, s:s?}", "name", criterion->name, "wanted", criterion->wanted, "found",
                     applies ? criterion->found : NULL, "met",
                     applies ? json_boolean(criterion->verdict == BENCH_MET) : json_null(), "reason",
                     applies ? NULL : criterion->found);
}

json_t *bench_criteria_to_json(const struct bench_criterion *criteria, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, criterion_to_json(&criteria[i]));
    return array;
}
