/* Transmission, of memory that the kernel can read and of device memory. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "card.h"
#include "devmem/exports.h"
#include "devmem/intake.h"

#define SEND_BYTES (256 << 10)

struct sender {
    int socket;
    struct wf_exports *exports;
    struct wf_export from;
    uint8_t *base; /* device memory */
    uint64_t calls, completions, copied;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int connect_to(const struct plan *plan)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(plan->port)};
    int64_t end = now_ms() + PATIENCE_MS;
    int one = 1;

    need_system(inet_pton(AF_INET, plan->address, &address.sin_addr) == 1, "address");
    for (;;) {
        int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt(made, SOL_SOCKET, SO_BINDTODEVICE, plan->card, (socklen_t)strlen(plan->card));
        setsockopt(made, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one);
        if (connect(made, (struct sockaddr *)&address, sizeof address) == 0)
            return made;
        need_system(now_ms() < end, "connect");
        close(made);
        usleep(20000);
    }
}

static uint8_t *make_content(uint64_t bytes)
{
    uint8_t *content = malloc(bytes);

    need(content ? 0 : -ENOMEM, "memory");
    for (uint64_t i = 0; i < bytes; i++)
        content[i] = pattern(i);
    return content;
}

static void send_plain(struct sender *sender, const uint8_t *content, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes;) {
        ssize_t sent =
            send(sender->socket, content + at, bytes - at < SEND_BYTES ? bytes - at : SEND_BYTES, MSG_NOSIGNAL);
        need_system(sent > 0, "send");
        at += (uint64_t)sent;
    }
}

/* The address in the iovec is an offset in the dma-buf. 0: there is no room for another call until one is done. */
static size_t send_device_once(struct sender *sender, uint64_t at, uint64_t bytes)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(uint32_t))];
    } control = {.room = {0}};
    struct iovec piece = {(void *)(uintptr_t)(sender->from.offset + at), bytes < SEND_BYTES ? bytes : SEND_BYTES};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.room};

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = WF_DEVMEM_SCM_DMABUF;
    control.header.cmsg_len = CMSG_LEN(sizeof sender->from.binding);
    memcpy(CMSG_DATA(&control.header), &sender->from.binding, sizeof sender->from.binding);
    ssize_t sent = sendmsg(sender->socket, &message, MSG_ZEROCOPY | MSG_NOSIGNAL);
    need_system(sent > 0 || errno == ENOBUFS, "sendmsg of device memory");
    sender->calls += sent > 0;
    return sent > 0 ? (size_t)sent : 0;
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
            need(wf_fail(&status, -(int)error.ee_errno, "%s", strerror((int)error.ee_errno)), "a completion");
        sender->completions += error.ee_data - error.ee_info + 1;
        sender->copied += error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED ? 1 : 0;
    }
}

/* poll() tells of it as POLLERR, asked or not. */
static void await_completion(struct sender *sender)
{
    struct pollfd errors = {.fd = sender->socket};

    if (poll(&errors, 1, PATIENCE_MS) != 1)
        need(wf_fail(&status, -ETIMEDOUT, "%llu of %llu", (unsigned long long)sender->completions,
                     (unsigned long long)sender->calls),
             "completions");
    read_completions(sender);
}

static void send_device(struct sender *sender, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes;) {
        size_t sent = send_device_once(sender, at, bytes - at);
        if (!sent)
            await_completion(sender);
        at += sent;
        read_completions(sender);
    }
    while (sender->completions < sender->calls)
        await_completion(sender);
}

static void lend_memory(struct sender *sender, const struct plan *plan, const uint8_t *content)
{
    use_gpu();
    sender->base = take_memory(plan->bytes);
    need(ops->copy_now(memory, sender->base, content, plan->bytes, &status), "copy");
    need(wf_exports_create(ops, memory, NULL, 1, &sender->exports, &status), "exports");
    need(wf_exports_use(sender->exports, (int)if_nametoindex(plan->card), sender->base, plan->bytes, &sender->from,
                        &status),
         "export");
}

int run_send(const struct plan *plan)
{
    struct sender sender = {0};
    uint8_t *content = make_content(plan->bytes);
    char byte;

    if (plan->device)
        lend_memory(&sender, plan, content);
    sender.socket = connect_to(plan);
    if (plan->told)
        need_system(recv(sender.socket, &byte, 1, 0) == 1, "word of the receiver");
    if (plan->device)
        send_device(&sender, plan->bytes);
    else
        send_plain(&sender, content, plan->bytes);
    shutdown(sender.socket, SHUT_WR);
    while (recv(sender.socket, &byte, 1, 0) > 0) /* until the receiver is done */
        continue;
    printf("sent=%llu\n", (unsigned long long)plan->bytes);
    if (plan->device) {
        printf("calls=%llu\ncompletions=%llu\ncopied=%llu\n", (unsigned long long)sender.calls,
               (unsigned long long)sender.completions, (unsigned long long)sender.copied);
        wf_exports_release(sender.exports, &sender.from);
        wf_exports_destroy(sender.exports);
        ops->free(memory, GPU, sender.base);
        ops->close(memory);
    }
    free(content);
    return sender.completions != sender.calls;
}
