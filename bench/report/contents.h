/*
 * contents.h: what stands in a report, before it gets a form.
 */
#ifndef WF_REPORT_CONTENTS_H
#define WF_REPORT_CONTENTS_H

#include "figure.h"
#include "forecast.h"
#include "run.h"
#include "verdict.h"

/* A run with what belongs to it: the drawing and the temperatures that lie in its folder. */
struct report_chapter {
    const struct report_run *run;
    char title[300];
    struct report_grid grid; /* of a run with samples */
    struct report_verdict verdict;
    struct report_figures figures;
};

/* Owner: the command. */
struct report_contents {
    struct report_run **runs;
    size_t run_count;
    struct report_chapter *chapters;
    size_t chapter_count;
    struct report_figures figures;  /* over all runs */
    struct report_verdict verdict;  /* on all of them, or on the one there is */
    struct report_verdict problems; /* files that are none, each with its reason */
    char title[300];
    char made[32];                   /* when, in UTC */
    struct bench_progress *progress; /* not ours; NULL: nobody looks */
};

/* What is beside the files. */
struct report_wish {
    const char *baseline;  /* a file, or a backend of the runs; NULL: other backends are compared with the first one */
    const char *predicted; /* a file; NULL: none */
};

/* Reads files and folders into runs; one that is no result becomes a problem. 0 where at least one could be read. */
int report_contents_read(struct report_contents *contents, const char *const *paths, size_t count,
                         struct wf_status *status);

/* Makes chapters of the runs. */
int report_contents_make(struct report_contents *contents, const struct report_wish *wish, struct wf_status *status);

void report_contents_fini(struct report_contents *contents);

#endif
