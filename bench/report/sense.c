/* What a machine did while it was measured, second by second: temperatures.csv of weft profile. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "figures.h"

#define FIELDS_MAX 32
#define LINES_MAX 64 /* devices in one chart: of more, the file itself tells */

static const char *const fields[] = {"timestamp_ns", "node", "device", "temperature_c", "power_w",  "clock_mhz",
                                     "throttling",   "busy", "bound",  "rx_bytes",      "tx_bytes", "retransmits"};
enum field { TIME, NODE, DEVICE, CELSIUS, WATTS, CLOCK, THROTTLING, BUSY, BOUND, RECEIVED, SENT, RETRANSMITS, FIELDS };

struct row {
    double at; /* s from the first row on */
    char *texts[FIELDS];
};

static const struct timeline {
    const char *id, *title, *note, *unit;
    enum field field;
    double factor;
    bool counted; /* a count that grows: drawn is what it grew by a second */
} timelines[] = {
    {"temperature", "Temperatures", "Marked is a GPU that slowed down, with its reason.", "°C", CELSIUS, 1, false},
    {"clock", "Clocks", NULL, "MHz", CLOCK, 1, false},
    {"power", "Power", NULL, "W", WATTS, 1, false},
    {"busy", "How busy the processors were",
     "All of them together (cpu), and those to which threads of Weft are bound.", "%", BUSY, 100, false},
    {"received", "Received by each network interface", "Everybody's, in the second before.", "GB/s", RECEIVED, 1e-9,
     true},
    {"sent", "Sent by each network interface", "Everybody's, in the second before.", "GB/s", SENT, 1e-9, true},
    {"retransmits", "TCP segments sent again", "Of the node, in the second before.", "1/s", RETRANSMITS, 1, true},
};

/* What was read of a device before. */
struct device {
    const char *node, *name;
    double at, value;
};

static struct device *device_of(struct device *devices, size_t *count, const struct row *row)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(devices[i].name, row->texts[DEVICE]) == 0 && strcmp(devices[i].node, row->texts[NODE]) == 0)
            return &devices[i];
    if (*count == LINES_MAX)
        return NULL;
    devices[*count] = (struct device){row->texts[NODE], row->texts[DEVICE], NAN, NAN};
    return &devices[(*count)++];
}

/* A core that nobody bound is one of many. A row without a value for this chart takes no place of a device. */
static bool is_drawn(const struct timeline *of, const struct row *row)
{
    if (isnan(report_csv_number(row->texts[of->field])))
        return false;
    return of->field != BUSY || strcmp(row->texts[DEVICE], "cpu") == 0 || row->texts[BOUND][0] == '1';
}

static void add_value(struct report_figure *figure, const struct timeline *of, const struct row *row,
                      struct device *device)
{
    double value = report_csv_number(row->texts[of->field]), shown = value * of->factor;
    char name[96];

    if (of->counted) {
        shown = (value - device->value) * of->factor / (row->at - device->at);
        device->value = value;
        device->at = row->at;
    }
    if (!isfinite(shown) || shown < 0)
        return;
    snprintf(name, sizeof name, "node%.8s %.64s", row->texts[NODE], row->texts[DEVICE]);
    report_row_add(figure);
    report_set_text(figure, 0, name);
    report_set_number(figure, 1, round(10 * row->at) / 10); /* so that both nodes' stand beside each other */
    report_set_number(figure, 2, shown);
    report_set_text(figure, 3, of->field == CELSIUS || of->field == CLOCK ? row->texts[THROTTLING] : "");
}

static bool any_above_zero(const struct report_figure *figure)
{
    for (size_t i = 0; i < figure->rows; i++)
        if (figure->columns[2].numbers[i] > 0)
            return true;
    return false;
}

static int add_timeline(struct report_figures *figures, const struct timeline *of, const struct row *rows, size_t count,
                        struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(REPORT_LINES, of->id, of->title, of->note);
    struct device devices[LINES_MAX];
    size_t device_count = 0;

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "device", "", REPORT_SERIES, false);
    report_column_add(figure, "time", "s", REPORT_X, true);
    report_column_add(figure, of->title, of->unit, REPORT_Y, true);
    report_column_add(figure, "throttling", "", REPORT_MARK, false);
    for (size_t i = 0; i < count; i++) {
        struct device *device = is_drawn(of, &rows[i]) ? device_of(devices, &device_count, &rows[i]) : NULL;
        if (device)
            add_value(figure, of, &rows[i], device);
    }
    if (of->counted && !any_above_zero(figure))
        figure->rows = 0; /* nothing has happened */
    return report_figures_add(figures, figure, status);
}

/* Reads a line into `row`; false: it is none. */
static bool read_row(char *line, const size_t at[FIELDS], double *first, struct row *row)
{
    static char nothing[] = "";
    char *values[FIELDS_MAX];
    size_t count = report_csv_split(line, values, FIELDS_MAX);

    for (int i = 0; i < FIELDS; i++)
        row->texts[i] = at[i] < count && at[i] < FIELDS_MAX ? values[at[i]] : nothing;
    double time = report_csv_number(row->texts[TIME]);
    if (isnan(time) || !row->texts[DEVICE][0])
        return false;
    if (isnan(*first))
        *first = time;
    row->at = (time - *first) / 1e9;
    return true;
}

static size_t read_rows(char *text, struct row *rows)
{
    char *rest = text, *header[FIELDS_MAX], *line = report_csv_line(&rest);
    size_t at[FIELDS], named = report_csv_split(line, header, FIELDS_MAX), count = 0;
    double first = NAN;

    for (int i = 0; i < FIELDS; i++)
        at[i] = report_csv_find(header, named < FIELDS_MAX ? named : FIELDS_MAX, fields[i]);
    while ((line = report_csv_line(&rest)) != NULL)
        count += read_row(line, at, &first, &rows[count]);
    return count;
}

int report_sense(struct report_figures *figures, const struct report_run *run, struct wf_status *status)
{
    char *text = strdup(run->text); /* is taken apart */
    struct row *rows = text ? calloc(report_csv_lines(text), sizeof *rows) : NULL;
    size_t count = rows ? read_rows(text, rows) : 0;
    int result = rows ? 0 : report_figures_add(figures, NULL, status);

    for (size_t i = 0; result == 0 && i < sizeof timelines / sizeof timelines[0]; i++)
        result = add_timeline(figures, &timelines[i], rows, count, status);
    free(rows);
    free(text);
    return result;
}
