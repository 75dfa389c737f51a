#include "verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"

void report_say(struct report_verdict *verdict, enum report_level level, const char *format, ...)
{
    va_list arguments;
    char *text = NULL;

    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (verdict->count == verdict->room) {
        size_t room = verdict->room ? 2 * verdict->room : 8;
        struct report_sentence *wider = realloc(verdict->list, room * sizeof *wider);
        verdict->failed |= !wider;
        verdict->list = wider ? wider : verdict->list;
        verdict->room = wider ? room : verdict->room;
    }
    if (length < 0 || verdict->count == verdict->room) {
        verdict->failed = true;
        if (length >= 0)
            free(text);
        return;
    }
    verdict->list[verdict->count++] = (struct report_sentence){level, text};
}

void report_verdict_fini(struct report_verdict *verdict)
{
    for (size_t i = 0; i < verdict->count; i++)
        free(verdict->list[i].text);
    free(verdict->list);
    *verdict = (struct report_verdict){0};
}

const char *report_level_name(enum report_level level)
{
    static const char *const names[] = {"good", "plain", "doubt", "bad"};

    return names[level];
}

/* --- on what is no mesh --- */

static bool same_case(const json_t *one, const json_t *other)
{
    return strcmp(report_text(one, "metric"), report_text(other, "metric")) == 0 &&
           report_number(one, "size_bytes") == report_number(other, "size_bytes") &&
           report_count(one, "inflight") == report_count(other, "inflight") &&
           report_count(one, "buffers") == report_count(other, "buffers");
}

/* Plain sockets are a floor, and the plugin is Weft as NCCL drives it. As peers_is_rival(), of the tools of any file.
 */
static bool is_other_tool(const char *name)
{
    return strcmp(name, "weft") != 0 && strcmp(name, "raw") != 0 && strcmp(name, "plugin") != 0;
}

/* The best other tool with a figure in the case of a sample of Weft's; NULL: there is none. */
static const json_t *best_other(const json_t *samples, const json_t *of)
{
    bool least = strcmp(report_text(of, "unit"), "us") == 0;
    const json_t *sample, *best = NULL;
    size_t index;

    json_array_foreach(samples, index, sample)
    {
        double value = report_number(sample, "median"), before = report_number(best, "median");
        if (!same_case(sample, of) || isnan(value) || !is_other_tool(report_text(sample, "backend")))
            continue;
        if (!best || (least ? value < before : value > before))
            best = sample;
    }
    return best;
}

static void judge_peers(struct report_verdict *verdict, const struct report_run *run)
{
    const json_t *samples = json_object_get(run->root, "samples"), *sample;
    size_t index;
    char name[96];

    json_array_foreach(samples, index, sample)
    {
        double value = report_number(sample, "median");
        const json_t *other = best_other(samples, sample);
        if (strcmp(report_text(sample, "backend"), "weft") != 0 || isnan(value))
            continue;
        report_case_name(sample, name, sizeof name);
        if (other)
            report_say(verdict, REPORT_PLAIN, "%s: weft %.4g %s, the best other tool (%s) %.4g: weft over it %.2f.",
                       name, value, report_text(sample, "unit"), report_text(other, "backend"),
                       report_number(other, "median"), report_number(other, "ratio"));
        else
            report_say(verdict, REPORT_PLAIN, "%s: weft %.4g %s; no other tool was measured.", name, value,
                       report_text(sample, "unit"));
    }
}

/* Beside the best of all others, at each size. */
static void judge_collective(struct report_verdict *verdict, const struct report_run *run)
{
    const json_t *comparisons = json_object_get(run->root, "comparisons"), *one;
    size_t index, faster = 0;
    double wrong = 0;

    json_array_foreach(json_object_get(run->root, "samples"), index, one)
    {
        double some = report_number(one, "wrong_elements");
        wrong += some > 0 ? some : 0;
    }
    if (wrong > 0)
        report_say(verdict, REPORT_BAD, "%.0f elements of results are wrong.", wrong);
    json_array_foreach(comparisons, index, one) faster += report_number(one, "ratio") >= 1;
    if (json_array_size(comparisons))
        report_say(verdict, REPORT_PLAIN,
                   "Weft takes no longer than the best other in %zu of %zu cases (operation, size, ranks).", faster,
                   json_array_size(comparisons));
}

void report_judge_gpus(struct report_verdict *verdict, const struct report_gpus *gpus)
{
    char why[256];

    for (size_t i = 0; i < gpus->count; i++)
        if (report_gpu_is_hot(gpus, i, why, sizeof why))
            report_say(verdict, REPORT_DOUBT, "%s: %s: %s.", gpus->list[i].throttling[0] ? "Held back" : "Hot",
                       gpus->list[i].name, why);
}

void report_judge_other(struct report_verdict *verdict, const struct report_run *run)
{
    const json_t *best = json_object_get(run->root, "best");

    if (run->source == REPORT_OF_SWEEP && report_text(run->root, "error")[0])
        report_say(verdict, REPORT_BAD, "The sweep was cut short: %s", report_text(run->root, "error"));
    if (run->source == REPORT_OF_SWEEP)
        report_say(verdict, json_is_true(json_object_get(best, "better")) ? REPORT_GOOD : REPORT_PLAIN, "%s",
                   report_text(run->root, "verdict"));
    if (run->source == REPORT_OF_PEERS && report_text(run->root, "error")[0])
        report_say(verdict, REPORT_BAD, "It failed: %s", report_text(run->root, "error"));
    if (run->source == REPORT_OF_PEERS)
        judge_peers(verdict, run);
    bool of_ranks = run->source == REPORT_OF_COLLECTIVE || run->source == REPORT_OF_STRAGGLER ||
                    run->source == REPORT_OF_SETUP || run->source == REPORT_OF_OVERLAP;
    if (of_ranks && report_text(run->root, "error")[0])
        report_say(verdict, REPORT_BAD, "It failed: %s", report_text(run->root, "error"));
    if (run->source == REPORT_OF_STRAGGLER)
        report_judge_straggler(verdict, run);
    if (run->source == REPORT_OF_SETUP)
        report_judge_setup(verdict, run);
    if (run->source == REPORT_OF_COLLECTIVE)
        judge_collective(verdict, run);
    if (run->source == REPORT_OF_OVERLAP)
        report_judge_overlap(verdict, run);
}
