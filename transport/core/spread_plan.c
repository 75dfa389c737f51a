#include "core/spread_plan.h"

#include "core/channel.h"
#include "core/session.h"

static struct wf_lane lane_of(const struct wf_channel *channel, int64_t now_ns)
{
    const struct wf_tx *tx = &channel->tx;
    uint64_t outstanding = tx->window.spent_bytes - tx->acknowledged_bytes;
    return (struct wf_lane){
        .rate = wf_rate_estimate(&tx->rate, now_ns, outstanding),
        .outstanding = outstanding,
        .lag_ns = tx->rate.lag_ns,
        .ready = channel->up && tx->idle && wf_channel_open(channel, 1),
        .stale = wf_rate_is_stale(&tx->rate, now_ns),
    };
}

uint64_t wf_spread_plan(const struct wf_channel *channel, uint64_t waiting)
{
    const struct wf_session *session = channel->session;
    if (session->bulk_count < 2)
        return session->chunk;
    struct wf_lane lanes[WF_CHANNELS_MAX];
    int count = 0, mine = 0;
    int64_t now = wf_context_now(session->context);
    for (int i = 0; i < session->channel_count; i++) {
        const struct wf_channel *other = session->channels[i];
        if (!other || other->kind != WF_CHANNEL_BULK)
            continue;
        if (other == channel)
            mine = count;
        lanes[count++] = lane_of(other, now);
    }
    return wf_spread_share(lanes, count, mine, waiting, session->chunk);
}
