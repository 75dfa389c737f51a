#include "core/ground/refusal.h"

#include <errno.h>

/* `code` is 0 except while a call fails: so wf_refused() sees whether the text is of this call. */
static _Thread_local struct wf_status refusal;

struct wf_status *wf_refusal(void)
{
    return &refusal;
}

int wf_refused(const char *call, int result)
{
    if (refusal.code == 0)
        wf_fail(&refusal, result, "%s", wf_strerror(result));
    wf_fail_prefix(&refusal, "%s()", call);
    refusal.code = 0;
    return result;
}

const char *wf_refusal_text(void)
{
    return refusal.text;
}

bool wf_refuse_null(struct wf_status *status, const char *call, const char *argument)
{
    wf_fail(status, -EINVAL, "%s(): %s is NULL: give a valid one", call, argument);
    refusal.code = 0;
    return true;
}
