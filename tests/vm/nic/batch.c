// SPDX-License-Identifier: GPL-2.0
/*
 * Which packets a poll takes from its queue at once, one or several that are
 * merged, and how their bytes are copied, as a card does it by DMA.
 */
#include <linux/etherdevice.h>
#include <linux/highmem.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include "pairnic.h"

/* ------------------------------------------------------- copying, as DMA */

static void copy_fragment(const skb_frag_t *frag, u32 offset, void *to,
			  u32 length)
{
	netmem_ref netmem = skb_frag_netmem(frag);
	struct page *page;

	offset += skb_frag_off(frag);
	if (netmem_is_net_iov(netmem)) {
		memcpy(to, pairnic_memory(netmem_get_dma_addr(netmem)) + offset,
		       length);
		return;
	}
	for (page = skb_frag_page(frag) + (offset >> PAGE_SHIFT); length;
	     page++) {
		u32 here =
			min_t(u32, length, PAGE_SIZE - offset_in_page(offset));

		memcpy_from_page(to, page, offset_in_page(offset), here);
		to += here;
		length -= here;
		offset = 0;
	}
}

/* skb_copy_bits() does not read memory without pages. */
void pairnic_copy(const struct sk_buff *skb, u32 offset, void *to, u32 length)
{
	u32 here, size = skb_headlen(skb);
	int i;

	if (offset < size) {
		here = min(length, size - offset);
		memcpy(to, skb->data + offset, here);
		to += here;
		length -= here;
		offset = size;
	}
	offset -= size;
	for (i = 0; length && i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];

		size = skb_frag_size(frag);
		if (offset >= size) {
			offset -= size;
			continue;
		}
		here = min(length, size - offset);
		copy_fragment(frag, offset, to, here);
		to += here;
		length -= here;
		offset = 0;
	}
}

/* The next bytes of payload of a batch, over the ends of its packets. */
void pairnic_copy_payload(struct pairnic_batch *batch, void *to, u32 length)
{
	while (length) {
		u32 here = min(length, batch->from->len - batch->offset);

		pairnic_copy(batch->from, batch->offset, to, here);
		to += here;
		length -= here;
		batch->offset += here;
		if (batch->offset == batch->from->len) {
			batch->from = batch->from->next;
			batch->offset = batch->headers;
		}
	}
}

/* ------------------------------------------------------- which packets */

/* The packet that is next, with incoming.lock held; NULL: none is due. */
static struct sk_buff *next_packet(struct pairnic_queue *queue)
{
	struct sk_buff *skb = skb_peek(&queue->incoming);

	if (!skb || ktime_after(pairnic_cb(skb)->due, ktime_get()))
		return NULL;
	return skb;
}

/*
 * One that is to be overtaken waits until there is one behind it, and then
 * both change their places.
 */
static void reorder(struct pairnic_queue *queue)
{
	struct sk_buff *first = skb_peek(&queue->incoming), *second;
	u32 headers;

	if (!pairnic_payload(first, &headers) ||
	    !pairnic_due(&queue->faults.reorder, READ_ONCE(fault_reorder)))
		return;
	second = skb_peek_next(first, &queue->incoming);
	if (!second || !pairnic_payload(second, &headers)) {
		/* The next one, then. */
		queue->faults.reorder = READ_ONCE(fault_reorder);
		return;
	}
	__skb_unlink(second, &queue->incoming);
	__skb_queue_before(&queue->incoming, first, second);
	queue->count[COUNT_FAULT_REORDER]++;
}

/* Everything of both headers but what differs from packet to packet. */
static bool same_flow(const struct sk_buff *a, const struct sk_buff *b)
{
	const struct tcphdr *tcp_a = tcp_hdr(a), *tcp_b = tcp_hdr(b);
	const __be32 mask = ~(TCP_FLAG_PSH | TCP_FLAG_CWR);
	u32 addresses = a->protocol == htons(ETH_P_IP) ? 8 : 32;

	return a->protocol == b->protocol &&
	       skb_tcp_all_headers(a) == skb_tcp_all_headers(b) &&
	       !memcmp((void *)tcp_a - addresses, (void *)tcp_b - addresses,
		       addresses + 4) &&
	       tcp_a->ack_seq == tcp_b->ack_seq &&
	       tcp_a->window == tcp_b->window &&
	       (tcp_flag_word(tcp_a) & mask) == (tcp_flag_word(tcp_b) & mask) &&
	       !memcmp(tcp_a + 1, tcp_b + 1, tcp_hdrlen(a) - sizeof(*tcp_a));
}

/* Does `skb` go on where the last packet of the batch ends? */
static bool continues(const struct pairnic_batch *batch,
		      const struct sk_buff *skb)
{
	const struct sk_buff *last = skb_peek_tail(&batch->packets);
	u32 headers, payload = pairnic_payload(skb, &headers);

	return payload && payload <= batch->segment && same_flow(last, skb) &&
	       last->len - batch->headers == batch->segment &&
	       !tcp_hdr(last)->psh && !tcp_hdr(last)->fin &&
	       ntohl(tcp_hdr(skb)->seq) ==
		       ntohl(tcp_hdr(last)->seq) + batch->segment;
}

static bool has_room(const struct pairnic_queue *queue,
		     const struct pairnic_batch *batch,
		     const struct sk_buff *skb)
{
	u32 most = min_t(u32, MAX_SKB_FRAGS * queue->pools.buffer_size,
			 GSO_LEGACY_MAX_SIZE - batch->headers);

	/* A page of a fault is smaller than a buffer may be. */
	if (READ_ONCE(fault_page_packets) || READ_ONCE(fault_page_buffers))
		most = min_t(u32, most, MAX_SKB_FRAGS * PAGE_SIZE);
	return batch->payload + skb->len - batch->headers <= most;
}

/* Takes one packet, and those that are merged with it; false: none is due. */
bool pairnic_take_batch(struct pairnic_queue *queue,
			struct pairnic_batch *batch)
{
	struct sk_buff *skb;
	bool taken = false;

	__skb_queue_head_init(&batch->packets);
	spin_lock(&queue->incoming.lock);
	if (next_packet(queue)) {
		reorder(queue);
		skb = __skb_dequeue(&queue->incoming);
		batch->payload = pairnic_payload(skb, &batch->headers);
		batch->segment = batch->payload;
		batch->from = skb;
		__skb_queue_tail(&batch->packets, skb);
		taken = true;
	}
	while (taken && batch->payload &&
	       skb_queue_len(&batch->packets) < READ_ONCE(fault_merge)) {
		skb = next_packet(queue);
		if (!skb || !continues(batch, skb) ||
		    !has_room(queue, batch, skb))
			break;
		__skb_unlink(skb, &queue->incoming);
		__skb_queue_tail(&batch->packets, skb);
		batch->payload += skb->len - batch->headers;
	}
	spin_unlock(&queue->incoming.lock);
	return taken;
}
