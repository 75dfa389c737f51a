/*
 * record.h: the files that say how cards were before Weft changed them. No file outside of this room includes it.
 *
 *     a card is changed only while a record of it lies in the folder, and a record goes only when all is put back
 *
 * So a process may be killed at any moment. A record is of an interface, in its network namespace, since the machine
 * has booted: what has its number then is that card, whatever its name.
 */
#ifndef WF_BENCH_NIC_RECORD_H
#define WF_BENCH_NIC_RECORD_H

#include <net/if.h>
#include <stdint.h>

#include "base/status.h"
#include "devmem/devmem.h"

#define NIC_FOLDER "/run/weft"
#define NIC_RECORD_NAME 64 /* of its file */
#define NIC_RECORDS_MAX 1024

struct nic_record {
    char name[IFNAMSIZ];
    int ifindex;
    enum wf_devmem_split split; /* UNKNOWN: the driver had no setting, and told none */
    int64_t hds_thresh;         /* -1: was not told, and is not put back */
    int ntuple;                 /* -1: as above */
    int queues;                 /* that packets were spread over */
    struct wf_devmem_rss rss;
};

/* Creates the folder where need be, and holds it until `held` is closed: one process at a time changes cards; who waits
 * for that is told so. Returns the folder's descriptor. -EACCES: others than this user could put records there. */
int nic_records_hold(const char *path, int *held, struct wf_status *status);

/* Writes it, on the disk and whole when this returns, or not at all. */
int nic_record_write(int folder, const struct nic_record *record, struct wf_status *status);
/* -ENOENT, without words: there is none of this interface. -ESTALE, without words: there is one from before the machine
 * has booted, and the card is not as it says any more. -EINVAL: what is there is none of this user's records, or is of
 * another version. */
int nic_record_read(int folder, const char *name, struct nic_record *record, struct wf_status *status);
int nic_record_remove(int folder, const char *name, struct wf_status *status);
/* The name under which the card is recorded, which is its own unless it was another before. */
char *nic_record_of(int folder, const struct wf_devmem_card *card, char name[IFNAMSIZ]);
/* The file of a record, in its folder. */
char *nic_record_file(const char *interface, char name[NIC_RECORD_NAME]);
/* The interfaces of this network namespace that have records; how many of them are in `names`. */
int nic_record_list(int folder, char (*names)[IFNAMSIZ], int max);

#endif
