#include "timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

#define WIDTH 640 /* of the drawing; letters are large enough where it is half as wide */
#define LEFT 8
#define ACROSS (WIDTH - 2 * LEFT)
#define BAR 26
#define PANEL 178
#define BARS_MOST 4096

/* Colours that those who do not see all can tell apart, after Okabe and Ito. A bucket has that of its layers. */
static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"};

#define COLOURS (sizeof colours / sizeof colours[0])

static double at(const json_t *bar, size_t index)
{
    const json_t *value = json_array_get(bar, index);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const json_t *bars(const json_t *mode, const char *name)
{
    const json_t *list = json_object_get(mode, name);

    return json_array_size(list) <= BARS_MOST ? list : NULL;
}

/* The end of the last layer or bucket; 0: there is none. */
static double end_of(const json_t *mode)
{
    const json_t *bar;
    double end = 0;
    size_t index;

    json_array_foreach(bars(mode, "layers"), index, bar) end = fmax(end, at(bar, 1));
    json_array_foreach(bars(mode, "buckets"), index, bar) end = fmax(end, at(bar, 2));
    return isfinite(end) ? end : 0;
}

static void put_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, text);
}

/* How many layers a bucket has, but for the last one. */
static size_t layers_of_bucket(const json_t *one)
{
    double layers = ceil(report_number(one, "bucket_bytes") / report_number(one, "layer_bytes"));

    return layers >= 1 && layers <= BARS_MOST ? (size_t)layers : BARS_MOST;
}

static void put_bar(FILE *out, double from, double to, double scale, double y, size_t bucket)
{
    if (!(from >= 0) || !(to >= from))
        return;
    fprintf(out, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"%s\" stroke=\"#ffffff\"/>\n",
            LEFT + from * scale, y, fmax((to - from) * scale, 0.5), BAR, colours[bucket % COLOURS]);
}

static void put_layers(FILE *out, const json_t *mode, size_t each, double scale, double y)
{
    const json_t *bar;
    size_t index;

    json_array_foreach(bars(mode, "layers"), index, bar) put_bar(out, at(bar, 0), at(bar, 1), scale, y, index / each);
}

/* A stroke above a bucket says when it was ready. */
static void put_buckets(FILE *out, const json_t *mode, double scale, double y)
{
    const json_t *bar;
    size_t index;

    json_array_foreach(bars(mode, "buckets"), index, bar)
    {
        put_bar(out, at(bar, 1), at(bar, 2), scale, y, index);
        if (at(bar, 0) >= 0)
            fprintf(out, "<rect x=\"%.2f\" y=\"%.1f\" width=\"2\" height=\"7\" fill=\"%s\"/>\n",
                    LEFT + at(bar, 0) * scale, y - 8, colours[index % COLOURS]);
    }
}

static void put_mode(FILE *out, const json_t *mode, const char *name, size_t each, double scale, double y)
{
    double end = end_of(mode), x = LEFT + end * scale;
    char text[96];

    snprintf(text, sizeof text, "%s: %.3g s", name, end);
    fputs("<g font-weight=\"bold\">", out);
    put_text(out, LEFT, y + 22, "start", text);
    fputs("</g>", out);
    put_text(out, LEFT, y + 52, "start", "layers computed");
    put_layers(out, mode, each, scale, y + 60);
    put_text(out, LEFT, y + 112, "start", "buckets communicated");
    put_buckets(out, mode, scale, y + 128);
    fprintf(out, "<path d=\"M%.2f %.1fV%.1f\" stroke=\"#1a1d21\" stroke-width=\"2\"/>\n", x, y + 56, y + 160);
}

char *report_timeline(const json_t *one)
{
    const json_t *timeline = json_object_get(one, "timeline"), *serial = json_object_get(timeline, "serial");
    const json_t *overlapped = json_object_get(timeline, "overlapped");
    double end = fmax(end_of(serial), end_of(overlapped)), scale = ACROSS / end;
    size_t length, each = layers_of_bucket(one);
    char *text = NULL;
    FILE *out = end > 0 && isfinite(scale) ? open_memstream(&text, &length) : NULL;

    if (!out)
        return NULL;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"20\" fill=\"#1a1d21\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
            WIDTH, 2 * PANEL, WIDTH, 2 * PANEL, WIDTH, 2 * PANEL);
    put_mode(out, serial, "Without overlap", each, scale, 0);
    put_mode(out, overlapped, "With overlap", each, scale, PANEL);
    fputs("</svg>\n", out);
    bool failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        free(text);
        text = NULL;
    }
    return text;
}
