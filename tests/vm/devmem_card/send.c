/* Transmission, of memory that the kernel can read and of device memory. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <linux/errqueue.h>
#include "probe.h"

#define SEND_BYTES (256 << 10)

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int connect_to(const char *interface, const char *host, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int64_t end = now_ms() + PATIENCE_MS;

    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        errx(2, "'%s' is no address", host);
    for (;;) {
        int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, (socklen_t)strlen(interface));
        setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one);
        if (!connect(fd, (struct sockaddr *)&address, sizeof address))
            return fd;
        if (now_ms() > end)
            err(1, "%s:%u", host, port);
        close(fd);
        usleep(20000);
    }
}

struct sender {
    int socket;
    struct memory memory;
    uint32_t id; /* of the binding */
    uint64_t calls, completions, copied;
};

static void send_plain(struct sender *sender, uint64_t bytes)
{
    static uint8_t block[SEND_BYTES];

    for (uint64_t at = 0; at < bytes;) {
        size_t count = bytes - at < sizeof block ? bytes - at : sizeof block, sent = 0;

        for (size_t i = 0; i < count; i++)
            block[i] = pattern(at + i);
        while (sent < count) {
            ssize_t result = send(sender->socket, block + sent, count - sent, MSG_NOSIGNAL);

            if (result < 0)
                err(1, "send");
            sent += (size_t)result;
        }
        at += count;
    }
}

/* Sends from an offset in the device memory: the address in the iovec is that. 0: not now, or bytes. */
static size_t send_device_once(struct sender *sender, uint64_t at, size_t count)
{
    char control[CMSG_SPACE(sizeof sender->id)] = {0};
    struct iovec iov = {(void *)(uintptr_t)at, count};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    ssize_t result;

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_DEVMEM_DMABUF;
    header->cmsg_len = CMSG_LEN(sizeof sender->id);
    memcpy(CMSG_DATA(header), &sender->id, sizeof sender->id);
    result = sendmsg(sender->socket, &message, MSG_ZEROCOPY | MSG_NOSIGNAL);
    if (result < 0 && errno != ENOBUFS)
        err(1, "sendmsg of device memory at %llu", (unsigned long long)at);
    if (result > 0)
        sender->calls++;
    return result > 0 ? (size_t)result : 0;
}

static void read_completions(struct sender *sender)
{
    char control[512];

    for (;;) {
        struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
        struct sock_extended_err error;

        if (recvmsg(sender->socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return;
        memcpy(&error, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof error);
        if (error.ee_origin != SO_EE_ORIGIN_ZEROCOPY)
            errx(1, "an error among the completions: %s", strerror((int)error.ee_errno));
        sender->completions += error.ee_data - error.ee_info + 1;
        if (error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
            sender->copied++;
    }
}

/* Until a completion can be read, which poll() tells as POLLERR, asked or not. False: none came in time. */
static bool wait_for_completion(const struct sender *sender, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = sender->socket};

    return poll(&poll_fd, 1, timeout_ms) > 0;
}

static void send_device(struct sender *sender, uint64_t bytes)
{
    int64_t end;

    for (uint64_t i = 0; i < bytes; i++)
        sender->memory.bytes[i] = pattern(i);
    for (uint64_t at = 0; at < bytes;) {
        size_t sent = send_device_once(sender, at, bytes - at < SEND_BYTES ? bytes - at : SEND_BYTES);

        /* There is no room for another call until an earlier one is done. */
        if (!sent && !wait_for_completion(sender, PATIENCE_MS))
            errx(1, "no room to send, and no completion in %d ms", PATIENCE_MS);
        at += sent;
        read_completions(sender);
    }
    for (end = now_ms() + PATIENCE_MS; sender->completions < sender->calls && now_ms() < end;) {
        wait_for_completion(sender, 100);
        read_completions(sender);
    }
}

int run_send(struct options *options, const char *address, uint16_t port, uint64_t bytes)
{
    struct sender sender = {0};
    struct binder binder;
    char last;

    if (options->device) {
        int result;

        sender.memory = make_memory((bytes + 4095) / 4096 * 4096, false);
        options->binding.fd = sender.memory.fd;
        binder_open(&binder);
        result = binder_bind(&binder, &options->binding);
        if (result < 0)
            errx(1, "refused: %s (%s)", strerror(-result), binder.said);
        sender.id = (uint32_t)result;
    }
    sender.socket = connect_to(options->binding.interface, address, port);
    if (options->device)
        send_device(&sender, bytes);
    else
        send_plain(&sender, bytes);
    shutdown(sender.socket, SHUT_WR);
    while (recv(sender.socket, &last, 1, 0) < 0 && errno == EINTR) /* until the receiver is done */
        continue;
    printf("sent=%llu\n", (unsigned long long)bytes);
    if (options->device)
        printf("calls=%llu\ncompletions=%llu\ncopied=%llu\n", (unsigned long long)sender.calls,
               (unsigned long long)sender.completions, (unsigned long long)sender.copied);
    return sender.completions != sender.calls;
}
