/* Device-memory TCP: what its own room says of a card. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/words/words.h"
#include "devmem/devmem.h"
#include "devmem/lent.h"
#include "topo.h"

/* How many of the last queues get no packets but by a rule; -1: that is not known. */
static int queues_aside(struct wf_devmem *devmem, const struct wf_devmem_card *card)
{
    struct wf_devmem_rss *rss = calloc(1, sizeof *rss);
    struct wf_status ignored;
    int aside = -1;

    if (rss && card->rx_queues > 0 && wf_devmem_rss_read(devmem, card->name, rss, &ignored) == 0)
        for (aside = 0; aside < card->rx_queues; aside++)
            if (wf_devmem_rss_reaches(rss, (uint32_t)(card->rx_queues - aside - 1)))
                break;
    free(rss);
    return aside;
}

static void note_facts(struct wf_devmem *devmem, const struct wf_devmem_card *card, struct wf_device_way *way)
{
    way->header_split = card->split == WF_DEVMEM_SPLIT_UNKNOWN ? -1 : card->split == WF_DEVMEM_SPLIT_ON;
    way->hds_thresh = card->hds_thresh;
    way->queues = card->rx_queues;
    way->queues_aside = queues_aside(devmem, card);
    way->rules = card->ntuple;
    way->rules_most = card->rules_most;
    way->rules_used = card->rules_used;
}

/* Whoever has had a queue of the card has tried it. */
static void note_kind_of_rules(const char *folder, const struct wf_devmem_card *card, struct wf_device_way *way)
{
    struct wf_lent_folder held;
    struct wf_status ignored;

    if (wf_lent_look(folder ? folder : WF_LENT_FOLDER, &held, &ignored) != 0)
        return;
    way->by_port = wf_lent_is_by_port(held.folder, card->ifindex);
    wf_lent_let_go(&held);
}

static void note_obstacle(const struct wf_devmem_card *card, struct wf_device_way *way)
{
    struct wf_devmem_obstacle obstacle;

    wf_devmem_first_obstacle(card, 1, &obstacle);
    way->asked = true;
    way->never = obstacle.remedy == WF_DEVMEM_NEVER;
    way->prepared = obstacle.remedy == WF_DEVMEM_BY_SET;
    bench_copy_text(way->why, sizeof way->why, obstacle.why);
    bench_copy_text(way->change, sizeof way->change, obstacle.change);
    if (obstacle.remedy == WF_DEVMEM_READY && way->queues_aside == 0) {
        way->prepared = true;
        snprintf(way->why, sizeof way->why, "other traffic reaches the last queue, too");
        snprintf(way->change, sizeof way->change, "ethtool -X %s equal %d", card->name, card->rx_queues - 1);
    }
}

void bench_topo_ask_card(void *data, const char *name, struct wf_device_way *way)
{
    struct bench_topo_cards *cards = data;
    struct wf_devmem_card card;
    struct wf_status ignored;

    if (!cards->tried && wf_devmem_open(NULL, &cards->devmem, &ignored) != 0)
        cards->devmem = NULL;
    cards->tried = true;
    if (!cards->devmem || wf_devmem_look(cards->devmem, name, &card, &ignored) != 0)
        return;
    note_facts(cards->devmem, &card, way);
    note_kind_of_rules(cards->folder, &card, way);
    note_obstacle(&card, way);
}

void bench_topo_cards_fini(struct bench_topo_cards *cards)
{
    wf_devmem_close(cards->devmem);
    cards->devmem = NULL;
}
