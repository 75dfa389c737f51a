#include "core/session/spread_plan.h"

#include <stdlib.h>

#include "core/channel/carry.h"
#include "core/channel/channel.h"
#include "core/message/connection.h"
#include "core/message/ring.h"
#include "core/rail/rail.h"
#include "core/session/session.h"

#define SLOW 2.0 /* a channel slower than the fastest rate divided by this takes no more than its share */

static struct wf_spread *spread_of(const struct wf_channel *channel)
{
    return wf_session_of(channel)->loss.spreads[channel->traffic];
}

/* --- lanes --- */

struct wf_spread *wf_spread_create(int count)
{
    struct wf_spread *spread = calloc(1, sizeof *spread);
    if (!spread)
        return NULL;
    spread->lanes = calloc((size_t)count, sizeof *spread->lanes);
    spread->channels = calloc((size_t)count, sizeof *spread->channels);
    if (spread->lanes && spread->channels)
        return spread;
    wf_spread_destroy(spread);
    return NULL;
}

void wf_spread_destroy(struct wf_spread *spread)
{
    if (!spread)
        return;
    free(spread->lanes);
    free(spread->channels);
    free(spread);
}

static bool has_lane(const struct wf_spread *spread, const struct wf_channel *channel)
{
    int index = wf_route_of(channel)->lane;
    return index < spread->total.lanes && spread->channels[index] == channel;
}

/* The pair has more, or fewer, lanes than before: is it among those that have any? */
static void review_pair(struct wf_spread *spread, const struct wf_channel *channel)
{
    uint64_t pair = UINT64_C(1) << channel->rail;
    int local = wf_session_of(channel)->lines.rails[channel->rail].local;
    bool any = spread->pairs[channel->rail].lanes > 0;
    spread->pairs_up = any ? spread->pairs_up | pair : spread->pairs_up & ~pair;
    if (local >= 0)
        spread->pairs_of[local] = any ? spread->pairs_of[local] | pair : spread->pairs_of[local] & ~pair;
}

static void add(struct wf_spread *spread, const struct wf_channel *channel, const struct wf_lane *lane)
{
    wf_lane_total_add(&spread->total, lane);
    wf_lane_total_add(&spread->pairs[channel->rail], lane);
}

static void subtract(struct wf_spread *spread, const struct wf_channel *channel, const struct wf_lane *lane)
{
    wf_lane_total_remove(&spread->total, lane);
    wf_lane_total_remove(&spread->pairs[channel->rail], lane);
}

/* The last lane takes the place of one that leaves. */
static void leave(struct wf_spread *spread, const struct wf_channel *channel)
{
    int index = wf_route_of(channel)->lane, last = spread->total.lanes - 1;
    subtract(spread, channel, &spread->lanes[index]);
    spread->lanes[index] = spread->lanes[last];
    spread->channels[index] = spread->channels[last];
    wf_route_of(spread->channels[index])->lane = index;
    review_pair(spread, channel);
}

static void measure(struct wf_spread *spread, const struct wf_channel *channel)
{
    const struct wf_tx *tx = &channel->tx;
    struct wf_lane *lane = &spread->lanes[wf_route_of(channel)->lane];
    uint64_t outstanding = tx->window.spent_bytes - tx->acknowledged_bytes;
    *lane = (struct wf_lane){
        .rate = wf_rate_estimate(&tx->rate, spread->news_ns, outstanding),
        .outstanding = outstanding,
        .lag_ns = tx->rate.lag_ns,
        .ready = tx->idle && wf_channel_open(channel, 1),
        .stale = wf_rate_is_stale(&tx->rate, spread->now_ns),
    };
    add(spread, channel, lane);
}

static void enter(struct wf_spread *spread, struct wf_channel *channel)
{
    wf_route_of(channel)->lane = spread->total.lanes;
    spread->channels[spread->total.lanes] = channel;
    measure(spread, channel);
    review_pair(spread, channel);
}

void wf_spread_note(struct wf_channel *channel)
{
    struct wf_spread *spread = spread_of(channel);
    if (channel->kind != WF_CHANNEL_BULK)
        return;
    if (channel->tx.rate.heard_ns > spread->news_ns)
        spread->news_ns = channel->tx.rate.heard_ns;
    if (!has_lane(spread, channel)) {
        if (channel->up)
            enter(spread, channel);
    } else if (!channel->up) {
        leave(spread, channel);
    } else if (channel->lines->bulk_count[channel->traffic] > 1) { /* else nobody asks for its rate */
        subtract(spread, channel, &spread->lanes[wf_route_of(channel)->lane]);
        measure(spread, channel);
    }
}

/* --- a round --- */

void wf_spread_begin(struct wf_session *session)
{
    WF_CLASSES_EACH (traffic, session->lines.classes) {
        session->loss.spreads[traffic]->known = false;
    }
}

static int rival_count(const struct wf_spread *spread)
{
    return spread->total.lanes < WF_RIVALS ? spread->total.lanes : WF_RIVALS;
}

static int rival(const struct wf_spread *spread, int index)
{
    return (spread->first + index) % spread->total.lanes;
}

/* The first question of a round: measures the rivals, which are other lanes than in the round before. */
static void make_known(struct wf_spread *spread, const struct wf_session *session)
{
    if (spread->known || spread->total.lanes == 0)
        return;
    int count = rival_count(spread);
    spread->known = true;
    spread->now_ns = wf_world_now(session->guard.world);
    spread->first = spread->total.lanes > WF_RIVALS ? rival(spread, count) : 0;
    for (int i = 0; i < count; i++)
        wf_spread_note(spread->channels[rival(spread, i)]);
}

/* --- questions --- */

/* The pairs of these rails that are up. */
static uint64_t own_pairs(const struct wf_spread *spread, uint64_t own)
{
    uint64_t pairs = 0;
    for (uint64_t rails = own; rails != 0; rails &= rails - 1)
        pairs |= spread->pairs_of[__builtin_ctzll(rails)];
    return pairs;
}

uint64_t wf_spread_pairs(const struct wf_session *session, unsigned traffic, const struct wf_ring *ring)
{
    const struct wf_spread *spread = session->loss.spreads[traffic];
    uint64_t own = ring->rails == WF_RAILS_ANY ? 0 : own_pairs(spread, ring->rails);
    return own ? own : spread->pairs_up;
}

bool wf_spread_serves(const struct wf_channel *channel, const struct wf_ring *ring)
{
    return wf_spread_pairs(wf_session_of(channel), channel->traffic, ring) >> channel->rail & 1;
}

/* Of this side's interface, bytes a second; 0: unknown. */
static double line_rate(const struct wf_session *session, int pair)
{
    int rail = session->lines.rails[pair].local;
    return rail < 0 ? 0 : (double)wf_rail_line_rate(&session->sessions->rails->each[rail]);
}

bool wf_spread_is_slow(const struct wf_session *session, unsigned traffic, int pair, uint64_t bytes, int64_t most_ns)
{
    const struct wf_spread *spread = session->loss.spreads[traffic];
    const struct wf_lane_total *total = &spread->pairs[pair];
    bool measured = spread->total.lanes > total->lanes && total->known > 0;
    double rate = measured ? (double)total->rates : line_rate(session, pair);
    return rate > 0 && (double)bytes * WF_NS_PER_S > (double)most_ns * rate;
}

/* The share of the channel among the lanes of `pairs`, whose sums are in `total`. */
static uint64_t share_among(struct wf_channel *channel, uint64_t pairs, const struct wf_lane_total *total,
                            uint64_t waiting)
{
    struct wf_spread *spread = spread_of(channel);
    const struct wf_lane *rivals[WF_RIVALS];
    int indexes[WF_RIVALS], count = 0, better;
    for (int i = 0; i < rival_count(spread); i++) {
        int index = rival(spread, i);
        if (!(pairs >> spread->channels[index]->rail & 1))
            continue;
        indexes[count] = index;
        rivals[count++] = &spread->lanes[index];
    }
    uint64_t share = wf_spread_share_of(total, &spread->lanes[wf_route_of(channel)->lane], rivals, count, waiting,
                                        wf_session_of(channel)->terms.chunk, &better);
    spread->better = better < 0 ? NULL : spread->channels[indexes[better]];
    return share;
}

uint64_t wf_spread_plan(struct wf_channel *channel, const struct weft_connection *connection, uint64_t waiting)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_spread *spread = spread_of(channel);
    spread->better = NULL;
    if (session->lines.bulk_count[channel->traffic] < 2)
        return session->terms.chunk;
    make_known(spread, session);
    wf_spread_note(channel); /* it may have taken bytes since its last question */
    uint64_t pairs = wf_spread_pairs(session, channel->traffic, connection->ring);
    if (pairs == spread->pairs_up)
        return share_among(channel, pairs, &spread->total, waiting);
    struct wf_lane_total total = {0};
    for (uint64_t left = pairs; left != 0; left &= left - 1)
        wf_lane_total_join(&total, &spread->pairs[__builtin_ctzll(left)]);
    return total.lanes < 2 ? session->terms.chunk : share_among(channel, pairs, &total, waiting);
}

struct wf_channel *wf_spread_take_better(const struct wf_channel *channel)
{
    struct wf_spread *spread = spread_of(channel);
    struct wf_channel *better = spread->better;
    spread->better = NULL;
    return better;
}

/* The highest rate among the rivals. */
static double fastest(const struct wf_spread *spread)
{
    double most = 0;
    for (int i = 0; i < rival_count(spread); i++) {
        double rate = spread->channels[rival(spread, i)]->tx.rate.bytes_per_ns;
        most = rate > most ? rate : most;
    }
    return most;
}

bool wf_spread_suits(struct wf_channel *channel, uint64_t waiting, uint64_t length)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_spread *spread = spread_of(channel);
    spread->better = NULL;
    if (session->lines.bulk_count[channel->traffic] < 2)
        return true;
    make_known(spread, session);
    wf_spread_note(channel);
    uint64_t share = share_among(channel, spread->pairs_up, &spread->total, waiting);
    if (share == 0 || share >= length)
        return share > 0;
    return fastest(spread) <= SLOW * channel->tx.rate.bytes_per_ns;
}
