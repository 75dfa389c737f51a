#include "core/channel/payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/channel/lines.h"
#include "core/ground/counter.h"
#include "wire/pattern.h"

#define CHUNKS_BEHIND 4 /* in host memory, on their way to a device */

/* --- life --- */

/* Room for all fragments that the inlet has, for pieces in host memory, and for one chunk at a time. */
static int make_intake(struct wf_payload *payload, const struct wf_inlet *inlet)
{
    struct wf_devmem_intake_setup setup = {.dmabuf = inlet->binding,
                                           .dmabuf_bytes = inlet->bytes,
                                           .fragments_max = (uint32_t)(inlet->bytes / inlet->buffer_bytes) +
                                                            WF_LANDING_PIECES + WF_CONTROL_FRAGMENTS,
                                           .chunks_max = 2};
    uint32_t chunk = payload->lines->guard->world->tuning.chunk;
    payload->scratch = malloc(chunk > WF_PATTERN_BYTES ? chunk : WF_PATTERN_BYTES); /* seldom touched */
    return payload->scratch ? wf_devmem_intake_create(&setup, &payload->intake, NULL) : -ENOMEM;
}

static int make_trial(struct wf_payload *payload, const struct wf_join *join)
{
    struct wf_payload_trial *trial = &payload->trial;
    if (!(payload->lines->terms->features & WF_FEATURE_TRIAL))
        return 0;
    trial->pattern = malloc(WF_PATTERN_BYTES);
    trial->back = payload->incoming ? calloc(1, WF_PATTERN_BYTES) : NULL;
    if (!trial->pattern || (payload->incoming && !trial->back))
        return -ENOMEM;
    wf_pattern_fill(join->session, join->channel, join->incarnation, trial->pattern);
    return 0;
}

static void free_trial(struct wf_payload_trial *trial)
{
    free(trial->pattern);
    free(trial->back);
    trial->pattern = trial->back = NULL;
}

struct wf_payload *wf_payload_create(struct wf_lines *lines, struct wf_cards *cards, const struct wf_join *join, int fd,
                                     struct wf_inlet *inlet, void *rule)
{
    struct wf_payload *payload = calloc(1, sizeof *payload);
    if (!payload)
        return NULL;
    payload->lines = lines;
    payload->incoming = inlet != NULL;
    if ((inlet && make_intake(payload, inlet) < 0) || make_trial(payload, join) < 0) {
        wf_devmem_intake_destroy(payload->intake);
        free_trial(&payload->trial);
        free(payload->scratch);
        free(payload);
        return NULL;
    }
    wf_link_init(&payload->link);
    wf_link_init(&payload->op.link);
    wf_list_init(&payload->under_way);
    wf_list_init(&payload->spare);
    payload->cards = cards;
    payload->channel = join->channel;
    payload->incarnation = join->incarnation;
    payload->fd = fd;
    payload->inlet = inlet;
    payload->rule = rule;
    payload->control = (struct wf_control){.bytes = payload->control_room, .room = sizeof payload->control_room};
    payload->holds = 1;
    return payload;
}

void wf_payload_release(struct wf_payload *payload)
{
    payload->holds -= 1;
    if (payload->holds > 0)
        return;
    wf_list_push_back(&payload->lines->spent, &payload->link);
    wf_guard_visit(payload->lines->guard, 0);
}

void wf_payload_park(struct wf_payload *payload)
{
    WF_LIST_EACH (link, following, &payload->lines->parked) {
        struct wf_payload *other = WF_CONTAINER(link, struct wf_payload, link);
        if (other->channel != payload->channel)
            continue;
        wf_link_remove(link);
        wf_payload_release(other);
    }
    wf_list_push_back(&payload->lines->parked, &payload->link);
}

static struct wf_payload *find_parked(const struct wf_lines *lines, uint32_t channel, uint32_t incarnation)
{
    WF_LIST_EACH (link, following, &lines->parked) {
        struct wf_payload *payload = WF_CONTAINER(link, struct wf_payload, link);
        if (payload->channel == channel && payload->incarnation == incarnation)
            return payload;
    }
    return NULL;
}

bool wf_payload_is_parked(const struct wf_lines *lines, uint32_t channel, uint32_t incarnation)
{
    return find_parked(lines, channel, incarnation) != NULL;
}

struct wf_payload *wf_payload_unpark(struct wf_lines *lines, uint32_t channel, uint32_t incarnation)
{
    struct wf_payload *payload = find_parked(lines, channel, incarnation);
    if (payload)
        wf_link_remove(&payload->link);
    return payload;
}

void wf_payload_unclaimed(struct wf_lines *lines, uint32_t channel, uint32_t incarnation)
{
    struct wf_payload *payload = wf_payload_unpark(lines, channel, incarnation);
    if (payload)
        wf_payload_release(payload);
}

/* No channel can claim it any more: the session ends, or the inlet was left. Session lock. */
static bool waits_in_vain(const struct wf_payload *payload)
{
    enum wf_session_state state = payload->lines->guard->state;
    bool joins = state == WF_SESSION_JOINING || state == WF_SESSION_UP;
    return !joins || (payload->inlet && atomic_load(&payload->inlet->left));
}

static void destroy(struct wf_payload *payload)
{
    const struct wf_world *world = payload->cards->world; /* the session may be gone */
    struct wf_link *link;
    if (payload->inlet) {
        wf_cards_gave_back(payload->inlet, wf_devmem_intake_held(payload->intake)); /* with the socket */
        wf_cards_unsteer(payload->cards, payload->inlet, payload->rule);
    }
    world->engine_ops->close_fd(world->engine_host, payload->fd);
    while ((link = wf_list_pop_front(&payload->spare)))
        free(WF_CONTAINER(link, struct wf_landing, link));
    wf_devmem_intake_destroy(payload->intake);
    free_trial(&payload->trial);
    free(payload->scratch);
    free(payload);
}

void wf_payloads_take_spent(struct wf_lines *lines, struct wf_list *spent)
{
    struct wf_link *first;
    wf_guard_lock(lines->guard);
    while ((first = wf_list_pop_front(&lines->spent)))
        wf_list_push_back(spent, first);
    WF_LIST_EACH (link, following, &lines->parked) {
        if (!waits_in_vain(WF_CONTAINER(link, struct wf_payload, link)))
            continue;
        wf_link_remove(link);
        wf_list_push_back(spent, link);
    }
    wf_guard_unlock(lines->guard);
}

void wf_payloads_close(struct wf_list *spent)
{
    struct wf_link *link;
    while ((link = wf_list_pop_front(spent)))
        destroy(WF_CONTAINER(link, struct wf_payload, link));
}

/* --- receiving --- */

int wf_payload_expect(struct wf_payload *payload, uint64_t position, const struct wf_frame *frame)
{
    struct wf_devmem_chunk chunk = {.position = position, .bytes = frame->length, .to = frame->offset + 1};
    return wf_devmem_intake_expect(payload->intake, &chunk, NULL);
}

int wf_payload_await_pattern(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    if (!wf_payload_is_on_trial(channel->payload) || !channel->payload->incoming)
        return -EPROTO;
    rx->frame = (struct wf_frame){.type = WF_DATA, .length = WF_PATTERN_BYTES};
    rx->left = rx->frame.length;
    rx->in_frame = true;
    return wf_payload_expect(channel->payload, 0, &rx->frame);
}

void wf_payload_passed(struct wf_payload *payload)
{
    free_trial(&payload->trial);
}

void wf_payload_prepare(struct wf_channel *channel)
{
    struct wf_rx *rx = &channel->rx;
    struct wf_payload *payload = channel->payload;
    rx->direct = rx->left;
    rx->iov[0] = (struct iovec){payload->scratch + (rx->frame.length - rx->left), rx->left};
    rx->op.fd = payload->fd;
    rx->op.iov = rx->iov;
    rx->op.iov_count = 1;
    rx->op.control = &payload->control;
    rx->op.urgent = false;
}

int wf_payload_take(struct wf_channel *channel, uint64_t bytes)
{
    struct wf_payload *payload = channel->payload;
    struct wf_devmem_intake *intake = payload->intake;
    struct msghdr message = {.msg_iov = channel->rx.iov,
                             .msg_iovlen = 1,
                             .msg_control = payload->control.length > 0 ? payload->control.bytes : NULL,
                             .msg_controllen = payload->control.length,
                             .msg_flags = payload->control.flags};
    struct wf_devmem_intake_counts before = wf_devmem_intake_counts(intake), after;
    uint32_t room = wf_devmem_intake_room(intake), held = wf_devmem_intake_held(intake);
    int result = wf_devmem_intake_take(intake, &message, bytes, NULL);
    if (result < 0)
        return result;
    after = wf_devmem_intake_counts(intake);
    held = wf_devmem_intake_held(intake) - held;
    payload->loose += room - wf_devmem_intake_room(intake);
    payload->loose_in_device += held;
    uint64_t device_bytes = after.device_bytes - before.device_bytes;
    bool trial = wf_payload_is_on_trial(payload); /* whose bytes are nobody's */
    payload->trial.device_bytes += trial ? (uint32_t)device_bytes : 0;
    result = wf_cards_came(payload->cards, payload->inlet, trial ? 0 : device_bytes,
                           trial ? 0 : after.host_bytes - before.host_bytes, held);
    if (!channel->rx.claim && !trial)
        wf_payload_forget(payload);
    return result;
}

bool wf_payload_is_behind(const struct wf_payload *payload)
{
    return payload->host_bytes > (uint64_t)CHUNKS_BEHIND * payload->lines->guard->world->tuning.chunk;
}

/* What is in no landing holds little of the inlet: else all streams could wait for buffers that they hold. */
bool wf_payload_is_full(const struct wf_payload *payload)
{
    uint32_t streams = atomic_load_explicit(&payload->inlet->streams, memory_order_relaxed);
    uint64_t buffers = payload->inlet->bytes / payload->inlet->buffer_bytes / WF_PAYLOAD_POOL_PART;
    uint64_t share = buffers / (streams ? streams : 1);
    return payload->loose > WF_LANDING_PIECES - WF_CONTROL_FRAGMENTS || payload->loose_in_device >= (share ? share : 1);
}

static struct wf_landing *spare_landing(struct wf_payload *payload)
{
    struct wf_link *link = wf_list_pop_front(&payload->spare);
    struct wf_landing *landing = link ? WF_CONTAINER(link, struct wf_landing, link) : malloc(sizeof *landing);
    if (!landing)
        return NULL;
    wf_link_init(&landing->link);
    landing->payload = payload;
    landing->copies = 1; /* the caller */
    landing->device_bytes = landing->host_bytes = 0;
    landing->host = NULL;
    landing->batch = (struct wf_devmem_batch){.gathers = landing->gathers,
                                              .copies = landing->hosts,
                                              .gathers_max = WF_LANDING_PIECES,
                                              .copies_max = WF_LANDING_PIECES};
    return landing;
}

/* The scratch is for the next bytes: those in host memory get a place of their own. Seldom: a card that does its work
 * leaves none there. */
static int keep_host_bytes(struct wf_landing *landing)
{
    uint8_t *at = landing->host = landing->host_bytes > 0 ? malloc(landing->host_bytes) : NULL;
    if (!at && landing->host_bytes > 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < landing->batch.copy_count; i++) {
        struct wf_devmem_copy *piece = &landing->hosts[i];
        memcpy(at, piece->from, piece->bytes);
        piece->from = at;
        at += piece->bytes;
    }
    landing->payload->host_bytes += landing->host_bytes;
    return 0;
}

struct wf_landing *wf_payload_land(struct wf_payload *payload, int *result)
{
    struct wf_landing *landing = payload->loose > 0 ? spare_landing(payload) : NULL;
    *result = landing || payload->loose == 0 ? 0 : -ENOMEM;
    if (!landing)
        return NULL;
    uint32_t left = payload->loose;
    if (!wf_devmem_intake_place(payload->intake, &landing->batch)) {
        wf_list_push_front(&payload->spare, &landing->link);
        payload->loose = payload->loose_in_device = 0;
        return NULL;
    }
    for (uint32_t i = 0; i < landing->batch.gather_count; i++)
        landing->device_bytes += landing->gathers[i].bytes;
    for (uint32_t i = 0; i < landing->batch.copy_count; i++)
        landing->host_bytes += landing->hosts[i].bytes;
    uint32_t taken = landing->batch.gather_count + landing->batch.copy_count;
    payload->loose = left > taken ? left - taken : 1; /* 1: perhaps; the next look tells */
    payload->loose_in_device = 0;
    payload->holds += 1;
    wf_list_push_back(&payload->under_way, &landing->link);
    *result = keep_host_bytes(landing);
    return landing;
}

static void release_host_bytes(struct wf_landing *landing)
{
    if (landing->host)
        landing->payload->host_bytes -= landing->host_bytes;
    free(landing->host);
    landing->host = NULL;
}

/* Landings end in the order of their batches. Returns whether any has. */
static bool end_landings(struct wf_payload *payload)
{
    struct wf_link *link;
    bool any = false;
    while ((link = wf_list_first(&payload->under_way)) && WF_CONTAINER(link, struct wf_landing, link)->copies == 0) {
        (void)wf_devmem_intake_done(payload->intake, WF_CONTAINER(link, struct wf_landing, link)->batch.number);
        wf_link_remove(link);
        wf_list_push_front(&payload->spare, link);
        release_host_bytes(WF_CONTAINER(link, struct wf_landing, link));
        payload->holds -= 1; /* the caller has one, too */
        any = true;
    }
    return any;
}

/* Takes the tokens for one call to the kernel, and makes the call. False: there are none. */
static bool give_back_some(struct wf_payload *payload, bool locked)
{
    const struct wf_world *world = payload->lines->guard->world;
    struct wf_devmem_tokens tokens[WF_DEVMEM_RANGES_MAX];
    struct wf_tokens ranges[WF_DEVMEM_RANGES_MAX];
    uint32_t fragments;
    if (!locked)
        wf_guard_lock(payload->lines->guard);
    uint32_t held = wf_devmem_intake_held(payload->intake);
    uint32_t count = wf_devmem_intake_give_back(payload->intake, tokens, &fragments);
    wf_cards_gave_back(payload->inlet, held - wf_devmem_intake_held(payload->intake));
    if (!locked)
        wf_guard_unlock(payload->lines->guard);
    for (uint32_t i = 0; i < count; i++)
        ranges[i] = (struct wf_tokens){tokens[i].start, tokens[i].count};
    if (count > 0)
        (void)world->engine_ops->give_back(world->engine_host, payload->fd, ranges, (int)count);
    return count > 0;
}

void wf_landing_drop(struct wf_landing *landing)
{
    struct wf_payload *payload = landing->payload;
    landing->copies -= 1;
    payload->holds += 1;
    bool any = end_landings(payload);
    while (any && give_back_some(payload, true)) /* seldom: the lock may be held meanwhile */
        ;
    wf_payload_release(payload);
}

void wf_landing_copied(struct wf_landing *landing)
{
    struct wf_payload *payload = landing->payload;
    struct wf_guard *guard = payload->lines->guard;
    wf_guard_lock(guard);
    landing->copies -= 1;
    payload->holds += 1;
    bool behind = wf_payload_is_behind(payload), any = end_landings(payload);
    wf_guard_unlock(guard);
    if (behind)
        wf_kicks_all(payload->lines->kicks, NULL); /* the half may be held */
    while (any && give_back_some(payload, false))
        ;
    wf_guard_lock(guard);
    wf_payload_release(payload);
    wf_guard_unlock(guard);
}

void wf_payload_forget(struct wf_payload *payload)
{
    struct wf_landing *landing;
    int result;
    while ((landing = wf_payload_land(payload, &result)))
        wf_landing_drop(landing);
}
