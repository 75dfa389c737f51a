/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pairnic: two network cards in software, joined by a cable, that do what
 * device-memory TCP asks of a card: payload apart from headers, receive
 * buffers from memory providers, transmission of memory without pages,
 * steering by rules and by hash.
 *
 * A packet that one card sends is queued at a receive queue of the other,
 * whose poll copies the payload into buffers of that queue, as DMA would.
 */
#ifndef PAIRNIC_H
#define PAIRNIC_H

#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/flow_dissector.h>
#include <net/netdev_queues.h>
#include <net/page_pool/helpers.h>

#define PAIRNIC_MAX_PAIRS 4
#define PAIRNIC_MAX_QUEUES 64
#define PAIRNIC_RING 1024  /* packets that a receive queue takes */
#define PAIRNIC_INDIR 128  /* entries of an RSS table */
#define PAIRNIC_KEY 40	   /* bytes of the hash's key */
#define PAIRNIC_CONTEXTS 8 /* RSS tables, that of context 0 among them */
#define PAIRNIC_RULES 64

/* What a receive queue counts; ethtool.c has the names, README.md the words. */
enum pairnic_count {
	COUNT_PACKETS,
	COUNT_BYTES,
	COUNT_DEVICE_BUFFERS,
	COUNT_PAGE_BUFFERS,
	COUNT_LINEAR_BYTES,
	COUNT_NO_BUFFER,
	COUNT_OVERRUN,
	COUNT_RULE_DROP,
	COUNT_RULE_REFUSED, /* under the lock of ethtool's calls */
	COUNT_MERGED,
	COUNT_FAULT_LINEAR,
	COUNT_FAULT_PAGE_PACKET,
	COUNT_FAULT_PAGE_BUFFER,
	COUNT_FAULT_DROP,
	COUNT_FAULT_DELAY,
	COUNT_FAULT_REORDER,
	COUNT_FAULT_POOL,
	COUNT_FAULT_WRONG,
	COUNTS
};

/* What a transmit queue counts. */
enum pairnic_tx_count {
	TX_COUNT_PACKETS,
	TX_COUNT_BYTES,
	TX_COUNT_DEVICE_PACKETS,
	TX_COUNTS
};

/*
 * Where the payload of a queue lands. What the core allocates, swaps and frees
 * when a memory provider comes or goes (struct netdev_queue_mgmt_ops).
 */
struct pairnic_pools {
	struct page_pool *payload; /* of the provider, where there is one */
	struct page_pool *pages;   /* never of a provider */
	u32 buffer_size;
};

/* Events since a fault was last due, see pairnic_due(). */
struct pairnic_faults {
	u32 drop, reorder, page_packet, page_buffer, wrong;
};

/*
 * incoming.lock: of incoming, and of the counters and faults that are counted
 * where packets arrive (drop, overrun, rule_drop, delay). All else is the
 * poll's.
 */
struct pairnic_queue {
	struct pairnic *nic;
	int index;
	struct napi_struct napi;
	struct hrtimer wakeup; /* when the head of incoming is due */
	struct sk_buff_head incoming;
	struct pairnic_pools pools;
	struct pairnic_faults faults;
	u32 posted; /* buffers left of a small pool until the next poll */
	u64 count[COUNTS];
};

struct pairnic_tx_queue {
	u64 count[TX_COUNTS];
};

struct pairnic_rule {
	bool used;
	struct ethtool_rx_flow_spec spec;
	u32 context; /* with FLOW_RSS */
};

/* lock: of all of it, for packets read what ethtool writes. */
struct pairnic_steering {
	spinlock_t lock;
	u8 key[PAIRNIC_KEY];
	u32 indir[PAIRNIC_CONTEXTS][PAIRNIC_INDIR];
	struct pairnic_rule rules[PAIRNIC_RULES];
};

/* One card: the private part of its net_device. */
struct pairnic {
	struct net_device *dev;
	struct pairnic *peer;
	struct device *dma_dev;
	int queues;
	struct pairnic_queue *rx;
	struct pairnic_tx_queue *tx;
	struct pairnic_steering steering;
};

/* What is kept with a packet between the cards, in its cb. */
struct pairnic_cb {
	ktime_t due;
};

static inline struct pairnic_cb *pairnic_cb(struct sk_buff *skb)
{
	return (struct pairnic_cb *)skb->cb;
}

/* Packets that become one, and how far their payload has been copied. */
struct pairnic_batch {
	struct sk_buff_head packets;
	u32 headers; /* bytes, the same in each */
	u32 payload; /* bytes of all together */
	u32 segment; /* bytes of payload of each but the last */
	bool split;  /* headers apart from payload */
	struct sk_buff *from;
	u32 offset; /* of the next byte of `from` */
};

/*
 * The memory behind a DMA address. The module is only loaded where addresses
 * of devices are physical ones (main.c checks), and device memory here is
 * memory of udmabuf, which is RAM.
 */
static inline void *pairnic_memory(dma_addr_t address)
{
	return phys_to_virt(address);
}

/* faults.c */
extern uint fault_linear, fault_page_packets, fault_page_buffers, fault_drop,
	fault_delay_us, fault_reorder, fault_pool, fault_merge, fault_wrong;
bool pairnic_due(u32 *events, uint every);

/* queue.c */
extern const struct netdev_queue_mgmt_ops pairnic_queue_ops;
int pairnic_open(struct net_device *dev);
int pairnic_stop(struct net_device *dev);
void pairnic_init_queues(struct pairnic *nic);

/* batch.c */
void pairnic_copy(const struct sk_buff *skb, u32 offset, void *to, u32 length);
void pairnic_copy_payload(struct pairnic_batch *batch, void *to, u32 length);
bool pairnic_take_batch(struct pairnic_queue *queue,
			struct pairnic_batch *batch);

/* receive.c */
int pairnic_poll(struct napi_struct *napi, int budget);
enum hrtimer_restart pairnic_wakeup(struct hrtimer *timer);

/* transmit.c */
netdev_tx_t pairnic_xmit(struct sk_buff *skb, struct net_device *dev);
u32 pairnic_payload(const struct sk_buff *skb, u32 *headers);

/* steer.c */
void pairnic_init_steering(struct pairnic *nic);
int pairnic_steer(struct pairnic *nic, struct sk_buff *skb);
int pairnic_rules_get(struct net_device *dev, struct ethtool_rxnfc *info,
		      u32 *locations);
int pairnic_rules_set(struct net_device *dev, struct ethtool_rxnfc *info);

/* ethtool.c */
extern const struct ethtool_ops pairnic_ethtool_ops;

#endif
