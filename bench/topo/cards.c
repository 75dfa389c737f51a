/* Device-memory TCP: what its own room says of a card. */
#include "bench/words/words.h"
#include "devmem/devmem.h"
#include "topo.h"

void bench_topo_ask_card(void *data, const char *name, struct wf_device_way *way)
{
    struct bench_topo_cards *cards = data;
    struct wf_devmem_card card;
    struct wf_devmem_obstacle obstacle;
    struct wf_status ignored;

    if (!cards->tried && wf_devmem_open(NULL, &cards->devmem, &ignored) != 0)
        cards->devmem = NULL;
    cards->tried = true;
    if (!cards->devmem || wf_devmem_look(cards->devmem, name, &card, &ignored) != 0)
        return;
    wf_devmem_first_obstacle(&card, 1, &obstacle);
    way->asked = true;
    way->never = obstacle.remedy == WF_DEVMEM_NEVER;
    bench_copy_text(way->why, sizeof way->why, obstacle.why);
    bench_copy_text(way->change, sizeof way->change, obstacle.change);
}

void bench_topo_cards_fini(struct bench_topo_cards *cards)
{
    wf_devmem_close(cards->devmem);
    cards->devmem = NULL;
}
