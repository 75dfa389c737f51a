/* standin_tables.c: the five tables of the stand-in. */
#include "standin.h"

#define EXPORT __attribute__((visibility("default")))
#define UNUSED __attribute__((unused))

static char device_name[] = "standin0";

enum nccl_result standin_devices(int *ndev)
{
    *ndev = 1;
    return NCCL_SUCCESS;
}

enum nccl_result standin_properties(int dev, struct nccl_net_properties_v12 *properties)
{
    if (dev != 0)
        return NCCL_INVALID_ARGUMENT;
    struct nccl_net_properties_v12 mine = {.name = device_name,
                                           .guid = 1,
                                           .ptr_support = NCCL_PTR_HOST,
                                           .speed = 10000,
                                           .max_comms = 1024,
                                           .max_recvs = STANDIN_SLOTS,
                                           .vprops = {.ndevs = 1},
                                           .max_p2p_bytes = NCCL_NET_MAX_SIZE,
                                           .max_coll_bytes = NCCL_NET_MAX_SIZE,
                                           .max_multi_request_size = 1,
                                           .rail_id = NCCL_NET_ID_UNDEF,
                                           .plane_id = NCCL_NET_ID_UNDEF};
    if (standin_fault("no_speed"))
        mine.speed = 0;
    *properties = mine;
    return NCCL_SUCCESS;
}

#define COPY                                                                                                           \
    out->name = all.name;                                                                                              \
    out->pci_path = all.pci_path;                                                                                      \
    out->guid = all.guid;                                                                                              \
    out->ptr_support = all.ptr_support;                                                                                \
    out->reg_is_global = all.reg_is_global;                                                                            \
    out->speed = all.speed;                                                                                            \
    out->port = all.port;                                                                                              \
    out->latency = all.latency;                                                                                        \
    out->max_comms = all.max_comms;                                                                                    \
    out->max_recvs = all.max_recvs;                                                                                    \
    out->device_type = all.device_type;                                                                                \
    out->device_version = all.device_version
#define COPY_V9                                                                                                        \
    COPY;                                                                                                              \
    out->force_flush = all.force_flush;                                                                                \
    out->vprops = (struct nccl_net_vprops_v9){.ndevs = 1, .devs = {dev}};                                              \
    out->max_p2p_bytes = all.max_p2p_bytes;                                                                            \
    out->max_coll_bytes = all.max_coll_bytes
#define PROPERTIES(n, copy)                                                                                            \
    static enum nccl_result properties_v##n(int dev, struct nccl_net_properties_v##n *out)                             \
    {                                                                                                                  \
        struct nccl_net_properties_v12 all;                                                                            \
        enum nccl_result result = standin_properties(dev, &all);                                                       \
        if (result != NCCL_SUCCESS)                                                                                    \
            return result;                                                                                             \
        copy;                                                                                                          \
        return NCCL_SUCCESS;                                                                                           \
    }
PROPERTIES(8, COPY)
PROPERTIES(9, COPY_V9)
PROPERTIES(11, COPY_V9; out->max_multi_request_size = all.max_multi_request_size)

static enum nccl_result init_v10(nccl_logger logger, UNUSED nccl_profiler profiler)
{
    return standin_init(logger);
}

static enum nccl_result init_v11(void **context, UNUSED uint64_t comm_id, UNUSED struct nccl_net_config *config,
                                 nccl_logger logger, UNUSED nccl_profiler profiler)
{
    *context = NULL;
    return standin_init(logger);
}

static enum nccl_result listen_v11(UNUSED void *context, int dev, void *handle, void **comm)
{
    return standin_listen(dev, handle, comm);
}

static enum nccl_result connect_v8(int dev, void *handle, void **comm, UNUSED struct nccl_net_device_handle **device)
{
    return standin_connect(dev, handle, comm);
}

static enum nccl_result connect_v10(int dev, UNUSED struct nccl_net_config *config, void *handle, void **comm,
                                    UNUSED struct nccl_net_device_handle **device)
{
    return standin_connect(dev, handle, comm);
}

static enum nccl_result connect_v11(UNUSED void *context, int dev, void *handle, void **comm,
                                    UNUSED struct nccl_net_device_handle **device)
{
    return standin_connect(dev, handle, comm);
}

static enum nccl_result isend_v8(void *comm, void *data, int size, int tag, UNUSED void *mhandle, void **request)
{
    return standin_isend(comm, data, (size_t)size, tag, request);
}

static enum nccl_result isend_v9(void *comm, void *data, size_t size, int tag, UNUSED void *mhandle, void **request)
{
    return standin_isend(comm, data, size, tag, request);
}

static enum nccl_result isend_v10(void *comm, void *data, size_t size, int tag, UNUSED void *mhandle,
                                  UNUSED void *phandle, void **request)
{
    return standin_isend(comm, data, size, tag, request);
}

static enum nccl_result irecv_v8(void *comm, int n, void **data, int *sizes, int *tags, UNUSED void **mhandles,
                                 void **request)
{
    size_t in_bytes[STANDIN_SLOTS];
    for (int i = 0; i < n && i < STANDIN_SLOTS; i++)
        in_bytes[i] = (size_t)sizes[i];
    return standin_irecv(comm, n, data, in_bytes, tags, request);
}

static enum nccl_result irecv_v9(void *comm, int n, void **data, size_t *sizes, int *tags, UNUSED void **mhandles,
                                 void **request)
{
    return standin_irecv(comm, n, data, sizes, tags, request);
}

static enum nccl_result irecv_v10(void *comm, int n, void **data, size_t *sizes, int *tags, UNUSED void **mhandles,
                                  UNUSED void **phandles, void **request)
{
    return standin_irecv(comm, n, data, sizes, tags, request);
}

/* NCCL calls it where there is one, without asking whether the device offloads. */
static enum nccl_result consumed(UNUSED void *comm, UNUSED int n, UNUSED void *request)
{
    return standin_fault("consumed_refused") ? NCCL_INTERNAL_ERROR : NCCL_SUCCESS;
}

#define COMMON                                                                                                         \
    .name = "standin", .devices = standin_devices, .accept = standin_accept, .reg_mr = standin_reg,                    \
    .dereg_mr = standin_dereg, .test = standin_test, .close_send = standin_close, .close_recv = standin_close,         \
    .close_listen = standin_close_listen, .irecv_consumed = consumed

#define TABLE(n) EXPORT extern const struct nccl_net_v##n ncclNetPlugin_v##n
TABLE(8);
TABLE(9);
TABLE(10);
TABLE(11);
TABLE(12);

const struct nccl_net_v8 ncclNetPlugin_v8 = {COMMON,
                                             .init = standin_init,
                                             .properties = properties_v8,
                                             .listen = standin_listen,
                                             .connect = connect_v8,
                                             .isend = isend_v8,
                                             .irecv = irecv_v8};
const struct nccl_net_v9 ncclNetPlugin_v9 = {COMMON,
                                             .init = standin_init,
                                             .properties = properties_v9,
                                             .listen = standin_listen,
                                             .connect = connect_v8,
                                             .isend = isend_v9,
                                             .irecv = irecv_v9};
const struct nccl_net_v10 ncclNetPlugin_v10 = {COMMON,
                                               .init = init_v10,
                                               .properties = properties_v9,
                                               .listen = standin_listen,
                                               .connect = connect_v10,
                                               .isend = isend_v10,
                                               .irecv = irecv_v10};
#define WITH_CONTEXT                                                                                                   \
    .init = init_v11, .listen = listen_v11, .connect = connect_v11, .isend = isend_v10, .irecv = irecv_v10,            \
    .finalize = standin_finalize
const struct nccl_net_v11 ncclNetPlugin_v11 = {COMMON, WITH_CONTEXT, .properties = properties_v11};
const struct nccl_net_v12 ncclNetPlugin_v12 = {COMMON, WITH_CONTEXT, .properties = standin_properties};
