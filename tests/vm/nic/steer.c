// SPDX-License-Identifier: GPL-2.0
/*
 * Steering: the first rule that fits, and else the table of context 0 by a
 * Toeplitz hash of addresses and ports. What has no addresses goes to queue 0.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include "pairnic.h"

#define DROPPED_BY_RULE (-1)

static bool tuple5 = true;
module_param(tuple5, bool, 0644);
MODULE_PARM_DESC(tuple5, "takes rules that name the sender");

/* ------------------------------------------------------- by hash */

/* What a packet is steered by. Ports are 0 where there are none. */
struct tuple {
	struct flow_keys keys;
	u8 hashed[36]; /* source, destination, their ports */
	u32 length;
};

static void add_bytes(struct tuple *tuple, const void *bytes, u32 length)
{
	memcpy(tuple->hashed + tuple->length, bytes, length);
	tuple->length += length;
}

static bool read_tuple(struct sk_buff *skb, struct tuple *tuple)
{
	const struct flow_keys *keys = &tuple->keys;

	tuple->length = 0;
	if (!skb_flow_dissect_flow_keys(skb, &tuple->keys, 0))
		return false;
	switch (keys->control.addr_type) {
	case FLOW_DISSECTOR_KEY_IPV4_ADDRS:
		add_bytes(tuple, &keys->addrs.v4addrs.src, 4);
		add_bytes(tuple, &keys->addrs.v4addrs.dst, 4);
		break;
	case FLOW_DISSECTOR_KEY_IPV6_ADDRS:
		add_bytes(tuple, &keys->addrs.v6addrs.src, 16);
		add_bytes(tuple, &keys->addrs.v6addrs.dst, 16);
		break;
	default:
		return false;
	}
	add_bytes(tuple, &keys->ports.src, 2);
	add_bytes(tuple, &keys->ports.dst, 2);
	return true;
}

/* Per bit of the input that is set, 32 bits of the key from that bit on. */
static u32 toeplitz(const u8 *key, const u8 *input, u32 length)
{
	u32 window = get_unaligned_be32(key), hash = 0, i;
	int bit;

	for (i = 0; i < length; i++)
		for (bit = 7; bit >= 0; bit--) {
			if (input[i] & BIT(bit))
				hash ^= window;
			window = window << 1 | (key[i + 4] >> bit & 1);
		}
	return hash;
}

static int queue_by_hash(struct pairnic_steering *steering,
			 const struct tuple *tuple, u32 context)
{
	u32 hash = toeplitz(steering->key, tuple->hashed, tuple->length);

	return steering->indir[context][hash % PAIRNIC_INDIR];
}

/* ------------------------------------------------------- by rule */

/* Bits of a mask that are set have to be the same. */
static bool fits(const void *wanted, const void *mask, const void *found,
		 int length)
{
	const u8 *w = wanted, *m = mask, *f = found;

	while (length--)
		if ((*w++ ^ *f++) & *m++)
			return false;
	return true;
}

static bool fits_v4(const struct ethtool_rx_flow_spec *spec,
		    const struct flow_keys *keys)
{
	const struct ethtool_tcpip4_spec *h = &spec->h_u.tcp_ip4_spec;
	const struct ethtool_tcpip4_spec *m = &spec->m_u.tcp_ip4_spec;

	return keys->control.addr_type == FLOW_DISSECTOR_KEY_IPV4_ADDRS &&
	       fits(&h->ip4src, &m->ip4src, &keys->addrs.v4addrs.src, 4) &&
	       fits(&h->ip4dst, &m->ip4dst, &keys->addrs.v4addrs.dst, 4) &&
	       fits(&h->psrc, &m->psrc, &keys->ports.src, 2) &&
	       fits(&h->pdst, &m->pdst, &keys->ports.dst, 2);
}

static bool fits_v6(const struct ethtool_rx_flow_spec *spec,
		    const struct flow_keys *keys)
{
	const struct ethtool_tcpip6_spec *h = &spec->h_u.tcp_ip6_spec;
	const struct ethtool_tcpip6_spec *m = &spec->m_u.tcp_ip6_spec;

	return keys->control.addr_type == FLOW_DISSECTOR_KEY_IPV6_ADDRS &&
	       fits(h->ip6src, m->ip6src, &keys->addrs.v6addrs.src, 16) &&
	       fits(h->ip6dst, m->ip6dst, &keys->addrs.v6addrs.dst, 16) &&
	       fits(&h->psrc, &m->psrc, &keys->ports.src, 2) &&
	       fits(&h->pdst, &m->pdst, &keys->ports.dst, 2);
}

static bool rule_fits(const struct pairnic_rule *rule,
		      const struct flow_keys *keys)
{
	if (!rule->used)
		return false;
	switch (rule->spec.flow_type & ~FLOW_RSS) {
	case TCP_V4_FLOW:
		return keys->basic.ip_proto == IPPROTO_TCP &&
		       fits_v4(&rule->spec, keys);
	case UDP_V4_FLOW:
		return keys->basic.ip_proto == IPPROTO_UDP &&
		       fits_v4(&rule->spec, keys);
	case TCP_V6_FLOW:
		return keys->basic.ip_proto == IPPROTO_TCP &&
		       fits_v6(&rule->spec, keys);
	case UDP_V6_FLOW:
		return keys->basic.ip_proto == IPPROTO_UDP &&
		       fits_v6(&rule->spec, keys);
	}
	return false;
}

static int queue_by_rule(struct pairnic_steering *steering,
			 const struct pairnic_rule *rule,
			 const struct tuple *tuple)
{
	if (rule->spec.ring_cookie == RX_CLS_FLOW_DISC)
		return DROPPED_BY_RULE;
	if (rule->spec.flow_type & FLOW_RSS)
		return queue_by_hash(steering, tuple, rule->context);
	return ethtool_get_flow_spec_ring(rule->spec.ring_cookie);
}

static int choose_queue(struct pairnic_steering *steering,
			const struct tuple *tuple)
{
	int i;

	for (i = 0; i < PAIRNIC_RULES; i++)
		if (rule_fits(&steering->rules[i], &tuple->keys))
			return queue_by_rule(steering, &steering->rules[i],
					     tuple);
	return queue_by_hash(steering, tuple, 0);
}

/* The queue of a packet, or a negative number where a rule drops it. */
int pairnic_steer(struct pairnic *nic, struct sk_buff *skb)
{
	struct tuple tuple;
	int queue;

	if (!read_tuple(skb, &tuple))
		return 0;
	spin_lock(&nic->steering.lock);
	queue = choose_queue(&nic->steering, &tuple);
	spin_unlock(&nic->steering.lock);
	return queue;
}

void pairnic_init_steering(struct pairnic *nic)
{
	struct pairnic_steering *steering = &nic->steering;
	int i;

	spin_lock_init(&steering->lock);
	netdev_rss_key_fill(steering->key, PAIRNIC_KEY);
	for (i = 0; i < PAIRNIC_INDIR; i++)
		steering->indir[0][i] =
			ethtool_rxfh_indir_default(i, nic->queues);
}

/* ------------------------------------------------------- ethtool -n and -N */

static int list_rules(struct pairnic_steering *steering,
		      struct ethtool_rxnfc *info, u32 *locations)
{
	u32 count = 0;
	int i;

	for (i = 0; i < PAIRNIC_RULES; i++) {
		if (!steering->rules[i].used)
			continue;
		if (count == info->rule_cnt)
			return -EMSGSIZE;
		locations[count++] = i;
	}
	info->rule_cnt = count;
	info->data = PAIRNIC_RULES;
	return 0;
}

static void count_rules(struct pairnic_steering *steering,
			struct ethtool_rxnfc *info)
{
	int i;

	info->rule_cnt = 0;
	for (i = 0; i < PAIRNIC_RULES; i++)
		info->rule_cnt += steering->rules[i].used;
	info->data = PAIRNIC_RULES | RX_CLS_LOC_SPECIAL;
}

static int get_rule(struct pairnic_steering *steering,
		    struct ethtool_rxnfc *info)
{
	const struct pairnic_rule *rule;

	if (info->fs.location >= PAIRNIC_RULES)
		return -EINVAL;
	rule = &steering->rules[info->fs.location];
	if (!rule->used)
		return -ENOENT;
	info->fs = rule->spec;
	info->rss_context = rule->context;
	return 0;
}

int pairnic_rules_get(struct net_device *dev, struct ethtool_rxnfc *info,
		      u32 *locations)
{
	struct pairnic *nic = netdev_priv(dev);

	switch (info->cmd) {
	case ETHTOOL_GRXCLSRLCNT:
		count_rules(&nic->steering, info);
		return 0;
	case ETHTOOL_GRXCLSRULE:
		return get_rule(&nic->steering, info);
	case ETHTOOL_GRXCLSRLALL:
		return list_rules(&nic->steering, info, locations);
	}
	return -EOPNOTSUPP;
}

/* UDP's masks lie as TCP's do. */
static bool names_sender(const struct ethtool_rx_flow_spec *spec)
{
	const struct ethtool_tcpip4_spec *four = &spec->m_u.tcp_ip4_spec;
	const struct ethtool_tcpip6_spec *six = &spec->m_u.tcp_ip6_spec;
	u32 type = spec->flow_type & ~FLOW_RSS;

	if (type == TCP_V4_FLOW || type == UDP_V4_FLOW)
		return four->ip4src || four->psrc;
	return six->psrc || memchr_inv(six->ip6src, 0, sizeof(six->ip6src));
}

static int check_rule(struct pairnic *nic, const struct ethtool_rxnfc *info)
{
	const struct ethtool_rx_flow_spec *spec = &info->fs;

	switch (spec->flow_type & ~FLOW_RSS) {
	case TCP_V4_FLOW:
	case UDP_V4_FLOW:
	case TCP_V6_FLOW:
	case UDP_V6_FLOW:
		break;
	default:
		return -EOPNOTSUPP; /* FLOW_EXT and FLOW_MAC_EXT, too */
	}
	if (!READ_ONCE(tuple5) && names_sender(spec)) {
		nic->rx[0].count[COUNT_RULE_REFUSED]++;
		return -EOPNOTSUPP;
	}
	if (spec->flow_type & FLOW_RSS)
		return info->rss_context < PAIRNIC_CONTEXTS ? 0 : -EINVAL;
	if (spec->ring_cookie != RX_CLS_FLOW_DISC &&
	    (ethtool_get_flow_spec_ring_vf(spec->ring_cookie) ||
	     ethtool_get_flow_spec_ring(spec->ring_cookie) >= nic->queues))
		return -EINVAL;
	return 0;
}

/* The location that is asked for, or a free one, or a negative errno. */
static int find_location(struct pairnic_steering *steering, u32 location)
{
	int i, step = location == RX_CLS_LOC_LAST ? -1 : 1;

	if (location < PAIRNIC_RULES)
		return location;
	if (!(location & RX_CLS_LOC_SPECIAL))
		return -EINVAL;
	for (i = step < 0 ? PAIRNIC_RULES - 1 : 0; i >= 0 && i < PAIRNIC_RULES;
	     i += step)
		if (!steering->rules[i].used)
			return i;
	return -ENOSPC;
}

static int insert_rule(struct pairnic *nic, struct ethtool_rxnfc *info)
{
	struct pairnic_steering *steering = &nic->steering;
	int location, err = check_rule(nic, info);

	if (err)
		return err;
	location = find_location(steering, info->fs.location);
	if (location < 0)
		return location;
	info->fs.location = location;
	spin_lock_bh(&steering->lock);
	steering->rules[location] = (struct pairnic_rule){
		.used = true,
		.spec = info->fs,
		.context =
			info->fs.flow_type & FLOW_RSS ? info->rss_context : 0,
	};
	spin_unlock_bh(&steering->lock);
	return 0;
}

static int delete_rule(struct pairnic_steering *steering, u32 location)
{
	if (location >= PAIRNIC_RULES || !steering->rules[location].used)
		return -ENOENT;
	spin_lock_bh(&steering->lock);
	steering->rules[location].used = false;
	spin_unlock_bh(&steering->lock);
	return 0;
}

int pairnic_rules_set(struct net_device *dev, struct ethtool_rxnfc *info)
{
	struct pairnic *nic = netdev_priv(dev);

	if (!(dev->features & NETIF_F_NTUPLE))
		return -EOPNOTSUPP;
	switch (info->cmd) {
	case ETHTOOL_SRXCLSRLINS:
		return insert_rule(nic, info);
	case ETHTOOL_SRXCLSRLDEL:
		return delete_rule(&nic->steering, info->fs.location);
	}
	return -EOPNOTSUPP;
}
