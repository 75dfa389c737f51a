#include "csv.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

char *report_csv_line(char **rest)
{
    char *line = *rest;

    if (!line || !line[0])
        return NULL;
    char *end = strchr(line, '\n');
    *rest = end ? end + 1 : NULL;
    if (end)
        *end = '\0';
    size_t length = strlen(line);
    if (length && line[length - 1] == '\r')
        line[length - 1] = '\0';
    return line;
}

size_t report_csv_lines(const char *text)
{
    size_t lines = 1;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* The field behind its quote, without the doubled ones; returns what follows the closing quote. */
static char *unquote(char *field)
{
    char *to = field, *from = field;

    while (*from && (*from != '"' || from[1] == '"')) {
        from += *from == '"';
        *to++ = *from++;
    }
    char *after = *from ? from + 1 : from;
    *to = '\0';
    return after;
}

size_t report_csv_split(char *line, char **fields, size_t most)
{
    size_t count = 0;

    for (;;) {
        char *field = line, *after = line;
        if (*field == '"')
            after = unquote(++field);
        char *comma = strchr(after, ',');
        if (count < most)
            fields[count] = field;
        count++;
        if (!comma)
            return count;
        *comma = '\0';
        line = comma + 1;
    }
}

size_t report_csv_find(char *const *header, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(header[i], name) == 0)
            return i;
    return SIZE_MAX;
}

double report_csv_number(const char *field)
{
    char *end;
    double value = strtod(field, &end);

    return end == field || *end || !isfinite(value) ? NAN : value;
}
