/* fold.h: lines in a row that differ in nothing but the name become one: "gpu0 to gpu3  same switch". */
#ifndef WF_AFFINITY_SHOW_FOLD_H
#define WF_AFFINITY_SHOW_FOLD_H

#include <stdio.h>

#include "affinity/show/words.h"

#define WF_SHOW_NAMES 18 /* columns: "host10 to host15" */

/* The caller sets `out` and `column`, where names begin, and zeroes the rest. */
struct wf_show_folded {
    FILE *out;
    int column;
    char first[16], last[16], body[WF_SHOW_TEXT];
};

void wf_show_fold(struct wf_show_folded *folded, const char *name, const char *body);
/* Prints what is still held back; behind the last line. */
void wf_show_unfold(struct wf_show_folded *folded);

#endif
