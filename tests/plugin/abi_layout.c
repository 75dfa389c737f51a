/*
 * abi_layout.c: prints every offset, size, function type and number of the net plugin's ABI, as plugins/nccl/abi.h has
 * it or, with -DTHEIRS, as NVIDIA's headers have it. The two outputs are equal, line by line.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef THEIRS
#include "net.h"
#ifdef SOCKET_EVENTS
#include "net_socket_v1.h"
typedef ncclProfilerNetSockDescr_v1_t socket_event;
#endif
#define NAME(ours, theirs) theirs
typedef ncclResult_t result;
typedef ncclDebugLogger_t logger;
typedef ncclProfilerCallback_t profiler;
typedef ncclNetDeviceHandle_v8_t device_handle_v8;
typedef ncclNetDeviceHandle_v9_t device_handle_v9;
typedef ncclNetDeviceHandle_v10_t device_handle_v10;
typedef ncclNetDeviceHandle_v11_t device_handle_v11;
typedef ncclNetDeviceHandle_v12_t device_handle_v12;
typedef ncclNetProperties_v8_t properties_v8;
typedef ncclNetProperties_v9_t properties_v9;
typedef ncclNetProperties_v10_t properties_v10;
typedef ncclNetProperties_v11_t properties_v11;
typedef ncclNetProperties_v12_t properties_v12;
typedef ncclNetVDeviceProps_v9_t vprops_v9;
typedef ncclNetVDeviceProps_v10_t vprops_v10;
typedef ncclNetVDeviceProps_v11_t vprops_v11;
typedef ncclNetVDeviceProps_v12_t vprops_v12;
typedef ncclNetCommConfig_v10_t config_v10;
typedef ncclNetCommConfig_v11_t config_v11;
typedef ncclNetCommConfig_v12_t config_v12;
typedef ncclNetCommAttr_v11_t comm_attr_v11;
typedef ncclNetCommAttr_v12_t comm_attr_v12;
typedef ncclNetAttr_v11_t attr_v11;
typedef ncclNetAttr_v12_t attr_v12;
typedef ncclNet_v8_t net_v8;
typedef ncclNet_v9_t net_v9;
typedef ncclNet_v10_t net_v10;
typedef ncclNet_v11_t net_v11;
typedef ncclNet_v12_t net_v12;
typedef ncclDebugLogLevel log_level;
typedef ncclNetDeviceType device_type;
#else
#include "abi.h"
#define NAME(ours, theirs) ours
typedef enum nccl_result result;
typedef nccl_logger logger;
typedef nccl_profiler profiler;
typedef struct nccl_net_device_handle device_handle_v8, device_handle_v9, device_handle_v10, device_handle_v11,
    device_handle_v12;
typedef struct nccl_net_properties_v8 properties_v8;
typedef struct nccl_net_properties_v9 properties_v9, properties_v10;
typedef struct nccl_net_properties_v11 properties_v11;
typedef struct nccl_net_properties_v12 properties_v12;
typedef struct nccl_net_vprops_v9 vprops_v9, vprops_v10, vprops_v11;
typedef struct nccl_net_vprops_v12 vprops_v12;
typedef struct nccl_net_config config_v10, config_v11, config_v12;
typedef struct nccl_net_comm_attr comm_attr_v11, comm_attr_v12;
typedef struct nccl_net_attr attr_v11, attr_v12;
typedef struct nccl_net_v8 net_v8;
typedef struct nccl_net_v9 net_v9;
typedef struct nccl_net_v10 net_v10;
typedef struct nccl_net_v11 net_v11;
typedef struct nccl_net_v12 net_v12;
typedef enum nccl_log_level log_level;
typedef enum nccl_net_device_type device_type;
typedef struct nccl_profile_socket socket_event;
#endif

#define FIELD(type, ours, theirs)                                                                                      \
    printf(#type "." #ours " (" #theirs ") at %zu, %zu bytes\n", offsetof(type, NAME(ours, theirs)),                   \
           sizeof((type *)0)->NAME(ours, theirs));
#define FUNCTION(type, ours, theirs, ...)                                                                              \
    FIELD(type, ours, theirs)                                                                                          \
    printf(#type "." #ours " (" #theirs ") %s\n",                                                                      \
           __builtin_types_compatible_p(__typeof__(((type *)0)->NAME(ours, theirs)), result (*)(__VA_ARGS__))          \
               ? "is (" #__VA_ARGS__ ")"                                                                               \
               : "is something else");
#define SIZE(type) printf(#type ", %zu bytes\n", sizeof(type));
#define NUMBER(ours, theirs) printf(#ours " (" #theirs ") = %lld\n", (long long)NAME(ours, theirs));

static void print_properties(void)
{
#define UP_TO_REG(type)                                                                                                \
    FIELD(type, name, name)                                                                                            \
    FIELD(type, pci_path, pciPath)                                                                                     \
    FIELD(type, guid, guid)                                                                                            \
    FIELD(type, ptr_support, ptrSupport)                                                                               \
    FIELD(type, reg_is_global, regIsGlobal)
#define FROM_SPEED(type)                                                                                               \
    FIELD(type, speed, speed)                                                                                          \
    FIELD(type, port, port)                                                                                            \
    FIELD(type, latency, latency)                                                                                      \
    FIELD(type, max_comms, maxComms)                                                                                   \
    FIELD(type, max_recvs, maxRecvs)                                                                                   \
    FIELD(type, device_type, netDeviceType)                                                                            \
    FIELD(type, device_version, netDeviceVersion)
#define FROM_V9(type)                                                                                                  \
    UP_TO_REG(type)                                                                                                    \
    FIELD(type, force_flush, forceFlush)                                                                               \
    FROM_SPEED(type)                                                                                                   \
    FIELD(type, vprops, vProps)                                                                                        \
    FIELD(type, max_p2p_bytes, maxP2pBytes)                                                                            \
    FIELD(type, max_coll_bytes, maxCollBytes)
    UP_TO_REG(properties_v8)
    FROM_SPEED(properties_v8)
    SIZE(properties_v8)
    FROM_V9(properties_v9)
    SIZE(properties_v9)
    FROM_V9(properties_v10)
    SIZE(properties_v10)
    FROM_V9(properties_v11)
    FIELD(properties_v11, max_multi_request_size, maxMultiRequestSize)
    SIZE(properties_v11)
    FROM_V9(properties_v12)
    FIELD(properties_v12, max_multi_request_size, maxMultiRequestSize)
    FIELD(properties_v12, rail_id, railId)
    FIELD(properties_v12, plane_id, planeId)
    SIZE(properties_v12)
}

static void print_small_structs(void)
{
#define DEVICE_HANDLE(of)                                                                                              \
    FIELD(of, type, netDeviceType)                                                                                     \
    FIELD(of, version, netDeviceVersion)                                                                               \
    FIELD(of, handle, handle)                                                                                          \
    FIELD(of, size, size)                                                                                              \
    FIELD(of, needs_proxy_progress, needsProxyProgress)                                                                \
    SIZE(of)
    DEVICE_HANDLE(device_handle_v8)
    DEVICE_HANDLE(device_handle_v9)
    DEVICE_HANDLE(device_handle_v10)
    DEVICE_HANDLE(device_handle_v11)
    DEVICE_HANDLE(device_handle_v12)
#define VPROPS(type)                                                                                                   \
    FIELD(type, ndevs, ndevs)                                                                                          \
    FIELD(type, devs, devs)                                                                                            \
    SIZE(type)
    VPROPS(vprops_v9)
    VPROPS(vprops_v10)
    VPROPS(vprops_v11)
    VPROPS(vprops_v12)
#define CONFIG(type)                                                                                                   \
    FIELD(type, traffic_class, trafficClass)                                                                           \
    SIZE(type)
    CONFIG(config_v10)
    CONFIG(config_v11)
    CONFIG(config_v12)
#define COMM_ATTR(type)                                                                                                \
    FIELD(type, max_concurrent_peers, maxConcurrentPeers)                                                              \
    FIELD(type, min_concurrent_peers, minConcurrentPeers)                                                              \
    FIELD(type, max_flows_per_peer, maxFlowsPerPeer)                                                                   \
    FIELD(type, min_flows_per_peer, minFlowsPerPeer)                                                                   \
    SIZE(type)
    COMM_ATTR(comm_attr_v11)
    COMM_ATTR(comm_attr_v12)
#define ATTR(type)                                                                                                     \
    FIELD(type, send, sendCommAttr)                                                                                    \
    FIELD(type, recv, recvCommAttr)                                                                                    \
    FIELD(type, op, op)                                                                                                \
    FIELD(type, algo, algo)                                                                                            \
    FIELD(type, proto, proto)                                                                                          \
    SIZE(type)
    ATTR(attr_v11)
    ATTR(attr_v12)
}

#define HEAD(n)                                                                                                        \
    FUNCTION(net_v##n, devices, devices, int *)                                                                        \
    FUNCTION(net_v##n, properties, getProperties, int, properties_v##n *)
#define CONTEXT_COMMS(n)                                                                                               \
    FUNCTION(net_v##n, listen, listen, void *, int, void *, void **)                                                   \
    FUNCTION(net_v##n, connect, connect, void *, int, void *, void **, device_handle_v##n **)
#define MEMORY(n)                                                                                                      \
    FUNCTION(net_v##n, accept, accept, void *, void **, device_handle_v##n **)                                         \
    FUNCTION(net_v##n, reg_mr, regMr, void *, void *, size_t, int, void **)                                            \
    FUNCTION(net_v##n, reg_mr_dmabuf, regMrDmaBuf, void *, void *, size_t, int, uint64_t, int, void **)                \
    FUNCTION(net_v##n, dereg_mr, deregMr, void *, void *)
#define PROFILED(n)                                                                                                    \
    FUNCTION(net_v##n, isend, isend, void *, void *, size_t, int, void *, void *, void **)                             \
    FUNCTION(net_v##n, irecv, irecv, void *, int, void **, size_t *, int *, void **, void **, void **)
#define TAIL(n)                                                                                                        \
    FUNCTION(net_v##n, iflush, iflush, void *, int, void **, int *, void **, void **)                                  \
    FUNCTION(net_v##n, test, test, void *, int *, int *)                                                               \
    FUNCTION(net_v##n, close_send, closeSend, void *)                                                                  \
    FUNCTION(net_v##n, close_recv, closeRecv, void *)                                                                  \
    FUNCTION(net_v##n, close_listen, closeListen, void *)                                                              \
    FUNCTION(net_v##n, device_mr, getDeviceMr, void *, void *, void **)                                                \
    FUNCTION(net_v##n, irecv_consumed, irecvConsumed, void *, int, void *)
#define VDEVICE(n) FUNCTION(net_v##n, make_vdevice, makeVDevice, int *, vprops_v##n *)
#define CONTEXT_END(n)                                                                                                 \
    FUNCTION(net_v##n, finalize, finalize, void *)                                                                     \
    FUNCTION(net_v##n, set_net_attr, setNetAttr, void *, attr_v##n *)

static void print_tables(void)
{
    FIELD(net_v8, name, name)
    FUNCTION(net_v8, init, init, logger)
    HEAD(8)
    FUNCTION(net_v8, listen, listen, int, void *, void **)
    FUNCTION(net_v8, connect, connect, int, void *, void **, device_handle_v8 **)
    MEMORY(8)
    FUNCTION(net_v8, isend, isend, void *, void *, int, int, void *, void **)
    FUNCTION(net_v8, irecv, irecv, void *, int, void **, int *, int *, void **, void **)
    TAIL(8)
    SIZE(net_v8)

    FIELD(net_v9, name, name)
    FUNCTION(net_v9, init, init, logger)
    HEAD(9)
    FUNCTION(net_v9, listen, listen, int, void *, void **)
    FUNCTION(net_v9, connect, connect, int, void *, void **, device_handle_v9 **)
    MEMORY(9)
    FUNCTION(net_v9, isend, isend, void *, void *, size_t, int, void *, void **)
    FUNCTION(net_v9, irecv, irecv, void *, int, void **, size_t *, int *, void **, void **)
    TAIL(9)
    VDEVICE(9)
    SIZE(net_v9)

    FIELD(net_v10, name, name)
    FUNCTION(net_v10, init, init, logger, profiler)
    HEAD(10)
    FUNCTION(net_v10, listen, listen, int, void *, void **)
    FUNCTION(net_v10, connect, connect, int, config_v10 *, void *, void **, device_handle_v10 **)
    MEMORY(10)
    PROFILED(10)
    TAIL(10)
    VDEVICE(10)
    SIZE(net_v10)
}

static void print_context_tables(void)
{
    FIELD(net_v11, name, name)
    FUNCTION(net_v11, init, init, void **, uint64_t, config_v11 *, logger, profiler)
    HEAD(11)
    CONTEXT_COMMS(11)
    MEMORY(11)
    PROFILED(11)
    TAIL(11)
    VDEVICE(11)
    CONTEXT_END(11)
    SIZE(net_v11)

    FIELD(net_v12, name, name)
    FUNCTION(net_v12, init, init, void **, uint64_t, config_v12 *, logger, profiler)
    HEAD(12)
    CONTEXT_COMMS(12)
    MEMORY(12)
    PROFILED(12)
    TAIL(12)
    VDEVICE(12)
    CONTEXT_END(12)
    SIZE(net_v12)
}

static void print_numbers(void)
{
    NUMBER(NCCL_SUCCESS, ncclSuccess)
    NUMBER(NCCL_UNHANDLED_CUDA_ERROR, ncclUnhandledCudaError)
    NUMBER(NCCL_SYSTEM_ERROR, ncclSystemError)
    NUMBER(NCCL_INTERNAL_ERROR, ncclInternalError)
    NUMBER(NCCL_INVALID_ARGUMENT, ncclInvalidArgument)
    NUMBER(NCCL_INVALID_USAGE, ncclInvalidUsage)
    NUMBER(NCCL_REMOTE_ERROR, ncclRemoteError)
    NUMBER(NCCL_NET_HANDLE_MAXSIZE, NCCL_NET_HANDLE_MAXSIZE)
    NUMBER(NCCL_NET_MAX_REQUESTS, NCCL_NET_MAX_REQUESTS)
    NUMBER(NCCL_NET_MAX_SIZE_BYTES, NCCL_MAX_NET_SIZE_BYTES)
    NUMBER((uintptr_t)NCCL_NET_OPTIONAL_RECV, NCCL_NET_OPTIONAL_RECV_COMPLETION)
    NUMBER(NCCL_NET_MAX_DEVS_V11, NCCL_NET_MAX_DEVS_PER_NIC_V11)
    NUMBER(NCCL_NET_MAX_DEVS_V12, NCCL_NET_MAX_DEVS_PER_NIC_V12)
    NUMBER(NCCL_NET_TRAFFIC_CLASS_UNDEF, NCCL_NET_TRAFFIC_CLASS_UNDEF)
    NUMBER(NCCL_NET_ID_UNDEF, NCCL_NET_ID_UNDEF)
    NUMBER(NCCL_PTR_HOST, NCCL_PTR_HOST)
    NUMBER(NCCL_PTR_CUDA, NCCL_PTR_CUDA)
    NUMBER(NCCL_PTR_DMABUF, NCCL_PTR_DMABUF)
    NUMBER(NCCL_LOG_NONE, NCCL_LOG_NONE)
    NUMBER(NCCL_LOG_VERSION, NCCL_LOG_VERSION)
    NUMBER(NCCL_LOG_WARN, NCCL_LOG_WARN)
    NUMBER(NCCL_LOG_INFO, NCCL_LOG_INFO)
    NUMBER(NCCL_LOG_ABORT, NCCL_LOG_ABORT)
    NUMBER(NCCL_LOG_TRACE, NCCL_LOG_TRACE)
    NUMBER(NCCL_INIT, NCCL_INIT)
    NUMBER(NCCL_COLL, NCCL_COLL)
    NUMBER(NCCL_P2P, NCCL_P2P)
    NUMBER(NCCL_SHM, NCCL_SHM)
    NUMBER(NCCL_NET, NCCL_NET)
    NUMBER(NCCL_GRAPH, NCCL_GRAPH)
    NUMBER(NCCL_TUNING, NCCL_TUNING)
    NUMBER(NCCL_ENV, NCCL_ENV)
    NUMBER(NCCL_ALLOC, NCCL_ALLOC)
    NUMBER(NCCL_CALL, NCCL_CALL)
    NUMBER(NCCL_PROXY, NCCL_PROXY)
    NUMBER(NCCL_NVLS, NCCL_NVLS)
    NUMBER(NCCL_BOOTSTRAP, NCCL_BOOTSTRAP)
    NUMBER(NCCL_REG, NCCL_REG)
    NUMBER(NCCL_PROFILE, NCCL_PROFILE)
    NUMBER(NCCL_RAS, NCCL_RAS)
    NUMBER(NCCL_DESTROY, NCCL_DESTROY)
    NUMBER(NCCL_ALLOC_HOST, NCCL_ALLOC_HOST)
    NUMBER(NCCL_ALL, NCCL_ALL)
    NUMBER(NCCL_PROFILE_START, ncclProfilerNetEventStart)
    NUMBER(NCCL_PROFILE_STOP, ncclProfilerNetEventStop)
    NUMBER(NCCL_PROFILE_UPDATE, ncclProfilerNetEventUpdate)
    NUMBER(NCCL_PROFILE_UPDATE_AND_STOP, ncclProfilerNetEventUpdateAndStop)
    NUMBER(NCCL_NET_DEVICE_HOST, NCCL_NET_DEVICE_HOST)
    NUMBER(NCCL_NET_DEVICE_UNPACK, NCCL_NET_DEVICE_UNPACK)
    NUMBER(NCCL_NET_DEVICE_GIN_PROXY, NCCL_NET_DEVICE_GIN_PROXY)
    NUMBER(NCCL_NET_DEVICE_GIN_GDAKI, NCCL_NET_DEVICE_GIN_GDAKI)
    NUMBER(NCCL_NET_DEVICE_INVALID_VERSION, NCCL_NET_DEVICE_INVALID_VERSION)
    NUMBER(NCCL_NET_DEVICE_UNPACK_VERSION, NCCL_NET_DEVICE_UNPACK_VERSION)
    SIZE(result)
    SIZE(log_level)
    SIZE(device_type)
    printf("logger %s\n", __builtin_types_compatible_p(
                              logger, void (*)(log_level, unsigned long, const char *, int, const char *, ...))
                              ? "as it should be"
                              : "is something else");
    printf("profiler %s\n", __builtin_types_compatible_p(profiler, result(*)(void **, int, void *, int64_t, void *))
                                ? "as it should be"
                                : "is something else");
}

static void print_socket_events(void)
{
#ifdef SOCKET_EVENTS
    FIELD(socket_event, type, type)
    FIELD(socket_event, sock.fd, sock.fd)
    FIELD(socket_event, sock.op, sock.op)
    FIELD(socket_event, sock.length, sock.length)
    SIZE(socket_event)
    NUMBER(NCCL_PROFILE_SOCKET_VERSION, NCCL_PROFILER_NET_SOCKET_VER)
    NUMBER(NCCL_PROFILE_SOCKET, ncclProfileSocket)
#endif
}

int main(void)
{
    print_properties();
    print_small_structs();
    print_tables();
    print_context_tables();
    print_numbers();
    print_socket_events();
    return 0;
}
