/* The public calls that tell of what arrives unasked. */
#include <errno.h>

#include "core/calls/context.h"
#include "core/ground/refusal.h"
#include "core/request/tray.h"
#include "core/session/news.h"

int weft_event_poll(struct weft_context *context, struct weft_event *events, int max)
{
    if (WF_IS_NULL(wf_refusal(), context) || WF_IS_NULL(wf_refusal(), events))
        return -EINVAL;
    if (max < 1) {
        wf_fail(wf_refusal(), -EINVAL, "max is %d: give the number of events that there is room for", max);
        return wf_refused(__func__, -EINVAL);
    }
    bool watched;
    int count = wf_sessions_news(&context->sessions, events, max, &watched);
    struct wf_worker *worker = wf_crew_callers_own(&context->crew);
    bool drives = worker && !context->world.manual && !atomic_load(&worker->lent);
    /* The user will sleep on the descriptor: the worker's thread is to drive, and not to rest after a caller's turn. */
    if (watched && count < max && drives)
        wf_worker_recall(worker);
    return count;
}

int weft_event_fd(struct weft_context *context)
{
    return WF_IS_NULL(wf_refusal(), context) ? -EINVAL : wf_tray_watch(context->sessions.news);
}
