/*
 * book.h: the requests of a session, or of the lobby, that have not completed, and which of them have a deadline.
 */
#ifndef WF_CORE_REQUEST_BOOK_H
#define WF_CORE_REQUEST_BOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/pool.h"
#include "core/ground/guard.h"
#include "core/ground/terms.h"
#include "core/request/request.h"
#include "core/request/wait.h"

/* The operations of a session. Owner: session lock. Other rooms may walk `requests`. */
struct wf_book {
    struct wf_guard *guard;
    const struct wf_terms *terms;
    struct wf_waiting *waiting;
    struct wf_list requests; /* not completed */
    struct wf_list deadlines;
    struct wf_pool pool;
};

void wf_book_init(struct wf_book *book, struct wf_guard *guard, const struct wf_terms *terms,
                  struct wf_waiting *waiting);
void wf_book_fini(struct wf_book *book);

/* --- with the session's lock held --- */

/* A new request; NULL: no memory, or the context's limit is reached. */
struct weft_request *wf_request_take(struct wf_book *book, enum wf_request_kind kind, const struct wf_request_ops *ops);

/* A request that carries `outer` out, which then ends as it does (lobby.h). The context's limit does not count it.
 * NULL: no memory. The lobby's lock held, too. */
struct weft_request *wf_request_take_inner(struct wf_book *book, struct weft_request *outer,
                                           const struct wf_request_ops *ops);

/* Cancels requests whose deadline has passed (`expired`: at least one); returns the next deadline, or WF_NEVER. */
int64_t wf_requests_expire(struct wf_book *book, int64_t now_ns, bool *expired);

#endif
