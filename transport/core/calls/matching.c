/* weft_probe(): which message a receive would take. */
#include <errno.h>

#include "core/calls/context.h"
#include "core/calls/post.h"
#include "core/message/connection.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "core/request/wait.h"
#include "core/session/session.h"

/* The tags that a caller asks for. -EINVAL: the options ask for something else, too. */
static int read_tags(const struct weft_options *options, uint64_t *mask)
{
    *mask = options ? wf_match_mask(options->flags, options->tag_mask) : WF_MASK_EXACT;
    if (options && ((options->flags & ~WF_TAG_FLAGS) || options->reserved != 0))
        return -EINVAL;
    return wf_message_check_tags(options);
}

/* 1 and the message that a receive would take; 0: none yet; or why none will come. */
static int look(struct weft_connection *connection, uint64_t tag, uint64_t mask, struct weft_message *out)
{
    struct wf_session *session = wf_session_at(connection->desk);
    wf_session_lock(session);
    int result = wf_message_receivable(connection);
    const struct wf_inbound *inbound = result == 0 ? wf_match_waiting(connection, tag, mask) : NULL;
    if (inbound && wf_match_can_come(inbound)) {
        *out = (struct weft_message){.connection = connection, .tag = inbound->tag, .bytes = inbound->total};
        result = 1;
    } else if (result == 0 && (connection->close_seen || session->guard.peer_closing)) {
        result = -ESHUTDOWN;
    }
    wf_session_unlock(session);
    return result;
}

int weft_probe(struct weft_connection *connection, uint64_t tag, const struct weft_options *options,
               struct weft_message *out)
{
    uint64_t mask;
    if (!out || read_tags(options, &mask) < 0)
        return -EINVAL;
    int result = look(connection, tag, mask, out);
    if (result != 0)
        return result;
    wf_wait_progress(&wf_context_of(wf_session_at(connection->desk))->waiting);
    return look(connection, tag, mask, out);
}
