/*
 * abi.h: what NCCL and a net plugin agree on, versions 8 to 12. Facts alone: order, types and sizes are NCCL's, names
 * and words are ours. tests/plugin/abi_layout compares every offset, size and number below with NVIDIA's own headers.
 *
 * A plugin exports one `const struct nccl_net_vN ncclNetPlugin_vN` per version; NCCL takes the newest that it knows.
 *
 * Who calls what (NCCL's src/init.cc, src/proxy.cc, src/transport/net.cc):
 *   application threads, one at a time: init, devices, properties, make_vdevice, finalize
 *   service threads, one per rank:      listen, connect, accept, reg_mr*, dereg_mr, device_mr, close_*
 *   progress threads, one per rank:     isend, irecv, test, iflush, irecv_consumed
 *   service and progress threads:       set_net_attr
 * No call may block. Results are written with NCCL_SUCCESS only, except that NULL with NCCL_SUCCESS means "call again"
 * where it says so below.
 */
#ifndef WEFT_NCCL_ABI_H
#define WEFT_NCCL_ABI_H

#include <stddef.h>
#include <stdint.h>

enum nccl_result {
    NCCL_SUCCESS = 0,
    NCCL_UNHANDLED_CUDA_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INTERNAL_ERROR = 3,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6,
};

#define NCCL_NET_HANDLE_MAXSIZE 128 /* bytes of the handle that listen() fills; NCCL carries it to the other side */
#define NCCL_NET_MAX_REQUESTS 32    /* of one comm at a time; a receive of n slots is one */
#define NCCL_NET_MAX_SIZE (1024L * 1024 * 1024)              /* of one transfer, up to v8 */
#define NCCL_NET_MAX_SIZE_BYTES (1024L * 1024 * 1024 * 1024) /* the most that max_*_bytes may say, from v9 on */
#define NCCL_NET_OPTIONAL_RECV ((void *)(uintptr_t)0x1)      /* in *request before irecv(), from v9 on */
#define NCCL_NET_MULTI_REQUEST ((void *)(uintptr_t)0x2)      /* named by NCCL, not used up to 2.30 */
#define NCCL_NET_MAX_DEVS_V11 4                              /* of one virtual device, v9 to v11 */
#define NCCL_NET_MAX_DEVS_V12 8
#define NCCL_NET_TRAFFIC_CLASS_UNDEF (-1)
#define NCCL_NET_ID_UNDEF (-1)   /* rail_id, plane_id */
#define NCCL_NET_ATTR_UNDEF (-1) /* every number of nccl_net_attr */

/* Kinds of memory: bits of ptr_support, and one of them in the type of reg_mr(). */
enum nccl_ptr {
    NCCL_PTR_HOST = 1,
    NCCL_PTR_CUDA = 2,
    NCCL_PTR_DMABUF = 4,
};

/* ------------------------------------------------------------------------------------------- the log */

enum nccl_log_level {
    NCCL_LOG_NONE = 0,
    NCCL_LOG_VERSION = 1,
    NCCL_LOG_WARN = 2,
    NCCL_LOG_INFO = 3,
    NCCL_LOG_ABORT = 4,
    NCCL_LOG_TRACE = 5,
};

/* Parts of NCCL, as bits of the flags of a line. */
enum nccl_log_part {
    NCCL_INIT = 0x1,
    NCCL_COLL = 0x2,
    NCCL_P2P = 0x4,
    NCCL_SHM = 0x8,
    NCCL_NET = 0x10,
    NCCL_GRAPH = 0x20,
    NCCL_TUNING = 0x40,
    NCCL_ENV = 0x80,
    NCCL_ALLOC = 0x100,
    NCCL_CALL = 0x200,
    NCCL_PROXY = 0x400,
    NCCL_NVLS = 0x800,
    NCCL_BOOTSTRAP = 0x1000,
    NCCL_REG = 0x2000,
    NCCL_PROFILE = 0x4000,
    NCCL_RAS = 0x8000,
    NCCL_DESTROY = 0x10000,
    NCCL_ALLOC_HOST = 0x20000,
    NCCL_ALL = ~0,
};

/* With NCCL_LOG_WARN `file` and `line` are printed; otherwise `file` stands for the function's name. No line break at
 * the end of `format`. */
typedef void (*nccl_logger)(enum nccl_log_level level, unsigned long flags, const char *file, int line,
                            const char *format, ...);

/* ------------------------------------------------------------------------------------------- the profiler (v10 on) */

enum nccl_profile_kind {
    NCCL_PROFILE_START = 0,
    NCCL_PROFILE_STOP = 1,
    NCCL_PROFILE_UPDATE = 2,
    NCCL_PROFILE_UPDATE_AND_STOP = 3,
};

/*
 * START: *event, 0 before, becomes the event's handle; `phandle` is what isend() or irecv() were given, `descriptor` a
 * struct of the plugin's own, of which `plugin` says the layout. STOP: `event` again, the rest 0. The function itself
 * is NULL where NCCL was built without it.
 */
typedef enum nccl_result (*nccl_profiler)(void **event, int kind, void *phandle, int64_t plugin, void *descriptor);

#define NCCL_PROFILE_VERSION_BITS 16 /* the low bits of `plugin`: the version of the descriptor */
#define NCCL_PROFILE_PLUGIN_IB (INT64_C(1) << NCCL_PROFILE_VERSION_BITS)
#define NCCL_PROFILE_PLUGIN_SOCKET (INT64_C(2) << NCCL_PROFILE_VERSION_BITS)
#define NCCL_PROFILE_SOCKET_VERSION 1
#define NCCL_PROFILE_SOCKET 1 /* the type of every event of NCCL's socket transport */
#define NCCL_PROFILE_OP_SEND 0
#define NCCL_PROFILE_OP_RECV 1

/* NCCL's socket transport: plugin = NCCL_PROFILE_PLUGIN_SOCKET | NCCL_PROFILE_SOCKET_VERSION. One event per part of a
 * message that one socket carries. */
struct nccl_profile_socket {
    uint8_t type; /* NCCL_PROFILE_SOCKET */
    union {
        struct {
            int fd;
            int op; /* NCCL_PROFILE_OP_* */
            size_t length;
        } sock;
    };
};

/* ------------------------------------------------------------------------------------------- devices */

enum nccl_net_device_type {
    NCCL_NET_DEVICE_HOST = 0, /* what has no device offload says */
    NCCL_NET_DEVICE_UNPACK = 1,
    NCCL_NET_DEVICE_GIN_PROXY = 2,
    NCCL_NET_DEVICE_GIN_GDAKI = 3,
};

#define NCCL_NET_DEVICE_INVALID_VERSION 0 /* with NCCL_NET_DEVICE_HOST */
#define NCCL_NET_DEVICE_UNPACK_VERSION 7

/* What connect() and accept() fill for device offload; the same in v8 to v12. */
struct nccl_net_device_handle {
    enum nccl_net_device_type type;
    int version;
    void *handle;
    size_t size;
    int needs_proxy_progress;
};

/* Physical devices that make one virtual one. */
struct nccl_net_vprops_v9 {
    int ndevs;
    int devs[NCCL_NET_MAX_DEVS_V11];
};

struct nccl_net_vprops_v12 {
    int ndevs;
    int devs[NCCL_NET_MAX_DEVS_V12];
};

struct nccl_net_properties_v8 {
    char *name;        /* the plugin's memory, like pci_path: valid until it is unloaded */
    char *pci_path;    /* below /sys; NULL: NCCL puts the device at CPU 0 */
    uint64_t guid;     /* the same for two devices: the same port */
    int ptr_support;   /* bits of nccl_ptr */
    int reg_is_global; /* a registration is valid for all comms */
    int speed;         /* Mbit/s */
    int port;
    float latency; /* microseconds; 0: unknown */
    int max_comms;
    int max_recvs; /* slots of a grouped receive */
    enum nccl_net_device_type device_type;
    int device_version;
};

/* v10 has the same. */
struct nccl_net_properties_v9 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int ptr_support;
    int reg_is_global;
    int force_flush; /* iflush() is called after every receive into GPU memory */
    int speed;
    int port;
    float latency;
    int max_comms;
    int max_recvs;
    enum nccl_net_device_type device_type;
    int device_version;
    struct nccl_net_vprops_v9 vprops;
    size_t max_p2p_bytes;
    size_t max_coll_bytes;
};

struct nccl_net_properties_v11 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int ptr_support;
    int reg_is_global;
    int force_flush;
    int speed;
    int port;
    float latency;
    int max_comms;
    int max_recvs;
    enum nccl_net_device_type device_type;
    int device_version;
    struct nccl_net_vprops_v9 vprops;
    size_t max_p2p_bytes;
    size_t max_coll_bytes;
    int max_multi_request_size; /* 1: no multi-requests */
};

struct nccl_net_properties_v12 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int ptr_support;
    int reg_is_global;
    int force_flush;
    int speed;
    int port;
    float latency;
    int max_comms;
    int max_recvs;
    enum nccl_net_device_type device_type;
    int device_version;
    struct nccl_net_vprops_v12 vprops;
    size_t max_p2p_bytes;
    size_t max_coll_bytes;
    int max_multi_request_size;
    int16_t rail_id;
    int16_t plane_id;
};

/* ------------------------------------------------------------------------------------------- communicators */

/* v10 gives it to connect(), v11 and v12 to init(). */
struct nccl_net_config {
    int traffic_class; /* NCCL_NET_TRAFFIC_CLASS_UNDEF: not set */
};

struct nccl_net_comm_attr {
    int32_t max_concurrent_peers;
    int32_t min_concurrent_peers;
    int32_t max_flows_per_peer;
    int32_t min_flows_per_peer;
};

/* Hints on the operation that comes next, v11 and v12. */
struct nccl_net_attr {
    struct nccl_net_comm_attr send;
    struct nccl_net_comm_attr recv;
    uint32_t op; /* like algo and proto a mask of NCCL's numbers */
    uint32_t algo;
    uint32_t proto;
};

/* ------------------------------------------------------------------------------------------- tables */

/*
 * What holds for the functions of all five tables:
 *   listen      *comm is never NULL. `handle` has NCCL_NET_HANDLE_MAXSIZE bytes.
 *   connect     the same buffer comes back with every call, so its rest can hold the state. *comm NULL: call again.
 *               `device` may be NULL; *device is NULL, or asks for device offload.
 *   accept      *comm NULL: call again. The listening comm is closed right after success.
 *   reg_mr      also while transfers run. `type` is one of nccl_ptr.
 *   dereg_mr    also with requests under way in that memory, when NCCL aborts; the memory is free afterwards, and the
 *               comm is closed later.
 *   isend       *request NULL: call again.
 *   irecv       n slots, of which each takes one send with its tag; sends and receives match in the order in which they
 *               were posted. A slot may be larger than its send; a larger send is an error. *request NULL: call again.
 *   test        any request in any order. `sizes`: one per slot; may be NULL.
 *   close_*     also with requests under way. Their memory may have been deregistered and freed before.
 */

/* A logger for all communicators of the process: v8 to v10 are initialised once and never finalised. */
struct nccl_net_v8 {
    const char *name;
    enum nccl_result (*init)(nccl_logger logger);
    enum nccl_result (*devices)(int *ndev);
    enum nccl_result (*properties)(int dev, struct nccl_net_properties_v8 *properties);
    enum nccl_result (*listen)(int dev, void *handle, void **comm);
    enum nccl_result (*connect)(int dev, void *handle, void **comm, struct nccl_net_device_handle **device);
    enum nccl_result (*accept)(void *listener, void **comm, struct nccl_net_device_handle **device);
    enum nccl_result (*reg_mr)(void *comm, void *data, size_t size, int type, void **mhandle);
    enum nccl_result (*reg_mr_dmabuf)(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                                      void **mhandle);
    enum nccl_result (*dereg_mr)(void *comm, void *mhandle);
    enum nccl_result (*isend)(void *comm, void *data, int size, int tag, void *mhandle, void **request);
    enum nccl_result (*irecv)(void *comm, int n, void **data, int *sizes, int *tags, void **mhandles, void **request);
    enum nccl_result (*iflush)(void *comm, int n, void **data, int *sizes, void **mhandles, void **request);
    enum nccl_result (*test)(void *request, int *done, int *sizes);
    enum nccl_result (*close_send)(void *comm);
    enum nccl_result (*close_recv)(void *comm);
    enum nccl_result (*close_listen)(void *listener);
    enum nccl_result (*device_mr)(void *comm, void *mhandle, void **device_mhandle);
    enum nccl_result (*irecv_consumed)(void *comm, int n, void *request);
};

struct nccl_net_v9 {
    const char *name;
    enum nccl_result (*init)(nccl_logger logger);
    enum nccl_result (*devices)(int *ndev);
    enum nccl_result (*properties)(int dev, struct nccl_net_properties_v9 *properties);
    enum nccl_result (*listen)(int dev, void *handle, void **comm);
    enum nccl_result (*connect)(int dev, void *handle, void **comm, struct nccl_net_device_handle **device);
    enum nccl_result (*accept)(void *listener, void **comm, struct nccl_net_device_handle **device);
    enum nccl_result (*reg_mr)(void *comm, void *data, size_t size, int type, void **mhandle);
    enum nccl_result (*reg_mr_dmabuf)(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                                      void **mhandle);
    enum nccl_result (*dereg_mr)(void *comm, void *mhandle);
    enum nccl_result (*isend)(void *comm, void *data, size_t size, int tag, void *mhandle, void **request);
    enum nccl_result (*irecv)(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                              void **request);
    enum nccl_result (*iflush)(void *comm, int n, void **data, int *sizes, void **mhandles, void **request);
    enum nccl_result (*test)(void *request, int *done, int *sizes);
    enum nccl_result (*close_send)(void *comm);
    enum nccl_result (*close_recv)(void *comm);
    enum nccl_result (*close_listen)(void *listener);
    enum nccl_result (*device_mr)(void *comm, void *mhandle, void **device_mhandle);
    enum nccl_result (*irecv_consumed)(void *comm, int n, void *request);
    enum nccl_result (*make_vdevice)(int *dev, struct nccl_net_vprops_v9 *vprops); /* NULL: none can be made */
};

struct nccl_net_v10 {
    const char *name;
    enum nccl_result (*init)(nccl_logger logger, nccl_profiler profiler);
    enum nccl_result (*devices)(int *ndev);
    enum nccl_result (*properties)(int dev, struct nccl_net_properties_v9 *properties);
    enum nccl_result (*listen)(int dev, void *handle, void **comm);
    enum nccl_result (*connect)(int dev, struct nccl_net_config *config, void *handle, void **comm,
                                struct nccl_net_device_handle **device);
    enum nccl_result (*accept)(void *listener, void **comm, struct nccl_net_device_handle **device);
    enum nccl_result (*reg_mr)(void *comm, void *data, size_t size, int type, void **mhandle);
    enum nccl_result (*reg_mr_dmabuf)(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                                      void **mhandle);
    enum nccl_result (*dereg_mr)(void *comm, void *mhandle);
    enum nccl_result (*isend)(void *comm, void *data, size_t size, int tag, void *mhandle, void *phandle,
                              void **request);
    enum nccl_result (*irecv)(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                              void **phandles, void **request); /* phandles may be NULL */
    enum nccl_result (*iflush)(void *comm, int n, void **data, int *sizes, void **mhandles, void **request);
    enum nccl_result (*test)(void *request, int *done, int *sizes);
    enum nccl_result (*close_send)(void *comm);
    enum nccl_result (*close_recv)(void *comm);
    enum nccl_result (*close_listen)(void *listener);
    enum nccl_result (*device_mr)(void *comm, void *mhandle, void **device_mhandle);
    enum nccl_result (*irecv_consumed)(void *comm, int n, void *request);
    enum nccl_result (*make_vdevice)(int *dev, struct nccl_net_vprops_v9 *vprops);
};

/* One context per communicator. finalize() is called for each, also with what a failed init() has left in *context. */
struct nccl_net_v11 {
    const char *name;
    enum nccl_result (*init)(void **context, uint64_t comm_id, struct nccl_net_config *config, nccl_logger logger,
                             nccl_profiler profiler);
    enum nccl_result (*devices)(int *ndev);
    enum nccl_result (*properties)(int dev, struct nccl_net_properties_v11 *properties);
    enum nccl_result (*listen)(void *context, int dev, void *handle, void **comm);
    enum nccl_result (*connect)(void *context, int dev, void *handle, void **comm,
                                struct nccl_net_device_handle **device);
    enum nccl_result (*accept)(void *listener, void **comm, struct nccl_net_device_handle **device);
    enum nccl_result (*reg_mr)(void *comm, void *data, size_t size, int type, void **mhandle);
    enum nccl_result (*reg_mr_dmabuf)(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                                      void **mhandle);
    enum nccl_result (*dereg_mr)(void *comm, void *mhandle);
    enum nccl_result (*isend)(void *comm, void *data, size_t size, int tag, void *mhandle, void *phandle,
                              void **request);
    enum nccl_result (*irecv)(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                              void **phandles, void **request);
    enum nccl_result (*iflush)(void *comm, int n, void **data, int *sizes, void **mhandles, void **request);
    enum nccl_result (*test)(void *request, int *done, int *sizes);
    enum nccl_result (*close_send)(void *comm);
    enum nccl_result (*close_recv)(void *comm);
    enum nccl_result (*close_listen)(void *listener);
    enum nccl_result (*device_mr)(void *comm, void *mhandle, void **device_mhandle);
    enum nccl_result (*irecv_consumed)(void *comm, int n, void *request);
    enum nccl_result (*make_vdevice)(int *dev, struct nccl_net_vprops_v9 *vprops);
    enum nccl_result (*finalize)(void *context);
    enum nccl_result (*set_net_attr)(void *context, struct nccl_net_attr *attr); /* NULL: needs no hints */
};

struct nccl_net_v12 {
    const char *name;
    enum nccl_result (*init)(void **context, uint64_t comm_id, struct nccl_net_config *config, nccl_logger logger,
                             nccl_profiler profiler);
    enum nccl_result (*devices)(int *ndev);
    enum nccl_result (*properties)(int dev, struct nccl_net_properties_v12 *properties);
    enum nccl_result (*listen)(void *context, int dev, void *handle, void **comm);
    enum nccl_result (*connect)(void *context, int dev, void *handle, void **comm,
                                struct nccl_net_device_handle **device);
    enum nccl_result (*accept)(void *listener, void **comm, struct nccl_net_device_handle **device);
    enum nccl_result (*reg_mr)(void *comm, void *data, size_t size, int type, void **mhandle);
    enum nccl_result (*reg_mr_dmabuf)(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                                      void **mhandle);
    enum nccl_result (*dereg_mr)(void *comm, void *mhandle);
    enum nccl_result (*isend)(void *comm, void *data, size_t size, int tag, void *mhandle, void *phandle,
                              void **request);
    enum nccl_result (*irecv)(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                              void **phandles, void **request);
    enum nccl_result (*iflush)(void *comm, int n, void **data, int *sizes, void **mhandles, void **request);
    enum nccl_result (*test)(void *request, int *done, int *sizes);
    enum nccl_result (*close_send)(void *comm);
    enum nccl_result (*close_recv)(void *comm);
    enum nccl_result (*close_listen)(void *listener);
    enum nccl_result (*device_mr)(void *comm, void *mhandle, void **device_mhandle);
    enum nccl_result (*irecv_consumed)(void *comm, int n, void *request);
    enum nccl_result (*make_vdevice)(int *dev, struct nccl_net_vprops_v12 *vprops);
    enum nccl_result (*finalize)(void *context);
    enum nccl_result (*set_net_attr)(void *context, struct nccl_net_attr *attr);
};

#endif
