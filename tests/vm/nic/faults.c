// SPDX-License-Identifier: GPL-2.0
/*
 * Faults, of both cards, by parameters that can be changed at any time in
 * /sys/module/pairnic/parameters. They concern TCP packets with payload only,
 * so that connections come about.
 */
#include <linux/module.h>
#include "pairnic.h"

uint fault_linear;
module_param(fault_linear, uint, 0644);
MODULE_PARM_DESC(fault_linear, "bytes of payload left beside the headers");

uint fault_page_packets;
module_param(fault_page_packets, uint, 0644);
MODULE_PARM_DESC(fault_page_packets,
		 "each Nth packet lands in pages instead of device buffers");

uint fault_page_buffers;
module_param(fault_page_buffers, uint, 0644);
MODULE_PARM_DESC(
	fault_page_buffers,
	"each Nth buffer is a page, beside device buffers in a packet");

uint fault_drop;
module_param(fault_drop, uint, 0644);
MODULE_PARM_DESC(fault_drop, "each Nth packet is lost");

uint fault_delay_us;
module_param(fault_delay_us, uint, 0644);
MODULE_PARM_DESC(fault_delay_us, "microseconds that packets take");

uint fault_reorder;
module_param(fault_reorder, uint, 0644);
MODULE_PARM_DESC(fault_reorder,
		 "each Nth packet is overtaken, as soon as one is behind it");

uint fault_pool;
module_param(fault_pool, uint, 0644);
MODULE_PARM_DESC(fault_pool,
		 "buffers that a queue has per poll, what needs more is lost");

uint fault_merge;
module_param(fault_merge, uint, 0644);
MODULE_PARM_DESC(fault_merge,
		 "most packets that become one, as hardware GRO makes them");

uint fault_wrong;
module_param(fault_wrong, uint, 0644);
MODULE_PARM_DESC(fault_wrong,
		 "each Nth device buffer gets a wrong byte, its first one");

/* Is a fault due that comes with each event number `every`? 0: never. */
bool pairnic_due(u32 *events, uint every)
{
	if (!every || ++*events < every)
		return false;
	*events = 0;
	return true;
}
