/* Version 12: NCCL 2.30. */
#include "plugins/nccl/tables.h"

extern const struct nccl_net_v12 ncclNetPlugin_v12;

static enum nccl_result properties(int dev, struct nccl_net_properties_v12 *out)
{
    struct plugin_device *device = plugin_device(dev);
    if (!device)
        return NCCL_INVALID_ARGUMENT;
    *out = (struct nccl_net_properties_v12){0};
    TABLE_FILL_PROPERTIES(out, device);
    TABLE_FILL_SIZES(out, device);
    out->max_multi_request_size = 1;
    out->rail_id = (int16_t)device->rail; /* NCCL_NET_ID_UNDEF: all of them */
    out->plane_id = NCCL_NET_ID_UNDEF;
    return NCCL_SUCCESS;
}

TABLE_EXPORT const struct nccl_net_v12 ncclNetPlugin_v12 = {
    .name = TABLE_NAME,
    .init = table_init_v11,
    .devices = table_devices,
    .properties = properties,
    .listen = table_listen_v11,
    .connect = table_connect_v11,
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
    .finalize = table_finalize,
    .set_net_attr = table_set_net_attr,
};
