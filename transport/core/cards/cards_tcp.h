/*
 * cards_tcp.h: the cards of this machine, by the kernel's device-memory TCP (transport/devmem).
 */
#ifndef WF_CORE_CARDS_CARDS_TCP_H
#define WF_CORE_CARDS_CARDS_TCP_H

#include "core/cards/cards.h"

/* The host of wf_cards_tcp. `pool`: the most memory of a GPU for each card, in bytes. NULL: no memory. */
struct wf_card_host *wf_card_host_create(uint64_t pool);
/* No inlet and no loan is left. NULL is allowed. */
void wf_card_host_destroy(struct wf_card_host *host);

extern const struct wf_card_ops wf_cards_tcp;

#endif
