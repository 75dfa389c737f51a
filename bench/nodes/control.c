#include "control_parts.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bench/plan/options.h"
#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "bench/words/words.h"

#define SLICE_MS 50
#define WITHDRAW_MS 1000
#define FAILED_LOOKS 50 /* of 10 ms: what is wrong with one of many nodes may be noticed before its cause is */
#define ORIGIN_SHIFT 16 /* of a farewell's signal: above it, the number of the node that gave up first, plus one */

int bench_control_create(struct weft_connection *connection, const struct weft_peer *peer, int node,
                         struct bench_control **out, struct wf_status *status)
{
    struct bench_control *control = calloc(1, sizeof *control);

    if (control)
        control->text = malloc(BENCH_TEXT_MAX);
    if (!control || !control->text) {
        bench_control_destroy(control);
        return wf_fail(status, -ENOMEM, "no memory for the control connection");
    }
    control->connection = connection;
    control->peer = peer;
    control->node = node;
    control->other = 1 - node;
    control->expected_ns = WF_NEVER;
    atomic_flag_clear(&control->gave_up);
    int result =
        weft_recv(connection, &control->heard, sizeof control->heard, TAG_ABORT, NULL, &control->abort_request);
    if (result) {
        bench_control_destroy(control);
        return wf_fail(status, result, "control connection: %s", wf_strerror(result));
    }
    *out = control;
    return 0;
}

int bench_control_create_for(const struct bench_control_ops *ops, void *context, struct bench_control **out,
                             struct wf_status *status)
{
    struct bench_control *control = calloc(1, sizeof *control);

    if (!control)
        return wf_fail(status, -ENOMEM, "no memory for the control of all nodes");
    control->ops = ops;
    control->context = context;
    *out = control;
    return 0;
}

void bench_control_set_other(struct bench_control *control, int other)
{
    control->other = other;
    control->of_many = true;
}

void bench_control_destroy(struct bench_control *control)
{
    if (!control)
        return;
    free(control->text);
    free(control);
}

void bench_control_look_after(struct bench_control *control, bench_control_look *look, void *context)
{
    control->look = look;
    control->look_context = context;
}

void bench_control_expect_within(struct bench_control *control, int timeout_ms)
{
    control->timeout_ms = timeout_ms;
    control->expected_ns = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), timeout_ms);
}

/* Why a message failed: what ended the session says more than what the message saw of it. */
static int lost(const struct bench_control *control, int result, const char *text, struct wf_status *status)
{
    struct weft_error err = {0};

    if (weft_peer_status(control->peer, &err) != 0)
        return wf_fail(status, err.code ? err.code : result, "lost node%d: %s", control->other, err.text);
    return wf_fail(status, result, "%s", text);
}

static uint32_t origin_of(const struct bench_control *control)
{
    return le32toh(control->heard.signal) >> ORIGIN_SHIFT;
}

int bench_control_culprit(const struct bench_control *control)
{
    return origin_of(control) ? (int)origin_of(control) - 1 : control->other;
}

int bench_control_listen(struct bench_control *control, struct wf_status *status)
{
    struct weft_completion completion;

    if (control->abort_request && weft_test(control->abort_request, &completion)) {
        control->abort_request = NULL;
        control->aborted = completion.status == 0 && completion.bytes == sizeof control->heard;
        if (!control->aborted)
            return lost(control, completion.status ? completion.status : -EPROTO, completion.text, status);
        control->heard.reason[ABORT_TEXT - 1] = '\0';
        bench_heard_plain(control->heard.reason);
    }
    if (!control->aborted)
        return 0;
    if (origin_of(control))
        return wf_fail(status, -ECONNABORTED, "%s", control->heard.reason);
    return wf_fail(status, -ECONNABORTED, "node%d, %s, gave up: %s", control->other, weft_peer_name(control->peer),
                   control->heard.reason);
}

int bench_control_check(struct bench_control *control, struct wf_status *status)
{
    int result = bench_interrupted(status);

    if (result == 0)
        result = control->ops ? control->ops->check(control->context, status) : bench_control_listen(control, status);
    if (result)
        return result;
    return control->look ? control->look(control->look_context, status) : 0;
}

/* It is this process that ends with it: whatever the other node says, a run that was given up has not passed. */
static int failing_status(uint32_t said)
{
    return said == BENCH_USAGE || said == BENCH_UNAVAILABLE ? (int)said : BENCH_FAILED;
}

static int ending_signal(uint32_t said)
{
    return said == SIGINT || said == SIGTERM || said == SIGHUP ? (int)said : 0;
}

bool bench_control_aborted(const struct bench_control *control, int *exit_status, int *signal)
{
    if (control->ops)
        return control->ops->aborted(control->context, exit_status, signal);
    if (control->aborted) {
        *exit_status = failing_status(le32toh(control->heard.exit_status));
        *signal = ending_signal(le32toh(control->heard.signal) & ((1u << ORIGIN_SHIFT) - 1));
    }
    return control->aborted;
}

void bench_control_abort(struct bench_control *control, const char *reason, int exit_status, int signal)
{
    if (control->ops)
        control->ops->abort(control->context, reason, exit_status, signal);
    else
        bench_control_pass_on(control, reason, exit_status, signal, -1);
}

void bench_control_pass_on(struct bench_control *control, const char *reason, int exit_status, int signal, int node)
{
    if (atomic_flag_test_and_set(&control->gave_up))
        return;
    control->said.exit_status = htole32((uint32_t)exit_status);
    control->said.signal = htole32((uint32_t)signal | (uint32_t)(node + 1) << ORIGIN_SHIFT);
    bench_copy_text(control->said.reason, sizeof control->said.reason, reason);
    weft_send(control->connection, &control->said, sizeof control->said, TAG_ABORT, NULL, &control->abort_send);
}

int bench_control_failed(struct bench_control *control, int code, const char *text, struct wf_status *status)
{
    const struct timespec nap = {0, 10 * WF_NS_PER_MS};
    int result = bench_control_check(control, status);

    for (int i = 0; result == 0 && (control->of_many || control->ops) && i < FAILED_LOOKS; i++) {
        nanosleep(&nap, NULL);
        result = bench_control_check(control, status);
    }
    if (result == 0 && control->ops)
        return wf_fail(status, code, "%s", text);
    return result ? result : lost(control, code, text, status);
}

/* The other node has had its time. */
static int check_time(const struct bench_control *control, struct wf_status *status)
{
    if (wf_clock_now(&wf_clock_monotonic) < control->expected_ns)
        return 0;
    return wf_fail(status, -ETIMEDOUT, "node%d, %s, has joined and then said nothing for %d s (--connect-timeout)",
                   control->other, weft_peer_name(control->peer), control->timeout_ms / 1000);
}

void bench_control_withdraw(struct weft_request *request)
{
    struct weft_completion completion;

    weft_cancel(request);
    weft_wait(request, WITHDRAW_MS, &completion);
}

int bench_control_finish(struct bench_control *control, struct weft_request *request,
                         struct weft_completion *completion, struct wf_status *status)
{
    while (weft_wait(request, SLICE_MS, completion) == -ETIMEDOUT) {
        int result = bench_control_check(control, status);
        if (result == 0)
            result = check_time(control, status);
        if (result) {
            bench_control_withdraw(request);
            return result;
        }
    }
    return completion->status ? bench_control_failed(control, completion->status, completion->text, status) : 0;
}

static int post_failed(struct bench_control *control, int result, struct wf_status *status)
{
    return bench_control_failed(control, result, wf_strerror(result), status);
}

int bench_control_send(struct bench_control *control, const void *bytes, size_t length, uint64_t tag,
                       struct wf_status *status)
{
    struct weft_completion completion;
    struct weft_request *request;
    int result = weft_send(control->connection, bytes, length, tag, NULL, &request);

    return result ? post_failed(control, result, status) : bench_control_finish(control, request, &completion, status);
}

int bench_control_post(struct bench_control *control, void *bytes, size_t room, uint64_t tag,
                       struct weft_request **request, struct wf_status *status)
{
    int result = weft_recv(control->connection, bytes, room, tag, NULL, request);

    return result ? post_failed(control, result, status) : 0;
}

int bench_control_take(struct bench_control *control, void *bytes, size_t room, uint64_t tag, size_t *length,
                       struct wf_status *status)
{
    struct weft_completion completion;
    struct weft_request *request;
    int result = bench_control_post(control, bytes, room, tag, &request, status);

    if (result == 0)
        result = bench_control_finish(control, request, &completion, status);
    if (result == 0)
        *length = completion.bytes;
    return result;
}

int bench_control_say(struct bench_control *control, const json_t *text, struct wf_status *status)
{
    size_t length = json_dumpb(text, control->text, BENCH_TEXT_MAX, JSON_COMPACT);

    if (length == 0 || length > BENCH_TEXT_MAX)
        return wf_fail(status, -EMSGSIZE, "a control message of %zu bytes is longer than %u", length, BENCH_TEXT_MAX);
    return bench_control_send(control, control->text, length, TAG_TEXT, status);
}

int bench_control_notify(struct bench_control *control, const json_t *text)
{
    struct weft_completion completion;

    if (control->notice_send && !weft_test(control->notice_send, &completion))
        return -EAGAIN;
    control->notice_send = NULL;
    size_t length = json_dumpb(text, control->notice, sizeof control->notice, JSON_COMPACT);
    if (length == 0 || length > sizeof control->notice)
        return -EMSGSIZE;
    return weft_send(control->connection, control->notice, length, TAG_TEXT, NULL, &control->notice_send);
}

void bench_control_close(struct bench_control *control)
{
    if (control && control->abort_request)
        bench_control_withdraw(control->abort_request);
    bench_control_destroy(control);
}

static void collect(struct weft_request **request)
{
    struct weft_completion completion;

    if (*request && weft_test(*request, &completion))
        *request = NULL;
}

void bench_control_collect(struct bench_control *control)
{
    if (!control)
        return;
    collect(&control->abort_request);
    collect(&control->abort_send);
    collect(&control->notice_send);
}

int bench_control_hear(struct bench_control *control, json_t **out, struct wf_status *status)
{
    size_t length = 0;
    int result = bench_control_take(control, control->text, BENCH_TEXT_MAX, TAG_TEXT, &length, status);

    if (result)
        return result;
    json_t *text = bench_heard(control->text, length);
    if (!text)
        return wf_fail(status, -EPROTO,
                       "the other node said something that is no JSON of ours: use the same build on "
                       "both");
    *out = text;
    return 0;
}
