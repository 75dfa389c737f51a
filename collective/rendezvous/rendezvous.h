/*
 * rendezvous.h: who this process is among how many, and where all of them meet.
 *
 *     found = the first source, in a fixed order, that knows rank, size and meeting; or -EINVAL and what to add
 *
 * A meeting is a place at which rank 0 leaves one line of text, and the others find it: an address that all know
 * beforehand, a file, or what has started the processes (PMIx, PMI-1). The line of a file may be of an earlier run: the
 * caller proves it when it connects, and looks again.
 */
#ifndef WF_MEET_H
#define WF_MEET_H

#include <stdbool.h>
#include <stdint.h>

#include "collective/weft_coll.h"

#define WF_MEET_LINE_BYTES 960 /* of a line, with its terminating 0: values of PMI-1 have 1024 */
#define WF_MEET_NAME_BYTES 64
#define WF_MEET_PLACE_BYTES 512

/* The environment, or a made-up one. NULL: there is no such variable. */
struct wf_meet_env {
    const char *(*get)(void *user, const char *name);
    void *user;
};

/* This process's own. Only this function reads it. */
struct wf_meet_env wf_meet_environment(void);

enum wf_meet_way {
    WF_MEET_NOWHERE, /* not known; or there is nobody to meet */
    WF_MEET_HOST,    /* at an address that is known beforehand: `place` */
    WF_MEET_FILE,    /* in a file: `place` */
    WF_MEET_PMIX,
    WF_MEET_PMI,
};

/* A conversation with the server of PMI-1: lines over a socket that the process has inherited. */
struct wf_pmi {
    int fd; /* -1: none. Not ours */
    char space[256];
    char read[2048]; /* bytes that have come and are no whole line yet */
    uint32_t have;
};

struct wf_pmix; /* a client of PMIx */

/* Owner: the group, while it is created. */
struct wf_meet {
    uint32_t rank, size;
    int local_rank; /* -1: not known */
    enum wf_meet_way way;
    char place[WF_MEET_PLACE_BYTES];
    char name[WF_MEET_NAME_BYTES]; /* of the group; "-": none */
    char said[WEFT_TEXT_BYTES];    /* which source, and where */
    struct wf_pmi pmi;
    struct wf_pmix *pmix; /* NULL: not in use */
};

/* Errors: -EINVAL, and how PMIx or PMI-1 failed where `options` ask for them. */
int wf_meet_init(struct wf_meet *meet, const struct weft_group_options *options, const struct wf_meet_env *env,
                 struct weft_error *err);

/* Called by rank 0 before it tells its address, and again at the end if nobody needs it any more. */
void wf_meet_clear(struct wf_meet *meet);

/* Rank 0 leaves its line. Waits where others take part in it (PMI-1). */
int wf_meet_publish(struct wf_meet *meet, const char *line, int timeout_ms, struct weft_error *err);

/* The others: 1 and the line; 0: none is there yet, after at most `timeout_ms`. Waits. A file is looked at once. */
int wf_meet_look(struct wf_meet *meet, int timeout_ms, char line[WF_MEET_LINE_BYTES], struct weft_error *err);

void wf_meet_fini(struct wf_meet *meet);

/* Whether a source may know this process as one of several. */
bool wf_meet_is_launched(const struct wf_meet_env *env);

#endif
