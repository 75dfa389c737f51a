#include "plugins/nccl/tables.h"

#include <stdlib.h>
#include <unistd.h>

/* Written by init(), before anything else is called. */
static struct plugin_user first;
static pid_t has_first; /* the process that has it; 0: none. A child of fork() makes its own */

enum nccl_result table_init_once(nccl_logger logger, nccl_profiler profiler)
{
    if (has_first == getpid())
        return NCCL_SUCCESS;
    enum nccl_result result = plugin_init(&first, NULL, logger, profiler);
    has_first = result == NCCL_SUCCESS ? getpid() : 0;
    return result;
}

struct plugin_user *table_user(void)
{
    return &first;
}

enum nccl_result table_init_v11(void **context, uint64_t comm_id, struct nccl_net_config *config, nccl_logger logger,
                                nccl_profiler profiler)
{
    struct plugin_user *user = malloc(sizeof *user);
    (void)comm_id;
    *context = NULL;
    enum nccl_result result = user ? plugin_init(user, config, logger, profiler) : NCCL_SYSTEM_ERROR;
    if (result == NCCL_SUCCESS)
        *context = user;
    else
        free(user);
    return result;
}

enum nccl_result table_finalize(void *context)
{
    if (context) /* NULL: its init() failed */
        plugin_finalize(context);
    free(context);
    return NCCL_SUCCESS;
}

/* Hints that change nothing here: connections are shared, and a rail is chosen for each chunk. */
enum nccl_result table_set_net_attr(void *context, struct nccl_net_attr *attr)
{
    (void)context, (void)attr;
    return NCCL_SUCCESS;
}

enum nccl_result table_devices(int *count)
{
    return plugin_devices(count);
}

enum nccl_result table_listen_v8(int dev, void *handle, void **comm)
{
    return plugin_listen(&first, dev, handle, comm);
}

enum nccl_result table_listen_v11(void *context, int dev, void *handle, void **comm)
{
    return plugin_listen(context, dev, handle, comm);
}

static void no_device(struct nccl_net_device_handle **device)
{
    if (device)
        *device = NULL;
}

enum nccl_result table_connect_v8(int dev, void *handle, void **comm, struct nccl_net_device_handle **device)
{
    no_device(device);
    return plugin_connect(&first, PLUGIN_CLASS_UNSET, dev, handle, comm);
}

enum nccl_result table_connect_v11(void *context, int dev, void *handle, void **comm,
                                   struct nccl_net_device_handle **device)
{
    const struct plugin_user *user = context;
    no_device(device);
    return plugin_connect(context, user ? user->traffic_class : PLUGIN_CLASS_UNSET, dev, handle, comm);
}

enum nccl_result table_accept(void *listener, void **comm, struct nccl_net_device_handle **device)
{
    no_device(device);
    return plugin_accept(listener, comm);
}

/* The library exports the memory itself, for each card that needs it: NCCL's descriptor is not kept. */
enum nccl_result table_reg_mr_dmabuf(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                                     void **mhandle)
{
    (void)offset, (void)fd;
    return plugin_reg_mr(comm, data, size, type, mhandle);
}

enum nccl_result table_dereg_mr(void *comm, void *mhandle)
{
    (void)comm;
    return plugin_dereg_mr(mhandle);
}

enum nccl_result table_irecv_v10(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                                 void **phandles, void **request)
{
    return plugin_irecv(comm, n, data, sizes, tags, mhandles, phandles, request);
}

enum nccl_result table_iflush(void *comm, int n, void **data, int *sizes, void **mhandles, void **request)
{
    (void)comm, (void)n, (void)data, (void)sizes, (void)mhandles;
    return plugin_iflush(request);
}
