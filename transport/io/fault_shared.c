/* What all engines of one struct wf_fault have in common: chance, time, counts. */
#include <errno.h>
#include <stdlib.h>

#include "io/fault_parts.h"

/* --- create and destroy --- */

int wf_fault_create(const struct wf_fault_options *options, struct wf_fault **out, struct wf_status *status)
{
    struct wf_fault_spec spec;
    struct wf_fault_plan plan;
    int result = wf_fault_parse(options->spec, &spec, status);
    if (!result)
        result = wf_fault_plan_init(&plan, &spec, options->rails, options->rail_count, status);
    if (result)
        return result;
    struct wf_fault *fault = calloc(1, sizeof *fault);
    if (!fault)
        return wf_fail(status, -ENOMEM, "fault: out of memory");
    fault->plan = plan;
    fault->clock = options->clock;
    fault->log = options->log;
    fault->rails = options->rails;
    fault->rail_count = options->rail_count;
    fault->start_ns = wf_clock_now(options->clock);
    pthread_mutex_init(&fault->lock, NULL);
    wf_fault_dice_init(&fault->dice, &fault->plan.spec);
    for (int i = 0; i < WF_FAULT_BUCKETS; i++)
        wf_list_init(&fault->sockets[i]);
    wf_list_init(&fault->engines);
    *out = fault;
    return 0;
}

void wf_fault_destroy(struct wf_fault *fault)
{
    if (!fault)
        return;
    for (int i = 0; i < WF_FAULT_BUCKETS; i++) {
        WF_LIST_EACH (link, following, &fault->sockets[i]) {
            free(WF_CONTAINER(link, struct wf_fault_socket, link));
        }
    }
    pthread_mutex_destroy(&fault->lock);
    free(fault);
}

void wf_fault_count(struct wf_fault *fault, struct wf_fault_counts *out)
{
    pthread_mutex_lock(&fault->lock);
    *out = fault->counts;
    pthread_mutex_unlock(&fault->lock);
}

void wf_fault_note_refused(struct wf_fault *fault)
{
    pthread_mutex_lock(&fault->lock);
    fault->counts.refused += 1;
    pthread_mutex_unlock(&fault->lock);
}

/* --- time --- */

struct wf_fault_state wf_fault_look_up(const struct wf_fault *fault, int64_t now_ns)
{
    struct wf_fault_state state = wf_fault_state_at(&fault->plan, now_ns - fault->start_ns);
    if (state.until_ns != WF_NEVER)
        state.until_ns += fault->start_ns;
    return state;
}

/* Lock held. */
static void tell_window(struct wf_fault *fault, int number, int64_t since_ms)
{
    const struct wf_fault_window *window = &fault->plan.spec.windows[number];
    uint32_t bit = UINT32_C(1) << number;
    if (since_ms >= window->start_ms && !(fault->begun & bit)) {
        fault->begun |= bit;
        *(window->drop ? &fault->counts.drops : &fault->counts.stalls) += 1;
        wf_log(fault->log, WF_LOG_INFO, "fault: rail %s %s for %lld ms", window->rail,
               window->drop ? "is gone" : "stands still", (long long)window->length_ms);
    }
    if (since_ms >= window->start_ms + window->length_ms && !(fault->over & bit)) {
        fault->over |= bit;
        wf_log(fault->log, WF_LOG_INFO, "fault: rail %s %s", window->rail, window->drop ? "is back" : "goes on");
    }
}

void wf_fault_tell_windows(struct wf_fault *fault, int64_t now_ns)
{
    pthread_mutex_lock(&fault->lock);
    for (int i = 0; i < fault->plan.spec.window_count; i++)
        tell_window(fault, i, (now_ns - fault->start_ns) / WF_NS_PER_MS);
    pthread_mutex_unlock(&fault->lock);
}

/* --- resets --- */

static const char *rail_name(const struct wf_fault *fault, const struct wf_fault_socket *socket)
{
    int rail = atomic_load(&socket->rail);
    return rail < 0 ? "unknown" : fault->rails[rail].name;
}

void wf_fault_cut(struct wf_fault *fault, struct wf_fault_socket *socket, uint64_t *count, const char *why)
{
    if (atomic_exchange(&socket->cut, true))
        return;
    wf_around_kill(fault, socket->fd);
    wf_log(fault->log, WF_LOG_INFO, "fault: reset a connection on rail %s: %s", rail_name(fault, socket), why);
    pthread_mutex_lock(&fault->lock);
    *count += 1;
    atomic_fetch_add(&fault->cuts, 1);
    WF_LIST_EACH (link, following, &fault->engines) {
        struct wf_engine *inner = WF_CONTAINER(link, struct wf_fault_engine, link)->inner;
        inner->ops->wake(inner);
    }
    pthread_mutex_unlock(&fault->lock);
}

/* --- chance --- */

uint64_t wf_fault_next_piece(struct wf_fault *fault, uint64_t bytes)
{
    const struct wf_fault_spec *spec = &fault->plan.spec;
    if (!spec->reset_every && !spec->shorten)
        return bytes;
    pthread_mutex_lock(&fault->lock);
    uint64_t piece = wf_fault_piece(&fault->dice, bytes);
    fault->counts.shortened += spec->shorten && piece < bytes;
    pthread_mutex_unlock(&fault->lock);
    return piece;
}

void wf_fault_moved(struct wf_fault *fault, struct wf_fault_socket *socket, uint64_t bytes)
{
    if (!fault->plan.spec.reset_every || !bytes || atomic_load(&socket->cut))
        return;
    pthread_mutex_lock(&fault->lock);
    bool due = wf_fault_reset_due(&fault->dice, bytes);
    pthread_mutex_unlock(&fault->lock);
    if (due)
        wf_fault_cut(fault, socket, &fault->counts.resets, "reset_every");
}

static void flip(const struct iovec *iov, uint64_t at, int bit)
{
    while (at >= iov->iov_len) {
        at -= iov->iov_len;
        iov++;
    }
    ((uint8_t *)iov->iov_base)[at] ^= (uint8_t)(1u << bit);
}

void wf_fault_damage(struct wf_fault *fault, const struct wf_fault_socket *socket, const struct iovec *iov,
                     uint64_t bytes)
{
    if (!fault->plan.spec.flip_every)
        return;
    uint64_t done = 0, next, flips = 0;
    int bit;
    pthread_mutex_lock(&fault->lock);
    for (; (next = wf_fault_flip_due(&fault->dice, bytes - done, &bit)); flips++) {
        done += next;
        flip(iov, done - 1, bit);
    }
    fault->counts.flips += flips;
    pthread_mutex_unlock(&fault->lock);
    if (flips)
        wf_log(fault->log, WF_LOG_INFO, "fault: flipped %llu bits in %llu bytes received on rail %s",
               (unsigned long long)flips, (unsigned long long)bytes, rail_name(fault, socket));
}
