/* What is said of something slow, on a terminal and on a page alike. */
#include <stdio.h>

#include "bench/words/columns.h"
#include "slow.h"

#define NOTHING 0.005 /* of its peers: above what slow.c takes none for */

bool bench_slow_same(const struct bench_slow *one, const struct bench_slow *other)
{
    return one->rail == other->rail && one->odd.kind == other->odd.kind && one->odd.src == other->odd.src &&
           one->odd.dst == other->odd.dst;
}

static bool has(const struct bench_slow *slow, const struct bench_slow *part)
{
    const struct bench_odd *odd = &slow->odd, *of = &part->odd;
    bool sends = odd->src == of->src && of->kind != BENCH_ODD_RECEIVER;
    bool receives = odd->dst == of->dst && of->kind != BENCH_ODD_SENDER;

    if (odd->src == BENCH_EVERY_NODE)
        return true;
    return odd->kind == BENCH_ODD_NODE       ? sends || receives
           : odd->kind == BENCH_ODD_SENDER   ? sends && of->kind != BENCH_ODD_NODE
           : odd->kind == BENCH_ODD_RECEIVER ? receives && of->kind != BENCH_ODD_NODE
                                             : false;
}

bool bench_slow_within(const struct bench_slow *one, const struct bench_slow *other)
{
    return one->rail == other->rail && (bench_slow_same(one, other) || has(other, one));
}

bool bench_slow_nothing(const struct bench_slow *slow)
{
    return slow->rail != BENCH_EVERY_RAIL && slow->odd.of_peers < NOTHING;
}

static const char *rail_text(const struct bench_slow *slow, const char *rail, char *text, size_t room)
{
    const struct bench_odd *odd = &slow->odd;
    char share[48];

    if (bench_slow_nothing(slow))
        snprintf(share, sizeof share, "carries nothing");
    else
        snprintf(share, sizeof share, "carries %.0f %% of %s", 100 * odd->of_peers,
                 odd->src == BENCH_EVERY_NODE ? "the rails beside it" : "its peers");
    if (odd->src == BENCH_EVERY_NODE)
        snprintf(text, room, "rail %s %s, at all nodes", rail, share);
    else if (odd->kind == BENCH_ODD_NODE)
        snprintf(text, room, "rail %s of node%zu %s", rail, odd->src, share);
    else if (odd->kind == BENCH_ODD_PAIR)
        snprintf(text, room, "rail %s from node%zu to node%zu %s", rail, odd->src, odd->dst, share);
    else if (odd->kind == BENCH_ODD_SENDER)
        snprintf(text, room, "rail %s of node%zu %s where it sends", rail, odd->src, share);
    else
        snprintf(text, room, "rail %s of node%zu %s where it receives", rail, odd->dst, share);
    return text;
}

const char *bench_slow_text(const struct bench_slow *slow, const char *rail, char *text, size_t room)
{
    const struct bench_odd *odd = &slow->odd;
    double share = 100 * odd->of_peers;
    char rate[32];

    if (slow->rail != BENCH_EVERY_RAIL)
        return rail_text(slow, rail, text, room);
    bench_rate_text(odd->rate, rate, sizeof rate);
    if (odd->kind == BENCH_ODD_NODE)
        snprintf(text, room, "node%zu sends and receives %s GB/s a pair, %.0f %% of its peers", odd->src, rate, share);
    else if (odd->kind == BENCH_ODD_SENDER)
        snprintf(text, room, "node%zu sends %s GB/s a pair, %.0f %% of its peers%s", odd->src, rate, share,
                 odd->one_way ? ", and receives as they do" : "");
    else if (odd->kind == BENCH_ODD_RECEIVER)
        snprintf(text, room, "node%zu receives %s GB/s a pair, %.0f %% of its peers%s", odd->dst, rate, share,
                 odd->one_way ? ", and sends as they do" : "");
    else
        snprintf(text, room, "node%zu to node%zu has %s GB/s, %.0f %% of its peers%s", odd->src, odd->dst, rate, share,
                 odd->one_way ? ", and the way back is as fast as the others" : "");
    return text;
}
