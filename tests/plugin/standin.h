/*
 * standin.h: a plugin as simple as can be: a TCP connection over loopback for each comm, host pointers, no threads. It
 * keeps NCCL's rules, and STANDIN_FAULT=NAME makes it break one: so each case of conform is seen to fail.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>

#include "plugins/nccl/abi.h"

#define STANDIN_SLOTS 8

bool standin_fault(const char *name);

enum nccl_result standin_init(nccl_logger logger);
enum nccl_result standin_devices(int *ndev);
enum nccl_result standin_properties(int dev, struct nccl_net_properties_v12 *properties);
enum nccl_result standin_listen(int dev, void *handle, void **comm);
enum nccl_result standin_connect(int dev, void *handle, void **comm);
enum nccl_result standin_accept(void *listener, void **comm, struct nccl_net_device_handle **device);
enum nccl_result standin_reg(void *comm, void *data, size_t size, int type, void **mhandle);
enum nccl_result standin_dereg(void *comm, void *mhandle);
enum nccl_result standin_isend(void *comm, void *data, size_t size, int tag, void **request);
enum nccl_result standin_irecv(void *comm, int n, void **data, const size_t *sizes, const int *tags, void **request);
enum nccl_result standin_test(void *request, int *done, int *sizes);
enum nccl_result standin_close(void *comm);
enum nccl_result standin_close_listen(void *listener);
enum nccl_result standin_finalize(void *context);

#endif
