/*
 * guard.h: calls of NCCL that wait for the other node, which may never come. They run in a thread of their own, so
 * that whoever waits for them can give up:
 *
 *     the wait ends with the call, with a signal, with the other node, or when its time is over
 *
 * A call that was given up cannot be ended, nor may anything it uses be freed: the process has to end.
 */
#ifndef WF_BENCH_NCCL_GUARD_H
#define WF_BENCH_NCCL_GUARD_H

#include "base/status.h"
#include "bench/nodes/control.h"

/* Runs in the thread; fills `status` where it fails. */
typedef int nccl_guarded(void *context, struct wf_status *status);

/* What `call` returns; or -ETIMEDOUT, or what bench_control_check() says (`control` NULL: nobody is asked), and then
 * `abandoned` becomes true. `what` names it in messages. */
int nccl_guard(nccl_guarded *call, void *context, const char *what, int timeout_ms, struct bench_control *control,
               bool *abandoned, struct wf_status *status);

#endif
