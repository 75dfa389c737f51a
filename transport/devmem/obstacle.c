/* What is in the way of binding a queue: a pure function of what a card says. */
#include <stdarg.h>
#include <stdio.h>

#include "devmem.h"

/* No command line: an empty format. */
static void found(struct wf_devmem_obstacle *obstacle, enum wf_devmem_remedy remedy, const char *why,
                  const char *change, ...) __attribute__((format(printf, 4, 5)));

static void found(struct wf_devmem_obstacle *obstacle, enum wf_devmem_remedy remedy, const char *why,
                  const char *change, ...)
{
    va_list arguments;

    obstacle->remedy = remedy;
    snprintf(obstacle->why, sizeof obstacle->why, "%s", why);
    va_start(arguments, change);
    vsnprintf(obstacle->change, sizeof obstacle->change, change, arguments);
    va_end(arguments);
}

/* Kernel, driver and card: what no command can change. False: there is nothing of that kind. */
static bool never(const struct wf_devmem_card *card, struct wf_devmem_obstacle *obstacle)
{
    char why[128];

    if (card->loopback) {
        found(obstacle, WF_DEVMEM_NEVER, "loopback has no card that could write to device memory", "%s", "");
    } else if (card->bind_rx == 0) {
        found(obstacle, WF_DEVMEM_NEVER, "this kernel's TCP cannot receive into device memory: 6.12 can", "%s", "");
    } else if (card->split == WF_DEVMEM_SPLIT_UNKNOWN && card->split_settable != 1) {
        snprintf(why, sizeof why,
                 "its driver%s%.20s tells of no header split: gve, bnxt_en, mlx5_core, fbnic can, if recent",
                 card->driver[0] ? " " : "", card->driver);
        found(obstacle, WF_DEVMEM_NEVER, why, "%s", "");
    } else if (card->ntuple == 0 && card->ntuple_fixed) {
        found(obstacle, WF_DEVMEM_NEVER, "its driver takes no rules that lead flows to queues (ntuple)", "%s", "");
    } else if (card->rx_queues < 0) {
        found(obstacle, WF_DEVMEM_NEVER, "its driver does not tell how many receive queues it has", "%s", "");
    } else if (card->rss_entries == 0) {
        found(obstacle, WF_DEVMEM_NEVER, "it has no RSS table: other traffic cannot be kept off a queue", "%s", "");
    } else if (card->rss_entries < 0) {
        snprintf(why, sizeof why, "its RSS table has more than %d entries, which Weft cannot put back",
                 WF_DEVMEM_RSS_MAX);
        found(obstacle, WF_DEVMEM_NEVER, why, "%s", "");
    } else {
        return false;
    }
    return true;
}

/* What changes more than the queues that are to be bound. */
static bool by_hand(const struct wf_devmem_card *card, int queues, struct wf_devmem_obstacle *obstacle)
{
    char why[128];

    if (card->rx_queues >= 0 && card->rx_queues <= queues) {
        snprintf(why, sizeof why, "it has %d receive queue%s, and one has to stay for all other traffic",
                 card->rx_queues, card->rx_queues == 1 ? "" : "s");
        if (card->queues_most > queues)
            found(obstacle, WF_DEVMEM_BY_HAND, why, "ethtool -L %s combined %d", card->name, queues + 1);
        else
            found(obstacle, WF_DEVMEM_NEVER, why, "%s", "");
    } else if (card->rules_most > 0 && card->rules_used >= card->rules_most) {
        snprintf(why, sizeof why, "its table of rules is full: %lld of %lld", (long long)card->rules_used,
                 (long long)card->rules_most);
        found(obstacle, WF_DEVMEM_BY_HAND, why, "ethtool -N %s delete N", card->name);
    } else {
        return false;
    }
    return true;
}

void wf_devmem_first_obstacle(const struct wf_devmem_card *card, int queues, struct wf_devmem_obstacle *obstacle)
{
    *obstacle = (struct wf_devmem_obstacle){.remedy = WF_DEVMEM_READY};
    if (never(card, obstacle) || by_hand(card, queues, obstacle))
        return;
    if (card->split != WF_DEVMEM_SPLIT_ON)
        found(obstacle, WF_DEVMEM_BY_SET, "header split is off", "ethtool -G %s tcp-data-split on", card->name);
    else if (card->hds_thresh > 0)
        found(obstacle, WF_DEVMEM_BY_SET, "small packets stay whole in host memory", "ethtool -G %s hds-thresh 0",
              card->name);
    else if (card->ntuple == 0)
        found(obstacle, WF_DEVMEM_BY_SET, "rules that lead flows to queues are off", "ethtool -K %s ntuple on",
              card->name);
}
