/*
 * plugin.h: the plugin behind all five tables. It holds on to weft.h alone.
 *
 *     a request that test() calls done is done: its bytes are where they belong, its memory is NCCL's again;
 *     no call waits for another machine, and nothing touches memory after its dereg_mr(), nor memory of a comm after
 *     its close_*().
 *
 * Threads: as abi.h says; of one comm, isend, irecv, test and close come one after the other, dereg_mr beside them.
 * Locks: plugin.lock -> plugin_device.lock. What moves bytes takes neither, but plugin_comm.lock, and nothing with it.
 */
#ifndef WEFT_NCCL_PLUGIN_H
#define WEFT_NCCL_PLUGIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugins/nccl/abi.h"
#include "weft.h"

#define PLUGIN_RAILS_MAX 64
#define PLUGIN_RECVS_MAX 8 /* slots of a grouped receive */
#define PLUGIN_PARTS_MAX (NCCL_NET_MAX_REQUESTS * PLUGIN_RECVS_MAX)
#define PLUGIN_CLASS_UNSET (-1)

struct plugin_comm;
struct plugin_joining;
struct plugin_listener;
struct plugin_session;

/* What one init() has brought. Owner: tables.c. */
struct plugin_user {
    int traffic_class;      /* PLUGIN_CLASS_UNSET, or 0 to 3 */
    nccl_profiler profiler; /* NULL: NCCL records no events */
};

/* What NCCL sees as a network card: one rail, or all of them. Owner: the plugin, from the first init() to the last
 * finalize(). `lock` guards what stands below it. */
struct plugin_device {
    char name[96];
    char *pci_path; /* NULL: it has none */
    uint64_t guid;
    int index;
    int rail; /* its number; -1: all */
    int speed_mbit;
    int ptr_support;
    int connect_timeout_ms;
    struct weft_context *context;
    struct weft_queue *closing;   /* the ends of what nobody waits for */
    struct weft_endpoint *sender; /* what this side connects comes from it */
    struct weft_rail_info rails[PLUGIN_RAILS_MAX];
    int rail_count;

    pthread_mutex_t lock;
    uint32_t next_endpoint;
    uint64_t next_joining;
    struct plugin_session *sessions;
    struct plugin_listener *listeners;
    struct plugin_joining *joinings;
    struct plugin_comm *comms;
};

/* --- the process (plugin.c) --- */

/* Fills `user`; the first one makes the devices. `config` NULL: no wishes. Errors are said. */
enum nccl_result plugin_init(struct plugin_user *user, const struct nccl_net_config *config, nccl_logger logger,
                             nccl_profiler profiler);
/* Once for each plugin_init() that went well: ends what its connect() has begun; the last one ends everything. */
void plugin_finalize(const struct plugin_user *user);
enum nccl_result plugin_devices(int *count);
/* NULL, and it is said: there is no such device. */
struct plugin_device *plugin_device(int index);
/* This instance of the plugin; other processes know it by this number. */
uint64_t plugin_process(void);
/* What `config` says of the traffic class; a value that Weft has no class for is said, and is class 0. */
int plugin_class(const struct nccl_net_config *config);

/* --- one device (device.c) --- */

/* `rail` -1: all rails. Errors are said. */
enum nccl_result plugin_device_open(struct plugin_device *device, int index, const struct weft_interface_info *rails,
                                    int rail_count, int rail);
void plugin_device_close(struct plugin_device *device);
/* Makes the GPU that this thread uses ready, where GPU memory is taken: later that would have to wait. */
void plugin_device_ready_gpu(struct plugin_device *device);
int64_t plugin_now_ns(void);

/* --- comms (comm.c) --- */

enum nccl_result plugin_listen(struct plugin_user *user, int device, void *handle, void **listener);
enum nccl_result plugin_accept(void *listener, void **comm);
enum nccl_result plugin_connect(struct plugin_user *user, int traffic_class, int device, void *handle, void **comm);
enum nccl_result plugin_close_listen(void *listener);
enum nccl_result plugin_close(void *comm);
/* NCCL calls connect() for the user no more: ends what has not become a comm. */
void plugin_connects_end(struct plugin_device *device, const struct plugin_user *user);
/* Does NCCL have comms, listeners or a connect() of the device, or is a thread in a call that holds its lock? */
bool plugin_comms_open(struct plugin_device *device);

/* --- bytes (transfer.c) --- */

enum nccl_result plugin_isend(void *comm, void *data, size_t size, int tag, void *mhandle, void *phandle,
                              void **request);
/* `phandles` may be NULL. */
enum nccl_result plugin_irecv(void *comm, int n, void **data, const size_t *sizes, const int *tags, void **mhandles,
                              void **phandles, void **request);
enum nccl_result plugin_test(void *request, int *done, int *sizes);
/* Received bytes are in place when test() says so: there is nothing to flush. */
enum nccl_result plugin_iflush(void **request);
enum nccl_result plugin_reg_mr(void *comm, void *data, size_t size, int type, void **mhandle);
/* Cancels what is under way in that memory, on the comm that it was registered for; test() of it is an error then.
 * NULL is allowed. */
enum nccl_result plugin_dereg_mr(void *mhandle);

/* --- what is said (say.c) --- */

void plugin_log_to(nccl_logger logger);
/* A line in NCCL's log. */
void plugin_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void plugin_info(unsigned long part, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line of the library in NCCL's log: a weft_log_function. */
void plugin_take_line(void *user, int level, const char *line);
/* What NCCL is told for a negative errno. */
enum nccl_result plugin_result(int error);

#endif
