/* Version 8: NCCL 2.20 to 2.23. */
#include "plugins/nccl/tables.h"

extern const struct nccl_net_v8 ncclNetPlugin_v8;

static enum nccl_result init(nccl_logger logger)
{
    return table_init_once(logger, NULL);
}

static enum nccl_result properties(int dev, struct nccl_net_properties_v8 *out)
{
    struct plugin_device *device = plugin_device(dev);
    if (!device)
        return NCCL_INVALID_ARGUMENT;
    *out = (struct nccl_net_properties_v8){0};
    TABLE_FILL_PROPERTIES(out, device);
    return NCCL_SUCCESS;
}

static enum nccl_result isend(void *comm, void *data, int size, int tag, void *mhandle, void **request)
{
    return plugin_isend(comm, data, (size_t)size, tag, mhandle, NULL, request);
}

static enum nccl_result irecv(void *comm, int n, void **data, int *sizes, int *tags, void **mhandles, void **request)
{
    size_t wide[PLUGIN_RECVS_MAX] = {0};
    for (int i = 0; i < n && i < PLUGIN_RECVS_MAX; i++)
        wide[i] = (size_t)sizes[i];
    return plugin_irecv(comm, n, data, wide, tags, mhandles, NULL, request);
}

TABLE_EXPORT const struct nccl_net_v8 ncclNetPlugin_v8 = {
    .name = TABLE_NAME,
    .init = init,
    .devices = table_devices,
    .properties = properties,
    .listen = table_listen_v8,
    .connect = table_connect_v8,
    .accept = table_accept,
    .reg_mr = plugin_reg_mr,
    .reg_mr_dmabuf = table_reg_mr_dmabuf,
    .dereg_mr = table_dereg_mr,
    .isend = isend,
    .irecv = irecv,
    .iflush = table_iflush,
    .test = plugin_test,
    .close_send = plugin_close,
    .close_recv = plugin_close,
    .close_listen = plugin_close_listen,
};
