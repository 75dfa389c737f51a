#include "sim_cards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim_cards_internal.h"

#define DEVMEM_LINEAR 78
#define DEVMEM_DMABUF 79
#define RUINED 0xd7
#define LOANS_MAX 65536

struct devmem_fragment {
    uint64_t offset;
    uint32_t bytes, token, dmabuf, flags;
};

struct sim_buffer {
    struct sim_socket *holder; /* that it was handed to; NULL: free */
    uint32_t token;
};

struct sim_inlet {
    struct wf_sim_cards *cards;
    const struct wf_memory_ops *ops;
    struct wf_memory *memory;
    int device;
    uint8_t *base;
    uint32_t free_count, next_token;
    int streams, rules; /* led to it now, and ever */
    bool by_port, wrong;
    struct sim_buffer *buffers;
};

struct sim_loan {
    const uint8_t *base; /* NULL: free */
    uint64_t bytes, offset;
};

struct wf_sim_cards {
    struct wf_sim *sim;
    struct wf_sim_memory *memory;
    struct wf_sim_cards_options options;
    struct wf_sim_cards_counts counts;
    struct sim_loan *loans; /* by binding - 1 */
    uint32_t loan_room;
    int led_by_port; /* streams, now */
};

struct wf_sim_cards *wf_sim_cards_create(struct wf_sim *sim, struct wf_sim_memory *memory,
                                         const struct wf_sim_cards_options *options)
{
    struct wf_sim_cards *cards = calloc(1, sizeof *cards);
    if (!cards)
        return NULL;
    *cards = (struct wf_sim_cards){.sim = sim, .memory = memory, .options = *options};
    sim->cards = cards;
    return cards;
}

void wf_sim_cards_destroy(struct wf_sim_cards *cards)
{
    if (!cards)
        return;
    if (cards->counts.inlets || cards->counts.loans || cards->counts.out)
        sim_violation("cards are gone with %d inlets, %d loans, %llu buffers out", cards->counts.inlets,
                      cards->counts.loans, (unsigned long long)cards->counts.out);
    free(cards->loans);
    free(cards);
}

struct wf_sim_cards_counts wf_sim_cards_counts(const struct wf_sim_cards *cards)
{
    return cards->counts;
}

/* --- inlets --- */

static int open_inlet(void *host, const struct wf_card_way *way, struct wf_inlet *inlet, struct wf_status *status)
{
    struct wf_sim_cards *cards = host;
    const struct wf_sim_cards_options *options = &cards->options;
    void *base;
    if (options->has && !options->has(options->context, way->interface, way->device))
        return wf_fail(status, -EOPNOTSUPP, "this simulated card cannot");
    uint64_t bytes = (uint64_t)options->buffers * options->buffer_bytes;
    int result = way->ops->alloc(way->memory, way->device, bytes, &base, status);
    if (result < 0)
        return result;
    struct sim_inlet *the = calloc(1, sizeof *the);
    struct sim_buffer *buffers = calloc(options->buffers, sizeof *buffers);
    bool by_port = options->by_port && options->by_port(options->context, way->interface);
    if (!the || !buffers)
        abort();
    *the = (struct sim_inlet){.cards = cards,
                              .ops = way->ops,
                              .memory = way->memory,
                              .device = way->device,
                              .base = base,
                              .free_count = options->buffers,
                              .by_port = by_port,
                              .wrong = options->wrong && options->wrong(options->context, way->interface, way->device),
                              .buffers = buffers};
    *inlet = (struct wf_inlet){
        .handle = the, .base = base, .bytes = bytes, .by_port = by_port, .buffer_bytes = options->buffer_bytes};
    cards->counts.inlets += 1;
    return 0;
}

static void close_inlet(void *host, struct wf_inlet *inlet)
{
    struct wf_sim_cards *cards = host;
    struct sim_inlet *the = inlet->handle;
    if (the->streams)
        sim_violation("an inlet is closed with %d streams led to it", the->streams);
    the->ops->free(the->memory, the->device, the->base);
    free(the->buffers);
    free(the);
    cards->counts.inlets -= 1;
}

static bool same_place(const struct sim_socket *a, const struct sim_socket *b)
{
    return memcmp(&a->local, &b->local, sizeof a->local) == 0;
}

/* Does something else come to the port of a stream that is led by it? */
static void check_port(const struct sim_socket *socket)
{
    const struct wf_sim *sim = socket->sim;
    for (int i = 0; i < sim->socket_end; i++) {
        const struct sim_socket *other = sim->sockets[i];
        if (other && other != socket && !other->inlet && other->in.read > 0 && same_place(other, socket))
            sim_violation("descriptor %d has been read at the port by which descriptor %d is led to an inlet",
                          other->fd, socket->fd);
    }
}

void sim_cards_check_plain(const struct sim_socket *socket)
{
    const struct wf_sim *sim = socket->sim;
    bool any = sim->cards && sim->cards->led_by_port > 0 && !socket->inlet;
    for (int i = 0; any && i < sim->socket_end; i++) {
        const struct sim_socket *other = sim->sockets[i];
        if (other && other->inlet && other->inlet->by_port && same_place(other, socket))
            sim_violation("descriptor %d is read, and all that comes to its port is led to an inlet", socket->fd);
    }
}

static int steer(void *host, struct wf_inlet *inlet, int fd, void **rule, struct wf_status *status)
{
    struct wf_sim_cards *cards = host;
    struct sim_socket *socket = sim_socket_of(cards->sim, fd);
    struct sim_inlet *the = inlet->handle;
    if (socket->inlet)
        sim_violation("descriptor %d is led to two inlets", fd);
    if (cards->options.rules > 0 && the->rules == cards->options.rules)
        return wf_fail(status, -ENOSPC, "this simulated card has no more rules");
    the->rules += 1;
    socket->inlet = *rule = inlet->handle;
    socket->led_from = socket->in.arrived;
    socket->inlet->streams += 1;
    cards->counts.streams += 1;
    if (inlet->by_port) {
        cards->counts.by_port += 1;
        cards->led_by_port += 1;
        check_port(socket);
    }
    return 0;
}

static void unsteer(void *host, struct wf_inlet *inlet, void *rule)
{
    struct wf_sim_cards *cards = host;
    struct sim_inlet *the = rule;
    if (rule != inlet->handle || the->streams == 0)
        sim_violation("a rule that is not there is taken away");
    the->streams -= 1;
    cards->led_by_port -= the->by_port;
    cards->counts.streams -= 1;
}

static uint8_t *view(const struct sim_inlet *inlet, uint32_t buffer)
{
    const struct wf_sim_cards_options *options = &inlet->cards->options;
    return wf_sim_memory_view(inlet->cards->memory, inlet->base + (uint64_t)buffer * options->buffer_bytes,
                              options->buffer_bytes);
}

static void take_back(struct sim_inlet *inlet, uint32_t buffer)
{
    memset(view(inlet, buffer), RUINED, inlet->cards->options.buffer_bytes);
    inlet->buffers[buffer].holder = NULL;
    inlet->free_count += 1;
    inlet->cards->counts.out -= 1;
}

static void give_back_one(struct sim_inlet *inlet, const struct sim_socket *socket, uint32_t token)
{
    for (uint32_t i = 0; i < inlet->cards->options.buffers; i++) {
        if (inlet->buffers[i].holder == socket && inlet->buffers[i].token == token) {
            take_back(inlet, i);
            return;
        }
    }
    sim_violation("token %u of descriptor %d is given back, which it has not", token, socket->fd);
}

int sim_cards_give_back(void *host, int fd, const struct wf_tokens *ranges, int count)
{
    struct sim_socket *socket = sim_socket_of(host, fd);
    if (!socket->inlet)
        return 0;
    for (int i = 0; i < count; i++)
        for (uint32_t token = 0; token < ranges[i].count; token++)
            give_back_one(socket->inlet, socket, ranges[i].first + token);
    return 0;
}

void sim_cards_closed(struct sim_socket *socket)
{
    struct sim_inlet *inlet = socket->inlet;
    for (uint32_t i = 0; inlet && i < inlet->cards->options.buffers; i++)
        if (inlet->buffers[i].holder == socket)
            take_back(inlet, i);
    socket->inlet = NULL;
}

/* --- receiving --- */

bool sim_cards_can_read(const struct sim_socket *socket)
{
    bool bytes = socket->state == SIM_CONNECTED && socket->in.arrived > socket->in.read;
    return sim_can_read(socket) && (!bytes || !socket->inlet || socket->inlet->free_count > 0);
}

static uint32_t free_buffer(struct sim_inlet *inlet)
{
    uint32_t count = inlet->cards->options.buffers, at = (uint32_t)sim_below(inlet->cards->sim, count);
    while (inlet->buffers[at].holder)
        at = (at + 1) % count;
    return at;
}

struct reading {
    struct sim_socket *socket;
    struct wf_op *op;
    size_t host; /* bytes in `iov` */
};

static void tell(struct reading *reading, int type, const struct devmem_fragment *fragment)
{
    struct wf_control *control = reading->op->control;
    struct cmsghdr *one = (struct cmsghdr *)(void *)((uint8_t *)control->bytes + control->length);
    *one = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = type, .cmsg_len = CMSG_LEN(sizeof *fragment)};
    memcpy(CMSG_DATA(one), fragment, sizeof *fragment);
    control->length += CMSG_SPACE(sizeof *fragment);
}

/* One fragment of up to `most` bytes, in the inlet or in host memory. Returns its bytes; 0: no buffer is free, or the
 * stream gives none. */
static size_t bring(struct reading *reading, size_t most)
{
    struct sim_socket *socket = reading->socket;
    struct sim_inlet *inlet = socket->inlet;
    struct wf_sim_cards *cards = inlet->cards;
    bool in_host = sim_chance(cards->sim, cards->options.host_percent);
    size_t bytes = most < cards->options.buffer_bytes ? most : cards->options.buffer_bytes;
    if (sim_chance(cards->sim, 20))
        bytes = 1 + sim_below(cards->sim, bytes);
    if (!in_host && inlet->free_count == 0)
        return 0;
    uint32_t at = in_host ? 0 : free_buffer(inlet);
    uint8_t *base = in_host ? (uint8_t *)reading->op->iov[0].iov_base + reading->host : view(inlet, at);
    struct iovec place = {base, bytes};
    int64_t n = sim_read(socket, &place, bytes);
    if (n <= 0)
        return 0;
    struct devmem_fragment fragment = {.bytes = (uint32_t)n};
    if (!in_host) {
        if (inlet->wrong)
            base[sim_below(cards->sim, (uint64_t)n)] ^= 1;
        fragment.offset = (uint64_t)at * cards->options.buffer_bytes;
        fragment.token = inlet->next_token++;
        inlet->buffers[at] = (struct sim_buffer){socket, fragment.token};
        inlet->free_count -= 1;
        cards->counts.out += 1;
        cards->counts.device_bytes += (uint64_t)n;
    } else {
        reading->host += (size_t)n;
        cards->counts.host_bytes += (uint64_t)n;
    }
    tell(reading, in_host ? DEVMEM_LINEAR : DEVMEM_DMABUF, &fragment);
    return (size_t)n;
}

int64_t sim_cards_read(struct sim_socket *socket, struct wf_op *op, size_t bytes)
{
    struct reading reading = {.socket = socket, .op = op};
    uint64_t there = socket->state == SIM_CONNECTED ? socket->in.arrived - socket->in.read : 0;
    size_t moved = 0;
    op->control->length = 0;
    if (!socket->inlet || there == 0)
        return sim_read(socket, op->iov, bytes);
    struct wf_sim_cards *cards = socket->inlet->cards;
    uint64_t before = socket->in.read < socket->led_from ? socket->led_from - socket->in.read : 0;
    if (before > 0 || sim_chance(cards->sim, cards->options.plain_percent)) {
        int64_t n = sim_read(socket, op->iov, before > 0 && before < bytes ? before : bytes);
        cards->counts.host_bytes += n > 0 ? (uint64_t)n : 0;
        return n;
    }
    while (moved < bytes && socket->in.arrived > socket->in.read &&
           op->control->length + CMSG_SPACE(sizeof(struct devmem_fragment)) <= op->control->room) {
        size_t some = bring(&reading, bytes - moved);
        if (some == 0)
            break;
        moved += some;
        if (sim_chance(cards->sim, 25))
            break;
    }
    if (moved == 0) /* the fragment was to be one, and no buffer is free */
        return sim_read(socket, op->iov, 1);
    return (int64_t)moved;
}

/* --- loans --- */

static int lend(void *host, const struct wf_card_way *way, const void *base, uint64_t bytes, struct wf_card_loan *loan,
                struct wf_status *status)
{
    struct wf_sim_cards *cards = host;
    (void)way;
    if (sim_chance(cards->sim, cards->options.no_loans_percent))
        return wf_fail(status, -ENOTSUP, "this simulated card does not take it");
    uint32_t at = 0;
    while (at < cards->loan_room && cards->loans[at].base)
        at += 1;
    if (at == cards->loan_room) {
        uint32_t room = cards->loan_room ? 2 * cards->loan_room : 64;
        struct sim_loan *loans = room <= LOANS_MAX ? realloc(cards->loans, room * sizeof *loans) : NULL;
        if (!loans)
            abort();
        memset(loans + cards->loan_room, 0, (room - cards->loan_room) * sizeof *loans);
        cards->loans = loans;
        cards->loan_room = room;
    }
    cards->loans[at] = (struct sim_loan){.base = base, .bytes = bytes, .offset = 4096 * sim_below(cards->sim, 8)};
    *loan = (struct wf_card_loan){
        .handle = (void *)(uintptr_t)(at + 1), .binding = at + 1, .offset = cards->loans[at].offset};
    cards->counts.loans += 1;
    return 0;
}

static void take_loan_back(void *host, struct wf_card_loan *loan)
{
    struct wf_sim_cards *cards = host;
    cards->loans[loan->binding - 1] = (struct sim_loan){0};
    cards->counts.loans -= 1;
}

int64_t sim_cards_write(struct sim_socket *socket, const struct wf_op *op, size_t bytes)
{
    struct wf_sim_cards *cards = socket->sim->cards;
    if (!cards)
        return -EINVAL;
    const struct sim_loan *loan = op->binding <= cards->loan_room ? &cards->loans[op->binding - 1] : NULL;
    uint64_t offset = (uint64_t)(uintptr_t)op->iov[0].iov_base;
    size_t some = op->iov[0].iov_len < bytes ? op->iov[0].iov_len : bytes;
    if (!loan || !loan->base || offset < loan->offset || offset - loan->offset > loan->bytes ||
        some > loan->bytes - (offset - loan->offset))
        sim_violation("a send of %zu bytes from offset %llu of binding %u, which has not so many", some,
                      (unsigned long long)offset, op->binding);
    struct iovec place = {wf_sim_memory_view(cards->memory, loan->base + (offset - loan->offset), some), some};
    int64_t n = sim_write(socket, &place, some);
    cards->counts.lent_bytes += n > 0 ? (uint64_t)n : 0;
    return n;
}

const struct wf_card_ops wf_cards_sim = {
    .open = open_inlet,
    .close = close_inlet,
    .steer = steer,
    .unsteer = unsteer,
    .lend = lend,
    .take_back = take_loan_back,
};
