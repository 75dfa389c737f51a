/* The sampler: its parts together, one sample, and the thread that takes one at each interval. */
#include "sense.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sense_parts.h"

/* --- one sample --- */

static void add_known(struct bench_sense_tally *tally, int value, double unit)
{
    if (value != BENCH_SENSE_UNKNOWN)
        bench_sense_tally_add(tally, value * unit);
}

static void count_device(struct bench_sense_device *device, int celsius, int power_mw, int mhz, bool held_back)
{
    add_known(&device->celsius, celsius, 1);
    add_known(&device->watts, power_mw, 1e-3);
    add_known(&device->mhz, mhz, 1);
    device->held_back += held_back;
    if (celsius != BENCH_SENSE_UNKNOWN)
        device->last_celsius = celsius;
}

static void count_sample(struct bench_sense *sense, const struct bench_sense_reading *now)
{
    const struct bench_sense_sample *sample = now->sample;
    int gpus = sense->store.gpu_count;

    for (int i = 0; i < gpus; i++) {
        const struct bench_sense_gpu *gpu = &now->gpus[i];
        count_device(&sense->devices[i], gpu->celsius, gpu->power_mw, gpu->sm_mhz,
                     gpu->seen & BENCH_SENSE_GPU_THROTTLED);
        sense->devices[i].told += gpu->reason >= 0;
    }
    count_device(&sense->devices[gpus], sample->celsius, sample->power_mw, sample->mhz,
                 sample->grown & BENCH_SENSE_CPU_THROTTLED);
    if (sample->others >= 0)
        bench_sense_tally_add(&sense->others, sample->others);
}

/* Under the lock. */
static void keep(struct bench_sense *sense, struct bench_sense_reading *now)
{
    struct bench_sense_store *store = &sense->store;
    struct bench_sense_reading before;

    if (store->count)
        before = bench_sense_store_at(store, store->count - 1);
    bench_sense_judge(sense, store->count ? &before : NULL, now);
    count_sample(sense, now);
    if (sense->first.count == 0)
        bench_sense_store_add(&sense->first, now);
    bench_sense_store_add(store, now);
}

void bench_sense_take(struct bench_sense *sense, int64_t now_ns)
{
    struct bench_sense_reading now = bench_sense_store_at(&sense->now, 0);
    struct wf_nvml_state states[BENCH_SENSE_GPUS_MAX];
    bool there[BENCH_SENSE_GPUS_MAX];
    int gpus = sense->store.gpu_count;

    *now.sample = (struct bench_sense_sample){.at_ns = now_ns};
    for (int i = 0; i < gpus; i++)
        there[i] = bench_sense_gpus_ask(&sense->gpus, i, &states[i]);
    bench_sense_cpu_read(&sense->cpu, now_ns, &now);
    now.sample->others = bench_sense_own_others(&sense->own, &sense->cpu, now_ns);
    bench_sense_net_read(&sense->net, &now);
    bench_sense_ledger_read(&sense->ledger);
    pthread_mutex_lock(&sense->lock);
    for (int i = 0; i < gpus; i++)
        bench_sense_gpus_take(&sense->gpus, there[i] ? &states[i] : NULL, &now.gpus[i]);
    bench_sense_ledger_add(&sense->ledger, now_ns, states, there);
    keep(sense, &now);
    pthread_mutex_unlock(&sense->lock);
}

/* --- the thread --- */

static int64_t thread_cpu_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * WF_NS_PER_S + time.tv_nsec;
}

static void set_cost(struct bench_sense *sense, int64_t own_cpu_ns)
{
    pthread_mutex_lock(&sense->lock);
    sense->own_cpu_ns = own_cpu_ns;
    pthread_mutex_unlock(&sense->lock);
}

/* Until somebody wants a sample, or it is time for one. */
static void wait_until(struct bench_sense *sense, int64_t deadline_ns)
{
    struct pollfd wake = {.fd = sense->wake_fd, .events = POLLIN};
    eventfd_t wanted;

    for (;;) {
        int64_t left_ns = deadline_ns - wf_clock_now(&wf_clock_monotonic);
        struct timespec timeout = {.tv_sec = left_ns / WF_NS_PER_S, .tv_nsec = left_ns % WF_NS_PER_S};
        if (left_ns <= 0)
            return;
        if (ppoll(&wake, 1, &timeout, NULL) > 0) {
            eventfd_read(sense->wake_fd, &wanted);
            return;
        }
    }
}

/* The sampler is to disturb nobody's processor that is bound, if there is another one. */
static void keep_off_bound(const struct bench_sense *sense)
{
    cpu_set_t allowed;

    if (!sense->bound_given || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &sense->cpu.ours))
            CPU_CLR(cpu, &allowed);
    if (CPU_COUNT(&allowed) > 0)
        sched_setaffinity(0, sizeof allowed, &allowed);
}

static void *sample_until_stopped(void *argument)
{
    struct bench_sense *sense = argument;
    int64_t first_ns = sense->own_cpu_ns, now_ns = wf_clock_now(&wf_clock_monotonic);
    bool last = false;

    pthread_setname_np(pthread_self(), "weft-sense");
    keep_off_bound(sense);
    while (!last) {
        wait_until(sense, now_ns + sense->interval_ns);
        last = atomic_load(&sense->ending);
        now_ns = wf_clock_now(&wf_clock_monotonic);
        bench_sense_take(sense, now_ns);
        set_cost(sense, first_ns + thread_cpu_ns());
    }
    return NULL;
}

/* Signals are for other threads. */
static int start_thread(struct bench_sense *sense)
{
    sigset_t all, previous;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    int result = -pthread_create(&sense->thread, NULL, sample_until_stopped, sense);
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    sense->running = result == 0;
    return result;
}

/* --- calls --- */

static int init_stores(struct bench_sense *sense, int nics)
{
    struct bench_sense_store shape = {
        .gpu_count = sense->gpus.count,
        .nic_count = nics,
        .core_count = sense->cpu.watched_count,
        .cpu_count = sense->cpu.cpu_count,
        .most = BENCH_SENSE_SAMPLES_MAX,
    };

    sense->store = sense->now = sense->first = shape;
    int result = bench_sense_store_init(&sense->store, 64);
    result = result ? result : bench_sense_store_init(&sense->now, 1);
    return result ? result : bench_sense_store_init(&sense->first, 1);
}

static int init_parts(struct bench_sense *sense, const struct bench_sense_want *want)
{
    sense->root = strdup(want->root ? want->root : "");
    if (!sense->root)
        return -ENOMEM;
    int result = bench_sense_cpu_init(&sense->cpu, sense->root, want->bound);
    if (result)
        return result;
    bench_sense_own_init(&sense->own, sense->root, want->companion);
    bench_sense_net_init(&sense->net, sense->root, want->interfaces, want->interface_count);
    bench_sense_gpus_init(&sense->gpus, want->gpu_pci, want->gpu_count);
    result = init_stores(sense, want->interface_count);
    if (result == 0 && want->held)
        result = bench_sense_store_fill(&sense->store, BENCH_SENSE_SHORT_STORE);
    result = result ? result : bench_sense_ledger_init(&sense->ledger, want);
    sense->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return result ? result : sense->wake_fd < 0 ? -errno : 0;
}

int bench_sense_create(const struct bench_sense_want *want, struct bench_sense **out, struct wf_status *status)
{
    struct bench_sense *sense;

    if (want->gpu_count < 0 || want->gpu_count > BENCH_SENSE_GPUS_MAX)
        return wf_fail(status, -EINVAL, "a sampler of %d GPUs: at most %d can be watched", want->gpu_count,
                       BENCH_SENSE_GPUS_MAX);
    if (want->interface_count < 0 || want->interface_count > BENCH_SENSE_INTERFACES_MAX)
        return wf_fail(status, -EINVAL, "a sampler of %d interfaces: at most %d can be watched", want->interface_count,
                       BENCH_SENSE_INTERFACES_MAX);
    sense = calloc(1, sizeof *sense);
    if (!sense)
        return wf_fail(status, -ENOMEM, "no memory for a sampler");
    sense->interval_ns = want->interval_ns > 0 ? want->interval_ns : WF_NS_PER_S;
    sense->bound_given = want->bound && CPU_COUNT(want->bound) > 0;
    sense->wake_fd = sense->cpu.stat_fd = sense->net.snmp_fd = -1;
    pthread_mutex_init(&sense->lock, NULL);
    for (int i = 0; i <= want->gpu_count; i++)
        sense->devices[i].last_celsius = BENCH_SENSE_UNKNOWN;
    int result = init_parts(sense, want);
    if (result) {
        bench_sense_destroy(sense);
        return wf_fail(status, result, "a sampler of temperatures and counters: %s", wf_strerror(result));
    }
    *out = sense;
    return 0;
}

int bench_sense_start(const struct bench_sense_want *want, struct bench_sense **out, struct wf_status *status)
{
    struct bench_sense *sense = NULL;
    int result = bench_sense_create(want, &sense, status);

    if (result)
        return result;
    int64_t before_ns = thread_cpu_ns();
    bench_sense_take(sense, wf_clock_now(&wf_clock_monotonic));
    set_cost(sense, thread_cpu_ns() - before_ns);
    result = start_thread(sense);
    if (result) {
        bench_sense_destroy(sense);
        return wf_fail(status, result, "no thread for a sampler: %s", wf_strerror(result));
    }
    *out = sense;
    return 0;
}

void bench_sense_stop(struct bench_sense *sense)
{
    if (!sense->running)
        return;
    atomic_store(&sense->ending, true);
    bench_sense_poke(sense);
    pthread_join(sense->thread, NULL);
    sense->running = false;
}

void bench_sense_destroy(struct bench_sense *sense)
{
    if (!sense)
        return;
    bench_sense_stop(sense);
    bench_sense_close(&sense->wake_fd);
    bench_sense_store_fini(&sense->first);
    bench_sense_store_fini(&sense->now);
    bench_sense_store_fini(&sense->store);
    bench_sense_ledger_fini(&sense->ledger);
    bench_sense_gpus_fini(&sense->gpus);
    bench_sense_net_fini(&sense->net);
    bench_sense_own_fini(&sense->own);
    bench_sense_cpu_fini(&sense->cpu);
    pthread_mutex_destroy(&sense->lock);
    free(sense->root);
    free(sense);
}

void bench_sense_poke(struct bench_sense *sense)
{
    eventfd_write(sense->wake_fd, 1);
}

static int last_celsius(struct bench_sense *sense, int device)
{
    pthread_mutex_lock(&sense->lock);
    int celsius = sense->devices[device].last_celsius;
    pthread_mutex_unlock(&sense->lock);
    return celsius;
}

int bench_sense_gpu_celsius(struct bench_sense *sense, int gpu)
{
    return gpu >= 0 && gpu < sense->store.gpu_count ? last_celsius(sense, gpu) : BENCH_SENSE_UNKNOWN;
}

int bench_sense_cpu_celsius(struct bench_sense *sense)
{
    return last_celsius(sense, sense->store.gpu_count);
}
