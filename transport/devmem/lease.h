/*
 * lease.h: how a process gets a receive queue of a card for a dma-buf, and rules that lead its streams there.
 *
 *     a lease ends with its process, whatever happens: the queue at once, and the rules with it or when the next one
 * asks
 *
 * A process with CAP_NET_ADMIN, in the user namespace that owns its network, takes the queue itself. Another one gets
 * it from the helper, 'weft nic serve'. No caller asks which it was. The queue is one that 'weft nic prepare' has set
 * aside.
 */
#ifndef WF_DEVMEM_LEASE_H
#define WF_DEVMEM_LEASE_H

#include "devmem.h"
#include "lent.h"

struct wf_lease;

/* Where leases come from; NULL everywhere: this machine, and WF_LENT_FOLDER. The caller keeps it as long as leases. */
struct wf_lease_place {
    const struct wf_devmem_kernel *kernel;
    const char *folder; /* of records, and the helper's socket */
};

/* Binds one queue of the card with this name to a dma-buf, which stays the caller's, and may be closed. The lease is
 * the caller's; one thread at a time uses it. Waits for the kernel, the helper, or others that change cards, some
 * seconds at the most.
 *
 * `buffer` as in struct wf_devmem_rx: -ERANGE, a lease with 0 may be had.
 *
 * Fails as devmem.h and lend.h have it; the words name the first obstacle and its remedy: that of the card, then that
 * all queues are taken, and by whom (-EBUSY), then that this process has no right and no helper answers (-EPERM) or
 * takes it for a stranger (-EACCES). -EPROTO: the helper is of another version. */
int wf_lease_open(const struct wf_lease_place *place, const char *card, int dmabuf, uint32_t buffer,
                  struct wf_lease **lease, struct wf_status *status);
/* Ends it with all its rules. NULL is allowed. */
void wf_lease_close(struct wf_lease *lease);

uint32_t wf_lease_queue(const struct wf_lease *lease);
/* Of the dma-buf, in the control messages of recvmsg(). */
uint32_t wf_lease_binding(const struct wf_lease *lease);

/* Whether the card leads no single stream to the queue, but all that come to an address and port: then a stream is led
 * only if no other has its port. */
bool wf_lease_by_port(const struct wf_lease *lease);

/* Leads the stream of a connected TCP socket, which stays the caller's, to the queue. When this returns 0 the rule was
 * read back from the card: what comes from then on goes to the queue. `rule` is for the call below. Fails as
 * wf_loan_steer(); -EPIPE: the helper has ended, and the lease goes on without new rules. */
int wf_lease_steer(struct wf_lease *lease, int socket, uint32_t *rule, struct wf_status *status);
/* -ENOENT: the lease has no such rule. */
int wf_lease_unsteer(struct wf_lease *lease, uint32_t rule, struct wf_status *status);

#endif
