/*
 * lent.h: records of the queues that are lent to programs, with their rules. A binding ends with its program, whatever
 * happens; rules stay in the card until somebody takes them away.
 *
 *     a rule is in the record of its queue before it is in the card, until it is there no more
 *     a record counts as long as its queue is bound to the dma-buf that it names
 *
 * So the kernel says which programs have ended: no process is looked for, and none has to tidy up. A queue has at most
 * one record, in the network namespace of the calling thread. Anybody may read it.
 */
#ifndef WF_DEVMEM_LENT_H
#define WF_DEVMEM_LENT_H

#include <stdbool.h>
#include <stdint.h>

#include "devmem.h"

#define WF_LENT_FOLDER "/run/weft"
#define WF_LENT_RULES_MAX 64 /* of one queue */
#define WF_LENT_COMMAND 16

struct wf_lent_holder {
    uint32_t user;
    int32_t process;               /* as its own namespace numbers it */
    char command[WF_LENT_COMMAND]; /* plain text */
};

/* Too large for a stack. */
struct wf_lent {
    int ifindex;
    uint32_t queue;
    uint32_t binding; /* of wf_devmem_bind_rx() */
    uint32_t buffer;  /* of struct wf_devmem_rx */
    struct wf_lent_holder holder;
    struct wf_devmem_flow rules[WF_LENT_RULES_MAX]; /* `to` is AF_UNSPEC: none */
};

int wf_lent_count_rules(const struct wf_lent *lent);
/* The process with this number. Its command is "?" where it is gone, or in another namespace. */
void wf_lent_name_holder(struct wf_lent_holder *holder, uint32_t user, int32_t process);

/* --- the folder --- */

struct wf_lent_folder {
    int folder, lock; /* descriptors; -1: not open */
};

/* Creates the folder where need be, and holds it: one process at a time binds, steers and sweeps, and none while 'weft
 * nic' changes a card. Waits some seconds for that: -EAGAIN. -EACCES: others could put records there. */
int wf_lent_hold(const char *path, struct wf_lent_folder *held, struct wf_status *status);
/* Opens it to read: nothing is created, nothing held. -ENOENT, without words: it is not there. */
int wf_lent_look(const char *path, struct wf_lent_folder *held, struct wf_status *status);
void wf_lent_let_go(struct wf_lent_folder *held);

/* --- records: `folder` is a descriptor --- */

/* Whole when this returns, or as it was before. */
int wf_lent_write(int folder, const struct wf_lent *lent, struct wf_status *status);
void wf_lent_remove(int folder, int ifindex, uint32_t queue);
/* -ENOENT, without words: none. -EINVAL: what is there is no record. */
int wf_lent_read(int folder, int ifindex, uint32_t queue, struct wf_lent *lent, struct wf_status *status);

/* Called with each record; `lent` is the caller's to change. A result other than 0 is the last call, and is returned.
 */
typedef int wf_lent_see(struct wf_lent *lent, void *data);
int wf_lent_each(int folder, wf_lent_see *see, void *data);

/* Notes whether the card takes rules for an address and port only, none for one stream (lend.h): for those who only
 * look at cards. The folder is held. What cannot be written is not noted. */
void wf_lent_note_by_port(int folder, int ifindex, bool by_port);
/* What was noted last, of this network; false: nothing was. */
bool wf_lent_is_by_port(int folder, int ifindex);

/* Whether its queue is bound as it says, or may be: the kernel tells nothing of a card that is down. */
bool wf_lent_counts(struct wf_devmem *devmem, const struct wf_lent *lent);
/* Takes one rule of it out of the card, where it is there. */
int wf_lent_take_rule(struct wf_devmem *devmem, const struct wf_lent *lent, int rule, struct wf_status *status);
/* Takes away what programs that have ended left: their rules, and their records. The folder is held. Returns how many
 * rules it took; a record whose rules cannot be taken stays. */
int wf_lent_sweep(struct wf_devmem *devmem, int folder, struct wf_status *status);

#endif
