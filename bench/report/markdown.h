/*
 * markdown.h: the verdict and the tables as Markdown, for tickets.
 */
#ifndef WF_REPORT_MARKDOWN_H
#define WF_REPORT_MARKDOWN_H

#include <stdio.h>

/* Writes a struct report_contents. Of a long table the first rows, and how many there are. */
int report_markdown_put(const void *contents, FILE *out);

#endif
