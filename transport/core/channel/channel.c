#include "core/channel/channel.h"

#include <errno.h>
#include <stdlib.h>

#include "core/channel/lines.h"

static uint32_t window_frames(const struct wf_channel *channel)
{
    return channel->kind == WF_CHANNEL_EXPRESS ? WF_EXPRESS_WINDOW : channel->lines->guard->world->tuning.window;
}

static void init_links(struct wf_channel *channel)
{
    wf_link_init(&channel->tx.ended_link);
    wf_link_init(&channel->tx.round_link);
    wf_link_init(&channel->rx.round_link);
    wf_link_init(&channel->tx.due_link);
    wf_link_init(&channel->tx.idle_link);
    wf_link_init(&channel->tx.behind_link);
    wf_link_init(&channel->rx.due_link);
    wf_link_init(&channel->rx.held_link);
    wf_link_init(&channel->rx.owing_link);
    wf_link_init(&channel->rx.untold_link);
    wf_link_init(&channel->tx.op.link);
    wf_link_init(&channel->rx.op.link);
}

int wf_channel_init(struct wf_channel *channel, struct wf_lines *lines, const struct wf_channel_ops *ops,
                    const struct wf_join *join)
{
    const struct wf_tuning *tuning = &lines->guard->world->tuning;
    channel->lines = lines;
    channel->ops = ops;
    channel->id = join->channel;
    channel->incarnation = join->incarnation;
    channel->kind = (enum wf_channel_kind)join->kind;
    channel->traffic = lines->per_class > 0 ? (uint8_t)(join->channel / (uint32_t)lines->per_class) : 0;
    bool device = channel->kind == WF_CHANNEL_DEVICE;
    channel->strand = device ? (int)join->domain - 1 : -1;
    if (device)
        channel->traffic = 0;
    channel->group = device ? WF_GROUP_DEVICE : wf_group(channel->traffic, channel->kind);
    channel->rail = join->rail;
    channel->fd = -1;
    channel->tx.detached = channel->rx.detached = true;
    init_links(channel);

    bool bulk = channel->kind == WF_CHANNEL_BULK;
    channel->tx.pad = bulk ? tuning->header_pad : device ? WF_DETACHED_BYTES : WF_FRAME_BYTES;
    channel->tx.headers = calloc(WF_BATCH_FRAMES, channel->tx.pad + WF_PACKED_BYTES);
    channel->tx.ring = window_frames(channel);
    channel->tx.retained = calloc(channel->tx.ring, sizeof *channel->tx.retained);
    /* A bulk channel reads ahead exactly the next header: payload must go straight to its place. */
    channel->rx.room = bulk ? lines->terms->limits.header_pad : WF_EXPRESS_READ; /* DEVICE: headers only */
    channel->rx.buffer = malloc(channel->rx.room);
    channel->rx.bounce = malloc(WF_BOUNCE_BYTES); /* pages that no list needs are never touched */
    if (!channel->tx.headers || !channel->tx.retained || !channel->rx.buffer || !channel->rx.bounce)
        return -ENOMEM;
    uint64_t bytes;
    wf_channel_credit(channel, &channel->rx.granted_frames, &bytes);
    return 0;
}

void wf_channel_restart(struct wf_channel *channel, uint32_t incarnation)
{
    struct wf_tx *tx = &channel->tx;
    struct wf_rx *rx = &channel->rx;
    struct wf_rate rate = {.bytes_per_ns = tx->rate.bytes_per_ns,
                           .heard_ns = tx->rate.heard_ns,
                           .lag_ns = tx->rate.lag_ns,
                           .samples = tx->rate.samples};
    channel->incarnation = incarnation;
    channel->bye_seen = channel->kill = channel->gone = false;
    channel->retransmits = 0;
    atomic_store_explicit(&channel->heard, 0, memory_order_relaxed);
    atomic_store_explicit(&channel->kept, 0, memory_order_relaxed);
    *tx = (struct wf_tx){.worker = tx->worker,
                         .headers = tx->headers,
                         .pad = tx->pad,
                         .retained = tx->retained,
                         .ring = tx->ring,
                         .rate = rate,
                         .detached = true};
    *rx = (struct wf_rx){
        .worker = rx->worker, .buffer = rx->buffer, .room = rx->room, .bounce = rx->bounce, .detached = true};
    init_links(channel);
    uint64_t bytes;
    wf_channel_credit(channel, &rx->granted_frames, &bytes);
}

void wf_channel_fini(struct wf_channel *channel)
{
    free(channel->tx.headers);
    free(channel->tx.retained);
    free(channel->rx.buffer);
    free(channel->rx.bounce);
}

void wf_channel_credit(const struct wf_channel *channel, uint64_t *frames, uint64_t *bytes)
{
    uint32_t window = window_frames(channel);
    *frames = channel->rx.disposed + window;
    *bytes = channel->rx.disposed_bytes + (uint64_t)window * channel->lines->guard->world->tuning.chunk;
}

bool wf_channel_open(const struct wf_channel *channel, uint64_t bytes)
{
    const struct wf_tx *tx = &channel->tx;
    return tx->window.spent_frames - tx->acknowledged < tx->ring && wf_window_open(&tx->window, bytes);
}

void wf_channel_note_retransmits(struct wf_channel *channel)
{
    struct wf_lines *lines = channel->lines;
    const struct wf_world *world = lines->guard->world;
    const struct wf_engine_ops *ops = world->engine_ops;
    uint64_t now = ops->retransmits(world->engine_host, channel->fd);
    uint64_t before = channel->retransmits;
    channel->retransmits = now;
    /* Not a counter with one writer: the rail's other channels let go on other threads. */
    atomic_fetch_add_explicit(&lines->rails[channel->rail].retransmits, now - before, memory_order_relaxed);
}
