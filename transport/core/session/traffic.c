#include "core/session/traffic.h"

#include <errno.h>

#include "core/cards/cards.h"
#include "core/channel/carry.h"
#include "core/channel/state.h"
#include "core/ground/reached.h"
#include "core/session/entry.h"
#include "core/session/loss.h"

#define EXPRESS_PART 8   /* the express channels have one part in so many of a class's rate */
#define PATIENCE_PARTS 4 /* a chunk takes at most one part in so many of `timeout` */

/* --- classes in use --- */

int wf_session_use_class(struct wf_session *session, unsigned traffic)
{
    struct wf_lines *lines = &session->lines;
    if (lines->classes >> traffic & 1)
        return 0;
    if (!(session->terms.features & WF_FEATURE_CLASSES))
        return -ENOTSUP;
    if (wf_loss_expect(&session->loss, traffic, lines->per_class) < 0)
        return -ENOMEM;
    wf_lines_use(lines, traffic);
    wf_guard_visit(&session->guard, 0); /* the dialer's door plans the channels */
    return 0;
}

/* Plans the channels of the class that are not planned yet. They begin as channels whose first attempt was missed, but
 * no DOWN tells the peer of that: it waits for none of them. */
static int plan(struct wf_session *session, unsigned traffic)
{
    int per_rail = 1 + (int)session->guard.world->tuning.channels, per_class = session->lines.per_class;
    int result = 0;
    for (int i = 0; i < per_class && result == 0; i++) {
        int id = (int)traffic * per_class + i;
        struct wf_join join = {.channel = (uint32_t)id,
                               .incarnation = 1,
                               .kind = i % per_rail == 0 ? WF_CHANNEL_EXPRESS : WF_CHANNEL_BULK,
                               .rail = (uint8_t)(i / per_rail)};
        if (!session->lines.channels[id]) /* only the door's thread writes it */
            result = wf_session_plan(session, &join);
    }
    return result;
}

/* --- strands in use --- */

void wf_session_use_strand(struct wf_session *session, uint32_t strand)
{
    if (session->lines.strands_used >> strand & 1 || !(session->terms.features & WF_FEATURE_DEVICE))
        return;
    WF_REACHED("session UP: a strand comes into use");
    wf_lines_use_strand(&session->lines, (int)strand);
    wf_guard_visit(&session->guard, 0);
}

bool wf_session_reach(struct wf_session *session, int device)
{
    if (!(session->terms.features & WF_FEATURE_DEVICE) || device >= WF_DOMAINS_MAX ||
        !wf_cards_reach(session->sessions->cards, device))
        return false;
    wf_session_use_strand(session, wf_strand_of((uint32_t)device, !session->terms.dialer));
    return true;
}

/* Could a channel of the strand run on the rail? Of the peer's side only the peer knows. */
static bool may_reach(const struct wf_session *session, uint32_t strand, int rail)
{
    int local = session->lines.rails[rail].local;
    return wf_strand_to_acceptor(strand) ||
           wf_cards_inlet(session->sessions->cards, local, (int)wf_strand_domain(strand));
}

static int plan_strand(struct wf_session *session, uint32_t strand)
{
    int per_rail = 1 + (int)session->guard.world->tuning.channels, per_class = session->lines.per_class;
    int result = 0;
    for (int i = 0; i < per_class && result == 0; i++) {
        uint32_t id = (WF_CLASSES + strand) * (uint32_t)per_class + (uint32_t)i;
        struct wf_join join = {.channel = id,
                               .incarnation = 1,
                               .kind = WF_CHANNEL_DEVICE,
                               .rail = (uint8_t)(i / per_rail),
                               .domain = strand + 1};
        if (i % per_rail > 0 && !session->lines.channels[id] && may_reach(session, strand, join.rail))
            result = wf_session_plan(session, &join);
    }
    return result;
}

/* As wf_session_plan_classes(). */
static int64_t plan_strands(struct wf_session *session, int64_t now_ns)
{
    wf_session_lock(session);
    uint32_t due = session->lines.strands_used & ~session->loss.strands_planned;
    wf_session_unlock(session);
    for (; due != 0; due &= due - 1) {
        uint32_t strand = (uint32_t)__builtin_ctz(due);
        if (plan_strand(session, strand) < 0)
            return now_ns + WF_NS_PER_S;
        session->loss.strands_planned |= UINT32_C(1) << strand;
    }
    return WF_NEVER;
}

int64_t wf_session_plan_classes(struct wf_session *session, int64_t now_ns)
{
    wf_session_lock(session);
    unsigned due = session->lines.classes & ~session->loss.planned & ~1u;
    wf_session_unlock(session);
    WF_CLASSES_EACH (traffic, due) {
        if (plan(session, traffic) < 0)
            return now_ns + WF_NS_PER_S;
        session->loss.planned |= 1u << traffic;
    }
    return plan_strands(session, now_ns);
}

/* --- rates --- */

static int channels_of(const struct wf_session *session, unsigned traffic, enum wf_channel_kind kind)
{
    return session->lines.up_of[wf_group(traffic, kind)];
}

uint64_t wf_session_least_rate(const struct wf_session *session)
{
    uint64_t bulk = (uint64_t)session->lines.bulk_count[0], chunk = session->terms.chunk;
    uint64_t patience_ms = (uint64_t)session->guard.world->tuning.timeout_ns / WF_NS_PER_MS / PATIENCE_PARTS;
    uint64_t pad = session->guard.world->tuning.header_pad;
    uint64_t least = bulk * (chunk + pad) * 1000 / patience_ms * EXPRESS_PART / (EXPRESS_PART - 1);
    /* The largest frame of an express channel, which has a smaller part of the rate. */
    uint64_t express = (uint64_t)session->lines.joined - bulk;
    uint64_t small = express * EXPRESS_PART * (session->terms.eager + WF_FRAME_BYTES) * 1000 / patience_ms;
    return least > small ? least : small;
}

/* The part of the class's rate that each of its channels of this kind has. 0: the class has no rate. */
static uint64_t part(const struct wf_session *session, unsigned traffic, enum wf_channel_kind kind)
{
    uint64_t rate = session->lines.rate[traffic], parts = kind == WF_CHANNEL_EXPRESS ? 1 : EXPRESS_PART - 1;
    int same = channels_of(session, traffic, kind), all = session->lines.up_of[wf_group(traffic, WF_CHANNEL_EXPRESS)] +
                                                          session->lines.up_of[wf_group(traffic, WF_CHANNEL_BULK)];
    if (rate == 0)
        return 0;
    if (same < all)
        rate = rate / EXPRESS_PART * parts;
    return rate / (uint64_t)same > 0 ? rate / (uint64_t)same : 1;
}

static void divide(struct wf_session *session, unsigned traffic)
{
    const struct wf_world *world = session->guard.world;
    int first = (int)traffic * session->lines.per_class;
    for (int id = first; id < first + session->lines.per_class; id++) {
        const struct wf_channel *channel = session->lines.channels[id];
        if (channel && channel->up)
            world->engine_ops->pace(world->engine_host, channel->fd, part(session, traffic, channel->kind));
    }
}

void wf_session_set_rate(struct wf_session *session, unsigned traffic, uint64_t bytes_per_second)
{
    wf_lines_limit(&session->lines, traffic, bytes_per_second);
    divide(session, traffic);
}

void wf_session_pace(struct wf_session *session, unsigned traffic)
{
    if (session->lines.rate[traffic] > 0)
        divide(session, traffic);
}
