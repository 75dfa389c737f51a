/* The owner's part of one-sided operations: admits writes, reads and lists, and ends them when a registration ends. */
#include "core/message/served.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/device/registration.h"
#include "core/message/connection.h"
#include "core/message/desk.h"
#include "core/message/inbound.h"
#include "core/message/inbound_parts.h"
#include "core/message/match.h"
#include "core/message/outbound.h"
#include "core/message/outbound_parts.h"
#include "core/request/pieces.h"

/* A list that is here entirely, and waits for the operation that names it. Owner: session lock. */
struct upload {
    struct wf_link link; /* connection.uploads */
    uint64_t number, bytes;
    struct wf_pieces *pieces;         /* of this side's memory */
    struct weft_registration *region; /* held, or NULL */
    int status;                       /* why it cannot be used, or 0 */
};

static void hold_region(struct wf_inbound *inbound, struct weft_registration *region)
{
    inbound->region = region;
    wf_list_push_back(&inbound->connection->desk->regions_used, &inbound->region_link);
}

void wf_region_release(struct wf_inbound *inbound)
{
    struct weft_registration *region = inbound->region;
    if (!region)
        return;
    inbound->region = NULL;
    wf_link_remove(&inbound->region_link);
    wf_registration_release(region);
}

/* --- uploads --- */

static struct upload *upload_of(struct wf_link *link)
{
    return WF_CONTAINER(link, struct upload, link);
}

static struct upload *find_upload(struct weft_connection *connection, uint64_t number)
{
    WF_LIST_EACH (link, following, &connection->uploads) {
        if (upload_of(link)->number == number)
            return upload_of(link);
    }
    return NULL;
}

static void empty_upload(struct upload *upload)
{
    if (upload->region)
        wf_registration_release(upload->region);
    upload->region = NULL;
    wf_pieces_release(upload->pieces);
    upload->pieces = NULL;
}

void wf_upload_gone(struct weft_connection *connection, uint64_t bytes)
{
    connection->upload_count -= 1;
    connection->desk->upload_bytes -= bytes;
    connection->desk->list_bytes -= bytes;
}

static void free_upload(struct weft_connection *connection, struct upload *upload)
{
    wf_link_remove(&upload->link);
    wf_upload_gone(connection, upload->bytes);
    empty_upload(upload);
    free(upload);
}

void wf_upload_drop(struct weft_connection *connection, uint64_t number)
{
    struct upload *upload = find_upload(connection, number);
    if (upload)
        free_upload(connection, upload);
}

void wf_uploads_free(struct weft_connection *connection)
{
    while (!wf_list_empty(&connection->uploads))
        free_upload(connection, upload_of(wf_list_first(&connection->uploads)));
}

/* Turns the entries into pieces of this side's memory. All name one registration: one key for each operation. */
static int resolve(struct wf_registry *registry, struct wf_pieces *pieces, uint32_t count,
                   struct weft_registration **region)
{
    for (uint32_t i = 0; i < count; i++) {
        struct wf_entry entry;
        wf_entry_decode(pieces->upload + (size_t)i * WF_ENTRY_BYTES, &entry);
        if (i == 0)
            *region = wf_registration_find(registry, entry.key);
        if (!*region)
            return -EACCES;
        if ((*region)->key != entry.key)
            return -EINVAL;
        if (entry.length > (*region)->length || entry.offset > (*region)->length - entry.length)
            return -ERANGE;
        if (entry.length > UINT64_MAX / 2 - pieces->total)
            return -EOVERFLOW;
        wf_pieces_add(pieces, (*region)->base + entry.offset, entry.length);
    }
    return 0;
}

void wf_upload_complete(struct wf_inbound *inbound)
{
    struct weft_connection *connection = inbound->connection;
    struct upload *upload = calloc(1, sizeof *upload);
    if (!upload) {
        wf_guard_fail(connection->desk->guard, -ENOMEM, "no memory for a list of pieces");
        return;
    }
    upload->number = inbound->number;
    upload->bytes = inbound->total;
    upload->pieces = inbound->pieces;
    inbound->pieces = NULL;
    uint32_t count = (uint32_t)(inbound->total / WF_ENTRY_BYTES);
    upload->status = resolve(connection->desk->registry, upload->pieces, count, &upload->region);
    if (upload->status < 0)
        empty_upload(upload);
    wf_list_push_back(&connection->uploads, &upload->link);
}

static int admit_list(struct wf_inbound *inbound)
{
    struct weft_connection *connection = inbound->connection;
    if (inbound->total % WF_ENTRY_BYTES != 0 || inbound->total == 0)
        return -EPROTO;
    uint64_t count = inbound->total / WF_ENTRY_BYTES;
    if (count > WF_LIST_ENTRIES_MAX)
        return -E2BIG;
    struct wf_desk *desk = connection->desk;
    if (connection->upload_count >= WF_UPLOADS_MAX || desk->upload_bytes + inbound->total > WF_UPLOAD_BYTES_MAX ||
        desk->list_bytes + inbound->total > WF_LIST_BYTES_MAX)
        return -ENOBUFS;
    inbound->pieces = wf_pieces_create((uint32_t)count, true);
    if (!inbound->pieces)
        return -ENOMEM;
    connection->upload_count += 1;
    desk->upload_bytes += inbound->total;
    desk->list_bytes += inbound->total;
    wf_list_push_back(&desk->pieces, &inbound->pieces->link);
    inbound->place = inbound->pieces->upload;
    inbound->state = WF_INBOUND_MATCHED;
    if (inbound->total > inbound->burst) {
        inbound->grant_due = true;
        wf_inbound_todo(inbound);
    }
    return 0;
}

/* --- memory --- */

/* Takes the upload `number` over for `inbound`. */
static int use_upload(struct wf_inbound *inbound, uint64_t number, uint64_t total)
{
    struct weft_connection *connection = inbound->connection;
    struct upload *upload = find_upload(connection, number);
    if (!upload)
        return -EPROTO;
    int status = upload->status;
    if (status == 0 && upload->pieces->total != total)
        status = -EINVAL;
    if (status == 0) {
        inbound->pieces = upload->pieces;
        upload->pieces = NULL;
        inbound->list_bytes = upload->bytes; /* until the operation has ended */
        connection->desk->list_bytes += upload->bytes;
        inbound->device = upload->region->device;
        hold_region(inbound, upload->region);
        upload->region = NULL;
    }
    free_upload(connection, upload);
    return status;
}

/* Finds the memory that a WRITE or READ names, and holds it. */
static int find_memory(struct wf_inbound *inbound, const struct wf_frame *frame)
{
    if (frame->flags & WF_FLAG_LIST)
        return use_upload(inbound, frame->key, frame->total);
    struct weft_registration *region = wf_registration_find(inbound->connection->desk->registry, frame->key);
    if (!region)
        return -EACCES;
    if (frame->total > region->length || frame->base > region->length - frame->total) {
        wf_registration_release(region);
        return -ERANGE;
    }
    hold_region(inbound, region);
    inbound->device = region->device;
    inbound->place = region->base + frame->base;
    return 0;
}

/* The same, if the owner allows it. */
static int reach(struct wf_inbound *inbound, const struct wf_frame *frame, uint32_t wanted)
{
    int status = find_memory(inbound, frame);
    if (frame->total == 0) /* no bytes: only asks whether key and place are good, so either right is enough */
        wanted = WEFT_REMOTE_READ | WEFT_REMOTE_WRITE;
    if (status == 0 && !(inbound->region->access & wanted)) {
        wf_region_release(inbound);
        status = -EACCES;
    }
    inbound->connection->desk->denied += status == -EACCES || status == -ERANGE;
    return status;
}

static bool closing(const struct weft_connection *connection)
{
    return connection->state == WF_CONNECTION_CLOSING;
}

static void admit_write(struct wf_inbound *inbound, const struct wf_frame *frame)
{
    inbound->kind = WF_INBOUND_WRITE;
    inbound->noted = frame->flags & WF_FLAG_NOTIFY;
    int status = reach(inbound, frame, WEFT_REMOTE_WRITE);
    if (closing(inbound->connection))
        status = -ESHUTDOWN;
    if (status == 0)
        inbound->state = WF_INBOUND_MATCHED;
    else
        wf_inbound_refuse(inbound, status);
}

int wf_onesided_introduced(struct wf_inbound *inbound, const struct wf_frame *frame)
{
    if (frame->flags & WF_FLAG_WRITE) {
        admit_write(inbound, frame);
    } else if (frame->flags & WF_FLAG_NOTIFY) {
        inbound->kind = WF_INBOUND_NOTE;
        inbound->after = frame->base;
        if (frame->base >= frame->msg || frame->total > WF_NOTE_BYTES_MAX)
            return -EPROTO;
    } else if (frame->flags & WF_FLAG_LIST) {
        inbound->kind = WF_INBOUND_LIST;
        int status = admit_list(inbound);
        if (status == -EPROTO)
            return status;
        if (status < 0)
            wf_inbound_refuse(inbound, status);
    } else if (frame->base > WF_BASE_LANDED) {
        return -EPROTO;
    }
    return 0;
}

/* With checksums the bytes are read twice: a word that its owner changes in between would look damaged. So small
 * replies are copied first. */
static void copy_small(struct wf_outbound *reply)
{
    struct wf_desk *desk = reply->connection->desk;
    if (!desk->guard->world->tuning.crc || reply->pieces || reply->device || reply->total > desk->terms->eager)
        return;
    reply->slot = wf_pool_take(&desk->slot_pool);
    if (!reply->slot)
        return;
    memcpy(reply->slot, reply->data, reply->total);
    reply->data = reply->slot;
}

int wf_onesided_read(struct weft_connection *connection, const struct wf_frame *frame)
{
    /* The size stays unknown: if the READ is refused, only the peer's answer ends it. */
    struct wf_inbound *inbound = wf_inbound_create(connection, frame->msg, 0, WF_TOTAL_UNKNOWN, true);
    if (!inbound)
        return -ENOMEM;
    inbound->kind = WF_INBOUND_SERVED;
    inbound->noted = frame->flags & WF_FLAG_NOTIFY;
    int status =
        frame->total == 0 || frame->total == WF_TOTAL_UNKNOWN ? -EINVAL : reach(inbound, frame, WEFT_REMOTE_READ);
    if (closing(connection))
        status = -ESHUTDOWN;
    struct wf_outbound *reply = status == 0 ? wf_outbound_create(connection, WF_OUTBOUND_REPLY, frame->total) : NULL;
    if (status == 0 && !reply)
        status = -ENOMEM;
    if (status < 0) {
        wf_inbound_refuse(inbound, status);
        return 0;
    }
    inbound->state = WF_INBOUND_MATCHED;
    inbound->partner = reply;
    reply->counterpart = inbound;
    reply->device = inbound->device;
    reply->data = inbound->place;
    reply->pieces = inbound->pieces;
    inbound->pieces = NULL;
    copy_small(reply);
    wf_outbound_reply(reply, frame->msg);
    return 0;
}

/* --- ends --- */

static void refuse_reply(struct wf_inbound *inbound, int status)
{
    struct wf_outbound *reply = inbound->partner;
    wf_outbound_refuse(reply, status);
    if (reply->refused) /* else it was too late to refuse: the whole reply is sent */
        wf_inbound_refuse_note(inbound, status);
}

void wf_onesided_reply_failed(struct wf_inbound *inbound, int status)
{
    refuse_reply(inbound, status);
}

void wf_onesided_reply_refused(struct wf_inbound *inbound, int status)
{
    if (!inbound->partner->refused)
        refuse_reply(inbound, status);
    wf_outbound_refused_by_peer(inbound->partner, status);
}

void wf_regions_release(struct wf_desk *desk)
{
    struct wf_link *link;
    while ((link = wf_list_first(&desk->regions_used)))
        wf_region_release(WF_CONTAINER(link, struct wf_inbound, region_link));
    WF_DESK_EACH_CONNECTION (connection, desk) {
        wf_uploads_free(connection);
    }
}

static void revoke_uploads(struct wf_desk *desk, const struct weft_registration *registration)
{
    WF_DESK_EACH_CONNECTION (connection, desk) {
        WF_LIST_EACH (upload_link, next, &connection->uploads) {
            struct upload *upload = upload_of(upload_link);
            if (upload->region != registration)
                continue;
            empty_upload(upload);
            upload->status = -EACCES;
        }
    }
}

/* The first operation of the peer on the registration that has not been refused yet. */
static struct wf_inbound *user_of(struct wf_desk *desk, const struct weft_registration *registration)
{
    WF_LIST_EACH (link, following, &desk->regions_used) {
        struct wf_inbound *inbound = WF_CONTAINER(link, struct wf_inbound, region_link);
        bool ending = inbound->state == WF_INBOUND_DRAINING || (inbound->partner && inbound->partner->stopped);
        if (inbound->region == registration && !ending)
            return inbound;
    }
    return NULL;
}

void wf_region_revoke(struct wf_desk *desk, const struct weft_registration *registration)
{
    revoke_uploads(desk, registration);
    struct wf_inbound *inbound;
    while ((inbound = user_of(desk, registration))) {
        struct weft_connection *connection = inbound->connection;
        if (inbound->kind == WF_INBOUND_SERVED) {
            wf_outbound_stop(inbound->partner);
            refuse_reply(inbound, -EACCES);
        } else {
            wf_inbound_refuse(inbound, -EACCES);
            wf_inbound_check(inbound);
        }
        wf_match_advance(connection); /* past a notification that was refused before it came */
    }
}

/* --- operations of this side --- */

void wf_asking_begin(struct wf_outbound *main)
{
    struct weft_connection *connection = main->connection;
    struct wf_outbound *list = main->list;
    if (!list)
        wf_outbound_queue(main);
    else if (connection->lists < WF_LISTS_AT_ONCE)
        wf_onesided_begin(list);
    else
        wf_list_push_back(&connection->unlisted, &list->queue_link);
}

void wf_onesided_begin(struct wf_outbound *list)
{
    list->connection->lists += 1;
    list->waiter->counted = true;
    wf_outbound_queue(list);
}
