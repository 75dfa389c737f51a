/*
 * Many messages in one thread, with an event loop: requests end in a completion queue, and the descriptor of the queue
 * is in an epoll set, beside another one that is the program's own (for signals).
 *
 *     event_loop listen PORT             waits for the other process and receives (PORT 0: the kernel chooses one)
 *     event_loop connect ADDRESS:PORT    connects to it and sends
 *
 * MESSAGES messages go across, UNDER_WAY of them at a time: each that ends makes room for the next. Ctrl-C ends either
 * side early, in an orderly way. The exit status is 0 when every message has arrived and is right.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "weft.h"

#define MESSAGES 1000
#define MESSAGE_BYTES (64u << 10)
#define UNDER_WAY 8
#define PATIENCE_MS 30000

/* The memory of one message. While `request` is not NULL it belongs to the library: nobody else may touch the bytes. */
struct slot {
    struct weft_request *request; /* NULL: nothing is under way here */
    uint64_t number;              /* of the message, which is also its tag */
    unsigned char bytes[MESSAGE_BYTES];
};

struct transfer {
    const char *name; /* of the program */
    int sends;
    struct weft_connection *connection;
    struct weft_queue *queue;
    struct slot slots[UNDER_WAY];
    uint64_t posted, done;
    int under_way; /* requests that have been posted and have not come out of the queue */
    int stopping;  /* 1: something is wrong, or a signal has come: nothing more is posted */
};

/* What a message is filled with, so that the receiver can tell a wrong one. */
static unsigned char pattern(uint64_t number)
{
    return (unsigned char)(number % 251 + 1);
}

static int is_right(const struct slot *slot, uint64_t bytes)
{
    for (uint64_t i = 0; i < MESSAGE_BYTES; i++)
        if (slot->bytes[i] != pattern(slot->number))
            return 0;
    return bytes == MESSAGE_BYTES;
}

/* Posts nothing more, and asks for an early end of what is under way. These requests still come out of the queue. */
static void stop(struct transfer *transfer, const char *why)
{
    if (transfer->stopping)
        return;
    fprintf(stderr, "%s: %s\n", transfer->name, why);
    transfer->stopping = 1;
    for (int i = 0; i < UNDER_WAY; i++)
        if (transfer->slots[i].request)
            weft_cancel(transfer->slots[i].request);
}

/*
 * Posts the next message from, or into, a free slot. The call does not wait. The request has a queue, so it is never
 * tested or waited for: its completion comes out of the queue, with the slot as `user_data`.
 */
static void post(struct transfer *transfer, struct slot *slot)
{
    struct weft_options options = {.queue = transfer->queue, .user_data = slot, .timeout_ms = PATIENCE_MS};
    if (transfer->stopping || transfer->posted == MESSAGES)
        return;
    slot->number = transfer->posted;
    /* Messages with the same tag match in the order of posting. Here each has its own tag, so their order is free. */
    memset(slot->bytes, transfer->sends ? pattern(slot->number) : 0, sizeof slot->bytes);
    int result =
        transfer->sends
            ? weft_send(transfer->connection, slot->bytes, sizeof slot->bytes, slot->number, &options, &slot->request)
            : weft_recv(transfer->connection, slot->bytes, sizeof slot->bytes, slot->number, &options, &slot->request);
    if (result < 0) { /* nothing was posted; -EAGAIN would mean: more than the setting `requests` are under way */
        slot->request = NULL;
        stop(transfer, strerror(-result));
        return;
    }
    transfer->posted++;
    transfer->under_way++;
}

/* A request has ended: its memory is the program's again. */
static void ended(struct transfer *transfer, const struct weft_completion *completion)
{
    struct slot *slot = completion->user_data;
    slot->request = NULL; /* the handle is gone */
    transfer->under_way--;
    if (completion->status < 0) {
        stop(transfer, completion->text); /* one line: the operation, the peer, the reason */
        return;
    }
    if (!transfer->sends && !is_right(slot, completion->bytes)) {
        stop(transfer, "a message is wrong");
        return;
    }
    transfer->done++;
    post(transfer, slot);
}

/* Takes some of what has ended; 0: the queue was empty. */
static int take_completions(struct transfer *transfer)
{
    struct weft_completion completions[UNDER_WAY];
    int count = weft_queue_poll(transfer->queue, completions, UNDER_WAY);
    for (int i = 0; i < count; i++)
        ended(transfer, &completions[i]);
    if (count < 0)
        stop(transfer, strerror(-count));
    return count;
}

static void take_signal(struct transfer *transfer, int signals)
{
    struct signalfd_siginfo signal;
    if (read(signals, &signal, sizeof signal) == (ssize_t)sizeof signal)
        stop(transfer, strsignal((int)signal.ssi_signo));
}

static int watch(int set, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

/*
 * Ends when nothing is under way any more: all messages are done, or the transfer was stopped. The thread sleeps only
 * after the queue was found empty. Until then it looks at the signals between two batches of completions: each makes
 * room for messages that may end at once, so the queue need not become empty before all of them are done.
 */
static int run(struct transfer *transfer, int set, int signals)
{
    int taken = 0; /* completions of the batch before */
    for (int i = 0; i < UNDER_WAY; i++)
        post(transfer, &transfer->slots[i]);
    while (transfer->under_way > 0) {
        struct epoll_event events[2];
        int count = epoll_wait(set, events, 2, taken > 0 ? 0 : -1);
        if (count < 0 && errno != EINTR) /* EINTR: the kernel has interrupted the sleep, and nothing is wrong */
            return -errno;
        for (int i = 0; i < count; i++)
            if (events[i].data.fd == signals)
                take_signal(transfer, signals);
        taken = take_completions(transfer);
    }
    return 0;
}

/* The loop with its descriptors. The queue owns its own: the program neither reads nor closes it. */
static int transfer_all(struct transfer *transfer, int signals, struct weft_error *err)
{
    int set = epoll_create1(EPOLL_CLOEXEC);
    int result = set < 0 || watch(set, weft_completion_fd(transfer->queue)) < 0 || watch(set, signals) < 0 ? -errno : 0;
    if (result == 0)
        result = run(transfer, set, signals);
    if (result < 0)
        snprintf(err->text, sizeof err->text, "epoll: %s", strerror(-result));
    if (set >= 0)
        close(set);
    return result;
}

/* Joins endpoint 0 of this process and endpoint 0 of the other one. These calls wait, PATIENCE_MS at most. */
static int join(struct weft_context *context, const char *where, struct transfer *transfer, struct weft_error *err)
{
    struct weft_endpoint *endpoint;
    struct weft_peer *peer;
    int result = weft_endpoint_create(context, 0, &endpoint, err);
    if (result == 0 && transfer->sends) {
        result = weft_connect(context, where, PATIENCE_MS, &peer, err);
        if (result == 0)
            result = weft_connection_open(endpoint, peer, 0, PATIENCE_MS, &transfer->connection, err);
    } else if (result == 0) {
        result = weft_listen(context, where, err);
        if (result == 0) {
            printf("port %d\n", weft_listen_port(context));
            fflush(stdout);
            result = weft_accept(context, PATIENCE_MS, &peer, err);
        }
        if (result == 0)
            result = weft_connection_accept(endpoint, peer, 0, PATIENCE_MS, &transfer->connection, err);
    }
    return result;
}

/*
 * SIGINT and SIGTERM as a descriptor. They are blocked before there is a context, so that its threads have them
 * blocked, too. One that comes before the loop runs is kept, and the loop finds it.
 */
static int open_signals(void)
{
    sigset_t caught;
    sigemptyset(&caught);
    sigaddset(&caught, SIGINT);
    sigaddset(&caught, SIGTERM);
    sigprocmask(SIG_BLOCK, &caught, NULL);
    return signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
    struct weft_error err = {0};
    struct weft_context *context = NULL;
    int sends = argc == 3 && strcmp(argv[1], "connect") == 0;
    if (!sends && (argc != 3 || strcmp(argv[1], "listen") != 0)) {
        fprintf(stderr, "usage: %s listen PORT | connect ADDRESS:PORT\n", argv[0]);
        return 2;
    }
    int signals = open_signals();
    struct transfer *transfer = calloc(1, sizeof *transfer);
    if (signals < 0 || !transfer) {
        perror(argv[0]);
        return 1;
    }
    transfer->name = argv[0];
    transfer->sends = sends;

    int result = weft_context_create(NULL, &context, &err); /* settings: the defaults and the environment */
    if (result == 0)
        result = join(context, argv[2], transfer, &err);
    if (result == 0)
        result = weft_queue_create(context, &transfer->queue, &err);
    if (result == 0)
        result = transfer_all(transfer, signals, &err);
    if (result < 0)
        fprintf(stderr, "%s: %s\n", argv[0], err.text);
    printf("%s %" PRIu64 " of %d messages\n", sends ? "sent" : "received", transfer->done, MESSAGES);

    int complete = result == 0 && transfer->done == MESSAGES;
    weft_context_destroy(context); /* ends the session and the queue; nothing touches the slots any more */
    free(transfer);
    close(signals);
    return complete ? 0 : 1;
}
