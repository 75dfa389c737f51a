/*
 * tables.h: what several of the five tables have in common. vN.c has the table of version N, and the functions that are
 * its alone.
 */
#ifndef WEFT_NCCL_TABLES_H
#define WEFT_NCCL_TABLES_H

#include "plugins/nccl/plugin.h"

#define TABLE_NAME "Weft"
#define TABLE_EXPORT __attribute__((visibility("default")))

/* What all versions say of a device. `out`: a struct nccl_net_properties_vN. */
#define TABLE_FILL_PROPERTIES(out, from)                                                                               \
    do {                                                                                                               \
        (out)->name = (from)->name;                                                                                    \
        (out)->pci_path = (from)->pci_path;                                                                            \
        (out)->guid = (from)->guid;                                                                                    \
        (out)->ptr_support = (from)->ptr_support;                                                                      \
        (out)->speed = (from)->speed_mbit;                                                                             \
        (out)->latency = TABLE_LATENCY_US;                                                                             \
        (out)->max_comms = TABLE_COMMS_MAX;                                                                            \
        (out)->max_recvs = PLUGIN_RECVS_MAX;                                                                           \
        (out)->device_type = NCCL_NET_DEVICE_HOST;                                                                     \
        (out)->device_version = NCCL_NET_DEVICE_INVALID_VERSION;                                                       \
    } while (0)

/* From version 9 on. */
#define TABLE_FILL_SIZES(out, from)                                                                                    \
    do {                                                                                                               \
        (out)->vprops.ndevs = 1;                                                                                       \
        (out)->vprops.devs[0] = (from)->index;                                                                         \
        (out)->max_p2p_bytes = NCCL_NET_MAX_SIZE_BYTES;                                                                \
        (out)->max_coll_bytes = NCCL_NET_MAX_SIZE_BYTES;                                                               \
    } while (0)

#define TABLE_COMMS_MAX 65536
#define TABLE_LATENCY_US 10.0f /* what TCP takes beyond the RDMA that NCCL's own table of latencies assumes */

/* The user of versions 8 to 10, whose init() comes once, without a finalize(). */
enum nccl_result table_init_once(nccl_logger logger, nccl_profiler profiler);
struct plugin_user *table_user(void);

enum nccl_result table_init_v11(void **context, uint64_t comm_id, struct nccl_net_config *config, nccl_logger logger,
                                nccl_profiler profiler);
enum nccl_result table_finalize(void *context);
enum nccl_result table_set_net_attr(void *context, struct nccl_net_attr *attr);

enum nccl_result table_devices(int *count);
enum nccl_result table_listen_v8(int dev, void *handle, void **comm);
enum nccl_result table_listen_v11(void *context, int dev, void *handle, void **comm);
enum nccl_result table_connect_v8(int dev, void *handle, void **comm, struct nccl_net_device_handle **device);
enum nccl_result table_connect_v11(void *context, int dev, void *handle, void **comm,
                                   struct nccl_net_device_handle **device);
enum nccl_result table_accept(void *listener, void **comm, struct nccl_net_device_handle **device);
enum nccl_result table_reg_mr_dmabuf(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                                     void **mhandle);
enum nccl_result table_dereg_mr(void *comm, void *mhandle);
enum nccl_result table_irecv_v10(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                                 void **phandles, void **request);
enum nccl_result table_iflush(void *comm, int n, void **data, int *sizes, void **mhandles, void **request);

#endif
