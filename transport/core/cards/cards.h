/*
 * cards.h: which network cards read and write the memory of which GPUs (device-memory TCP), and what was set up for it.
 *
 * An inlet is memory of one GPU that one card writes the payload of streams to. A loan is registered memory that one
 * card reads. Both are made where a call may wait for drivers (weft_register()), and last until the memory is
 * deregistered, or the context ends.
 */
#ifndef WF_CORE_CARDS_CARDS_H
#define WF_CORE_CARDS_CARDS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "core/ground/world.h"
#include "mem/memory.h"
#include "wire/hello.h"

/* GPU memory that is bound to a receive queue of a card. Written before others see it, but for the counters. */
struct wf_inlet {
    void *handle; /* of wf_card_ops */
    int rail, device;
    uint8_t *base; /* in GPU memory; fragments are offsets from here */
    uint64_t bytes;
    uint32_t binding;         /* of the dma-buf, as control messages name it */
    bool by_port;             /* the card leads no single stream to it, but all that come to an address and port */
    uint32_t buffer_bytes;    /* a fragment has this much or less, and takes as much of the memory */
    _Atomic uint32_t streams; /* that are led to it now */
    _Atomic uint32_t held;    /* buffers that fragments are in, of all streams */
    /* Payload that has come on its streams: as fragments of it, and in host memory. */
    _Atomic uint64_t device_bytes, host_bytes;
    /* An inlet whose card leaves most of the payload in host memory costs more than staging, and one that did not bring
     * the pattern of a stream is not to be trusted: no stream is led to it any more. */
    _Atomic bool left;
};

/* Registered memory, as one card knows it. */
struct wf_card_loan {
    void *handle; /* of wf_card_ops; NULL: the card does not know it */
    int device;
    uint32_t binding; /* for wf_op.binding */
    uint64_t offset;  /* of the registration's first byte in the dma-buf */
};

/* A card, and a GPU that is in use. */
struct wf_card_way {
    const char *interface;
    uint64_t rate; /* of the card, in bytes a second; 0: unknown */
    const struct wf_memory_ops *ops;
    struct wf_memory *memory;
    int device;
};

/* What drivers and kernel do; the tests have cards of their own. All may wait for them, and return 0 or a negative
 * errno with one line in `status`. */
struct wf_card_ops {
    /* Memory of the GPU for the payload that the card receives. -EOPNOTSUPP: this card or kernel never can. */
    int (*open)(void *host, const struct wf_card_way *way, struct wf_inlet *inlet, struct wf_status *status);
    /* No stream is led to it any more. */
    void (*close)(void *host, struct wf_inlet *inlet);
    /* Leads the payload of a connected stream to the inlet, from now on; `fd` is only to be looked at. Of an inlet
     * `by_port` no other stream comes to its address and port, but such that are led there, too. */
    int (*steer)(void *host, struct wf_inlet *inlet, int fd, void **rule, struct wf_status *status);
    /* The stream is about to be closed. */
    void (*unsteer)(void *host, struct wf_inlet *inlet, void *rule);
    /* Makes memory of the GPU known to the card for sends. */
    int (*lend)(void *host, const struct wf_card_way *way, const void *base, uint64_t bytes, struct wf_card_loan *loan,
                struct wf_status *status);
    void (*take_back)(void *host, struct wf_card_loan *loan);
};

struct wf_card_pair;

/* From loans. */
struct wf_card_sent {
    _Atomic uint64_t bytes, copied; /* payload; calls that the kernel has copied after all */
};

/* Owner: the context. */
struct wf_cards {
    struct wf_world *world;
    const struct wf_card_ops *ops; /* NULL: device memory never goes this way */
    void *host;
    bool required; /* setting devmem: it is an error where no card can */
    int rail_count;
    char interfaces[WF_RAILS_MAX][32]; /* of the rails; "": the rail has none */
    uint64_t rates[WF_RAILS_MAX];      /* as wf_card_way.rate */
    uint64_t trial_bytes;              /* an inlet is judged once so much has come on its streams */
    pthread_mutex_t lock;              /* of opening: one at a time */
    struct wf_card_pair *_Atomic pairs[WF_RAILS_MAX][WF_DOMAINS_MAX];
    struct wf_card_sent sent[WF_DOMAINS_MAX]; /* by GPU */
};

void wf_cards_init(struct wf_cards *cards, struct wf_world *world, const struct wf_card_ops *ops, void *host);
/* No stream is led to an inlet, and no loan is left. */
void wf_cards_fini(struct wf_cards *cards);

/* The GPU is in use from now on: opens an inlet on each rail whose card can. May wait. 0; a failure only where
 * `required`. */
int wf_cards_use(struct wf_cards *cards, const struct wf_memory_ops *ops, struct wf_memory *memory, int device,
                 struct wf_status *status);

/* The inlet of a rail of this side for a GPU; NULL: there is none, or it was left. Never waits. */
struct wf_inlet *wf_cards_inlet(const struct wf_cards *cards, int rail, int device);
/* Has any rail one? */
bool wf_cards_reach(const struct wf_cards *cards, int device);

/* Payload has come on a stream of the inlet, in so many fragments more than before. -EOPNOTSUPP: most of what has come
 * so far is in host memory, so the inlet is left, as the fallbacks say, and the stream is to be lost. Any thread, any
 * lock. */
int wf_cards_came(struct wf_cards *cards, struct wf_inlet *inlet, uint64_t device_bytes, uint64_t host_bytes,
                  uint32_t fragments);
/* What the card does with it is not right: no stream is led to the inlet any more, and the fallbacks say why. */
void wf_cards_leave(struct wf_cards *cards, struct wf_inlet *inlet, const char *why);
/* So many of its fragments are the card's again. */
void wf_cards_gave_back(struct wf_inlet *inlet, uint32_t fragments);

/* Payload goes out from a loan of the GPU's memory; the kernel has copied so many calls of that. Any thread, any lock.
 */
void wf_cards_sent(struct wf_cards *cards, int device, uint64_t bytes);
void wf_cards_copied(struct wf_cards *cards, int device, uint64_t calls);

/* What went to and from the memory of a GPU, all rails. */
struct wf_card_counts {
    int inlets, left; /* that are offered; that were left */
    uint64_t device_bytes, host_bytes, held, sent_bytes, sends_copied;
};
struct wf_card_counts wf_cards_counts(const struct wf_cards *cards, int device);

/* Leads a stream to the inlet, and away again. 0 or a negative errno. */
int wf_cards_steer(struct wf_cards *cards, struct wf_inlet *inlet, int fd, void **rule, struct wf_status *status);
void wf_cards_unsteer(struct wf_cards *cards, struct wf_inlet *inlet, void *rule);

/* Makes memory of a GPU known to the cards of all rails that have an inlet for it and take it: `loans`, by rail, from
 * malloc(), or NULL. Returns the rails, as bits. May wait. */
uint64_t wf_cards_lend(struct wf_cards *cards, const struct wf_memory_ops *ops, struct wf_memory *memory, int device,
                       const void *base, uint64_t bytes, struct wf_card_loan **loans);
void wf_cards_take_back(struct wf_cards *cards, struct wf_card_loan *loans);

#endif
