#include "core/session/spread_plan.h"

#include <errno.h>
#include <stdlib.h>

#include "core/channel/channel.h"
#include "core/message/connection.h"
#include "core/session/session.h"

#define SLOW 2.0 /* a channel slower than the fastest rate divided by this takes no more than its share */

static struct wf_lane lane_of(const struct wf_channel *channel, int64_t now_ns, int64_t news_ns)
{
    const struct wf_tx *tx = &channel->tx;
    uint64_t outstanding = tx->window.spent_bytes - tx->acknowledged_bytes;
    return (struct wf_lane){
        .rate = wf_rate_estimate(&tx->rate, news_ns, outstanding),
        .outstanding = outstanding,
        .lag_ns = tx->rate.lag_ns,
        .ready = channel->up && tx->idle && wf_channel_open(channel, 1),
        .stale = wf_rate_is_stale(&tx->rate, now_ns),
    };
}

static bool is_lane(const struct wf_channel *channel)
{
    return channel && channel->kind == WF_CHANNEL_BULK && channel->up;
}

/* --- a round --- */

int wf_spread_init(struct wf_spread *spread, int count)
{
    spread->lanes = calloc((size_t)count, sizeof *spread->lanes);
    spread->some = calloc((size_t)count, sizeof *spread->some);
    return spread->lanes && spread->some ? 0 : -ENOMEM;
}

void wf_spread_fini(struct wf_spread *spread)
{
    free(spread->lanes);
    free(spread->some);
    *spread = (struct wf_spread){0};
}

void wf_spread_begin(struct wf_session *session)
{
    session->loss.spread.known = false;
}

/* Sets `news_ns`, the last acknowledgement on any bulk channel, and `fastest`, the highest rate. */
static void find_bounds(struct wf_spread *spread, const struct wf_session *session)
{
    spread->news_ns = 0;
    spread->fastest = 0;
    for (int i = 0; i < session->lines.channel_count; i++) {
        if (!is_lane(session->lines.channels[i]))
            continue;
        const struct wf_rate *rate = &session->lines.channels[i]->tx.rate;
        spread->news_ns = rate->heard_ns > spread->news_ns ? rate->heard_ns : spread->news_ns;
        spread->fastest = rate->bytes_per_ns > spread->fastest ? rate->bytes_per_ns : spread->fastest;
    }
}

static void find_out(struct wf_spread *spread, const struct wf_session *session)
{
    spread->now_ns = wf_world_now(session->guard.world);
    find_bounds(spread, session);
    spread->total = (struct wf_lane_total){0};
    for (int i = 0; i < session->lines.channel_count; i++) {
        spread->lanes[i] = (struct wf_lane){0};
        if (!is_lane(session->lines.channels[i]))
            continue;
        spread->lanes[i] = lane_of(session->lines.channels[i], spread->now_ns, spread->news_ns);
        wf_lane_total_add(&spread->total, &spread->lanes[i]);
    }
    spread->known = true;
}

void wf_spread_note(const struct wf_channel *channel)
{
    struct wf_spread *spread = &wf_session_of(channel)->loss.spread;
    if (!spread->known || !is_lane(channel))
        return;
    struct wf_lane *lane = &spread->lanes[channel->id];
    wf_lane_total_remove(&spread->total, lane);
    *lane = lane_of(channel, spread->now_ns, spread->news_ns);
    wf_lane_total_add(&spread->total, lane);
}

/* --- questions --- */

static bool is_on_its_rails(const struct wf_channel *channel, const struct weft_connection *connection)
{
    int local = wf_session_of(channel)->lines.rails[channel->rail].local;
    return local >= 0 && (connection->rails >> local & 1);
}

/* Does a rail of the connection work? */
static bool has_own_lane(const struct wf_session *session, const struct weft_connection *connection)
{
    for (int i = 0; i < session->lines.channel_count; i++)
        if (is_lane(session->lines.channels[i]) && is_on_its_rails(session->lines.channels[i], connection))
            return true;
    return false;
}

bool wf_spread_serves(const struct wf_channel *channel, const struct weft_connection *connection)
{
    return connection->rails == WF_RAILS_ANY || is_on_its_rails(channel, connection) ||
           !has_own_lane(wf_session_of(channel), connection);
}

static void make_known(struct wf_spread *spread, const struct wf_channel *channel)
{
    if (spread->known)
        wf_spread_note(channel); /* the channel may have taken bytes since its last question */
    else
        find_out(spread, wf_session_of(channel));
}

/* The share among the channels that serve the connection. */
static uint64_t share_among_some(const struct wf_channel *channel, const struct weft_connection *connection,
                                 uint64_t waiting)
{
    const struct wf_session *session = wf_session_of(channel);
    struct wf_spread *spread = &wf_session_of(channel)->loss.spread;
    struct wf_lane_total total = {0};
    bool any = !has_own_lane(session, connection);
    int count = 0;
    for (int i = 0; i < session->lines.channel_count; i++) {
        const struct wf_channel *other = session->lines.channels[i];
        bool serves = is_lane(other) && (any || is_on_its_rails(other, connection));
        spread->some[i] = serves ? spread->lanes[i] : (struct wf_lane){0};
        if (serves)
            wf_lane_total_add(&total, &spread->some[i]);
        count += serves;
    }
    if (count < 2)
        return session->terms.chunk;
    return wf_spread_share_of(&total, spread->some, session->lines.channel_count, (int)channel->id, waiting,
                              session->terms.chunk);
}

static uint64_t share_among_all(const struct wf_channel *channel, uint64_t waiting)
{
    const struct wf_session *session = wf_session_of(channel);
    const struct wf_spread *spread = &session->loss.spread;
    return wf_spread_share_of(&spread->total, spread->lanes, session->lines.channel_count, (int)channel->id, waiting,
                              session->terms.chunk);
}

uint64_t wf_spread_plan(const struct wf_channel *channel, const struct weft_connection *connection, uint64_t waiting)
{
    if (wf_session_of(channel)->lines.bulk_count < 2)
        return wf_session_of(channel)->terms.chunk;
    make_known(&wf_session_of(channel)->loss.spread, channel);
    return connection->rails == WF_RAILS_ANY ? share_among_all(channel, waiting)
                                             : share_among_some(channel, connection, waiting);
}

bool wf_spread_suits(const struct wf_channel *channel, uint64_t waiting, uint64_t length)
{
    const struct wf_spread *spread = &wf_session_of(channel)->loss.spread;
    if (wf_session_of(channel)->lines.bulk_count < 2)
        return true;
    make_known(&wf_session_of(channel)->loss.spread, channel);
    uint64_t share = share_among_all(channel, waiting);
    if (share == 0 || share >= length)
        return share > 0;
    return spread->fastest <= SLOW * channel->tx.rate.bytes_per_ns;
}
