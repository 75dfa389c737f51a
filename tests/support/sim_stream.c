/* One direction of a connection: bytes, their delay, its end. */
#include "sim_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Small sizes as often as large ones: first the magnitude, then the value. */
static uint64_t draw(struct wf_sim *sim, uint64_t low, uint64_t high)
{
    int bits = 64 - __builtin_clzll(high - low + 1);
    uint64_t value = low + sim_below(sim, 1ull << sim_below(sim, (uint64_t)bits + 1));
    return value > high ? high : value;
}

int sim_stream_open(struct sim_socket *socket)
{
    struct wf_sim *sim = socket->sim;
    const struct wf_sim_options *options = &sim->options;
    struct sim_stream *in = &socket->in;
    *in = (struct sim_stream){.number = ++sim->streams, .end_ns = WF_NEVER, .reset_ns = WF_NEVER};
    in->capacity = (uint32_t)draw(sim, options->buffer_min, options->buffer_max);
    in->delay_ns = (int64_t)draw(sim, (uint64_t)options->delay_min_ns, (uint64_t)options->delay_max_ns);
    in->ring = malloc(in->capacity);
    return in->ring ? 0 : -ENOMEM;
}

int64_t sim_path_ns(const struct sim_socket *from, const struct sim_socket *to)
{
    return to->in.delay_ns + (from->rail ? from->rail->settings.delay_ns : 0);
}

/* Does nothing arrive at this socket at present? */
static bool held(const struct sim_socket *socket)
{
    const struct wf_sim_rail *near = socket->rail ? &socket->rail->settings : NULL;
    const struct wf_sim_rail *far = socket->far_rail ? &socket->far_rail->settings : NULL;
    return socket->in.frozen || (near && near->down) || (far && (far->down || far->mute));
}

/* Now and the time under way, but behind everything sent before. */
static int64_t arrival(struct sim_socket *to, int64_t path_ns)
{
    int64_t at = to->sim->now_ns + path_ns;
    if (at < to->in.last_ns)
        at = to->in.last_ns;
    to->in.last_ns = at;
    return at;
}

void sim_send_end(struct sim_socket *to, int64_t path_ns)
{
    if (!to->broken) /* an end after a reset would hide it */
        to->in.end_ns = arrival(to, path_ns);
}

void sim_send_reset(struct sim_socket *to, int64_t path_ns)
{
    if (!to->broken && to->in.reset_ns == WF_NEVER)
        to->in.reset_ns = arrival(to, path_ns);
}

void sim_take_reset(struct sim_socket *socket)
{
    struct sim_stream *in = &socket->in;
    in->reset_ns = in->end_ns = WF_NEVER;
    in->flight_count = 0;
    in->written = in->arrived; /* what was under way is lost */
    if (socket->broken)
        return;
    socket->broken = true;
    socket->error = in->ended ? EPIPE : ECONNRESET;
}

/* --- arrivals --- */

int64_t sim_stream_next(const struct sim_socket *socket)
{
    const struct sim_stream *in = &socket->in;
    if (socket->state != SIM_CONNECTED || held(socket))
        return WF_NEVER;
    int64_t next = in->reset_ns;
    if (in->flight_count && in->flight[in->flight_first].at_ns < next)
        next = in->flight[in->flight_first].at_ns;
    return in->end_ns < next ? in->end_ns : next;
}

void sim_stream_settle(struct sim_socket *socket)
{
    struct sim_stream *in = &socket->in;
    int64_t now = socket->sim->now_ns;
    if (socket->state != SIM_CONNECTED || held(socket))
        return;
    while (in->flight_count && in->flight[in->flight_first].at_ns <= now) {
        in->arrived = in->flight[in->flight_first].end;
        in->flight_first = (in->flight_first + 1) % SIM_FLIGHT;
        in->flight_count--;
    }
    if (in->end_ns <= now) {
        in->ended = true;
        in->end_ns = WF_NEVER;
    }
    if (in->reset_ns <= now)
        sim_take_reset(socket);
}

void sim_stream_acknowledge(struct sim_socket *socket)
{
    if (socket->peer && !held(socket->peer))
        socket->in.acknowledged = socket->in.arrived;
}

struct wf_progress sim_progress(const struct sim_stream *stream)
{
    return (struct wf_progress){.acknowledged = stream->acknowledged,
                                .pending = stream->written - stream->acknowledged};
}

static void launch(struct sim_socket *from, struct sim_socket *to, uint64_t bytes)
{
    struct wf_sim *sim = from->sim;
    struct sim_rail *rail = from->rail;
    struct sim_stream *in = &to->in;
    int64_t queued = 0;
    if (rail && rail->settings.bytes_per_second) {
        if (rail->busy_until_ns < sim->now_ns)
            rail->busy_until_ns = sim->now_ns;
        rail->busy_until_ns += (int64_t)((double)bytes * 1e9 / (double)rail->settings.bytes_per_second) + 1;
        queued = rail->busy_until_ns - sim->now_ns;
    }
    if (sim->options.jitter_ns)
        queued += (int64_t)sim_below(sim, (uint64_t)sim->options.jitter_ns + 1);
    int64_t at = arrival(to, queued + sim_path_ns(from, to));
    if (in->flight_count < SIM_FLIGHT)
        in->flight_count++;
    int last = (in->flight_first + in->flight_count - 1) % SIM_FLIGHT;
    in->flight[last].end = in->written;
    in->flight[last].at_ns = at;
}

/* --- calls --- */

static int64_t take_error(struct sim_socket *socket, int otherwise)
{
    int error = socket->error ? socket->error : otherwise;
    socket->error = 0;
    return -error;
}

static size_t shorten(struct wf_sim *sim, uint64_t possible)
{
    bool is_short = possible > 1 && sim_chance(sim, sim->options.short_percent);
    return is_short ? 1 + sim_below(sim, possible - 1) : possible;
}

/* Copies between the vector and the ring, from stream offset `at` on. */
static void copy(struct sim_stream *stream, uint64_t at, const struct iovec *iov, size_t bytes, bool into_ring)
{
    for (size_t used = 0; bytes;) {
        if (used == iov->iov_len) {
            iov++;
            used = 0;
            continue;
        }
        size_t place = at % stream->capacity;
        size_t step = stream->capacity - place;
        step = step < iov->iov_len - used ? step : iov->iov_len - used;
        step = step < bytes ? step : bytes;
        uint8_t *memory = (uint8_t *)iov->iov_base + used;
        memcpy(into_ring ? stream->ring + place : memory, into_ring ? memory : stream->ring + place, step);
        at += step;
        used += step;
        bytes -= step;
    }
}

bool sim_can_read(const struct sim_socket *socket)
{
    switch (socket->state) {
    case SIM_LISTENING:
        return !wf_list_empty(&socket->pending);
    case SIM_CONNECTING:
        return false;
    case SIM_CONNECTED:
        return socket->in.arrived > socket->in.read || socket->in.ended || socket->broken;
    default:
        return true; /* to fail */
    }
}

int64_t sim_read(struct sim_socket *socket, const struct iovec *iov, size_t bytes)
{
    struct sim_stream *in = &socket->in;
    if (socket->state != SIM_CONNECTED)
        return take_error(socket, ENOTCONN);
    uint64_t there = in->arrived - in->read;
    if (there) {
        size_t n = shorten(socket->sim, there < bytes ? there : bytes);
        copy(in, in->read, iov, n, false);
        in->read += n;
        return (int64_t)n;
    }
    return in->ended || !socket->error ? 0 : take_error(socket, 0);
}

static uint64_t room(const struct sim_stream *stream)
{
    return stream->capacity - (stream->written - stream->read);
}

/* Does what it sends reach a connection? */
static bool is_heard(const struct sim_socket *socket)
{
    return socket->peer && !socket->peer->broken && !socket->swallows;
}

bool sim_can_write(const struct sim_socket *socket)
{
    if (socket->state == SIM_CONNECTING)
        return false;
    if (socket->state != SIM_CONNECTED || socket->broken || socket->end_sent)
        return true;
    if (is_heard(socket))
        return room(&socket->peer->in) > 0;
    return socket->unheard < socket->in.capacity;
}

/* The peer has closed, or was reset: its kernel takes the bytes and answers with a reset. Or nobody hears them at all.
 */
static int64_t write_to_nobody(struct sim_socket *socket, size_t bytes)
{
    uint64_t space = socket->in.capacity - socket->unheard;
    size_t n = shorten(socket->sim, space < bytes ? space : bytes);
    if (!socket->swallows)
        sim_send_reset(socket, 2 * sim_path_ns(socket, socket));
    socket->unheard += n;
    return (int64_t)n;
}

/* Shows the `bytes` that were just copied in to whoever watches: one piece, or two where the ring begins anew. */
static void show(struct sim_socket *from, struct sim_stream *out, size_t bytes)
{
    struct wf_sim *sim = from->sim;
    struct wf_sim_piece piece = {
        .stream = out->number, .reverse = from->in.number, .fd = from->fd, .offset = out->written};
    while (bytes && sim->watcher) {
        size_t place = piece.offset % out->capacity;
        piece.bytes = out->ring + place;
        piece.length = out->capacity - place < bytes ? out->capacity - place : bytes;
        sim->watcher(sim->watcher_context, &piece);
        piece.offset += piece.length;
        bytes -= piece.length;
    }
}

int64_t sim_write(struct sim_socket *socket, const struct iovec *iov, size_t bytes)
{
    struct sim_socket *peer = socket->peer;
    if (socket->state != SIM_CONNECTED || socket->broken || socket->end_sent)
        return take_error(socket, EPIPE);
    if (!is_heard(socket))
        return write_to_nobody(socket, bytes);
    struct sim_stream *out = &peer->in;
    uint64_t space = room(out);
    size_t n = shorten(socket->sim, space < bytes ? space : bytes);
    copy(out, out->written, iov, n, true);
    if (out->flip_mask && out->flip_offset < out->written + n) {
        out->ring[out->flip_offset % out->capacity] ^= out->flip_mask;
        out->flip_mask = 0;
    }
    show(socket, out, n);
    out->written += n;
    launch(socket, peer, n);
    if (held(peer))
        socket->retransmits++;
    return (int64_t)n;
}
