/* Version 9: NCCL 2.24 and 2.25. */
#include "plugins/nccl/tables.h"

extern const struct nccl_net_v9 ncclNetPlugin_v9;

static enum nccl_result init(nccl_logger logger)
{
    return table_init_once(logger, NULL);
}

static enum nccl_result properties(int dev, struct nccl_net_properties_v9 *out)
{
    struct plugin_device *device = plugin_device(dev);
    if (!device)
        return NCCL_INVALID_ARGUMENT;
    *out = (struct nccl_net_properties_v9){0};
    TABLE_FILL_PROPERTIES(out, device);
    TABLE_FILL_SIZES(out, device);
    return NCCL_SUCCESS;
}

static enum nccl_result isend(void *comm, void *data, size_t size, int tag, void *mhandle, void **request)
{
    return plugin_isend(comm, data, size, tag, mhandle, NULL, request);
}

static enum nccl_result irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **request)
{
    return plugin_irecv(comm, n, data, sizes, tags, mhandles, NULL, request);
}

TABLE_EXPORT const struct nccl_net_v9 ncclNetPlugin_v9 = {
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
