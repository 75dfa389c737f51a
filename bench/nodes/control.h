/*
 * control.h: what the two nodes say to each other: texts (JSON), the start barrier, small numbers, and why one of
 * them gave up. Both sides must make the same calls in the same order; a number in every message proves it.
 */
#ifndef WF_BENCH_CONTROL_H
#define WF_BENCH_CONTROL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "weft.h"

#define BENCH_TEXT_MAX (1u << 20) /* longest text; longer news goes in several */

/* What a node did in a phase, for the other one to know. */
struct bench_news {
    uint64_t cpu_ns;      /* processor time in the timed region */
    uint64_t retransmits; /* TCP segments sent again */
    uint64_t elapsed_ns;  /* from the start barrier to its last completion */
    /* News of a timed segment tell nothing of verification, and the places of these two in a word, which older
     * versions know, tell which bytes network cards have read and written in GPU memory themselves. */
    union {
        uint64_t wrong_bytes;
        uint64_t direct_sent;
    };
    union {
        uint64_t verified_bytes;
        uint64_t direct_received;
    };
    uint64_t failures;                           /* channels lost */
    uint64_t resent_bytes;                       /* payload sent again for that */
    uint64_t page_faults;                        /* in the timed region */
    uint64_t background_messages, background_ns; /* that came here, and in which time */
};

/* What both nodes did together. A lost channel has two ends, and counts once. What came in the background is each
 * node's own. */
void bench_news_join(const struct bench_news *one, const struct bench_news *other, struct bench_news *both);

struct bench_control; /* Owner: the measuring thread; only bench_control_abort() may be called by others. */

/* `node` is this node's number; the session is asked about when a message fails. */
int bench_control_create(struct weft_connection *connection, const struct weft_peer *peer, int node,
                         struct bench_control **out, struct wf_status *status);
void bench_control_destroy(struct bench_control *control);

/* The other node's number in messages, where there are more than two. */
void bench_control_set_other(struct bench_control *control, int other);

/* The conversation ends while its session goes on: nothing that either side has said is under way. */
void bench_control_close(struct bench_control *control);

/*
 * A control that stands for several nodes (team.h). Each function does for all of them what the one of its name does
 * for two; `theirs` is what all the others did together. What says something to one node alone is not for it.
 */
struct bench_control_ops {
    int (*start)(void *context, int64_t *start_ns, struct wf_status *status);
    int (*swap)(void *context, const struct bench_news *mine, struct bench_news *theirs, struct wf_status *status);
    int (*check)(void *context, struct wf_status *status);
    void (*abort)(void *context, const char *reason, int exit_status, int signal);
    bool (*aborted)(void *context, int *exit_status, int *signal);
};
int bench_control_create_for(const struct bench_control_ops *ops, void *context, struct bench_control **out,
                             struct wf_status *status);

/* As bench_control_check(), but neither signals nor the caller's own look: what this one node has said. */
int bench_control_listen(struct bench_control *control, struct wf_status *status);

/* As bench_control_abort(), of another node's reason, which is passed on as it is. `node`: whose it was. */
void bench_control_pass_on(struct bench_control *control, const char *reason, int exit_status, int signal, int node);

/* The node that gave up first, once bench_control_aborted() is true. */
int bench_control_culprit(const struct bench_control *control);

/* Asked by bench_control_check(), too; non-zero is an error of the other node. NULL: nobody is asked. */
typedef int bench_control_look(void *context, struct wf_status *status);
void bench_control_look_after(struct bench_control *control, bench_control_look *look, void *context);

/* 0; -EINTR once a signal has come; -ECONNABORTED with the other node's reason once it gave up; or what the caller's
 * own look found. */
int bench_control_check(struct bench_control *control, struct wf_status *status);

/* Tells the other node, once, why this one gives up, with which exit status, and the signal that came (0: none).
 * Never waits. Any thread. */
void bench_control_abort(struct bench_control *control, const char *reason, int exit_status, int signal);

/* Sends `text` without waiting for it to arrive, as long as it is short. 0, or why it could not; -EAGAIN: the one
 * before is still under way. */
int bench_control_notify(struct bench_control *control, const json_t *text);

/* Once the session has ended: collects the requests that are left, so that their memory is free. */
void bench_control_collect(struct bench_control *control);

/* Whether the other node gave up; if so, how. */
bool bench_control_aborted(const struct bench_control *control, int *exit_status, int *signal);

/* Why something between the nodes failed, the first of these that is so: a signal came here, the other node gave up,
 * the session ended, `code` and `text`. Returns its code. */
int bench_control_failed(struct bench_control *control, int code, const char *text, struct wf_status *status);

/* From now on the other node has to say what it has to say within `timeout_ms`; -1: it may take its time, as long as
 * its session lives. */
void bench_control_expect_within(struct bench_control *control, int timeout_ms);

/* Sends `text` / takes the next one; `*out` is a new reference. */
int bench_control_say(struct bench_control *control, const json_t *text, struct wf_status *status);
int bench_control_hear(struct bench_control *control, json_t **out, struct wf_status *status);

/*
 * The start barrier of a phase. The leader's clock starts before the other side can leave it, and the leader leaves
 * last: no side can send before the clock of the side that receives has started.
 *
 *   other -> leader   ready
 *   leader -> other   go          leader's start
 *   other -> leader   started     other's start
 */
int bench_control_start(struct bench_control *control, bool leader, int64_t *start_ns, struct wf_status *status);

/* One way of bench_control_swap(). */
int bench_control_tell(struct bench_control *control, const struct bench_news *mine, struct wf_status *status);
int bench_control_learn(struct bench_control *control, struct bench_news *theirs, struct wf_status *status);

/* Exchanges the news of a phase. */
int bench_control_swap(struct bench_control *control, const struct bench_news *mine, struct bench_news *theirs,
                       struct wf_status *status);

/*
 * Both clocks within one round trip, CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW of each node:
 *
 *     node1's clock - node0's = ((heard - asked) + (answered - back)) / 2, with an error of at most half of
 *     the round trip (back - asked) - (answered - heard)
 */
struct bench_clock_reading {
    int64_t asked_ns, back_ns;     /* node0: before it asked, and when the answer had come */
    int64_t heard_ns, answered_ns; /* node1: when the question had come, and before it answered */
    int64_t raw_ns[2];             /* by node: CLOCK_MONOTONIC_RAW when its CLOCK_MONOTONIC was at_ns */
    int64_t at_ns[2];
    int64_t gap_ns[2]; /* how long it took to look at both: the two were apart by at most half of that */
};

/* node0 asks, node1 answers; only node0 gets the reading. */
int bench_control_read_clocks(struct bench_control *control, struct bench_clock_reading *reading,
                              struct wf_status *status);

#endif
