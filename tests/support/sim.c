/* The simulation as a whole: chance, time and faults. */
#include "sim_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A look at the clock takes less than this; but in a few of a hundred the thread loses its core meanwhile. */
#define CLOCK_READ_NS 2000
#define PREEMPTED_NS (3 * WF_NS_PER_MS)
#define PREEMPTED_PERCENT 2

#define START_NS WF_NS_PER_S /* not 0, which code likes to take for "no time" */

void sim_violation(const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "simulator: contract broken: %s\n", text);
    abort();
}

/* --- chance --- */

/* splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). */
uint64_t wf_sim_random(struct wf_sim *sim)
{
    uint64_t z = sim->random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t sim_below(struct wf_sim *sim, uint64_t bound)
{
    return wf_sim_random(sim) % bound; /* the bias does not matter here */
}

bool sim_chance(struct wf_sim *sim, uint32_t percent)
{
    return percent <= 100 && sim_below(sim, 100) < percent;
}

/* --- create and destroy --- */

/* Every look at the clock takes a moment, so that no code under test may expect the same answer twice. */
static int64_t clock_now(const struct wf_clock *clock)
{
    struct wf_sim *sim = (struct wf_sim *)clock;
    uint64_t most = sim_chance(sim, PREEMPTED_PERCENT) ? PREEMPTED_NS : CLOCK_READ_NS;
    wf_sim_advance(sim, sim->now_ns + (int64_t)sim_below(sim, most));
    return sim->now_ns;
}

static void fill_defaults(struct wf_sim_options *options)
{
    if (!options->buffer_min)
        options->buffer_min = 1;
    if (!options->buffer_max)
        options->buffer_max = 65536;
    if (options->buffer_max < options->buffer_min)
        options->buffer_max = options->buffer_min;
    if (!options->delay_min_ns)
        options->delay_min_ns = WF_NS_PER_US;
    if (!options->delay_max_ns)
        options->delay_max_ns = WF_NS_PER_MS;
    if (options->delay_max_ns < options->delay_min_ns)
        options->delay_max_ns = options->delay_min_ns;
    if (!options->short_percent)
        options->short_percent = 25;
    if (!options->lag_percent)
        options->lag_percent = 12;
}

struct wf_sim *wf_sim_create(const struct wf_sim_options *options)
{
    struct wf_sim *sim = calloc(1, sizeof(*sim));
    if (!sim)
        return NULL;
    sim->clock.now_ns = clock_now;
    sim->now_ns = START_NS;
    if (options)
        sim->options = *options;
    fill_defaults(&sim->options);
    sim->random_state = sim->options.seed;
    sim->next_port = 32768;
    wf_list_init(&sim->engines);
    wf_list_init(&sim->extras);
    return sim;
}

void wf_sim_destroy(struct wf_sim *sim)
{
    if (!sim)
        return;
    if (!wf_list_empty(&sim->engines))
        sim_violation("an engine is still open at the end");
    if (!wf_list_empty(&sim->extras))
        sim_violation("memory is still in the simulation at its end");
    for (int i = 0; i < sim->socket_end; i++)
        if (sim->sockets[i])
            sim_violation("descriptor %d is still open at the end (%d in all)", sim->sockets[i]->fd, sim->open_sockets);
    free(sim->sockets);
    free(sim);
}

struct sim_socket *sim_socket_of(struct wf_sim *sim, int fd)
{
    int at = fd - SIM_FIRST_FD;
    if (fd < SIM_FIRST_FD || at >= sim->socket_end || !sim->sockets[at] || !sim->sockets[at]->accepted)
        sim_violation("descriptor %d is not open", fd);
    return sim->sockets[at];
}

/* --- time --- */

const struct wf_clock *wf_sim_clock(const struct wf_sim *sim)
{
    return &sim->clock;
}

int64_t wf_sim_now(const struct wf_sim *sim)
{
    return sim->now_ns;
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t next_scheduled(const struct wf_sim *sim)
{
    int64_t next = WF_NEVER;
    WF_LIST_EACH (link, following, &sim->extras) {
        struct sim_extra *extra = WF_CONTAINER(link, struct sim_extra, link);
        next = earliest(next, extra->next_ns(extra));
    }
    for (int i = 0; i < sim->socket_end; i++) {
        const struct sim_socket *socket = sim->sockets[i];
        if (socket)
            next = earliest(next, earliest(sim_setup_next(socket), sim_stream_next(socket)));
    }
    return next;
}

/* Lets everything happen that is due now. */
static void settle(struct wf_sim *sim)
{
    for (int i = 0; i < sim->socket_end; i++) { /* the end may move: a listener makes sockets */
        if (!sim->sockets[i])
            continue;
        sim_setup_settle(sim->sockets[i]);
        sim_stream_settle(sim->sockets[i]);
        sim_stream_acknowledge(sim->sockets[i]);
    }
    WF_LIST_EACH (link, following, &sim->extras) {
        struct sim_extra *extra = WF_CONTAINER(link, struct sim_extra, link);
        extra->settle(extra);
    }
}

int64_t wf_sim_next_event(struct wf_sim *sim)
{
    WF_LIST_EACH (link, following, &sim->engines) {
        const struct sim_engine *engine = WF_CONTAINER(link, struct sim_engine, link);
        if (!engine->stopped && sim_engine_busy(engine))
            return sim->now_ns;
    }
    return next_scheduled(sim);
}

int64_t wf_sim_timer(const struct wf_engine *engine)
{
    const struct sim_engine *of = WF_CONTAINER(engine, const struct sim_engine, base);
    return of->stopped ? WF_NEVER : of->due_ns;
}

void wf_sim_stop(struct wf_engine *engine, bool stopped)
{
    WF_CONTAINER(engine, struct sim_engine, base)->stopped = stopped;
}

void wf_sim_advance(struct wf_sim *sim, int64_t until_ns)
{
    int64_t next;
    while ((next = next_scheduled(sim)) <= until_ns) {
        if (next > sim->now_ns)
            sim->now_ns = next;
        settle(sim);
    }
    if (until_ns > sim->now_ns)
        sim->now_ns = until_ns;
}

bool wf_sim_step(struct wf_sim *sim)
{
    int64_t next = wf_sim_next_event(sim);
    if (next == WF_NEVER)
        return false;
    wf_sim_advance(sim, next);
    return true;
}

/* --- rails and faults --- */

void wf_sim_set_rail(struct wf_sim *sim, const struct sockaddr_storage *local, const struct wf_sim_rail *settings)
{
    struct sim_rail *rail = sim_rail_of(sim, local);
    rail->settings = *settings;
    rail->busy_until_ns = sim->now_ns;
    settle(sim); /* what waited for a rail that is up again */
}

void wf_sim_freeze(struct wf_sim *sim, int fd, bool frozen)
{
    struct sim_socket *socket = sim_socket_of(sim, fd);
    socket->in.frozen = frozen;
    if (socket->peer)
        socket->peer->in.frozen = frozen;
    settle(sim);
}

void wf_sim_deafen(struct wf_sim *sim, int fd, bool deaf)
{
    sim_socket_of(sim, fd)->in.frozen = deaf;
    settle(sim);
}

void wf_sim_end(struct wf_sim *sim, int fd)
{
    struct sim_socket *socket = sim_socket_of(sim, fd);
    if (!socket->peer || socket->end_sent || socket->swallows)
        return;
    socket->swallows = true;
    sim_send_end(socket->peer, sim_path_ns(socket, socket->peer));
}

void wf_sim_cut(struct wf_sim *sim, int fd)
{
    struct sim_socket *socket = sim_socket_of(sim, fd);
    if (socket->state != SIM_CONNECTED)
        return;
    if (socket->peer)
        sim_take_reset(socket->peer);
    sim_take_reset(socket);
}

void wf_sim_reset(struct wf_sim *sim, int fd)
{
    struct sim_socket *socket = sim_socket_of(sim, fd);
    if (socket->state == SIM_CONNECTED)
        sim_take_reset(socket);
}

bool wf_sim_flip(struct wf_sim *sim, int fd, uint64_t offset, uint8_t mask)
{
    struct sim_stream *in = &sim_socket_of(sim, fd)->in;
    if (!in->ring || offset < in->read)
        return false;
    if (offset < in->written) {
        in->ring[offset % in->capacity] ^= mask;
    } else {
        in->flip_offset = offset;
        in->flip_mask = mask;
    }
    return true;
}

uint64_t wf_sim_bytes_read(struct wf_sim *sim, int fd)
{
    return sim_socket_of(sim, fd)->in.read;
}

void wf_sim_watch(struct wf_sim *sim, wf_sim_watcher *watcher, void *context)
{
    sim->watcher = watcher;
    sim->watcher_context = context;
}

uint64_t wf_sim_stream_of(struct wf_sim *sim, int fd)
{
    const struct sim_socket *peer = sim_socket_of(sim, fd)->peer;
    return peer ? peer->in.number : 0;
}

uint64_t wf_sim_reverse_of(struct wf_sim *sim, int fd)
{
    return sim_socket_of(sim, fd)->in.number;
}

int wf_sim_dscp_of(struct wf_sim *sim, int fd)
{
    return sim_socket_of(sim, fd)->dscp;
}

uint64_t wf_sim_pace_of(struct wf_sim *sim, int fd)
{
    return sim_socket_of(sim, fd)->pace;
}

int wf_sim_open_descriptors(const struct wf_sim *sim)
{
    return sim->open_sockets;
}

static bool is_connection(const struct sim_socket *socket)
{
    return socket && socket->accepted && socket->state == SIM_CONNECTED && socket->peer;
}

int wf_sim_list_connections(const struct wf_sim *sim, int *fds, int max)
{
    int count = 0;
    for (int i = 0; i < sim->socket_end; i++) {
        if (!is_connection(sim->sockets[i]))
            continue;
        if (count < max)
            fds[count] = sim->sockets[i]->fd;
        count++;
    }
    return count;
}

int wf_sim_pick_connection(struct wf_sim *sim)
{
    uint64_t count = 0;
    for (int i = 0; i < sim->socket_end; i++)
        count += is_connection(sim->sockets[i]);
    uint64_t chosen = count ? sim_below(sim, count) : 0;
    for (int i = 0; i < sim->socket_end && count; i++)
        if (is_connection(sim->sockets[i]) && !chosen--)
            return sim->sockets[i]->fd;
    return -1;
}
