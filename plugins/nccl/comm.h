/*
 * comm.h: listeners, and the comms that connect() and accept() make. A comm is one connection of the library, in one
 * direction. A listener is an endpoint, and stays until both sides have closed what was accepted on it.
 *
 * With plugin_device.lock held, but for what a comm's own threads do with it (transfer.c): the progress thread posts
 * and tests, and the service thread may deregister memory meanwhile, so plugin_comm.lock guards the requests.
 */
#ifndef WEFT_NCCL_COMM_H
#define WEFT_NCCL_COMM_H

#include "plugins/nccl/plugin.h"
#include "plugins/nccl/profile.h"
#include "plugins/nccl/session.h"

struct plugin_waiting {
    int64_t since_ns, said_ns; /* waits since; the log was told */
};

struct plugin_listener {
    struct plugin_task closing; /* first: the close of its comm's connection */
    struct plugin_listener *next;
    struct plugin_device *device;
    struct weft_endpoint *endpoint;
    nccl_profiler profiler;
    struct weft_connection *arrived; /* NULL: nobody has connected yet, or it was accepted */
    struct plugin_session *session;  /* of `arrived` */
    bool open;                       /* NCCL has not closed it */
    bool busy;                       /* its comm exists, or is being closed */
    struct plugin_waiting waiting;   /* for a connect() */
};

/* What regMr() hands out. Owner: NCCL, until deregMr(). `comm` is looked at only while there are uses, that is, while
 * it is open. */
struct plugin_memory {
    struct plugin_comm *comm;
    struct weft_registration *registration; /* NULL: host memory, which the library need not know */
    atomic_int uses;                        /* parts under way in it */
};

/* One operation of the library. */
struct plugin_part {
    struct weft_request *request;   /* NULL: it has ended */
    struct plugin_memory *memory;   /* that it uses; NULL: it has ended, or NCCL named none */
    struct plugin_profile *profile; /* NULL: NCCL records no events of it */
    size_t capacity;
    int size;                /* bytes moved, once it has ended */
    enum nccl_result result; /* once it has ended */
};

/* What isend() and irecv() hand out. */
struct plugin_request {
    struct plugin_comm *comm;
    struct plugin_part *parts;
    int count; /* of parts; 0: not in use */
};

struct plugin_comm {
    struct plugin_comm *next;
    struct plugin_device *device; /* NULL: the plugin was finalised before the comm was closed */
    struct plugin_session *session;
    struct weft_connection *connection;
    struct plugin_listener *listener; /* NULL: it sends */
    nccl_profiler profiler;
    struct plugin_profile *profiles; /* one for each of `parts`; NULL: NCCL records no events */
    pthread_mutex_t lock;            /* for what stands below it */
    int free_count;                  /* requests not in use, as a stack */
    uint16_t free[PLUGIN_PARTS_MAX];
    struct plugin_request requests[PLUGIN_PARTS_MAX]; /* a receiver has an eighth of them, with eight parts each */
    struct plugin_part parts[PLUGIN_PARTS_MAX];
};

/* Somebody has connected to a listener. Where the listener waits for nobody, the connection is closed. `session`
 * NULL: its peer was closed before.
 */
void plugin_arrived(struct plugin_device *device, struct plugin_session *session, struct weft_endpoint *endpoint,
                    struct weft_connection *connection);

/* Frees listeners that nothing needs any more. */
void plugin_listeners_sweep(struct plugin_device *device);

/* The context is gone: comms that NCCL still has lead nowhere from now on, and listeners are memory. */
void plugin_comms_forget(struct plugin_device *device);

/* Ends every operation of the comm: NCCL's memory is not touched after that (transfer.c). Without the lock. */
enum nccl_result plugin_stop(struct plugin_comm *comm);

#endif
