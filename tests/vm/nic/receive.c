// SPDX-License-Identifier: GPL-2.0
/*
 * Reception: the poll puts the headers of what it takes into a small buffer of
 * their own and the payload into buffers of the queue's pools.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <net/gro.h>
#include "pairnic.h"

/*
 * The pool of the next buffer. That of a whole packet is the pages where the
 * fault says so: a card does that with packets that are too small for it.
 */
static struct page_pool *choose_pool(struct pairnic_queue *queue, bool pages)
{
	if (pages)
		return queue->pools.pages;
	if (!pairnic_due(&queue->faults.page_buffer,
			 READ_ONCE(fault_page_buffers)))
		return queue->pools.payload;
	queue->count[COUNT_FAULT_PAGE_BUFFER]++;
	return queue->pools.pages;
}

/* Takes a buffer of the small pool, where there is one. */
static bool may_take_buffer(struct pairnic_queue *queue)
{
	if (!READ_ONCE(fault_pool))
		return true;
	if (!queue->posted) {
		queue->count[COUNT_FAULT_POOL]++;
		return false;
	}
	queue->posted--;
	return true;
}

/* What a card does that writes elsewhere, or too late: but the checksum, which
 * is found good before, has nothing against it.
 */
static void spoil(struct pairnic_queue *queue, u8 *buffer)
{
	if (!pairnic_due(&queue->faults.wrong, READ_ONCE(fault_wrong)))
		return;
	*buffer ^= 1;
	queue->count[COUNT_FAULT_WRONG]++;
}

/* Adds one buffer with the next bytes of payload; 0: there is none. */
static u32 add_buffer(struct pairnic_queue *queue, struct pairnic_batch *batch,
		      struct sk_buff *skb, u32 left, bool pages)
{
	struct page_pool *pool;
	int i = skb_shinfo(skb)->nr_frags;
	netmem_ref netmem;
	u32 size, length;
	void *memory;

	if (i == MAX_SKB_FRAGS || !may_take_buffer(queue))
		return 0;
	pool = choose_pool(queue, pages);
	netmem = page_pool_alloc_netmems(pool, GFP_ATOMIC | __GFP_NOWARN);
	if (!netmem) {
		queue->count[COUNT_NO_BUFFER]++;
		return 0;
	}
	size = pool == queue->pools.pages ? PAGE_SIZE
					  : queue->pools.buffer_size;
	length = min(left, size);
	memory = pairnic_memory(page_pool_get_dma_addr_netmem(netmem));
	pairnic_copy_payload(batch, memory, length);
	if (netmem_is_net_iov(netmem))
		spoil(queue, memory);
	skb_add_rx_frag_netmem(skb, i, netmem, 0, length, size);
	queue->count[netmem_is_net_iov(netmem) ? COUNT_DEVICE_BUFFERS
					       : COUNT_PAGE_BUFFERS]++;
	return length;
}

/* Puts the payload behind the first `linear` bytes into buffers. */
static bool add_buffers(struct pairnic_queue *queue,
			struct pairnic_batch *batch, struct sk_buff *skb,
			u32 linear)
{
	u32 left = batch->payload - linear, length;
	bool pages;

	if (!left)
		return true;
	pages = pairnic_due(&queue->faults.page_packet,
			    READ_ONCE(fault_page_packets));
	if (pages)
		queue->count[COUNT_FAULT_PAGE_PACKET]++;
	for (; left; left -= length) {
		length = add_buffer(queue, batch, skb, left, pages);
		if (!length)
			return false;
	}
	return true;
}

/* The headers of a merged packet: of the first, with what the last one has. */
static void merge_headers(struct pairnic_batch *batch, struct sk_buff *skb)
{
	const struct sk_buff *last = skb_peek_tail(&batch->packets);
	u32 offset = skb_transport_offset(batch->from);
	struct skb_shared_info *info = skb_shinfo(skb);
	void *network = skb->data + ETH_HLEN;
	struct tcphdr *tcp = (struct tcphdr *)(skb->data + offset);

	tcp->psh = tcp_hdr(last)->psh;
	tcp->fin = tcp_hdr(last)->fin;
	info->gso_size = batch->segment;
	info->gso_segs = skb_queue_len(&batch->packets);
	if (last->protocol == htons(ETH_P_IP)) {
		struct iphdr *ip = network;

		ip->tot_len = htons(skb->len + batch->payload - ETH_HLEN);
		ip_send_check(ip);
		info->gso_type = SKB_GSO_TCPV4;
	} else {
		struct ipv6hdr *ip = network;

		ip->payload_len = htons(skb->len + batch->payload - ETH_HLEN -
					sizeof(*ip));
		info->gso_type = SKB_GSO_TCPV6;
	}
}

/* How many bytes of payload stay beside the headers. */
static u32 linear_payload(struct pairnic_queue *queue,
			  struct pairnic_batch *batch)
{
	u32 linear = min(READ_ONCE(fault_linear), batch->segment);

	if (!batch->split)
		return batch->payload;
	if (linear && batch->payload)
		queue->count[COUNT_FAULT_LINEAR]++;
	return linear;
}

/* Makes the packet that the stack gets; NULL: it is lost. */
static struct sk_buff *build_packet(struct pairnic_queue *queue,
				    struct pairnic_batch *batch)
{
	u32 linear = linear_payload(queue, batch);
	struct sk_buff *skb;

	skb = napi_alloc_skb(&queue->napi, batch->headers + linear);
	if (!skb) {
		queue->count[COUNT_NO_BUFFER]++;
		return NULL;
	}
	skb_mark_for_recycle(skb);
	pairnic_copy(batch->from, 0, skb_put(skb, batch->headers),
		     batch->headers);
	if (skb_queue_len(&batch->packets) > 1)
		merge_headers(batch, skb);
	batch->offset = batch->headers;
	pairnic_copy_payload(batch, skb_put(skb, linear), linear);
	if (add_buffers(queue, batch, skb, linear)) {
		queue->count[COUNT_LINEAR_BYTES] += linear;
		return skb;
	}
	kfree_skb(skb);
	return NULL;
}

static void receive(struct pairnic_queue *queue, struct pairnic_batch *batch)
{
	struct net_device *dev = queue->nic->dev;
	struct sk_buff *skb;
	u32 packets = skb_queue_len(&batch->packets);

	/* Without a split, or where there is nothing to split, all is linear.
	 */
	batch->split = batch->payload &&
		       dev->cfg->hds_config != ETHTOOL_TCP_DATA_SPLIT_DISABLED;
	if (!batch->payload)
		batch->headers = batch->from->len;
	skb = build_packet(queue, batch);
	__skb_queue_purge_reason(&batch->packets, SKB_CONSUMED);
	if (!skb)
		return;
	queue->count[COUNT_PACKETS] += packets;
	queue->count[COUNT_BYTES] += skb->len;
	if (packets > 1)
		queue->count[COUNT_MERGED] += packets;
	skb->protocol = eth_type_trans(skb, dev);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb_record_rx_queue(skb, queue->index);
	napi_gro_receive(&queue->napi, skb);
}

/* Wakes the poll when the packet at the head is due. */
static void wait_for_head(struct pairnic_queue *queue)
{
	struct sk_buff *skb;
	ktime_t left = 0;

	spin_lock(&queue->incoming.lock);
	skb = skb_peek(&queue->incoming);
	if (skb)
		left = ktime_sub(pairnic_cb(skb)->due, ktime_get());
	spin_unlock(&queue->incoming.lock);
	if (skb)
		hrtimer_start(&queue->wakeup, max_t(ktime_t, left, 1),
			      HRTIMER_MODE_REL);
}

enum hrtimer_restart pairnic_wakeup(struct hrtimer *timer)
{
	struct pairnic_queue *queue =
		container_of(timer, struct pairnic_queue, wakeup);

	napi_schedule(&queue->napi);
	return HRTIMER_NORESTART;
}

int pairnic_poll(struct napi_struct *napi, int budget)
{
	struct pairnic_queue *queue =
		container_of(napi, struct pairnic_queue, napi);
	struct pairnic_batch batch;
	int done = 0;

	queue->posted = READ_ONCE(fault_pool);
	while (done < budget && pairnic_take_batch(queue, &batch)) {
		receive(queue, &batch);
		done++;
	}
	if (done < budget && napi_complete_done(napi, done))
		wait_for_head(queue);
	return done;
}
