/*
 * served.h: memory of one side that the other writes and reads by its key. Here is what the owner of the memory
 * does when asked, and how the asker's operations begin; on their way they are messages (outbound.h, inbound.h).
 *
 * An operation with a list is described first: the list of remote pieces travels as a message of its own and is kept,
 * by its number, as an upload, until the operation that names it takes it over.
 */
#ifndef WF_CORE_MESSAGE_SERVED_H
#define WF_CORE_MESSAGE_SERVED_H

#include <stdint.h>

#include "base/list.h"

struct weft_connection;
struct weft_registration;
struct wf_channel;
struct wf_frame;
struct wf_inbound;
struct wf_outbound;
struct wf_desk;

#define WF_LIST_ENTRIES_MAX (1024 * 1024) /* of one list */
#define WF_UPLOADS_MAX 64                 /* lists of a connection, under way or waiting for their operation */
#define WF_UPLOAD_BYTES_MAX (1ull << 30)  /* of such lists of a session */
#define WF_LIST_BYTES_MAX (4ull << 30)    /* of these and of those that operations use */
#define WF_NOTE_BYTES_MAX 65536

/* --- all with the session's lock held --- */

/* A write, a notification or a list has introduced itself as `inbound`, a message so far: makes it what it is. 0;
 * -EPROTO. What cannot be done is refused. */
int wf_onesided_introduced(struct wf_inbound *inbound, const struct wf_frame *frame);

/* The peer asks for memory. 0; -EPROTO. */
int wf_onesided_read(struct weft_connection *connection, const struct wf_frame *frame);

/* All of a list is here: becomes an upload. */
void wf_upload_complete(struct wf_inbound *inbound);
/* A list that is under way, or an upload, of `bytes` is gone. */
void wf_upload_gone(struct weft_connection *connection, uint64_t bytes);
/* The upload `number` will not be used. */
void wf_upload_drop(struct weft_connection *connection, uint64_t number);
void wf_uploads_free(struct weft_connection *connection);

/* `inbound` touches its registration no more. */
void wf_region_release(struct wf_inbound *inbound);
/* The session is over: nothing of it touches any registration. */
void wf_regions_release(struct wf_desk *desk);
/* The registration ends: refuses what the peer is doing with it. */
void wf_region_revoke(struct wf_desk *desk, const struct weft_registration *registration);

/* The bytes of a READ's reply could not be had from the device they are on. */
void wf_onesided_reply_failed(struct wf_inbound *inbound, int status);
/* The asker gives up a READ that is being answered, or has heard that we do. `inbound` may be gone afterwards. */
void wf_onesided_reply_refused(struct wf_inbound *inbound, int status);

/* Sends what was made for a write or read of ours on its way. */
void wf_asking_begin(struct wf_outbound *main);

/* Lets an operation with a list begin: queues the list. */
void wf_onesided_begin(struct wf_outbound *list);

#endif
