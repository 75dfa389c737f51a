/* The public calls on greetings: what a context tells its peers when they meet. */
#include <errno.h>

#include "core/calls/context.h"
#include "core/ground/refusal.h"
#include "core/session/session.h"

_Static_assert(WEFT_GREETING_MAX == WF_GREETING_MAX, "what the user may set fits into the message");

int weft_greeting_set(struct weft_context *context, const void *bytes, uint32_t length, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), context))
        return -EINVAL;
    if (length > WF_GREETING_MAX)
        return wf_fail(wf_status_of(err), -EINVAL, "a greeting of %u bytes: at most %u fit", length, WF_GREETING_MAX);
    if (length > 0 && !bytes)
        return wf_fail(wf_status_of(err), -EINVAL, "a greeting of %u bytes at NULL: give their address, or length 0",
                       length);
    wf_sessions_set_greeting(&context->sessions, bytes, length);
    return 0;
}

const void *weft_peer_greeting(const struct weft_peer *peer, uint32_t *length)
{
    if (length)
        *length = peer ? peer->greeting_length : 0;
    return peer && peer->greeting ? (const void *)peer->greeting : "";
}
