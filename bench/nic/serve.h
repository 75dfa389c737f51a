/*
 * serve.h: 'weft nic serve': queues and rules for processes that have no right to take them. No file outside of this
 * room includes it.
 *
 *     each connection is served by a process of its own
 *
 * So a client that keeps it busy, or ends it, harms nobody else, nothing of one client stays with another, and what the
 * helper has lent goes on when the helper itself ends.
 */
#ifndef WF_BENCH_NIC_SERVE_H
#define WF_BENCH_NIC_SERVE_H

#include <stdio.h>

#include "bench/plan/options.h"
#include "devmem/devmem.h"
#include "devmem/lent.h"

#define SERVE_USERS_MAX 64
#define SERVE_CLIENTS_MAX 256 /* at a time */
#define SERVE_EACH_MAX 16     /* queues, and connections, of one user */

/* Owner: the command. */
struct serve_desk {
    const struct wf_devmem_kernel *kernel; /* NULL: that of this machine */
    const char *folder;                    /* of records, and the socket */
    const char *const *cards;              /* that are served; none: all that are ready */
    int card_count;
    uint32_t users[SERVE_USERS_MAX]; /* that may ask, besides root */
    int user_count;
    FILE *log;
};

/* One line of the log: who, and what. */
void serve_log(const struct serve_desk *desk, const struct wf_lent_holder *holder, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Answers a client that was greeted until the connection ends, then takes away what it has left. The socket stays the
 * caller's. */
void serve_client(const struct serve_desk *desk, int socket, const struct wf_lent_holder *holder);

/* "ann,1000" -> numbers. -EINVAL: no such user, or too many. */
int serve_read_users(const char *text, struct serve_desk *desk, struct wf_status *status);

/* The socket at which clients connect, its file in the folder; the caller closes it with the call below. -EADDRINUSE:
 * another helper has it. */
int serve_open(const char *folder, struct wf_status *status);
void serve_close(const char *folder, int listener);

/* The command. An exit status, or a negative errno. */
int serve_run(struct wf_devmem *devmem, const struct bench_options *options, struct wf_status *status);

#endif
