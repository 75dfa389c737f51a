/*
 * lend.h: a receive queue of a card, bound to a dma-buf, and rules that lead streams to it, by a process that may do
 * that: for itself (lease.h), or for a client ('weft nic serve').
 *
 *     lent: no other traffic reaches it by the RSS table, and nobody else has bound it
 *
 * Failures, besides those of devmem.h: -EOPNOTSUPP, the card is not ready, and the words say what is in the way first;
 * -EBUSY, all queues that are set aside are taken, and the words say by whom; -EAGAIN, others change cards for long.
 */
#ifndef WF_DEVMEM_LEND_H
#define WF_DEVMEM_LEND_H

#include "devmem.h"
#include "lent.h"

/* A card as one who wants a queue of it sees it. Too large for a stack. */
struct wf_lend_card {
    struct wf_devmem_card card;
    struct wf_devmem_rss rss;
    uint32_t bindings[WF_DEVMEM_RX_MAX]; /* of its queues */
};

/* Reads it, needs no rights. Fails as above; with -EBUSY, too: `folder`, a path, says who has the queues. */
int wf_lend_look(struct wf_devmem *devmem, const char *folder, const char *name, struct wf_lend_card *card,
                 struct wf_status *status);

/* What a queue is lent for. */
struct wf_lend_terms {
    const char *card; /* name of the interface */
    int dmabuf;       /* stays the caller's */
    uint32_t buffer;  /* of struct wf_devmem_rx */
    struct wf_lent_holder holder;
    int most; /* queues that this user may have; 0: any number. More are refused with -EDQUOT */
};

/* Owner: who has called wf_lend(). One thread at a time uses it. Too large for a stack. */
struct wf_loan {
    struct wf_devmem *devmem;  /* for all but the binding */
    struct wf_devmem *binding; /* the binding lives as long as its socket; NULL: given away */
    const char *folder;        /* path of the records; the caller keeps it */
    struct wf_lent lent;
    bool by_port; /* the card takes no rule for one stream, but for all of an address and port of this machine */
    uint32_t streams[WF_LENT_RULES_MAX]; /* led by each rule */
};

/* `kernel` as for wf_devmem_open(). What programs that have ended left in the cards is taken away before. */
int wf_lend(const struct wf_devmem_kernel *kernel, const char *folder, const struct wf_lend_terms *terms,
            struct wf_loan *loan, struct wf_status *status);
/* Leads the stream of a connected TCP socket to the queue: what comes for it after this goes there. `rule` is for the
 * call below. The socket stays the caller's. Of a loan `by_port` all streams to the socket's address and port are led
 * there, whoever's they are: the first one adds the rule, and the last one takes it away. -ENOTCONN: it is not
 * connected; -EINVAL: no TCP socket, or one of another network; -ENOSPC: the card's table is full, or the queue has
 * WF_LENT_RULES_MAX rules. */
int wf_loan_steer(struct wf_loan *loan, int socket, uint32_t *rule, struct wf_status *status);
/* -ENOENT: there is none with that number. A rule that is in the card no more is as good as taken away. */
int wf_loan_unsteer(struct wf_loan *loan, uint32_t rule, struct wf_status *status);
/* Takes the rules away, then the binding; a binding that was given away goes when its new owner closes it. What cannot
 * be taken is left for the next wf_lent_sweep(). */
void wf_loan_end(struct wf_loan *loan);

/* For wf_lend(): finds out whether it is one `by_port`, with rules for addresses that no network has. `folder` is the
 * descriptor of the records, held. */
void wf_loan_try_rules(struct wf_loan *loan, int folder);

/* The stream of a connected TCP socket of this network. Fails as wf_loan_steer(). */
int wf_lend_flow(int socket, struct wf_devmem_flow *flow, struct wf_status *status);

#endif
