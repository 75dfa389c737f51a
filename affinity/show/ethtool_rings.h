/* ethtool_rings.h: whether a NIC splits headers from payload: `ethtool -g` says it, and only netlink can ask. */
#ifndef WF_AFFINITY_ETHTOOL_RINGS_H
#define WF_AFFINITY_ETHTOOL_RINGS_H

/* 1 on, 0 off, -1: unknown, or neither driver nor kernel knows of it. */
int wf_ethtool_header_split(const char *name);

#endif
