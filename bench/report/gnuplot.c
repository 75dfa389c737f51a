#include "gnuplot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "stats.h"
#include "utf8.h"

#define TICKS_MOST 12  /* sizes that stand below an axis */
#define LABELS_MOST 16 /* labels of a side up to which the cells of a matrix get their numbers */
#define SPAN_LEAST 0.1 /* of the largest value, of the colours: what is nearly equal looks so */

/* --- columns by role --- */

/* The first column of a role; SIZE_MAX: there is none. */
static size_t column_of(const struct report_figure *figure, enum report_role role)
{
    for (size_t i = 0; i < figure->column_count; i++)
        if (figure->columns[i].role == role)
            return i;
    return SIZE_MAX;
}

static bool parts_blocks(const struct report_column *column)
{
    return column->role == REPORT_SERIES || column->role == REPORT_SELECT;
}

/* Whether two rows are of the same series and selection. */
static bool same_block(const struct report_figure *figure, size_t row, size_t other)
{
    for (size_t i = 0; i < figure->column_count; i++)
        if (parts_blocks(&figure->columns[i]) && figure->columns[i].labels[row] != figure->columns[i].labels[other])
            return false;
    return true;
}

/* The series and selections of a figure. Owner: the function that has made them. */
struct blocks {
    size_t *of_row; /* the block of each row: rows of a block need not stand together */
    size_t *starts; /* the first row of each block */
    size_t count;   /* 0: there was no memory, or there are no rows */
};

static void find_blocks(const struct report_figure *figure, struct blocks *blocks)
{
    *blocks = (struct blocks){calloc(figure->rows + 1, sizeof(size_t)), calloc(figure->rows + 1, sizeof(size_t)), 0};
    for (size_t row = 0; blocks->of_row && blocks->starts && row < figure->rows; row++) {
        /* Most often it is that of the row before. */
        size_t last = row ? blocks->of_row[row - 1] : 0, at = 0;
        while (at < blocks->count && !same_block(figure, row, blocks->starts[(last + at) % blocks->count]))
            at++;
        if (at == blocks->count)
            blocks->starts[blocks->count++] = row;
        else
            at = (last + at) % blocks->count;
        blocks->of_row[row] = at;
    }
}

static void fini_blocks(struct blocks *blocks)
{
    free(blocks->of_row);
    free(blocks->starts);
}

/* --- texts --- */

/* In double quotes; `percent` stands for one. */
static void put_quoted_with(FILE *out, const char *text, const char *percent)
{
    uint32_t letter;

    fputc('"', out);
    while ((letter = report_utf8_next(&text)) != 0)
        if (letter == '%')
            fputs(percent, out);
        else
            report_utf8_put(out, letter < ' ' || letter == '"' || letter == '\\' || letter == '`' ? '?' : letter);
    fputc('"', out);
}

/* Of the data or of a script. */
static void put_quoted(FILE *out, const char *text)
{
    put_quoted_with(out, text, "%");
}

/* The label of a tic, which gnuplot takes for the format of a number. */
static void put_tic(FILE *out, const char *text)
{
    put_quoted_with(out, text, "%%");
}

/* "isolated, node0 > node1"; `named`: with the names of the columns. */
static void put_block_name(FILE *out, const struct report_figure *figure, size_t row, bool named)
{
    char text[600] = "";
    size_t used = 0;

    for (size_t i = 0; i < figure->column_count && used < sizeof text; i++) {
        const struct report_column *column = &figure->columns[i];
        /* What all have in common tells no block from another. */
        if (parts_blocks(column) && column->text_count > 1)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s", used ? ", " : "",
                                     named ? column->name : "", named ? " " : "", column->texts[column->labels[row]]);
    }
    put_quoted(out, text);
}

static void put_cell(FILE *out, const struct report_column *column, size_t row)
{
    if (!column->is_number)
        put_quoted(out, column->texts[column->labels[row]]);
    else if (isfinite(column->numbers[row]))
        fprintf(out, "%.9g", column->numbers[row]);
    else
        fputs("NaN", out);
}

static void put_row(FILE *out, const struct report_figure *figure, size_t row)
{
    for (size_t i = 0; i < figure->column_count; i++) {
        fputs(i ? " " : "", out);
        put_cell(out, &figure->columns[i], row);
    }
    fputc('\n', out);
}

/* --- data --- */

static void put_head(FILE *out, const struct report_figure *figure)
{
    fputs("# ", out);
    put_quoted(out, figure->title);
    fputs("\n#", out);
    for (size_t i = 0; i < figure->column_count; i++) {
        fprintf(out, " %zu:", i + 1);
        put_quoted(out, figure->columns[i].name);
        if (figure->columns[i].unit[0]) {
            fputc('/', out);
            put_quoted(out, figure->columns[i].unit);
        }
    }
    fputc('\n', out);
}

void report_gnuplot_data(FILE *out, const struct report_figure *figure)
{
    struct blocks blocks;

    put_head(out, figure);
    find_blocks(figure, &blocks);
    for (size_t block = 0; block < blocks.count; block++) {
        fputs(block ? "\n\n" : "", out);
        for (size_t row = blocks.starts[block]; row < figure->rows; row++)
            if (blocks.of_row[row] == block)
                put_row(out, figure, row);
    }
    fini_blocks(&blocks);
}

/* --- scripts --- */

/* Without it gnuplot refuses a logarithmic axis. */
static bool has_positive(const struct report_figure *figure, size_t column)
{
    for (size_t row = 0; row < figure->rows; row++)
        if (figure->columns[column].numbers[row] > 0)
            return true;
    return false;
}

/* The sizes that there are, or every second, third, ... of them: powers of 1024, as the program writes them. */
static void put_sizes(FILE *out, const struct report_column *column, size_t rows, char axis, enum report_scale scale)
{
    double *sizes = calloc(rows + 1, sizeof *sizes);
    size_t count = 0, different = 0;
    char text[32];

    for (size_t row = 0; sizes && row < rows; row++)
        if (column->numbers[row] >= 0 && column->numbers[row] < 0x1p62)
            sizes[count++] = column->numbers[row];
    report_sort(sizes, count);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || sizes[i] > sizes[different - 1])
            sizes[different++] = sizes[i];
    size_t step = (different + TICKS_MOST - 1) / TICKS_MOST;
    fprintf(out, "set %ctics (", axis);
    for (size_t i = 0; i < different; i += step)
        fprintf(out, "%s'%s' %.0f", i ? ", " : "", wf_format_size((uint64_t)sizes[i], text, sizeof text), sizes[i]);
    fputs(")\n", out);
    /* Nothing lies on the frame, where a label would be lost. */
    if (scale == REPORT_LOG && different && sizes[0] > 0)
        fprintf(out, "set %crange [%.9g:%.9g]\n", axis, sizes[0] / 1.4, sizes[different - 1] * 1.4);
    free(sizes);
}

/* "rate (GB/s)" */
static void put_label(FILE *out, const struct report_column *column)
{
    char label[160];

    snprintf(label, sizeof label, "%.80s%s%.16s%s", column->name, column->unit[0] ? " (" : "", column->unit,
             column->unit[0] ? ")" : "");
    put_quoted(out, label);
    fputs(" noenhanced\n", out);
}

static void put_axis(FILE *out, const struct report_figure *figure, char axis, size_t at, enum report_scale scale)
{
    const struct report_column *column = &figure->columns[at];

    fprintf(out, "set %clabel ", axis);
    put_label(out, column);
    if (scale == REPORT_LOG && has_positive(figure, at))
        fprintf(out, "set logscale %c%s\n", axis, strcmp(column->unit, "bytes") == 0 ? " 2" : "");
    if (strcmp(column->unit, "bytes") == 0)
        put_sizes(out, column, figure->rows, axis, scale);
}

/* Both outputs by the same commands: `plots` has them. */
static void put_outputs(FILE *out, const char *name)
{
    fprintf(
        out,
        "set terminal svg size 900,540 dynamic background 'white' font 'Helvetica,14'\nset output '%s.svg'\nreplot\n"
        "set output\n",
        name);
}

static void put_start(FILE *out, const struct report_figure *figure, const char *name)
{
    fprintf(out, "# gnuplot %s.gp draws %s.png and %s.svg\n", name, name, name);
    fputs("set encoding utf8\nset terminal png size 1800,1080 font ',22'\n", out);
    fprintf(out, "set output '%s.png'\nset title ", name);
    put_quoted(out, figure->title);
    /* Of a matrix one is drawn. */
    if (figure->kind == REPORT_HEAT && figure->rows) {
        fputs(".': '.", out);
        put_block_name(out, figure, 0, true);
    }
    fputs(" noenhanced\nset key outside below noenhanced\nset grid\nset tics noenhanced\n", out);
    /* Colours that those who do not see all can tell apart, after Okabe and Ito. */
    fputs("set linetype 1 lc rgb '#0072b2' lw 2 dt 1\nset linetype 2 lc rgb '#d55e00' lw 2 dt 2\nset linetype 3 lc rgb "
          "'#009e73' lw 2 dt 3\n"
          "set linetype 4 lc rgb '#cc79a7' lw 2 dt 4\nset linetype 5 lc rgb '#e69f00' lw 2 dt 5\nset linetype 6 lc rgb "
          "'#56b4e9' lw 2 dt 1\n",
          out);
}

/* Labels become numbers, in their order, as blocks need not have the same ones: those of the first block or, without
 * `blocks`, all. Returns how many they are. */
static size_t put_places(FILE *out, const struct report_column *column, const struct blocks *blocks, size_t rows,
                         char axis)
{
    bool *used = calloc(column->text_count + 1, sizeof *used);
    size_t count = 0;

    for (size_t row = 0; used && row < rows; row++)
        used[column->labels[row]] |= !blocks || (blocks->count && blocks->of_row[row] == 0);
    fprintf(out, "place_%c(name) = 0", axis);
    for (size_t k = 0; used && k < column->text_count; k++)
        if (used[k]) {
            fputs(" + (name eq ", out);
            put_quoted(out, column->texts[k]);
            fprintf(out, " ? %zu : 0)", count++);
        }
    fprintf(out, "\nset %ctics noenhanced%s (", axis, axis == 'x' ? " rotate by 30 right" : "");
    count = 0;
    for (size_t k = 0; used && k < column->text_count; k++)
        if (used[k]) {
            fputs(count ? ", " : "", out);
            put_tic(out, column->texts[k]);
            fprintf(out, " %zu", count++);
        }
    fputs(")\n", out);
    free(used);
    return count;
}

/* "x:y", and with `ends` "x:y:low:high"; labels stand at their numbers. */
static void put_using(FILE *out, const struct report_figure *figure, bool ends)
{
    size_t x = column_of(figure, REPORT_X), y = column_of(figure, REPORT_Y);

    if (figure->columns[x].is_number)
        fprintf(out, "using %zu:%zu", x + 1, y + 1);
    else
        fprintf(out, "using (place_x(strcol(%zu))):%zu", x + 1, y + 1);
    if (ends)
        fprintf(out, ":%zu:%zu", column_of(figure, REPORT_LOW) + 1, column_of(figure, REPORT_HIGH) + 1);
}

static void put_lines(FILE *out, const struct report_figure *figure, const struct blocks *blocks, const char *name)
{
    bool spread = column_of(figure, REPORT_LOW) != SIZE_MAX && figure->columns[column_of(figure, REPORT_X)].is_number;

    for (size_t block = 0; block < blocks->count; block++) {
        fprintf(out, "%s'%s.dat' index %zu ", block ? ", \\\n  " : "plot ", name, block);
        put_using(out, figure, spread);
        fprintf(out, " with %s lt %zu title ",
                spread                          ? figure->kind == REPORT_POINTS ? "yerrorbars" : "yerrorlines"
                : figure->kind == REPORT_POINTS ? "points"
                                                : "linespoints",
                block % 6 + 1);
        put_block_name(out, figure, blocks->starts[block], false);
    }
    fputc('\n', out);
}

static void put_bars(FILE *out, const struct report_figure *figure, const struct blocks *blocks, const char *name)
{
    size_t x = column_of(figure, REPORT_X), y = column_of(figure, REPORT_Y);
    double width = 0.8 / (double)(blocks->count ? blocks->count : 1);

    fprintf(out, "set style fill solid 0.8 border lc rgb 'black'\nset yrange [0:*]\nset xrange [-0.6:%.1f]\n",
            (double)figure->columns[x].text_count - 0.4);
    for (size_t block = 0; block < blocks->count; block++) {
        fprintf(
            out,
            "%s'%s.dat' index %zu using (place_x(strcol(%zu)) + %.4f):%zu:(%.4f) with boxes lt %zu lw 1 dt 1 title ",
            block ? ", \\\n  " : "plot ", name, block, x + 1, ((double)block + 0.5) * width - 0.4, y + 1, 0.9 * width,
            block % 6 + 1);
        put_block_name(out, figure, blocks->starts[block], false);
    }
    fputc('\n', out);
}

/* The colours' range, of the block that is drawn: nothing where it has no numbers. Returns its middle. */
static double put_colours(FILE *out, const struct report_figure *figure, const struct blocks *blocks, size_t value)
{
    const double *numbers = figure->columns[value].numbers;
    double low = NAN, high = NAN;

    for (size_t row = 0; row < figure->rows; row++)
        if (blocks->count && blocks->of_row[row] == 0) {
            low = fmin(low, numbers[row]);
            high = fmax(high, numbers[row]);
        }
    if (!isfinite(low) || !isfinite(high))
        return 0;
    if (high - low < SPAN_LEAST * fabs(high))
        low = high - SPAN_LEAST * fabs(high);
    if (high > low)
        fprintf(out, "set cbrange [%.9g:%.9g]\n", low, high);
    return (low + high) / 2;
}

static void put_heat(FILE *out, const struct report_figure *figure, const struct blocks *blocks, const char *name)
{
    size_t x = column_of(figure, REPORT_X), y = column_of(figure, REPORT_Y), value = column_of(figure, REPORT_VALUE);
    size_t columns = put_places(out, &figure->columns[x], blocks, figure->rows, 'x');
    size_t lines = put_places(out, &figure->columns[y], blocks, figure->rows, 'y');

    fprintf(out, "set xrange [-0.5:%zu.5]\nset yrange [%zu.5:-0.5]\nunset grid\nset cblabel ",
            columns ? columns - 1 : 0, lines ? lines - 1 : 0);
    put_label(out, &figure->columns[value]);
    fputs("set palette defined (0 '#00204d', 1 '#414d6b', 2 '#7c7b78', 3 '#bcaf6f', 4 '#ffea46')\n", out);
    double middle = put_colours(out, figure, blocks, value);
    /* Boxes and no image, which has no gaps, and at least two lines and columns. */
    fprintf(out,
            "plot '%s.dat' index 0 using (place_x(strcol(%zu))):(place_y(strcol(%zu))):(0.5):(0.5):%zu with boxxyerror "
            "fill "
            "solid noborder lc palette notitle",
            name, x + 1, y + 1, value + 1);
    if (columns <= LABELS_MOST && lines <= LABELS_MOST)
        fprintf(out,
                ", \\\n  '' index 0 using (place_x(strcol(%zu))):(valid(%zu) ? place_y(strcol(%zu)) : NaN):"
                "(sprintf($%zu < 100 ? '%%#.3g' : '%%.0f', $%zu)):($%zu < %.9g ? 0xffffff : 0) with labels tc rgb "
                "variable notitle",
                x + 1, value + 1, y + 1, value + 1, value + 1, value + 1, middle);
    fputc('\n', out);
}

void report_gnuplot_script(FILE *out, const struct report_figure *figure, const char *name)
{
    struct blocks blocks;

    find_blocks(figure, &blocks);
    put_start(out, figure, name);
    if (figure->kind == REPORT_HEAT) {
        put_axis(out, figure, 'x', column_of(figure, REPORT_X), REPORT_BY_LABEL);
        put_axis(out, figure, 'y', column_of(figure, REPORT_Y), REPORT_BY_LABEL);
        put_heat(out, figure, &blocks, name);
    } else {
        put_axis(out, figure, 'x', column_of(figure, REPORT_X), figure->x);
        put_axis(out, figure, 'y', column_of(figure, REPORT_Y), figure->y);
        if (!figure->columns[column_of(figure, REPORT_X)].is_number)
            put_places(out, &figure->columns[column_of(figure, REPORT_X)], NULL, figure->rows, 'x');
        if (figure->kind == REPORT_BARS)
            put_bars(out, figure, &blocks, name);
        else
            put_lines(out, figure, &blocks, name);
    }
    put_outputs(out, name);
    fini_blocks(&blocks);
}
