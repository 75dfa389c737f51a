/*
 * whole_file.h: a file in a folder that nobody ever sees half. It is written beside its place and moved there when it
 * is whole; until then the one before stays.
 */
#ifndef WF_BASE_WHOLE_FILE_H
#define WF_BASE_WHOLE_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Puts all of it into `file`. 0 or a negative errno; what the stream itself reports needs not be looked for. */
typedef int wf_put_file(FILE *file, const void *what);

struct wf_whole_file {
    int folder; /* its descriptor */
    const char *name;
    mode_t mode;
    bool lasting; /* also where the machine stops right afterwards */
};

/* 0 or a negative errno; then nothing of it is left. */
int wf_whole_file_write(const struct wf_whole_file *whole, wf_put_file *put, const void *what);

#endif
