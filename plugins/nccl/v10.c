/* Version 10: NCCL 2.26 and 2.27. */
#include "plugins/nccl/tables.h"

extern const struct nccl_net_v10 ncclNetPlugin_v10;

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

static enum nccl_result connect(int dev, struct nccl_net_config *config, void *handle, void **comm,
                                struct nccl_net_device_handle **device)
{
    if (device)
        *device = NULL;
    return plugin_connect(table_user(), plugin_class(config), dev, handle, comm);
}

TABLE_EXPORT const struct nccl_net_v10 ncclNetPlugin_v10 = {
    .name = TABLE_NAME,
    .init = table_init_once,
    .devices = table_devices,
    .properties = properties,
    .listen = table_listen_v8,
    .connect = connect,
    .accept = table_accept,
    .reg_mr = plugin_reg_mr,
    .reg_mr_dmabuf = table_reg_mr_dmabuf,
    .dereg_mr = table_dereg_mr,
    .isend = plugin_isend,
    .irecv = table_irecv_v10,
    .iflush = table_iflush,
    .test = plugin_test,
    .close_send = plugin_close,
    .close_recv = plugin_close,
    .close_listen = plugin_close_listen,
};
