/* change.h: what is changed at a card, and put back. No file outside of this room includes it. */
#ifndef WF_BENCH_NIC_CHANGE_H
#define WF_BENCH_NIC_CHANGE_H

#include <stdio.h>

#include "devmem/devmem.h"
#include "record.h"

/* What all of it needs. Owner: the command. */
struct nic_job {
    struct wf_devmem *devmem;
    int folder; /* of records; -1: there is none */
    int held;   /* its lock; -1: not held, nothing is changed */
    FILE *out;  /* each change is printed here before it is made */
    int queues; /* that are set aside */
    bool dry;   /* nothing is changed, only printed */
};

/* A card as it is to be. Too large for a stack. */
struct nic_state {
    enum wf_devmem_split split; /* UNKNOWN: left as it is */
    int64_t hds_thresh;         /* -1: left */
    int ntuple;                 /* -1: left */
    struct wf_devmem_rss rss;   /* no entries: left */
    int equal;                  /* rss is the first so many queues in turns; 0: another table */
    bool as_setting;            /* set the split, also where it is so already: since 6.14 the kernel asks for that */
    bool back;                  /* UNKNOWN is a split like others; the driver is let choose it before it is set */
};

/* Makes the card so, what traffic depends on last; a state that is there already needs no change. `now` is read anew
 * where other changes may have changed it, and a table in turns of `wanted` gets as many entries. Returns how many
 * changes it took. */
int nic_change(const struct nic_job *job, const struct wf_devmem_card *card, struct wf_devmem_rss *now,
               struct nic_state *wanted, struct wf_status *status);

/* A table of queues in turns is one of so many entries, and the usual one is of all queues. */
void nic_fit_rss(struct nic_state *wanted, uint32_t entries, int queues);
/* Also where none is wanted. */
bool nic_same_rss(const struct wf_devmem_rss *wanted, const struct wf_devmem_rss *now);

/* Makes it ready for bindings. What was there before is recorded, unless an earlier call has. -EOPNOTSUPP: something is
 * in the way that this cannot change, as `status` says. Whatever the failure, the card is as it was before, or a record
 * is left and `status` says so. */
int nic_prepare(const struct nic_job *job, const char *name, struct wf_status *status);
/* Puts back what its record says. -ENOENT: there is none. -ESTALE, without words: it was of an earlier boot, and is
 * removed. A failure leaves the record. */
int nic_restore(const struct nic_job *job, const char *name, struct wf_status *status);
/* What is said of a record of an earlier boot, behind the card's name. */
#define NIC_STALE "the record of 'weft nic prepare' is of an earlier boot of the machine: nothing is prepared any more"
/* Prints what it is and what is in the way, and whether it has one of the records. */
int nic_show(const struct nic_job *job, const char *name, char (*recorded)[IFNAMSIZ], int count,
             struct wf_status *status);

/* "0-6" */
char *nic_queues_text(const struct wf_devmem_rss *rss, char *text, size_t room);

#endif
