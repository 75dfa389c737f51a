/* conform_table.c: one table for all five, as NCCL's own src/plugin/net/net_v8.cc to net_v12.cc have it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform.h"

static void *library;
static const void *table;
struct nccl_net_v12 net_table;
static int inits; /* up to v10 the plugin is initialised once for all */

#define TABLE(n) ((const struct nccl_net_v##n *)table)

#define COPY_PROPERTIES_V8                                                                                             \
    out->name = in.name;                                                                                               \
    out->pci_path = in.pci_path;                                                                                       \
    out->guid = in.guid;                                                                                               \
    out->ptr_support = in.ptr_support;                                                                                 \
    out->reg_is_global = in.reg_is_global;                                                                             \
    out->speed = in.speed;                                                                                             \
    out->port = in.port;                                                                                               \
    out->latency = in.latency;                                                                                         \
    out->max_comms = in.max_comms;                                                                                     \
    out->max_recvs = in.max_recvs;                                                                                     \
    out->device_type = in.device_type;                                                                                 \
    out->device_version = in.device_version;                                                                           \
    out->vprops = (struct nccl_net_vprops_v12){.ndevs = 1, .devs = {dev}};                                             \
    out->force_flush = 0;                                                                                              \
    out->max_p2p_bytes = out->max_coll_bytes = NCCL_NET_MAX_SIZE;                                                      \
    out->max_multi_request_size = 1;                                                                                   \
    out->rail_id = out->plane_id = NCCL_NET_ID_UNDEF
#define COPY_PROPERTIES_V9                                                                                             \
    COPY_PROPERTIES_V8;                                                                                                \
    out->force_flush = in.force_flush;                                                                                 \
    out->max_p2p_bytes = in.max_p2p_bytes;                                                                             \
    out->max_coll_bytes = in.max_coll_bytes;                                                                           \
    out->vprops.ndevs = in.vprops.ndevs;                                                                               \
    for (int i = 0; i < in.vprops.ndevs && i < NCCL_NET_MAX_DEVS_V11; i++)                                             \
    out->vprops.devs[i] = in.vprops.devs[i]
/* A field that the plugin leaves as it was shows: pointers and numbers of nothing but 0xA5 are no good values. */
#define PROPERTIES(n, props, copy)                                                                                     \
    static enum nccl_result properties_v##n(int dev, struct nccl_net_properties_v12 *out)                              \
    {                                                                                                                  \
        struct nccl_net_properties_v##props in;                                                                        \
        memset(&in, 0xA5, sizeof in);                                                                                  \
        enum nccl_result result = TABLE(n)->properties(dev, &in);                                                      \
        if (result != NCCL_SUCCESS)                                                                                    \
            return result;                                                                                             \
        copy;                                                                                                          \
        return NCCL_SUCCESS;                                                                                           \
    }
PROPERTIES(8, 8, COPY_PROPERTIES_V8)
PROPERTIES(9, 9, COPY_PROPERTIES_V9)
PROPERTIES(10, 9, COPY_PROPERTIES_V9)
PROPERTIES(11, 11, COPY_PROPERTIES_V9; out->max_multi_request_size = in.max_multi_request_size)

#define UNUSED __attribute__((unused))
#define CONTEXT_IGNORED(n)                                                                                             \
    static enum nccl_result listen_v##n(UNUSED void *context, int dev, void *handle, void **comm)                      \
    {                                                                                                                  \
        return TABLE(n)->listen(dev, handle, comm);                                                                    \
    }
CONTEXT_IGNORED(8)
CONTEXT_IGNORED(9)
CONTEXT_IGNORED(10)

static enum nccl_result connect_v8(UNUSED void *context, int dev, void *handle, void **comm,
                                   struct nccl_net_device_handle **device)
{
    return TABLE(8)->connect(dev, handle, comm, device);
}

static enum nccl_result connect_v9(UNUSED void *context, int dev, void *handle, void **comm,
                                   struct nccl_net_device_handle **device)
{
    return TABLE(9)->connect(dev, handle, comm, device);
}

/* The context is the config of the communicator: NCCL keeps it there for this table. */
static enum nccl_result connect_v10(void *context, int dev, void *handle, void **comm,
                                    struct nccl_net_device_handle **device)
{
    return TABLE(10)->connect(dev, context, handle, comm, device);
}

static enum nccl_result isend_v8(void *comm, void *data, size_t size, int tag, void *mhandle, UNUSED void *phandle,
                                 void **request)
{
    return TABLE(8)->isend(comm, data, (int)size, tag, mhandle, request);
}

static enum nccl_result isend_v9(void *comm, void *data, size_t size, int tag, void *mhandle, UNUSED void *phandle,
                                 void **request)
{
    return TABLE(9)->isend(comm, data, size, tag, mhandle, request);
}

static enum nccl_result irecv_v8(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                                 UNUSED void **phandles, void **request)
{
    int in_v8[CONFORM_SLOTS_MAX];
    if (*request == NCCL_NET_OPTIONAL_RECV)
        *request = NULL;
    for (int i = 0; i < n; i++)
        in_v8[i] = (int)sizes[i];
    return TABLE(8)->irecv(comm, n, data, in_v8, tags, mhandles, request);
}

static enum nccl_result irecv_v9(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                                 UNUSED void **phandles, void **request)
{
    return TABLE(9)->irecv(comm, n, data, sizes, tags, mhandles, request);
}

static enum nccl_result init_v8(UNUSED void **context, UNUSED uint64_t comm_id, UNUSED struct nccl_net_config *config,
                                nccl_logger log, UNUSED nccl_profiler profile)
{
    return inits++ ? NCCL_SUCCESS : TABLE(8)->init(log);
}

static enum nccl_result init_v9(UNUSED void **context, UNUSED uint64_t comm_id, UNUSED struct nccl_net_config *config,
                                nccl_logger log, UNUSED nccl_profiler profile)
{
    return inits++ ? NCCL_SUCCESS : TABLE(9)->init(log);
}

static enum nccl_result init_v10(void **context, UNUSED uint64_t comm_id, struct nccl_net_config *config,
                                 nccl_logger log, nccl_profiler profile)
{
    *context = malloc(sizeof *config);
    memcpy(*context, config, sizeof *config);
    return inits++ ? NCCL_SUCCESS : TABLE(10)->init(log, profile);
}

#define SAME(n)                                                                                                        \
    net_table.name = TABLE(n)->name;                                                                                   \
    net_table.devices = TABLE(n)->devices;                                                                             \
    net_table.accept = TABLE(n)->accept;                                                                               \
    net_table.reg_mr = TABLE(n)->reg_mr;                                                                               \
    net_table.reg_mr_dmabuf = TABLE(n)->reg_mr_dmabuf;                                                                 \
    net_table.dereg_mr = TABLE(n)->dereg_mr;                                                                           \
    net_table.iflush = TABLE(n)->iflush;                                                                               \
    net_table.test = TABLE(n)->test;                                                                                   \
    net_table.close_send = TABLE(n)->close_send;                                                                       \
    net_table.close_recv = TABLE(n)->close_recv;                                                                       \
    net_table.close_listen = TABLE(n)->close_listen;                                                                   \
    net_table.irecv_consumed = TABLE(n)->irecv_consumed
#define OWN(n, transfer)                                                                                               \
    net_table.init = init_v##n;                                                                                        \
    net_table.properties = properties_v##n;                                                                            \
    net_table.listen = listen_v##n;                                                                                    \
    net_table.connect = connect_v##n;                                                                                  \
    net_table.isend = transfer(isend);                                                                                 \
    net_table.irecv = transfer(irecv)
#define BY_V8(name) name##_v8
#define BY_V9(name) name##_v9
#define BY_V10(name) TABLE(10)->name

static void fill_net(void)
{
    memset(&net_table, 0, sizeof net_table);
    switch (conform.version) {
    case 8:
        SAME(8);
        OWN(8, BY_V8);
        break;
    case 9:
        SAME(9);
        OWN(9, BY_V9);
        break;
    case 10:
        SAME(10);
        OWN(10, BY_V10);
        break;
    case 11:
        SAME(11);
        net_table.init = TABLE(11)->init;
        net_table.properties = properties_v11;
        net_table.listen = TABLE(11)->listen;
        net_table.connect = TABLE(11)->connect;
        net_table.isend = TABLE(11)->isend;
        net_table.irecv = TABLE(11)->irecv;
        net_table.finalize = TABLE(11)->finalize;
        net_table.set_net_attr = TABLE(11)->set_net_attr;
        break;
    default:
        net_table = *TABLE(12);
    }
}

void net_open(void)
{
    char symbol[32];
    snprintf(symbol, sizeof symbol, "ncclNetPlugin_v%d", conform.version);
    library = dlopen(conform.plugin, RTLD_NOW | RTLD_LOCAL);
    CHECK(library, "%s", dlerror());
    table = dlsym(library, symbol);
    CHECK(table, "%s", dlerror());
    inits = 0;
    fill_net();
    CHECK(net_table.name && net_table.init && net_table.devices && net_table.properties && net_table.listen &&
              net_table.connect && net_table.accept && net_table.reg_mr && net_table.dereg_mr && net_table.isend &&
              net_table.irecv && net_table.test && net_table.close_send && net_table.close_recv &&
              net_table.close_listen && (conform.version < 11 || net_table.finalize),
          "a function is missing in %s", symbol);
}

void net_close(void)
{
    CHECK(!dlclose(library), "%s", dlerror());
    library = NULL;
    CHECK(profile_open() == 0, "%lld profiler events have not stopped", (long long)profile_open());
}

enum nccl_result net_forget(void *context)
{
    inits -= inits > 0;
    if (conform.version == 10)
        free(context);
    return NCCL_SUCCESS;
}
