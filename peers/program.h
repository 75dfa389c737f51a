/*
 * program.h: a program under way: what it prints is collected, and how it ended. It has a keeper, so that none of its
 * processes outlives the object.
 *
 *     start -> pump ... until ended -> fini            end() at any time
 */
#ifndef WF_PEERS_PROGRAM_H
#define WF_PEERS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "keeper.h"
#include "peer.h"

#define PEER_TEXT_MAX                                                                                                  \
    (16u << 20) /* of standard output, as a mesh of many endpoints prints it; what is more is thrown away, and         \
                   `flooded` set */
#define PEER_TAIL_MAX 2048 /* of standard error: its end is kept */

/* Owner: one thread, which outlives it. */
struct peer_program {
    const char *name;     /* argv[0]: the command's */
    pid_t keeper;         /* 0: none */
    int out, err, report; /* our ends; -1: closed */
    char *text;           /* standard output so far, ends with '\0'; NULL: nothing yet */
    size_t used, room;
    bool flooded;
    char tail[PEER_TAIL_MAX];
    size_t tail_used;
    bool ended; /* it, and everything that it started */
    bool told;  /* `how` says how */
    struct peer_report how;
};

/* Starts `command`, which has to stay. `program` can be given to fini() whatever the result. */
int peer_program_start(struct peer_program *program, const struct peer_command *command, struct wf_status *status);

/* Ends whatever still runs, waits for it, and frees. */
void peer_program_fini(struct peer_program *program);

#define PEER_PUMP_MAX 64

/* Takes what up to PEER_PUMP_MAX programs (NULL entries are skipped) have printed, and waits up to `timeout_ms` for
 * more. */
void peer_program_pump(struct peer_program *const *programs, int count, int timeout_ms);

/* Asks it to end; it will have ended within about a second. */
void peer_program_end(const struct peer_program *program);

/* 0 when it ended with status 0; else -ECHILD, and in `status` how it ended and the last it said. */
int peer_program_verdict(const struct peer_program *program, struct wf_status *status);

/* The last line with something to read of what it said, and no JSON object: on standard error, else on standard output.
 * "" without. Returns `line`. */
char *peer_program_last_line(const struct peer_program *program, char *line, size_t room);

#endif
