/*
 * control_parts.h: what the files of a control connection share: what there is of it, and how bytes go over it.
 */
#ifndef WF_BENCH_CONTROL_PARTS_H
#define WF_BENCH_CONTROL_PARTS_H

#include <stdatomic.h>

#include "control.h"

#define ABORT_TEXT 240
#define NOTICE_BYTES 160

enum tag { TAG_WORD = 1, TAG_TEXT = 2, TAG_ABORT = 3 };

struct farewell {
    uint32_t exit_status;
    uint32_t signal; /* that came; 0: none. Above it, whose reason is passed on: ORIGIN_SHIFT */
    char reason[ABORT_TEXT];
};

struct bench_control {
    const struct bench_control_ops *ops; /* NULL: the rest is in use */
    void *context;
    struct weft_connection *connection;
    const struct weft_peer *peer;
    int node, other;
    bool of_many;                       /* `other` is one of several */
    struct weft_request *abort_request; /* posted from the first moment on; NULL once it has ended */
    struct weft_request *abort_send;
    struct farewell heard, said;
    bool aborted;        /* the other node gave up */
    atomic_flag gave_up; /* this one did: whoever sets it writes `said` */
    int64_t expected_ns; /* when the other node must have spoken; WF_NEVER */
    int timeout_ms;      /* what that came from */
    uint64_t words_sent, words_taken;
    char *text; /* BENCH_TEXT_MAX bytes */
    char notice[NOTICE_BYTES];
    struct weft_request *notice_send; /* NULL: none is under way */
    bench_control_look *look;
    void *look_context;
};

/* The memory of a request must be free again before the caller goes on. */
void bench_control_withdraw(struct weft_request *request);

/* Waits for one request, watching for interruptions and the other node's farewell. */
int bench_control_finish(struct bench_control *control, struct weft_request *request,
                         struct weft_completion *completion, struct wf_status *status);

/* Sends, and waits for it; posts a receive; receives. */
int bench_control_send(struct bench_control *control, const void *bytes, size_t length, uint64_t tag,
                       struct wf_status *status);
int bench_control_post(struct bench_control *control, void *bytes, size_t room, uint64_t tag,
                       struct weft_request **request, struct wf_status *status);
int bench_control_take(struct bench_control *control, void *bytes, size_t room, uint64_t tag, size_t *length,
                       struct wf_status *status);

#endif
