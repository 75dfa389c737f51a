#include "columns.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WRAPPED_MOST 4096
#define FOLDED 4 /* columns before the rest of a row */

static int columns_asked;

void bench_columns_set(int columns)
{
    columns_asked = columns;
}

int bench_columns(FILE *out)
{
    struct winsize size;

    if (columns_asked)
        return columns_asked;
    if (!isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col < BENCH_COLUMNS)
        return BENCH_COLUMNS;
    return size.ws_col;
}

/* Characters of the first `length` bytes. */
static int characters(const char *text, size_t length)
{
    int count = 0;

    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

static void put_piece(FILE *out, const char *piece, size_t length, int *column)
{
    fprintf(out, "%.*s", (int)length, piece);
    *column += characters(piece, length);
}

void bench_put_wrapped(FILE *out, const char *text, int *column, int indent, int width)
{
    bool begun = false; /* a word stands before this one in the line */

    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t length = strcspn(text, " ");

        if (begun && *column + 1 + characters(text, length) > width) {
            fprintf(out, "\n%*s", indent, "");
            *column = indent;
            begun = false;
        }
        if (begun)
            put_piece(out, " ", 1, column);
        while (*column + characters(text, length) > width && *column < width) {
            size_t fits = (size_t)(width - *column);
            while (((unsigned char)text[fits] & 0xC0) == 0x80)
                fits--;
            put_piece(out, text, fits, column);
            text += fits;
            length -= fits;
            fprintf(out, "\n%*s", indent, "");
            *column = indent;
        }
        put_piece(out, text, length, column);
        text += length;
        begun = true;
    }
}

void bench_wrapped(FILE *out, int columns, int indent, const char *format, ...)
{
    char text[WRAPPED_MOST];
    int column = 0;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bench_put_wrapped(out, text, &column, indent, columns);
    fputc('\n', out);
}

void bench_row_begin(struct bench_row *row, FILE *out)
{
    *row = (struct bench_row){.out = out, .width = bench_columns(out)};
}

void bench_row_put(struct bench_row *row, int columns, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t length = strlen(text), seen = length;
    while (seen > 0 && text[seen - 1] == ' ')
        seen--;
    int shown = characters(text, length), wanted = columns < 0 ? -columns : columns;
    int blanks = wanted > shown ? wanted - shown : 0, behind = (int)(length - seen) + (columns < 0 ? blanks : 0);
    if (row->column > 0 && row->column + row->owed + shown + blanks - behind > row->width) {
        fprintf(row->out, "\n%*s", FOLDED, "");
        row->column = FOLDED;
        row->owed = 0;
    }
    if (seen > 0) {
        fprintf(row->out, "%*s%.*s", row->owed + (columns < 0 ? 0 : blanks), "", (int)seen, text);
        row->column += row->owed + shown + blanks - behind;
        row->owed = behind;
    } else {
        row->owed += shown + blanks;
    }
}

void bench_row_end(struct bench_row *row)
{
    fputc('\n', row->out);
    row->column = row->owed = 0;
}

static char *three_digits(double value, const char *unit, char *text, size_t room)
{
    snprintf(text, room, value < 9.995 ? "%.2f%s" : value < 99.95 ? "%.1f%s" : "%.0f%s", value, unit);
    return text;
}

char *bench_time_text(double us, char *text, size_t room)
{
    if (us < 999.5)
        return three_digits(us, " us", text, room);
    if (us < 999.5e3)
        return three_digits(us / 1e3, " ms", text, room);
    return three_digits(us / 1e6, " s", text, room);
}

char *bench_rate_text(double rate, char *text, size_t room)
{
    if (rate > 0 && rate < 0.00005)
        snprintf(text, room, "%.0e", rate);
    else
        snprintf(text, room, "%.*f",
                 rate >= 99.95     ? 0
                 : rate >= 9.995   ? 1
                 : rate >= 0.9995  ? 2
                 : rate >= 0.09995 ? 3
                                   : 4,
                 rate);
    return text;
}

char *bench_count_text(double count, char *text, size_t room)
{
    if (count < 999.5) {
        snprintf(text, room, "%.0f", count);
        return text;
    }
    if (count < 999.5e3)
        return three_digits(count / 1e3, "k", text, room);
    return three_digits(count / 1e6, "M", text, room);
}
