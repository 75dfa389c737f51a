/*
 * served.h: writes and reads of memory that the other side has registered, by its key. This file has the part of the
 * memory's owner, and the start of the asking side's operations; on the way they are messages (outbound.h, inbound.h).
 *
 * Before an operation with a list, its list of remote pieces travels as a message of its own. The owner keeps the list
 * as an upload, by its number, until the operation that names it takes it over.
 */
#ifndef WF_CORE_MESSAGE_SERVED_H
#define WF_CORE_MESSAGE_SERVED_H

#include <stdint.h>

#include "base/list.h"

struct weft_connection;
struct weft_registration;
struct wf_frame;
struct wf_inbound;
struct wf_outbound;
struct wf_desk;

#define WF_LIST_ENTRIES_MAX (1024 * 1024) /* of one list */
#define WF_UPLOADS_MAX 64                 /* lists of a connection, under way or waiting for their operation */
#define WF_UPLOAD_BYTES_MAX (1ull << 30)  /* wf_desk.upload_bytes */
#define WF_LIST_BYTES_MAX (4ull << 30)    /* wf_desk.list_bytes */
#define WF_NOTE_BYTES_MAX 65536

/* --- all with the session's lock held --- */

/* A message was introduced as `inbound`: sets its kind if it is a write, a notification or a list. Refuses it if it
 * cannot be done. 0 or -EPROTO. */
int wf_onesided_introduced(struct wf_inbound *inbound, const struct wf_frame *frame);

/* READ: the peer asks for bytes of this side's memory. 0; -ENOMEM; -EPROTO. */
int wf_onesided_read(struct weft_connection *connection, const struct wf_frame *frame);

/* All bytes of a list are here: makes it an upload. */
void wf_upload_complete(struct wf_inbound *inbound);
/* A list that is under way, or an upload, of `bytes` is gone. */
void wf_upload_gone(struct weft_connection *connection, uint64_t bytes);
/* The upload `number` will not be used. */
void wf_upload_drop(struct weft_connection *connection, uint64_t number);
void wf_uploads_free(struct weft_connection *connection);

/* `inbound` touches its registration no more. */
void wf_region_release(struct wf_inbound *inbound);
/* The session is DEAD: releases every registration that its messages hold. */
void wf_regions_release(struct wf_desk *desk);
/* The registration ends: refuses the operations of the peer that use it. */
void wf_region_revoke(struct wf_desk *desk, const struct weft_registration *registration);

/* The bytes of a READ's reply could not be copied from their device. */
void wf_onesided_reply_failed(struct wf_inbound *inbound, int status);
/* The peer gives up its READ, or answers this side's REFUSE of it. `inbound` may be gone afterwards. */
void wf_onesided_reply_refused(struct wf_inbound *inbound, int status);

/* Starts a write or read of this side that has been prepared. */
void wf_asking_begin(struct wf_outbound *main);

/* Lets an operation with a list begin: queues the list. */
void wf_onesided_begin(struct wf_outbound *list);

#endif
