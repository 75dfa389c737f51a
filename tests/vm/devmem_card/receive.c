/* Reception: where each byte of a stream has landed, and whether it is right. */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "card.h"
#include "devmem/devmem.h"
#include "devmem/intake.h"
#include "devmem/lease.h"
#include "devmem/lend.h"
#include "devmem/pool.h"

#define HOST_BYTES (1 << 20)
#define FRAGMENTS 1024 /* of one call */
#define PAGE 4096
#define STALL_MS 1500 /* nothing comes while buffers are held: they are used up */

/* What is bound, and a rule. Owner: the receiver. */
struct inlet {
    struct wf_devmem_pool pool;
    uint32_t buffer;        /* bytes */
    uint32_t binding;       /* 0: nothing is bound */
    struct wf_lease *lease; /* NULL: `devmem` has the binding */
    struct wf_devmem *devmem;
    struct wf_devmem_flow flow;
    uint32_t rule;
};

struct receiver {
    const struct plan *plan;
    struct inlet inlet;
    struct wf_devmem_intake *intake;
    int socket;
    uint8_t *host, *to; /* what comes beside fragments, and where all goes in the GPU */
    uint64_t received, linear, fragments, largest, given_back;
    uint64_t batch;        /* the last one; 0: none */
    uint64_t stalled_with; /* fragments held when nothing more came; 0: it never stalled */
};

/* --- what is bound --- */

static uint32_t buffer_for(const struct plan *plan)
{
    struct wf_devmem_card card;
    struct wf_devmem *devmem;

    need(wf_devmem_open(NULL, &devmem, &status), "netlink");
    need(wf_devmem_look(devmem, plan->card, &card, &status), "the card");
    wf_devmem_close(devmem);
    struct wf_devmem_need wanted = {.mtu = (uint32_t)card.mtu, .most = UINT64_MAX};
    return wf_devmem_buffer_bytes(&wanted, PAGE);
}

static int bind_pool(struct inlet *inlet, const struct plan *plan, uint32_t buffer)
{
    struct wf_devmem_rx rx = {.ifindex = (int)if_nametoindex(plan->card),
                              .queues = plan->queues,
                              .count = plan->queue_count,
                              .buffer = buffer};

    need(wf_devmem_pool_init(&inlet->pool, ops, memory, GPU, plan->memory, buffer, &status), "pool");
    rx.dmabuf = inlet->pool.dmabuf;
    int result = plan->lease ? wf_lease_open(NULL, plan->card, rx.dmabuf, buffer, &inlet->lease, &status)
                             : wf_devmem_bind_rx(inlet->devmem, &rx, &inlet->binding, &status);
    if (result < 0)
        wf_devmem_pool_fini(&inlet->pool, ops, memory);
    else
        wf_devmem_pool_close(&inlet->pool);
    return result;
}

/* As Weft does it with --fits: pages where larger ones are refused. */
static void open_inlet(struct inlet *inlet, const struct plan *plan)
{
    inlet->buffer = plan->fits ? buffer_for(plan) : plan->buffer;
    need(wf_devmem_open(NULL, &inlet->devmem, &status), "netlink");
    int result = bind_pool(inlet, plan, inlet->buffer);
    if (result == -ERANGE && plan->fits) {
        printf("without=%s\n", status.text);
        inlet->buffer = 0;
        result = bind_pool(inlet, plan, 0);
    }
    need(result, "refused");
    if (plan->lease) {
        inlet->binding = wf_lease_binding(inlet->lease);
        printf("queue=%u\n", wf_lease_queue(inlet->lease));
    }
    printf("buffer=%u\n", inlet->buffer ? inlet->buffer : PAGE);
}

static void steer(struct receiver *receiver)
{
    const struct plan *plan = receiver->plan;
    struct inlet *inlet = &receiver->inlet;

    if (plan->lease) {
        need(wf_lease_steer(inlet->lease, receiver->socket, &inlet->rule, &status), "steer");
    } else if (plan->steer >= 0) {
        need(wf_lend_flow(receiver->socket, &inlet->flow, &status), "flow");
        need(wf_devmem_steer(inlet->devmem, plan->card, &inlet->flow, (uint32_t)plan->steer, &inlet->rule, &status),
             "steer");
    }
    need_system(send(receiver->socket, "", 1, MSG_NOSIGNAL) == 1, "telling the sender");
}

static void close_inlet(const struct plan *plan, struct inlet *inlet)
{
    if (!plan->lease && plan->steer >= 0)
        need(wf_devmem_unsteer(inlet->devmem, plan->card, &inlet->flow, (uint32_t)plan->steer, inlet->rule, &status),
             "unsteer");
    wf_lease_close(inlet->lease);
    wf_devmem_close(inlet->devmem);
    if (inlet->binding)
        wf_devmem_pool_fini(&inlet->pool, ops, memory);
}

/* --- what comes --- */

static void count(struct receiver *receiver, struct msghdr *message)
{
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        struct wf_devmem_cmsg fragment;
        memcpy(&fragment, CMSG_DATA(header), sizeof fragment);
        if (header->cmsg_type == WF_DEVMEM_SCM_LINEAR) {
            receiver->linear += fragment.bytes;
        } else {
            receiver->fragments++;
            receiver->largest = fragment.bytes > receiver->largest ? fragment.bytes : receiver->largest;
        }
    }
}

static void copy(uint64_t to, const void *from, uint64_t bytes)
{
    need(ops->copy_now(memory, (void *)(uintptr_t)to, from, bytes, &status), "copy");
}

/* The copies are done when this returns, but the intake may hear of it later. */
static void place(struct receiver *receiver)
{
    static struct wf_devmem_gather gathers[FRAGMENTS];
    static struct wf_devmem_copy copies[FRAGMENTS];
    struct wf_devmem_batch batch = {
        .gathers = gathers, .copies = copies, .gathers_max = FRAGMENTS, .copies_max = FRAGMENTS};

    while (wf_devmem_intake_place(receiver->intake, &batch)) {
        for (uint32_t i = 0; i < batch.gather_count; i++)
            copy(gathers[i].to, receiver->inlet.pool.base + gathers[i].from, gathers[i].bytes);
        for (uint32_t i = 0; i < batch.copy_count; i++)
            copy(copies[i].to, copies[i].from, copies[i].bytes);
        receiver->batch = batch.number;
    }
}

static void give_back(struct receiver *receiver)
{
    struct wf_devmem_tokens ranges[WF_DEVMEM_RANGES_MAX];
    uint32_t count, fragments;

    if (receiver->batch)
        need(wf_devmem_intake_done(receiver->intake, receiver->batch), "done");
    while ((count = wf_devmem_intake_give_back(receiver->intake, ranges, &fragments)) > 0) {
        int freed =
            setsockopt(receiver->socket, SOL_SOCKET, SO_DEVMEM_DONTNEED, ranges, count * (socklen_t)sizeof ranges[0]);
        if (freed != (int)fragments)
            need(wf_fail(&status, -EIO, "%d of %u", freed, fragments), "giving back");
        receiver->given_back += fragments;
    }
}

/* 1: something came, 0: the end, or a negative errno. */
static int receive_some(struct receiver *receiver)
{
    static char control[WF_DEVMEM_CONTROL_BYTES(FRAGMENTS)];
    uint32_t room = wf_devmem_intake_room(receiver->intake);
    struct iovec piece = {receiver->host, HOST_BYTES};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = WF_DEVMEM_CONTROL_BYTES(room < FRAGMENTS ? room : FRAGMENTS)};

    if (room == 0)
        need(wf_fail(&status, -ENOBUFS, "more fragments than the pool has buffers"), "room");
    ssize_t bytes = recvmsg(receiver->socket, &message, MSG_SOCK_DEVMEM | MSG_DONTWAIT);
    if (bytes <= 0)
        return bytes < 0 ? -errno : 0;
    count(receiver, &message);
    need(wf_devmem_intake_take(receiver->intake, &message, (size_t)bytes, &status), "take");
    place(receiver);
    receiver->received += (uint64_t)bytes;
    return 1;
}

/* A stall while buffers are held ends the holding. */
static void wait_for_more(struct receiver *receiver, bool holding)
{
    struct pollfd readable = {.fd = receiver->socket, .events = POLLIN};

    if (poll(&readable, 1, holding ? STALL_MS : PATIENCE_MS) != 0)
        return;
    if (!holding)
        need(wf_fail(&status, -ETIMEDOUT, "nothing more after %llu bytes", (unsigned long long)receiver->received),
             "receive");
    receiver->stalled_with = wf_devmem_intake_held(receiver->intake);
    give_back(receiver);
}

static int receive_all(struct receiver *receiver)
{
    bool hold = receiver->plan->hold;

    while (receiver->received < receiver->plan->bytes) {
        int result = receive_some(receiver);
        if (result == -EAGAIN)
            wait_for_more(receiver, hold && !receiver->stalled_with);
        else if (result <= 0)
            return result ? result : -EPIPE;
        if (!hold || receiver->stalled_with)
            give_back(receiver);
    }
    return 0;
}

static int accept_one(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct pollfd listener = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .events = POLLIN};
    int one = 1;

    setsockopt(listener.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    need_system(bind(listener.fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener.fd, 1) == 0,
                "listen");
    puts("listening");
    if (poll(&listener, 1, PATIENCE_MS) != 1)
        need(wf_fail(&status, -ETIMEDOUT, "nobody connects"), "listen");
    int accepted = accept(listener.fd, NULL, NULL);
    close(listener.fd);
    return accepted;
}

/* The intake gets the whole stream as one chunk. */
static void open_intake(struct receiver *receiver)
{
    const struct inlet *inlet = &receiver->inlet;
    struct wf_devmem_intake_setup setup = {.dmabuf = inlet->binding,
                                           .dmabuf_bytes = inlet->pool.bytes,
                                           .fragments_max = (uint32_t)(inlet->pool.bytes / PAGE) + FRAGMENTS,
                                           .chunks_max = 1};

    receiver->host = malloc(HOST_BYTES);
    receiver->to = take_memory(receiver->plan->bytes);
    struct wf_devmem_chunk chunk = {.bytes = receiver->plan->bytes, .to = (uintptr_t)receiver->to};
    need(receiver->host ? 0 : -ENOMEM, "memory");
    need(wf_devmem_intake_create(&setup, &receiver->intake, &status), "intake");
    need(wf_devmem_intake_expect(receiver->intake, &chunk, &status), "expect");
}

static uint64_t count_wrong(const struct receiver *receiver)
{
    uint64_t wrong = 0;

    for (uint64_t at = 0; at < receiver->received; at += HOST_BYTES) {
        uint64_t bytes = receiver->received - at < HOST_BYTES ? receiver->received - at : HOST_BYTES;
        copy((uintptr_t)receiver->host, receiver->to + at, bytes);
        for (uint64_t i = 0; i < bytes; i++)
            wrong += receiver->host[i] != pattern(at + i);
    }
    return wrong;
}

static void print(const struct receiver *receiver, uint64_t wrong)
{
    struct wf_devmem_intake_counts counts = wf_devmem_intake_counts(receiver->intake);
    const struct {
        const char *name;
        uint64_t value;
    } lines[] = {
        {"received", receiver->received},
        {"wrong", wrong},
        {"device", counts.device_bytes},
        {"linear", receiver->linear},
        {"plain", counts.host_bytes - receiver->linear},
        {"fragments", receiver->fragments},
        {"largest", receiver->largest},
        {"given_back", receiver->given_back},
        {"stalled_with", receiver->stalled_with},
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        printf("%s=%llu\n", lines[i].name, (unsigned long long)lines[i].value);
}

int run_receive(const struct plan *plan)
{
    struct receiver receiver = {.plan = plan};

    use_gpu();
    if (plan->lease || plan->queue_count > 0)
        open_inlet(&receiver.inlet, plan);
    open_intake(&receiver);
    receiver.socket = accept_one(plan->port);
    steer(&receiver);
    int result = receive_all(&receiver);
    uint64_t wrong = count_wrong(&receiver);
    print(&receiver, wrong);
    if (result)
        printf("error=%s\n", strerrorname_np(-result));
    wf_devmem_intake_destroy(receiver.intake);
    close(receiver.socket); /* the sender waits for that */
    close_inlet(plan, &receiver.inlet);
    ops->free(memory, GPU, receiver.to);
    ops->close(memory);
    free(receiver.host);
    return result ? 3 : wrong > 0;
}
