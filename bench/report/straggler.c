/* Who came late to a barrier, when and by how much: the JSON of weft straggler. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "figures.h"
#include "verdict.h"

/* What a point of the picture is. */
static const char *kind_of(const json_t *event)
{
    bool named = json_is_true(json_object_get(event, "named"));

    if (report_number(event, "delayed_ms") > 0)
        return named ? "delayed on purpose, and named" : "delayed on purpose, and not named";
    return named ? "named, and not delayed" : "its processor was busy";
}

static void add_point(struct report_figure *figure, const char *kind, double barrier, const json_t *of,
                      const char *name)
{
    double late_ms = report_number(of, "late_ms");

    if (!(late_ms > 0))
        return;
    report_row_add(figure);
    report_set_text(figure, 0, kind);
    report_set_number(figure, 1, barrier);
    report_set_number(figure, 2, late_ms);
    report_set_text(figure, 3, name);
    report_set_number(figure, 4, report_number(of, "delayed_ms"));
    report_set_number(figure, 5, report_number(of, "after_ms"));
}

static const char *name_of(const json_t *root, const json_t *of)
{
    const json_t *names = json_object_get(json_object_get(root, "facts"), "names");
    double rank = report_number(of, "rank");
    const char *name = rank >= 0 ? json_string_value(json_array_get(names, (size_t)rank)) : NULL;

    return name ? name : "";
}

static int add_points(struct report_figures *figures, const json_t *root, struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(
        REPORT_POINTS, "straggler-lateness", "Who came late to which barrier, and by how much",
        "What the others waited longer than the late rank, each by its own clock. Where nobody was "
        "late, the largest of some barriers stands for them: so much is usual.");
    const json_t *one;
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->y = REPORT_LOG;
    report_column_add(figure, "what", "", REPORT_SERIES, false);
    report_column_add(figure, "barrier", "", REPORT_X, true);
    report_column_add(figure, "late by", "ms", REPORT_Y, true);
    report_column_add(figure, "rank", "", REPORT_SHOWN, false);
    report_column_add(figure, "delayed by", "ms", REPORT_SHOWN, true);
    report_column_add(figure, "known after", "ms", REPORT_SHOWN, true);
    json_array_foreach(json_object_get(root, "curve"), index, one)
        add_point(figure, "largest of some barriers", report_number(one, "to"), one, name_of(root, one));
    json_array_foreach(json_object_get(root, "events"), index, one)
        add_point(figure, kind_of(one), report_number(one, "barrier"), one, name_of(root, one));
    return report_figures_add(figures, figure, status);
}

/* A row for what there was. */
static void add_rank(struct report_figure *figure, const json_t *rank)
{
    static const struct {
        const char *field, *title;
    } all[] = {{"delayed_and_named", "delayed on purpose, and named"},
               {"named_without_delay", "named, and not delayed"},
               {"late_for_a_processor", "its processor was busy"}};
    char label[32];

    snprintf(label, sizeof label, "rank %.0f", report_number(rank, "rank"));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (!(report_number(rank, all[i].field) > 0))
            continue;
        report_row_add(figure);
        report_set_text(figure, 0, label);
        report_set_text(figure, 1, all[i].title);
        report_set_number(figure, 2, report_number(rank, all[i].field));
        report_set_text(figure, 3, report_text(rank, "name"));
        report_set_number(figure, 4, i == 2 ? NAN : report_number(rank, "late_ms_p50"));
    }
}

static int add_ranks(struct report_figures *figures, const json_t *root, struct wf_status *status)
{
    struct report_figure *figure =
        report_figure_create(REPORT_BARS, "straggler-ranks", "How often each rank was late", NULL);
    const json_t *rank;
    size_t index;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    figure->x = REPORT_BY_LABEL;
    report_column_add(figure, "rank", "", REPORT_X, false);
    report_column_add(figure, "what", "", REPORT_SERIES, false);
    report_column_add(figure, "barriers", "", REPORT_Y, true);
    report_column_add(figure, "name", "", REPORT_SHOWN, false);
    report_column_add(figure, "late by, median", "ms", REPORT_SHOWN, true);
    json_array_foreach(json_object_get(root, "ranks"), index, rank) add_rank(figure, rank);
    return report_figures_add(figures, figure, status);
}

int report_straggler(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    int result = add_points(figures, run->root, status);

    if (result == 0)
        result = add_ranks(figures, run->root, status);
    return result == 0 ? report_machine(figures, run, status) : result;
}

void report_judge_straggler(struct report_verdict *verdict, const struct report_run *run)
{
    const json_t *summary = json_object_get(run->root, "summary"), *deadline = json_object_get(run->root, "deadline");
    double delayed = report_number(summary, "delayed"), found = report_number(summary, "delayed_and_named");

    if (delayed > 0)
        report_say(verdict, found == delayed ? REPORT_GOOD : REPORT_BAD,
                   "Delayed on purpose before %.0f barriers, named at %.0f of them; within a tenth of the delay %.0f "
                   "(off by %.1f %%, %.1f %% at most).",
                   delayed, found, report_number(summary, "within_10_percent"), 100 * report_number(summary, "off_p50"),
                   100 * report_number(summary, "off_max"));
    if (report_number(summary, "named_without_delay") > 0)
        report_say(verdict, REPORT_DOUBT, "Late by itself: a rank was named %.0f times that was not delayed.",
                   report_number(summary, "named_without_delay"));
    else
        report_say(verdict, REPORT_PLAIN, "No rank was late by itself.");
    if (report_number(summary, "late_for_a_processor") > 0)
        report_say(verdict, REPORT_DOUBT, "%.0f times a rank was late because another program had its processor.",
                   report_number(summary, "late_for_a_processor"));
    if (json_is_object(deadline))
        report_say(verdict, REPORT_BAD, "A deadline has ended the group: %.200s.", report_text(deadline, "text"));
}
