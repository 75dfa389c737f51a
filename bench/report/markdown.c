#include "markdown.h"

#include "contents.h"
#include "plots.h"
#include "utf8.h"

#define ROWS_MOST 200

/* What Markdown would take for its own is escaped, and a line stays one. */
static void put_text(FILE *out, const char *text)
{
    static const char special[] = "\\`*_{}[]<>()#|!&~";
    uint32_t letter;

    while ((letter = report_utf8_next(&text)) != 0) {
        for (const char *at = special; *at; at++)
            if ((uint32_t)*at == letter)
                fputc('\\', out);
        report_utf8_put(out, letter < ' ' ? ' ' : letter);
    }
}

static void put_sentences(FILE *out, const struct report_verdict *verdict)
{
    static const char *const words[] = {"", "", "Odd: ", "**Wrong**: "};

    for (size_t i = 0; i < verdict->count; i++) {
        fprintf(out, "- %s", words[verdict->list[i].level]);
        put_text(out, verdict->list[i].text);
        fputc('\n', out);
    }
    fputc('\n', out);
}

static void put_table(FILE *out, const struct report_figure *figure)
{
    char text[64];

    for (size_t i = 0; i < figure->column_count; i++) {
        fputs("| ", out);
        put_text(out, figure->columns[i].name);
        fputs(figure->columns[i].unit[0] ? ", " : "", out);
        put_text(out, figure->columns[i].unit);
        fputc(' ', out);
    }
    fputs("|\n", out);
    for (size_t i = 0; i < figure->column_count; i++)
        fputs(figure->columns[i].is_number ? "|---:" : "|---", out);
    fputs("|\n", out);
    for (size_t row = 0; row < figure->rows && row < ROWS_MOST; row++) {
        for (size_t i = 0; i < figure->column_count; i++) {
            fputs("| ", out);
            put_text(out, report_cell_text(figure, i, row, text, sizeof text));
            fputc(' ', out);
        }
        fputs("|\n", out);
    }
    if (figure->rows > ROWS_MOST)
        fprintf(out, "\n%d of %zu rows: the data file has all.\n", ROWS_MOST, figure->rows);
    fputc('\n', out);
}

static void put_figures(FILE *out, const struct report_figures *figures)
{
    for (size_t i = 0; i < figures->count; i++) {
        const struct report_figure *figure = figures->list[i];
        if (figure->kind == REPORT_IMAGE)
            continue;
        fputs("### ", out);
        put_text(out, figure->title);
        fputs("\n\n", out);
        if (figure->note) {
            put_text(out, figure->note);
            fputs("\n\n", out);
        }
        put_table(out, figure);
    }
}

int report_markdown_put(const void *what, FILE *out)
{
    const struct report_contents *contents = what;

    fputs("# ", out);
    put_text(out, contents->title);
    fputs("\n\n", out);
    put_sentences(out, &contents->verdict);
    put_sentences(out, &contents->problems);
    put_figures(out, &contents->figures);
    for (size_t i = 0; i < contents->chapter_count && contents->chapter_count <= REPORT_PLOTS_RUNS; i++) {
        fputs("## ", out);
        put_text(out, contents->chapters[i].title);
        fputs("\n\n", out);
        put_sentences(out, &contents->chapters[i].verdict);
        put_figures(out, &contents->chapters[i].figures);
    }
    return 0;
}
