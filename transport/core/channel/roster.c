#include "core/channel/roster.h"

#include "core/channel/lines.h"

void wf_roster_init(struct wf_roster *roster, int worker)
{
    for (int kind = 0; kind < WF_KINDS; kind++)
        wf_list_init(&roster->due[kind]);
    wf_list_init(&roster->receivers);
    wf_list_init(&roster->held);
    wf_list_init(&roster->ended);
    wf_link_init(&roster->untold_link);
    roster->worker = worker;
}

static void enter(struct wf_lines *lines, struct wf_roster *roster, struct wf_list *list, struct wf_link *link)
{
    if (wf_link_in_list(link))
        return;
    wf_list_push_back(list, link);
    if (!wf_link_in_list(&roster->untold_link))
        wf_list_push_back(&lines->untold, &roster->untold_link);
}

void wf_channel_tx_due(struct wf_channel *channel)
{
    if (channel->tx.detached)
        return;
    struct wf_roster *roster = wf_lines_roster(channel->lines, channel->tx.worker);
    enter(channel->lines, roster, &roster->due[channel->kind], &channel->tx.due_link);
}

void wf_channel_rx_due(struct wf_channel *channel)
{
    if (channel->rx.detached)
        return;
    struct wf_roster *roster = wf_lines_roster(channel->lines, channel->rx.worker);
    enter(channel->lines, roster, &roster->receivers, &channel->rx.due_link);
}

/* A bulk channel whose acknowledgements cannot go because its send operation is under way: they go on the express
 * channel of its pair of rails. If they came late, the peer would take the rail for slow. */
static void review_behind(struct wf_channel *channel, struct wf_session_rail *pair)
{
    bool behind = channel->up && channel->tx.state_due && !channel->tx.idle;
    if (!behind) {
        wf_link_remove(&channel->tx.behind_link);
    } else if (!wf_link_in_list(&channel->tx.behind_link)) {
        wf_list_push_back(&pair->behind[channel->traffic], &channel->tx.behind_link);
        if (pair->express[channel->traffic])
            wf_channel_tx_due(pair->express[channel->traffic]);
    }
}

/* A device channel is offered what its strand has. */
static void review_strand(struct wf_channel *channel)
{
    struct wf_strand *strand = &channel->lines->strands[channel->strand];
    bool offered = channel->up && channel->tx.idle && wf_channel_open(channel, 1);
    if (offered && !wf_link_in_list(&channel->tx.idle_link))
        wf_list_push_back(&strand->idle, &channel->tx.idle_link);
    else if (!offered)
        wf_link_remove(&channel->tx.idle_link);
}

bool wf_lines_offer_strand(struct wf_lines *lines, int strand, uint64_t rails)
{
    /* The first will do, unless the cards of some rails do not know the memory. */
    WF_LIST_EACH (link, following, &lines->strands[strand].idle) {
        struct wf_channel *channel = WF_CONTAINER(link, struct wf_channel, tx.idle_link);
        int local = lines->rails[channel->rail].local;
        if (rails != UINT64_MAX && (local < 0 || !(rails >> local & 1)))
            continue;
        wf_channel_tx_due(channel);
        return true;
    }
    return false;
}

static void review_offer(struct wf_channel *channel, struct wf_session_rail *pair, bool offered)
{
    struct wf_lines *lines = channel->lines;
    struct wf_list *idle = &pair->idle[channel->group];
    if (offered)
        wf_list_push_back(idle, &channel->tx.idle_link);
    else
        wf_link_remove(&channel->tx.idle_link);
    if (wf_list_empty(idle))
        lines->offers[channel->group] &= ~(UINT64_C(1) << channel->rail);
    else
        lines->offers[channel->group] |= UINT64_C(1) << channel->rail;
}

void wf_channel_review(struct wf_channel *channel)
{
    const struct wf_tx *tx = &channel->tx;
    if (channel->strand >= 0) {
        review_strand(channel);
        return;
    }
    struct wf_session_rail *pair = &channel->lines->rails[channel->rail];
    bool bulk = channel->kind == WF_CHANNEL_BULK, offered = channel->up && tx->idle && wf_channel_open(channel, bulk);
    if (offered != wf_link_in_list(&tx->idle_link))
        review_offer(channel, pair, offered);
    if (bulk && (tx->state_due || wf_link_in_list(&tx->behind_link)))
        review_behind(channel, pair);
}

void wf_channel_strike(struct wf_channel *channel, bool tx, bool rx)
{
    if (tx) {
        wf_link_remove(&channel->tx.due_link);
        wf_link_remove(&channel->tx.ended_link);
        wf_link_remove(&channel->tx.round_link);
    }
    if (rx) {
        wf_link_remove(&channel->rx.due_link);
        wf_link_remove(&channel->rx.round_link);
        wf_link_remove(&channel->rx.held_link);
        wf_link_remove(&channel->rx.owing_link);
    }
}

void wf_roster_seen(struct wf_roster *roster)
{
    if (wf_list_empty(&roster->due[WF_CHANNEL_EXPRESS]) && wf_list_empty(&roster->due[WF_CHANNEL_BULK]) &&
        wf_list_empty(&roster->due[WF_CHANNEL_DEVICE]) && wf_list_empty(&roster->receivers))
        wf_link_remove(&roster->untold_link);
}

void wf_lines_tell(struct wf_lines *lines, struct wf_worker *self)
{
    struct wf_link *link;
    while ((link = wf_list_pop_front(&lines->untold)))
        wf_kicks_one(lines->kicks, WF_CONTAINER(link, struct wf_roster, untold_link)->worker, self);
}

/* The first pair in `pairs`, which is not empty, from the group's turn on; the turn moves behind it. */
static int next_pair(struct wf_lines *lines, int group, uint64_t pairs)
{
    uint64_t later = pairs & ~UINT64_C(0) << lines->turn[group];
    int pair = __builtin_ctzll(later ? later : pairs);
    lines->turn[group] = (pair + 1) % 64;
    return pair;
}

static struct wf_channel *first_of(const struct wf_lines *lines, int group, int pair)
{
    return WF_CONTAINER(wf_list_first(&lines->rails[pair].idle[group]), struct wf_channel, tx.idle_link);
}

int wf_lines_choose(struct wf_lines *lines, int group, uint64_t pairs, int workers[WF_OFFERS_AT_ONCE])
{
    int count = 0;
    pairs &= lines->offers[group];
    while (pairs != 0 && count < WF_OFFERS_AT_ONCE) {
        const struct wf_channel *channel = first_of(lines, group, next_pair(lines, group, pairs));
        workers[count++] = channel->tx.worker->index;
        pairs &= ~wf_lines_roster(lines, channel->tx.worker)->pairs[wf_group_kind(group)];
    }
    return count;
}

void wf_lines_offer(struct wf_lines *lines, int group, uint64_t pairs, struct wf_worker *self)
{
    int workers[WF_OFFERS_AT_ONCE], count = wf_lines_choose(lines, group, pairs, workers);
    for (int i = 0; i < count; i++)
        wf_kicks_one(lines->kicks, workers[i], self);
}

struct wf_channel *wf_lines_first_idle(const struct wf_lines *lines, int group, uint64_t pairs)
{
    pairs &= lines->offers[group];
    return pairs != 0 ? first_of(lines, group, __builtin_ctzll(pairs)) : NULL;
}

struct wf_channel *wf_lines_next_offer(struct wf_lines *lines, int group, uint64_t pairs)
{
    pairs &= lines->offers[group];
    if (pairs == 0)
        return NULL;
    struct wf_channel *channel = first_of(lines, group, next_pair(lines, group, pairs));
    struct wf_list *idle = &lines->rails[channel->rail].idle[group];
    wf_link_remove(&channel->tx.idle_link);
    wf_list_push_back(idle, &channel->tx.idle_link);
    return channel;
}
