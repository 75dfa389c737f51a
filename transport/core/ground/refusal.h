/*
 * refusal.h: why a call without a struct weft_error failed. The text belongs to the thread that called, and
 * weft_last_error() gives it out.
 */
#ifndef WF_CORE_GROUND_REFUSAL_H
#define WF_CORE_GROUND_REFUSAL_H

#include <stdbool.h>

#include "base/status.h"

/* The thread's own: for the `status` of wf_fail(). Its text stays until the next of these calls fails. */
struct wf_status *wf_refusal(void);

/* Ends a call that failed with `result`, and returns it: puts the call before the text. If nothing on the way has
 * filled wf_refusal(), the text says what `result` means. */
int wf_refused(const char *call, int result);

/* The text, "" if none of these calls has failed in this thread. */
const char *wf_refusal_text(void);

/* Says in `status` (NULL is allowed) that `call` got NULL for `argument`. Returns true. */
bool wf_refuse_null(struct wf_status *status, const char *call, const char *argument);

/* Did the public function that asks get NULL for this argument? Then `status` says so, with -EINVAL. The call ends
 * without wf_refused(). */
#define WF_IS_NULL(status, argument) (!(argument) && wf_refuse_null((status), __func__, #argument))

#endif
