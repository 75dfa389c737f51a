/*
 * csv.h: lines of CSV as RFC 4180 has them, but that a field does not go on in the next line.
 */
#ifndef WF_REPORT_CSV_H
#define WF_REPORT_CSV_H

#include <stddef.h>

/* Takes the next line from `*rest`, in place, and moves it on; NULL: there are no more. */
char *report_csv_line(char **rest);

/* How many lines there are, rather one more than one less. */
size_t report_csv_lines(const char *text);

/* Splits a line in place. Returns how many fields it has; those from `most` on are not given. */
size_t report_csv_split(char *line, char **fields, size_t most);

/* The column of a header's field; SIZE_MAX: there is none. */
size_t report_csv_find(char *const *header, size_t count, const char *name);

/* A field as a number; NaN: it is none. */
double report_csv_number(const char *field);

#endif
