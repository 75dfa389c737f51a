/* From runs to chapters: which figures a run gets, and what is said of it. */
#include "contents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "against.h"
#include "figures.h"

#define NAMED_MOST 6 /* runs that get a sentence in the verdict on all */

/* What belongs to other files of its folder, where there are such. */
static bool is_companion(const struct report_run *run)
{
    return run->source == REPORT_OF_SENSE || run->source == REPORT_OF_PLAN || run->source == REPORT_OF_MODEL;
}

static const char *name_of(const struct report_run *run)
{
    const char *slash = strrchr(run->path, '/');

    return slash ? slash + 1 : run->path;
}

static void entitle(struct report_chapter *chapter)
{
    const struct report_run *run = chapter->run;

    if (run->root && report_text(run->root, "started")[0])
        snprintf(chapter->title, sizeof chapter->title, "weft %.20s, %.40s, %.100s", report_text(run->root, "command"),
                 report_text(run->root, "started"),
                 report_text(json_array_get(json_object_get(run->root, "host"), 0), "name"));
    else
        snprintf(chapter->title, sizeof chapter->title, "%.200s", name_of(run));
}

/* --- one run --- */

/* UINT32_MAX: it has none of that name. */
static uint32_t backend_named(const struct report_run *run, const char *name)
{
    for (uint32_t i = 0; i < run->backends.count; i++)
        if (strcmp(run->backends.list[i], name) == 0)
            return i;
    return UINT32_MAX;
}

/* The other backends of the same run, beside the first, or beside the one that is the baseline. */
static int compare_backends(struct report_chapter *chapter, const char *baseline, struct wf_status *status)
{
    const struct report_texts *backends = &chapter->run->backends;
    uint32_t base = baseline ? backend_named(chapter->run, baseline) : UINT32_MAX;
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < backends->count; i++) {
        if (base != UINT32_MAX && i != base)
            result = report_against(&chapter->figures, &chapter->verdict, &chapter->grid, i, &chapter->grid, base,
                                    backends->list[base], status);
        else if (base == UINT32_MAX && i > 0 && strcmp(backends->list[i], "null") != 0)
            result = report_against(&chapter->figures, &chapter->verdict, &chapter->grid, 0, &chapter->grid, i,
                                    backends->list[i], status);
    }
    return result;
}

/* A grid that is too large for anybody leaves a chapter with what else is known. */
static int make_of_samples(struct report_chapter *chapter, const char *baseline, struct wf_status *status)
{
    struct report_oddities *odd = calloc(1, sizeof *odd);
    int result = odd ? report_grid_init(&chapter->grid, chapter->run, status)
                     : report_figures_add(&chapter->figures, NULL, status);

    if (result == 0)
        result = report_oddities_find(&chapter->grid, odd, status);
    if (result == 0)
        report_judge_run(&chapter->verdict, &chapter->grid, odd);
    if (result == 0)
        result = report_nodes(&chapter->figures, &chapter->grid, odd, status);
    if (result == 0)
        result = report_links(&chapter->figures, &chapter->grid, odd, status);
    if (result == 0)
        result = report_curves(&chapter->figures, &chapter->grid, status);
    if (result == 0)
        result = compare_backends(chapter, baseline, status);
    if (result == 0)
        result = report_rails(&chapter->figures, chapter->run, status);
    if (result == 0)
        result = report_stamps(&chapter->figures, &chapter->grid, status);
    free(odd);
    if (result == -E2BIG) {
        report_say(&chapter->verdict, REPORT_BAD, "%s", status->text);
        result = 0;
    }
    return result == 0 ? report_machine(&chapter->figures, chapter->run, status) : result;
}

static int make_of(struct report_chapter *chapter, const struct report_run *run, const char *baseline,
                   struct wf_status *status)
{
    switch (run->source) {
    case REPORT_OF_RUN:
        return make_of_samples(chapter, baseline, status);
    case REPORT_OF_PEERS:
        report_judge_other(&chapter->verdict, run);
        return report_peers(&chapter->figures, run, status);
    case REPORT_OF_SWEEP:
        report_judge_other(&chapter->verdict, run);
        return report_sweep(&chapter->figures, run, status);
    case REPORT_OF_COLLECTIVE:
        report_judge_other(&chapter->verdict, run);
        return report_collective(&chapter->figures, run, status);
    case REPORT_OF_OVERLAP:
        report_judge_other(&chapter->verdict, run);
        return report_overlap(&chapter->figures, run, status);
    case REPORT_OF_STRAGGLER:
        report_judge_other(&chapter->verdict, run);
        return report_straggler(&chapter->figures, run, status);
    case REPORT_OF_SETUP:
        report_judge_other(&chapter->verdict, run);
        return report_setup(&chapter->figures, run, status);
    case REPORT_OF_MODEL:
        return report_model(&chapter->figures, run, status);
    case REPORT_OF_SENSE:
        return report_sense(&chapter->figures, run, status);
    case REPORT_OF_PLAN:
        return report_plan(&chapter->figures, run, status);
    }
    return 0;
}

/* Whether `inner` is the folder `outer`, or somewhere in it. */
static bool lies_in(const char *inner, const char *outer)
{
    size_t length = strlen(outer);

    if (strcmp(outer, ".") == 0)
        return inner[0] != '/' && strncmp(inner, "..", 2) != 0;
    return strncmp(inner, outer, length) == 0 && (inner[length] == '\0' || inner[length] == '/');
}

/* The run that a companion belongs to: the one whose folder it lies in, or the only one that there is. */
static struct report_chapter *host_of(struct report_contents *contents, const struct report_run *companion)
{
    struct report_chapter *host = NULL, *only = NULL;
    size_t results = 0;

    for (size_t i = 0; i < contents->chapter_count; i++) {
        struct report_chapter *chapter = &contents->chapters[i];
        if (is_companion(chapter->run))
            continue;
        results++;
        only = chapter;
        if (lies_in(companion->folder, chapter->run->folder) &&
            (!host || strlen(chapter->run->folder) >= strlen(host->run->folder)))
            host = chapter;
    }
    return host ? host : results == 1 ? only : NULL;
}

static struct report_chapter *new_chapter(struct report_contents *contents, const struct report_run *run)
{
    struct report_chapter *chapter = &contents->chapters[contents->chapter_count++];

    *chapter = (struct report_chapter){.run = run};
    entitle(chapter);
    return chapter;
}

/* Results first, then what lies beside them. */
static int make_chapters(struct report_contents *contents, const char *baseline, struct wf_status *status)
{
    int result = 0;

    contents->chapters = calloc(contents->run_count + 1, sizeof *contents->chapters);
    if (!contents->chapters)
        return wf_fail(status, -ENOMEM, "no memory for the report");
    for (int companions = 0; companions < 2; companions++)
        for (size_t i = 0; result == 0 && i < contents->run_count; i++) {
            const struct report_run *run = contents->runs[i];
            struct report_chapter *chapter = companions ? host_of(contents, run) : NULL;
            if (is_companion(run) == (companions == 1))
                result = make_of(chapter ? chapter : new_chapter(contents, run), run, baseline, status);
        }
    return result;
}

/* --- over all runs --- */

/* The GPUs of a run and of the temperatures beside it. */
static void judge_gpus(struct report_contents *contents, struct report_chapter *chapter)
{
    struct report_gpus *gpus = calloc(1, sizeof *gpus);

    for (size_t i = 0; gpus && i < contents->run_count; i++)
        if (contents->runs[i] == chapter->run ||
            (is_companion(contents->runs[i]) && host_of(contents, contents->runs[i]) == chapter))
            report_gpus_add(gpus, contents->runs[i]);
    if (gpus)
        report_judge_gpus(&chapter->verdict, gpus);
    chapter->verdict.failed |= !gpus;
    free(gpus);
}

/* Each backend of a run with the same one of the baseline; where they have none in common, the first with the first. */
static int compare_chapter(struct report_chapter *chapter, const struct report_grid *grid, const char *path,
                           struct wf_status *status)
{
    const struct report_texts *backends = &chapter->run->backends;
    size_t before = chapter->figures.count;
    char name[400];
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < backends->count; i++) {
        uint32_t there = backend_named(grid->run, backends->list[i]);
        if (there != UINT32_MAX)
            result = report_against(&chapter->figures, &chapter->verdict, &chapter->grid, i, grid, there, path, status);
    }
    if (result == 0 && chapter->figures.count == before && grid->run->backends.count &&
        backend_named(grid->run, backends->list[0]) == UINT32_MAX) {
        snprintf(name, sizeof name, "%.60s of %.300s", grid->run->backends.list[0], path);
        result = report_against(&chapter->figures, &chapter->verdict, &chapter->grid, 0, grid, 0, name, status);
    }
    if (result == 0 && chapter->figures.count == before)
        report_say(&chapter->verdict, REPORT_DOUBT, "%s has no pair, size and mode in common with this run.", path);
    return result;
}

static int compare_with_file(struct report_contents *contents, const char *path, struct wf_status *status)
{
    struct report_run *run = NULL;
    struct report_grid grid = {0};
    struct wf_status why = {0};
    size_t compared = 0;
    int result = report_run_read(path, contents->progress, &run, &why);

    if (result == 0 && run->source != REPORT_OF_RUN)
        result = wf_fail(&why, -EPROTO, "it has no samples to compare with");
    if (result == 0)
        result = report_grid_init(&grid, run, &why);
    if (result)
        result = wf_fail(status, result, "--baseline %s: %s%s", path, why.text,
                         result == -ENOENT ? ", and no backend of these runs has that name" : "");
    for (size_t i = 0; result == 0 && i < contents->chapter_count; i++)
        if (contents->chapters[i].run->source == REPORT_OF_RUN && contents->chapters[i].grid.set_count) {
            result = compare_chapter(&contents->chapters[i], &grid, path, status);
            compared++;
        }
    if (result == 0 && !compared)
        report_say(&contents->problems, REPORT_BAD, "--baseline %s: there is no run to compare it with", path);
    report_grid_fini(&grid);
    report_run_destroy(run);
    return result;
}

static bool is_backend(const struct report_contents *contents, const char *name)
{
    for (size_t i = 0; i < contents->run_count; i++)
        if (backend_named(contents->runs[i], name) != UINT32_MAX)
            return true;
    return false;
}

static int predict(struct report_contents *contents, const char *path, struct wf_status *status)
{
    struct report_forecast forecast;
    size_t compared = 0;
    int result = report_forecast_read(&forecast, path, status);

    for (size_t i = 0; result == 0 && i < contents->chapter_count; i++) {
        struct report_chapter *chapter = &contents->chapters[i];
        if (chapter->run->source != REPORT_OF_RUN || !chapter->grid.set_count)
            continue;
        result = report_forecast_add(&chapter->figures, &chapter->verdict, &chapter->grid, &forecast, status);
        compared++;
    }
    if (result == 0 && !compared)
        report_say(&contents->problems, REPORT_BAD, "--predicted %s: there is no run to compare it with", path);
    report_forecast_fini(&forecast);
    return result;
}

/* The runs with samples, which can stand side by side. */
static int add_overview(struct report_contents *contents, struct wf_status *status)
{
    struct report_run **runs = calloc(contents->run_count + 1, sizeof(struct report_run *));
    size_t count = 0;
    int result = runs ? 0 : report_figures_add(&contents->figures, NULL, status);

    for (size_t i = 0; runs && i < contents->run_count; i++)
        if (contents->runs[i]->source == REPORT_OF_RUN)
            runs[count++] = contents->runs[i];
    if (result == 0 && count > 1)
        result = report_surface_of_runs(&contents->figures, runs, count, status);
    if (result == 0 && count > 1)
        result = report_overview(&contents->figures, runs, count, status);
    free(runs);
    return result;
}

static enum report_level worst_of(const struct report_chapter *chapter)
{
    enum report_level worst = REPORT_GOOD;

    for (size_t i = 0; i < chapter->verdict.count; i++)
        worst = chapter->verdict.list[i].level > worst ? chapter->verdict.list[i].level : worst;
    return worst;
}

/* Of several runs: which of them say that something is wrong. What only lies beside runs is none. */
static void judge_all(struct report_contents *contents)
{
    size_t runs = 0, count[REPORT_BAD + 1] = {0}, named = 0;

    for (size_t i = 0; i < contents->chapter_count; i++)
        if (!is_companion(contents->chapters[i].run)) {
            runs++;
            count[worst_of(&contents->chapters[i])]++;
        }
    size_t odd = count[REPORT_BAD] + count[REPORT_DOUBT];
    if (runs && !odd)
        report_say(&contents->verdict, REPORT_GOOD, "%zu runs: none failed, and in none something is odd.", runs);
    else if (runs)
        report_say(&contents->verdict, count[REPORT_BAD] ? REPORT_BAD : REPORT_DOUBT,
                   "%zu runs: %zu failed; in %zu others something is odd.", runs, count[REPORT_BAD],
                   count[REPORT_DOUBT]);
    for (size_t i = 0; i < contents->chapter_count && named < NAMED_MOST; i++) {
        enum report_level worst = worst_of(&contents->chapters[i]);
        if (is_companion(contents->chapters[i].run) || worst < REPORT_DOUBT)
            continue;
        report_say(&contents->verdict, worst, "%s %s.", contents->chapters[i].run->path,
                   worst == REPORT_BAD ? "failed" : "has something odd");
        named++;
    }
    if (odd > named)
        report_say(&contents->verdict, REPORT_DOUBT, "And %zu more of them.", odd - named);
}

int report_contents_make(struct report_contents *contents, const struct report_wish *wish, struct wf_status *status)
{
    bool is_file = wish->baseline && !is_backend(contents, wish->baseline);
    time_t now = time(NULL);
    struct tm utc;
    int result = make_chapters(contents, is_file ? NULL : wish->baseline, status);

    strftime(contents->made, sizeof contents->made, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    for (size_t i = 0; result == 0 && i < contents->chapter_count; i++)
        judge_gpus(contents, &contents->chapters[i]);
    if (result == 0 && is_file)
        result = compare_with_file(contents, wish->baseline, status);
    if (result == 0 && wish->predicted)
        result = predict(contents, wish->predicted, status);
    if (result == 0)
        result = add_overview(contents, status);
    if (result)
        return result;
    if (contents->chapter_count > 1)
        judge_all(contents);
    bool failed = contents->verdict.failed;
    for (size_t i = 0; i < contents->chapter_count; i++)
        failed |= contents->chapters[i].verdict.failed;
    snprintf(contents->title, sizeof contents->title, "%s",
             contents->chapter_count == 1 ? contents->chapters[0].title : "Runs of weft");
    return failed ? wf_fail(status, -ENOMEM, "no memory for the report") : 0;
}

void report_contents_fini(struct report_contents *contents)
{
    for (size_t i = 0; i < contents->chapter_count; i++) {
        report_grid_fini(&contents->chapters[i].grid);
        report_verdict_fini(&contents->chapters[i].verdict);
        report_figures_fini(&contents->chapters[i].figures);
    }
    free(contents->chapters);
    for (size_t i = 0; i < contents->run_count; i++)
        report_run_destroy(contents->runs[i]);
    free(contents->runs);
    report_verdict_fini(&contents->verdict);
    report_verdict_fini(&contents->problems);
    report_figures_fini(&contents->figures);
    *contents = (struct report_contents){0};
}
