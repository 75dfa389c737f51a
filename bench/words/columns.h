/*
 * columns.h: text for people that fits: the width of what it is printed on, lines that are broken there, and numbers in
 * the unit that suits them.
 */
#ifndef WF_BENCH_COLUMNS_H
#define WF_BENCH_COLUMNS_H

#include <stddef.h>
#include <stdio.h>

#define BENCH_COLUMNS 80 /* of a file or a pipe, and the least of a terminal */

/* Columns of a terminal, at least BENCH_COLUMNS; of anything else BENCH_COLUMNS. */
int bench_columns(FILE *out);

/* From now on bench_columns() is this, whatever the output is; 0: as above. Before there are threads. */
void bench_columns_set(int columns);

/* Prints the words of `text` from `*column` on; a line that would be longer than `width` goes on at `indent` in the
 * next one. A word that is longer than a line is cut into lines. Columns are counted in characters of UTF-8. */
void bench_put_wrapped(FILE *out, const char *text, int *column, int indent, int width);

/* The same of a whole text, from the start of a line to its end. */
void bench_wrapped(FILE *out, int columns, int indent, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A line of a table. Cells that do not fit go on in the next line, below those of the row before that did not: a head
 * and its rows have cells of the same widths, so all break at the same one. */
struct bench_row {
    FILE *out;
    int width, column;
    int owed; /* blanks that come before the next cell: none ends a line */
};

void bench_row_begin(struct bench_row *row, FILE *out);

/* A cell of so many columns, aligned to the right; negative: to the left. */
void bench_row_put(struct bench_row *row, int columns, const char *format, ...) __attribute__((format(printf, 3, 4)));
void bench_row_end(struct bench_row *row);

/* 0.52 us, 12.3 us, 1.23 ms, 45.6 s. Returns `text`, as the others do. */
char *bench_time_text(double us, char *text, size_t room);

/* Three digits that count and no unit, for GB/s: 0.0123, 1.23, 12.3, 123. */
char *bench_rate_text(double rate, char *text, size_t room);

/* 812, 81.2k, 8.12M. */
char *bench_count_text(double count, char *text, size_t room);

#endif
