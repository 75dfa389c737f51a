#include "page.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/words/whole.h"
#include "parts.h"
#include "utf8.h"
#include "weft.h"

/* --- texts --- */

/* A text in HTML. */
static void put_html(FILE *out, const char *text)
{
    uint32_t letter;

    while ((letter = report_utf8_next(&text)) != 0) {
        if (letter == '<' || letter == '>' || letter == '&' || letter == '"' || letter == '\'')
            fprintf(out, "&#%" PRIu32 ";", letter);
        else if (letter >= ' ' || letter == '\n')
            report_utf8_put(out, letter);
        else
            fputc('?', out);
    }
}

/* A text in JSON that stands in HTML: no letter of it can end the script. */
static void put_text(FILE *out, const char *text)
{
    uint32_t letter;

    fputc('"', out);
    while ((letter = report_utf8_next(&text)) != 0) {
        if (letter < ' ' || letter == '<' || letter == '>' || letter == '&' || letter == 0x2028 || letter == 0x2029)
            fprintf(out, "\\u%04" PRIx32, letter);
        else if (letter == '"' || letter == '\\')
            fprintf(out, "\\%c", (char)letter);
        else
            report_utf8_put(out, letter);
    }
    fputc('"', out);
}

static void put_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\":", name);
    if (text)
        put_text(out, text);
    else
        fputs("null", out);
}

/* --- columns --- */

static void put_numbers(FILE *out, const struct report_column *column, size_t rows)
{
    fputs(",\"values\":[", out);
    for (size_t i = 0; i < rows; i++) {
        if (i)
            fputc(',', out);
        if (!isfinite(column->numbers[i]))
            fputs("null", out);
        else if (column->numbers[i] == floor(column->numbers[i]) && fabs(column->numbers[i]) < 1e15)
            fprintf(out, "%.0f", column->numbers[i]);
        else
            fprintf(out, "%.5g", column->numbers[i]);
    }
    fputc(']', out);
}

/* After how many rows the labels begin anew: a matrix has the same rows at each size. By the prefixes that are also
 * suffixes, as Knuth, Morris and Pratt have it. */
static size_t period_of(const uint32_t *labels, size_t rows)
{
    size_t *border = calloc(rows + 1, sizeof *border), length = 0;

    for (size_t i = 1; border && i < rows; i++) {
        while (length && labels[i] != labels[length])
            length = border[length];
        length += labels[i] == labels[length];
        border[i + 1] = length;
    }
    size_t period = border ? rows - border[rows] : rows;
    free(border);
    return period;
}

/* As pairs of a label and how many rows have it, for one period. */
static void put_labels(FILE *out, const struct report_column *column, size_t rows)
{
    size_t period = rows ? period_of(column->labels, rows) : 0;

    fputs(",\"labels\":[", out);
    for (size_t i = 0; i < column->text_count; i++) {
        if (i)
            fputc(',', out);
        put_text(out, column->texts[i]);
    }
    fputs("],\"runs\":[", out);
    for (size_t i = 0, count; i < period; i += count) {
        for (count = 1; i + count < period && column->labels[i + count] == column->labels[i]; count++)
            ;
        fprintf(out, "%s%" PRIu32 ",%zu", i ? "," : "", column->labels[i], count);
    }
    fputc(']', out);
}

static void put_column(FILE *out, const struct report_figure *figure, size_t at)
{
    static const char *const roles[] = {"shown", "x", "y", "low", "high", "series", "select", "value", "mark"};
    const struct report_column *column = &figure->columns[at];

    fputs(at ? ",\n{" : "\n{", out);
    put_member(out, "name", column->name);
    fputc(',', out);
    put_member(out, "unit", column->unit);
    fputc(',', out);
    put_member(out, "role", roles[column->role]);
    if (column->is_number)
        put_numbers(out, column, figure->rows);
    else
        put_labels(out, column, figure->rows);
    fputc('}', out);
}

static void put_figure(FILE *out, const struct report_figure *figure)
{
    static const char *const kinds[] = {"lines", "points", "bars", "heat", "table", "image"};
    static const char *const scales[] = {"linear", "log", "labels"};

    fputc('{', out);
    put_member(out, "id", figure->id);
    fputc(',', out);
    put_member(out, "kind", kinds[figure->kind]);
    fputc(',', out);
    put_member(out, "title", figure->title);
    fputc(',', out);
    put_member(out, "note", figure->note);
    fputc(',', out);
    put_member(out, "x", scales[figure->x]);
    fputc(',', out);
    put_member(out, "y", scales[figure->y]);
    fprintf(out, ",\"rows\":%zu", figure->rows);
    if (figure->svg) {
        fputc(',', out);
        put_member(out, "svg", figure->svg);
    }
    fputs(",\"columns\":[", out);
    for (size_t i = 0; i < figure->column_count; i++)
        put_column(out, figure, i);
    fputs("]}", out);
}

static void put_figures(FILE *out, const struct report_figures *figures)
{
    fputs("\"figures\":[", out);
    for (size_t i = 0; i < figures->count; i++) {
        if (i)
            fputs(",\n", out);
        put_figure(out, figures->list[i]);
    }
    fputc(']', out);
}

static void put_sentences(FILE *out, const char *name, const struct report_verdict *verdict)
{
    fprintf(out, "\"%s\":[", name);
    for (size_t i = 0; i < verdict->count; i++) {
        fputs(i ? ",{" : "{", out);
        put_member(out, "level", report_level_name(verdict->list[i].level));
        fputc(',', out);
        put_member(out, "text", verdict->list[i].text);
        fputc('}', out);
    }
    fputs("]", out);
}

/* --- the data --- */

static void put_data(FILE *out, const struct report_contents *contents)
{
    fputs("{\"schema\":\"weft.report/1\",", out);
    put_member(out, "version", weft_version());
    fputc(',', out);
    put_member(out, "title", contents->title);
    fputc(',', out);
    put_member(out, "made", contents->made);
    fputc(',', out);
    put_sentences(out, "verdict", &contents->verdict);
    fputc(',', out);
    put_sentences(out, "problems", &contents->problems);
    fputc(',', out);
    put_figures(out, &contents->figures);
    fputs(",\n\"runs\":[", out);
    for (size_t i = 0; i < contents->chapter_count; i++) {
        const struct report_chapter *chapter = &contents->chapters[i];
        fputs(i ? ",\n{" : "\n{", out);
        put_member(out, "name", chapter->run->path);
        fputc(',', out);
        put_member(out, "title", chapter->title);
        fputc(',', out);
        put_sentences(out, "verdict", &chapter->verdict);
        fputc(',', out);
        put_figures(out, &chapter->figures);
        fputc('}', out);
    }
    fputs("]}", out);
}

/* --- the page --- */

static bool is_style(const struct report_part *part)
{
    size_t length = strlen(part->name);

    return length > 4 && strcmp(part->name + length - 4, ".css") == 0;
}

/* Only these scripts may run, whatever the data says: the browser compares their digests. */
static int put_policy(FILE *out)
{
    unsigned char digest[32], text[48];

    fputs(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
        "data:; script-src",
        out);
    for (size_t i = 0; report_parts[i].name; i++) {
        const struct report_part *part = &report_parts[i];
        if (is_style(part) || !part->length)
            continue;
        if (EVP_Digest(part->text, part->length, digest, NULL, EVP_sha256(), NULL) != 1)
            return -EIO;
        EVP_EncodeBlock(text, digest, sizeof digest);
        fprintf(out, " 'sha256-%s'", (const char *)text);
    }
    fputs("\">\n", out);
    return 0;
}

static int put_head(FILE *out, const struct report_contents *contents)
{
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
          out);
    int result = put_policy(out);
    fputs("<title>", out);
    put_html(out, contents->title);
    fputs("</title>\n", out);
    for (size_t i = 0; report_parts[i].name; i++)
        if (is_style(&report_parts[i])) {
            fputs("<style>\n", out);
            fwrite(report_parts[i].text, 1, report_parts[i].length, out);
            fputs("</style>\n", out);
        }
    fputs("</head>\n", out);
    return result;
}

static void put_list(FILE *out, const char *id, const char *heading, const struct report_verdict *verdict)
{
    if (!verdict->count)
        return;
    fprintf(out, "<section id=\"%s\"><h2>%s</h2><ul class=\"verdict\">\n", id, heading);
    for (size_t i = 0; i < verdict->count; i++) {
        fprintf(out, "<li class=\"%s\">", report_level_name(verdict->list[i].level));
        put_html(out, verdict->list[i].text);
        fputs("</li>\n", out);
    }
    fputs("</ul></section>\n", out);
}

static void put_body(FILE *out, const struct report_contents *contents)
{
    fputs("<body>\n<header><h1>", out);
    put_html(out, contents->title);
    fputs("</h1> <p class=\"when\">", out);
    fprintf(out, "Report of weft %s, made %s", weft_version(), contents->made);
    fputs("</p></header>\n<main>\n", out);
    put_list(out, "verdict", "Verdict",
             contents->chapter_count == 1 ? &contents->chapters[0].verdict : &contents->verdict);
    put_list(out, "problems", "Files that are not in here", &contents->problems);
    fputs("<noscript><p>The tables and charts need JavaScript. It loads nothing and sends nothing.</p></noscript>\n"
          "<div id=\"figures\"></div>\n</main>\n<script type=\"application/json\" id=\"weft-data\">",
          out);
    put_data(out, contents);
    fputs("</script>\n", out);
    for (size_t i = 0; report_parts[i].name; i++)
        if (!is_style(&report_parts[i]) && report_parts[i].length) {
            fputs("<script>", out);
            fwrite(report_parts[i].text, 1, report_parts[i].length, out);
            fputs("</script>\n", out);
        }
    fputs("</body>\n</html>\n", out);
}

static int put_page(const void *what, FILE *out)
{
    int result = put_head(out, what);

    put_body(out, what);
    return result;
}

int report_page_write(const struct report_contents *contents, const char *path, struct wf_status *status)
{
    return bench_write_whole(path, put_page, contents, status);
}
