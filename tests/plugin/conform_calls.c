/* conform_calls.c: each call of the plugin, with the time that it takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "conform.h"

#define THREADS_MAX 64
#define INIT_BOUND_MS 5000 /* of init and finalize, which may wait */

static struct {
    const char *name; /* NULL: in none */
    int64_t since_ms;
} calls[THREADS_MAX];
static int call_threads;
static _Thread_local int call_thread = -1;

struct call {
    const char *name;
    int64_t start_ms;
    struct rusage usage;
};

static struct call call_begin(const char *name)
{
    if (call_thread < 0)
        call_thread = __atomic_fetch_add(&call_threads, 1, __ATOMIC_RELAXED) % THREADS_MAX;
    struct call call = {.name = name, .start_ms = now_ms()};
    getrusage(RUSAGE_THREAD, &call.usage);
    __atomic_store_n(&calls[call_thread].since_ms, call.start_ms, __ATOMIC_RELAXED);
    __atomic_store_n(&calls[call_thread].name, name, __ATOMIC_RELEASE);
    return call;
}

static int64_t cpu_ms(const struct rusage *usage)
{
    return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000 +
           (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1000;
}

/*
 * A thread that only waited for a processor has neither slept nor worked: that is the machine's load, not the plugin.
 * Once, a call may meet a lock whose holder waits for one.
 */
static void call_end(const struct call *call, int bound_ms)
{
    static int late;
    __atomic_store_n(&calls[call_thread].name, NULL, __ATOMIC_RELEASE);
    int64_t took = now_ms() - call->start_ms;
    bound_ms *= CONFORM_SLOWER;
    if (took <= bound_ms)
        return;
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    long slept = usage.ru_nvcsw - call->usage.ru_nvcsw;
    int64_t worked = cpu_ms(&usage) - cpu_ms(&call->usage);
    if (!slept && worked <= bound_ms)
        return;
    CHECK(took < 10 * bound_ms && !__atomic_fetch_add(&late, 1, __ATOMIC_RELAXED),
          "%s blocked for %lld ms (slept %ld times, worked for %lld ms): the bound is %d ms", call->name,
          (long long)took, slept, (long long)worked, bound_ms);
}

void calls_describe(char *out, size_t room)
{
    size_t used = 0;
    int64_t now = now_ms();
    out[0] = 0;
    for (int i = 0; i < THREADS_MAX && used < room; i++) {
        const char *name = __atomic_load_n(&calls[i].name, __ATOMIC_ACQUIRE);
        if (name)
            used += (size_t)snprintf(out + used, room - used, "%s%s for %lld ms", used ? ", " : "in ", name,
                                     (long long)(now - __atomic_load_n(&calls[i].since_ms, __ATOMIC_RELAXED)));
    }
}

#define TIMED_FOR(bound, name, expression)                                                                             \
    ({                                                                                                                 \
        struct call call_ = call_begin(name);                                                                          \
        enum nccl_result result_ = (expression);                                                                       \
        call_end(&call_, (bound));                                                                                     \
        result_;                                                                                                       \
    })
#define TIMED(name, expression) TIMED_FOR(conform.bound_ms, name, expression)

/* ------------------------------------------------------------------------------------------- calls */

pthread_mutex_t net_mutex = PTHREAD_MUTEX_INITIALIZER;

#define LOCKED(expression)                                                                                             \
    ({                                                                                                                 \
        pthread_mutex_lock(&net_mutex);                                                                                \
        enum nccl_result locked_ = (expression);                                                                       \
        pthread_mutex_unlock(&net_mutex);                                                                              \
        locked_;                                                                                                       \
    })

int net_traffic_class = NCCL_NET_TRAFFIC_CLASS_UNDEF;

enum nccl_result net_init(void **context, uint64_t comm_id)
{
    struct nccl_net_config config = {.traffic_class = net_traffic_class};
    return LOCKED(
        TIMED_FOR(INIT_BOUND_MS, "init", net_table.init(context, comm_id, &config, net_logger, net_profiler)));
}

enum nccl_result net_finalize(void *context)
{
    if (net_table.finalize)
        return LOCKED(TIMED_FOR(INIT_BOUND_MS, "finalize", net_table.finalize(context)));
    return net_forget(context);
}

enum nccl_result net_devices(int *ndev)
{
    return LOCKED(TIMED("devices", net_table.devices(ndev)));
}

enum nccl_result net_properties(int dev, struct nccl_net_properties_v12 *properties)
{
    memset(properties, 0xA5, sizeof *properties);
    return LOCKED(TIMED("getProperties", net_table.properties(dev, properties)));
}

enum nccl_result net_listen(void *context, int dev, void *handle, void **comm)
{
    return TIMED("listen", net_table.listen(context, dev, handle, comm));
}

enum nccl_result net_connect(void *context, int dev, void *handle, void **comm)
{
    struct nccl_net_device_handle *device = NULL;
    return TIMED("connect", net_table.connect(context, dev, handle, comm, &device));
}

enum nccl_result net_accept(void *listener, void **comm)
{
    struct nccl_net_device_handle *device = NULL;
    return TIMED("accept", net_table.accept(listener, comm, &device));
}

enum nccl_result net_reg(void *comm, void *data, size_t size, int type, void **mhandle)
{
    return TIMED("regMr", net_table.reg_mr(comm, data, size, type, mhandle));
}

enum nccl_result net_dereg(void *comm, void *mhandle)
{
    return TIMED("deregMr", net_table.dereg_mr(comm, mhandle));
}

/* What NCCL's profiler gets back; any address will do. */
static char phandle;

enum nccl_result net_isend(void *comm, void *data, size_t size, int tag, void *mhandle, void **request)
{
    return TIMED("isend", net_table.isend(comm, data, size, tag, mhandle, &phandle, request));
}

enum nccl_result net_irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **request)
{
    void *phandles[CONFORM_SLOTS_MAX];
    for (int i = 0; i < n; i++)
        phandles[i] = &phandle;
    return TIMED("irecv", net_table.irecv(comm, n, data, sizes, tags, mhandles, phandles, request));
}

enum nccl_result net_iflush(void *comm, int n, void **data, int *sizes, void **mhandles, void **request)
{
    return TIMED("iflush", net_table.iflush(comm, n, data, sizes, mhandles, request));
}

enum nccl_result net_test(void *request, bool *done, int *sizes)
{
    enum { UNTOUCHED = 0x5A5A5A };
    int written = UNTOUCHED;
    enum nccl_result result = TIMED("test", net_table.test(request, &written, sizes));
    CHECK(result != NCCL_SUCCESS || written != UNTOUCHED, "test succeeds without a word on whether it is done");
    *done = result == NCCL_SUCCESS && written;
    return result;
}

enum nccl_result net_irecv_consumed(void *comm, int n, void *request)
{
    if (!net_table.irecv_consumed)
        return NCCL_SUCCESS;
    return TIMED("irecvConsumed", net_table.irecv_consumed(comm, n, request));
}

enum nccl_result net_close_send(void *comm)
{
    return TIMED("closeSend", net_table.close_send(comm));
}

enum nccl_result net_close_recv(void *comm)
{
    return TIMED("closeRecv", net_table.close_recv(comm));
}

enum nccl_result net_close_listen(void *listener)
{
    return TIMED("closeListen", net_table.close_listen(listener));
}
