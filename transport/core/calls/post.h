/*
 * post.h: the steps that all calls that post an operation share.
 */
#ifndef WF_CORE_CALLS_POST_H
#define WF_CORE_CALLS_POST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/request/request.h"

struct weft_connection;
struct weft_context;
struct wf_session;
struct wf_device;
struct wf_pieces;
struct wf_turn;

/* The memory of an operation. */
struct wf_message_memory {
    struct weft_registration *registration; /* held, or NULL */
    struct wf_device *device;               /* NULL: host memory */
    struct wf_turn *turn;                   /* with WEFT_ON_STREAM; else NULL */
};

/* A call of the user that posts a message or a receive, and its result. */
struct wf_posting {
    struct weft_connection *connection;
    void *buffer;
    uint64_t length, tag;
    struct wf_pieces *pieces; /* NULL, or where the bytes are instead of `buffer` */
    const void *span;         /* `pieces`: from the lowest to the highest address */
    uint64_t span_bytes;
    const struct weft_options *options;
    struct wf_message_memory memory;
    struct weft_request *request;
    struct wf_outbound *fresh; /* a small or brief message that is in no queue yet, or NULL */
};

/* Post it; without the session's lock. `pieces`, if any, are the callee's, also after a failure. */
int wf_post_send(struct wf_posting *posting, struct weft_request **out);
int wf_post_receive(struct wf_posting *posting, struct weft_request **out);

/* Are the pieces all in host memory, or all in the registration that was found? 0, or -ENOTSUP in words. */
int wf_vector_check(struct weft_context *context, struct wf_posting *posting);

/* Checks the user's arguments, and the flags against `allowed`; holds the registration of the options, or the one that
 * covers the device memory; takes a turn for WEFT_ON_STREAM. 0 or -errno. */
int wf_message_check(struct weft_context *context, const void *buffer, uint64_t length,
                     const struct weft_options *options, uint32_t allowed, struct wf_message_memory *memory);

#define WF_TAG_FLAGS (WEFT_ANY_TAG | WEFT_TAG_MASK) /* which tags a receive takes; one of them at most */

/* -EINVAL: the options have both flags. */
int wf_message_check_tags(const struct weft_options *options);

/* --- with the session's lock held --- */

/* 0, or why the turn that was taken cannot be had. */
int wf_message_turn(const struct wf_message_memory *memory);

/* -errno if nothing can be posted; `sending`: the operation sends a frame to the peer. */
int wf_message_usable(const struct weft_connection *connection, bool sending);

/* -EAGAIN, said in words: no request is to be had. */
int wf_message_too_many(const struct wf_book *book);

/* -errno if no message can be received: as wf_message_usable(), but what a peer that has closed the session or was lost
 * sent before can still be received. */
int wf_message_receivable(const struct weft_connection *connection);

/* A request with all arguments of the user, but for pieces. NULL: no memory, or the limit of requests is reached. */
struct weft_request *wf_message_prepare(struct weft_connection *connection, enum wf_request_kind kind, void *buffer,
                                        uint64_t length, uint64_t tag, const struct weft_options *options,
                                        const struct wf_message_memory *memory);

/* Releases the lock, and sends or kicks if there is work; after a failure releases the registration and drops the turn.
 * `fresh`: a small or brief message that is in no queue, or NULL. */
void wf_message_posted(struct wf_session *session, int result, const struct wf_message_memory *memory,
                       struct wf_outbound *fresh);

#endif
