/*
 * devmem_fixture.h: a kernel that is played, with one card, "eth7". It answers netlink messages and ioctls as Linux
 * does; what it says can be replaced, byte by byte.
 */
#ifndef DEVMEM_FIXTURE_H
#define DEVMEM_FIXTURE_H

#include <linux/ethtool.h>

#include "devmem/devmem.h"
#include "devmem/kernel.h"

#define FAKE_NAME "eth7"
#define FAKE_OTHER "enp7s0" /* its alternative name */
#define FAKE_INDEX 7
#define FAKE_RULES 8 /* more than any test's table has */
#define FAKE_RSS 16
#define FAKE_QUEUES 8
#define FAKE_BYTES 4096
#define FAKE_DEATH 99 /* the exit status of a process that has died at its step */

struct fake_kernel {
    struct wf_devmem_kernel kernel; /* first */
    bool old;                       /* before 6.12: no family netdev, and no words for errors */
    int opened;                     /* sockets now */

    /* The card. */
    const char *driver;
    const char *name; /* FAKE_NAME, unless it has another now */
    bool loopback, admin;
    int split; /* as enum wf_devmem_split; UNKNOWN is not told */
    int64_t hds_thresh;
    uint32_t queues, queues_most;
    bool by_port; /* it takes no rule that names the sender */
    bool ntuple, ntuple_fixed, anywhere, forgets_rules, crooked_rules, size_told_late;
    uint32_t rules_most, rss_entries;
    struct ethtool_rx_flow_spec rules[FAKE_RULES];
    bool used[FAKE_RULES];
    uint32_t rss[FAKE_RSS];
    int rss_resets, writes; /* counted */
    int steps, die_at;      /* before and after each write there is a step; at that one the process ends. 0: at none */
    bool split_fixed;       /* it refuses to switch header split */
    int split_auto;         /* what is told where the split is no setting; 3: such is refused */
    bool forgets_rss;       /* switching header split resets the table, as some drivers do */

    uint32_t binding[FAKE_QUEUES]; /* the dma-buf of each queue; 0: none */
    int binder[FAKE_QUEUES];       /* the socket by which it was bound */
    int asking;                    /* that of the last request */
    uint32_t contested;            /* this queue is bound by another process as soon as it is asked for */
    bool keeps_bindings;           /* sockets that are closed were passed on before */
    bool down;                     /* the interface: then no queues are told */

    /* What bind-rx and bind-tx were asked for, and say. */
    uint32_t bound[64], bound_count, bound_fd, bound_index, bound_buffer, next_id;
    uint32_t buffer_most; /* bytes; 0: it does not know buffers of a size, as before 7.3 */

    /* What the next request gets instead. */
    int refusal;       /* negative errno */
    const char *words; /* of that refusal */
    uint32_t missing;  /* attribute that it wants */
    bool capped;       /* the request does not come back with it */
    int ioctl_command, ioctl_result;

    /* The last answers, and what they are replaced by: `bytes` of them, with `at` set to `value`. -1: nothing. */
    int answer_to; /* of which netlink request since it was opened, from 1 on; 0: none */
    int cut, at, value;
    uint8_t answer[FAKE_BYTES];
    size_t answered;
    int requests;
};

/* A card for which nothing is in the way. */
void fake_kernel_init(struct fake_kernel *fake);

#endif
