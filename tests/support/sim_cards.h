/*
 * sim_cards.h: network cards of the simulated network that write payload to simulated device memory, and read it from
 * there, as core/cards/cards.h wants them: each fragment in a buffer somewhere in the inlet, filled or not, with a
 * token, and between them bytes that stay in host memory. An inlet without free buffers brings nothing.
 *
 * What came to a stream before it was led to the inlet is ordinary bytes.
 *
 * Where an inlet is `by_port`, all streams to the address and port of one that is led there are led there, too.
 *
 * A library that breaks the rules ends the process: such a stream that it has read or reads ordinarily, a token given
 * back twice or never handed out, an inlet closed with a stream led to it, a loan that ends while it is read. What is
 * given back is ruined at once, and so is what a closed stream had: a copy that reads it too late brings wrong bytes.
 */
#ifndef WEFT_TESTS_SUPPORT_SIM_CARDS_H
#define WEFT_TESTS_SUPPORT_SIM_CARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cards/cards.h"
#include "sim.h"
#include "sim_memory.h"

struct wf_sim_cards_options {
    uint32_t buffers, buffer_bytes; /* of an inlet */
    uint32_t host_percent;          /* fragments that are left in host memory instead */
    uint32_t plain_percent;         /* receives that bring ordinary bytes, without a word of fragments */
    int rules;                      /* streams that may ever be led to an inlet; 0: all */
    uint32_t no_loans_percent;      /* registrations that a card does not take */
    bool (*wrong)(void *context, const char *interface, int device); /* which write wrong bytes to it; NULL: none */
    bool (*by_port)(void *context, const char *interface);           /* whose cards lead no single stream; NULL: none */
    bool (*has)(void *context, const char *interface, int device); /* NULL: every card has an inlet for every device */
    void *context;
};

struct wf_sim_cards;

/* The host of wf_cards_sim. NULL when memory is out. */
struct wf_sim_cards *wf_sim_cards_create(struct wf_sim *sim, struct wf_sim_memory *memory,
                                         const struct wf_sim_cards_options *options);
/* Every inlet must be closed, and every loan over. NULL is fine. */
void wf_sim_cards_destroy(struct wf_sim_cards *cards);

extern const struct wf_card_ops wf_cards_sim;

struct wf_sim_cards_counts {
    uint64_t device_bytes, host_bytes; /* that came as fragments of inlets, and otherwise, on streams led there */
    uint64_t lent_bytes;               /* that cards have read from device memory */
    uint64_t out;                      /* buffers that are not given back */
    int inlets, streams, loans;
    int by_port; /* streams that were led to inlets `by_port`, ever */
};
struct wf_sim_cards_counts wf_sim_cards_counts(const struct wf_sim_cards *cards);

#endif
