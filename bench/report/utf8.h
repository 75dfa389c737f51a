/*
 * utf8.h: letters of a text that may not be UTF-8: names of files are whatever bytes somebody chose.
 */
#ifndef WF_REPORT_UTF8_H
#define WF_REPORT_UTF8_H

#include <stdint.h>
#include <stdio.h>

#define REPORT_NO_LETTER 0xFFFD /* stands for a byte that is none */

/* The next letter of `*text`, which moves on; 0 at the end. */
uint32_t report_utf8_next(const char **text);

/* What a terminal would obey, and bytes that are no letters, become '?'. */
void report_utf8_plain(char *text);

/* Writes a letter. */
void report_utf8_put(FILE *out, uint32_t letter);

#endif
