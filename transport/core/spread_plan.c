#include "core/spread_plan.h"

#include "core/channel.h"
#include "core/session.h"

#define SLOW 2.0 /* a rail with less than the fastest one divided by this takes no more than its share */

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

/* The last acknowledgement on any of them. */
static int64_t last_news(const struct wf_session *session)
{
    int64_t last = 0;
    for (int i = 0; i < session->channel_count; i++)
        if (is_lane(session->channels[i]) && session->channels[i]->tx.rate.heard_ns > last)
            last = session->channels[i]->tx.rate.heard_ns;
    return last;
}

uint64_t wf_spread_plan(const struct wf_channel *channel, uint64_t waiting)
{
    const struct wf_session *session = channel->session;
    if (session->bulk_count < 2)
        return session->chunk;
    struct wf_lane lanes[WF_CHANNELS_MAX];
    int count = 0, mine = 0;
    int64_t now = wf_context_now(session->context), news = last_news(session);
    for (int i = 0; i < session->channel_count; i++) {
        if (!is_lane(session->channels[i]))
            continue;
        if (session->channels[i] == channel)
            mine = count;
        lanes[count++] = lane_of(session->channels[i], now, news);
    }
    return wf_spread_share(lanes, count, mine, waiting, session->chunk);
}

bool wf_spread_suits(const struct wf_channel *channel, uint64_t waiting, uint64_t length)
{
    const struct wf_session *session = channel->session;
    uint64_t share = wf_spread_plan(channel, waiting);
    if (share == 0 || share >= length)
        return share > 0;
    for (int i = 0; i < session->channel_count; i++)
        if (is_lane(session->channels[i]) &&
            session->channels[i]->tx.rate.bytes_per_ns > SLOW * channel->tx.rate.bytes_per_ns)
            return false;
    return true;
}
