/*
 * page.h: the report as one HTML file, which needs no network: the verdict as text, the figures as data, and the
 * scripts that draw them.
 */
#ifndef WF_REPORT_PAGE_H
#define WF_REPORT_PAGE_H

#include "contents.h"

/* Writes it to a file, which nobody ever sees half, or to standard output ("-"). */
int report_page_write(const struct report_contents *contents, const char *path, struct wf_status *status);

#endif
