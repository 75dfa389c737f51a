/*
 * client.c: vm_lease: a process that gets a queue of a card by transport/devmem/lease.h and receives a stream by it, in
 * a guest with a card that can do that. Memory of a device is played by udmabuf.
 *
 *     vm_lease [as UID] [wait] CARD [PORT [BYTES]]
 *     vm_lease [as UID] many COUNT CARD...
 *
 * With `wait` it tries until a queue is free. Prints what it has got, line by line. Without PORT it keeps the queue
 * until it is killed, without BYTES the stream. In the middle of BYTES it waits for a byte of its standard input.
 * `many` takes so many queues of each card, each with a rule, and keeps them until it is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/udmabuf.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "devmem/lease.h"

/* As of Linux 6.12. */
#define MSG_DEVMEM 0x2000000
#define DEVMEM_LINEAR 78
#define DEVMEM_FRAGMENT 79
#define DEVMEM_DONTNEED 80
#define MEMORY_BYTES (2 << 20)
#define FRAGMENTS 16 /* of one call */

struct fragment {
    uint64_t at;
    uint32_t bytes, token, binding, flags;
};

struct memory {
    int dmabuf;
    const uint8_t *bytes;
};

struct tally {
    uint64_t received, wrong, device; /* bytes */
};

static struct memory make_memory(void)
{
    int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    int file = memfd_create("device", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    struct memory memory = {.dmabuf = -1};

    if (device < 0 || file < 0 || ftruncate(file, MEMORY_BYTES) != 0 || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK))
        return memory;
    memory.bytes = mmap(NULL, MEMORY_BYTES, PROT_READ, MAP_SHARED, file, 0);
    struct udmabuf_create about = {.memfd = (uint32_t)file, .flags = UDMABUF_FLAGS_CLOEXEC, .size = MEMORY_BYTES};
    memory.dmabuf = memory.bytes == MAP_FAILED ? -1 : ioctl(device, UDMABUF_CREATE, &about);
    return memory;
}

/* The bytes that vm_devmem_card sends. */
static void compare(struct tally *tally, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t at = tally->received++;
        tally->wrong += bytes[i] != (uint8_t)(at * 131 + (at >> 8) * 7 + (at >> 16) * 29);
    }
}

static int give_back(int stream, uint32_t token)
{
    uint32_t range[2] = {token, 1};

    return setsockopt(stream, SOL_SOCKET, DEVMEM_DONTNEED, range, sizeof range);
}

/* Of one call: fragments and what lay beside them in the stream's order, or ordinary bytes. */
static int see(int stream, const struct memory *memory, struct msghdr *message, size_t bytes, struct tally *tally)
{
    const uint8_t *host = message->msg_iov->iov_base;
    struct fragment fragment;

    if (!CMSG_FIRSTHDR(message))
        compare(tally, host, bytes);
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        memcpy(&fragment, CMSG_DATA(header), sizeof fragment);
        if (header->cmsg_type == DEVMEM_LINEAR) {
            compare(tally, host, fragment.bytes);
            host += fragment.bytes;
        } else if (header->cmsg_type == DEVMEM_FRAGMENT && fragment.at + fragment.bytes <= MEMORY_BYTES) {
            compare(tally, memory->bytes + fragment.at, fragment.bytes);
            tally->device += fragment.bytes;
            if (give_back(stream, fragment.token) != 1)
                return -EIO;
        } else {
            return -EBADMSG;
        }
    }
    return 0;
}

static int receive(int stream, const struct memory *memory, uint64_t wanted)
{
    static uint8_t host[1 << 16];
    union {
        struct cmsghdr header;
        char room[FRAGMENTS * CMSG_SPACE(sizeof(struct fragment))];
    } control;
    struct tally tally = {0};
    bool waited = false;
    char byte;

    while (tally.received < wanted) {
        struct iovec piece = {.iov_base = host, .iov_len = sizeof host};
        struct msghdr message = {
            .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        ssize_t bytes = recvmsg(stream, &message, MSG_DEVMEM);
        if (bytes <= 0 || see(stream, memory, &message, (size_t)bytes, &tally) != 0)
            break;
        if (tally.received >= wanted / 2 && !waited) {
            waited = true;
            printf("half\n");
            if (read(STDIN_FILENO, &byte, 1) < 0)
                break;
        }
    }
    printf("received=%llu wrong=%llu device=%llu\n", (unsigned long long)tally.received,
           (unsigned long long)tally.wrong, (unsigned long long)tally.device);
    return tally.received == wanted && tally.wrong == 0 ? 0 : 1;
}

static int take_stream(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 1) != 0)
        return -errno;
    printf("listening\n");
    int stream = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
    return stream;
}

/* A stream of this process with itself: enough for a rule. */
static int make_stream(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), stream = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &length) != 0 ||
        connect(stream, (struct sockaddr *)&at, sizeof at) != 0)
        return -errno;
    stream = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
    return stream;
}

static int take_many(int count, char **cards)
{
    struct wf_lease *lease;
    struct wf_status status;
    uint32_t rule;

    for (; *cards; cards++)
        for (int i = 0; i < count; i++) {
            if (wf_lease_open(NULL, *cards, make_memory().dmabuf, 0, &lease, &status) != 0 ||
                wf_lease_steer(lease, make_stream(), &rule, &status) != 0) {
                printf("lease: %s\n", status.text);
                return 1;
            }
            printf("%s queue=%u\n", *cards, wf_lease_queue(lease));
        }
    printf("that was all\n");
    for (;;)
        pause();
}

static int become(const char *user)
{
    gid_t number = (gid_t)atoi(user);

    return setgroups(0, NULL) || setresgid(number, number, number) || setresuid(number, number, number);
}

/* Others have all queues now. */
static int wait_for_queue(const char *card, int dmabuf, struct wf_lease **lease, struct wf_status *status)
{
    int result, tries = 0;

    while ((result = wf_lease_open(NULL, card, dmabuf, 0, lease, status)) == -EBUSY) {
        if (tries++ == 0)
            printf("waiting\n");
        usleep(10000);
    }
    return result;
}

int main(int argc, char **argv)
{
    struct wf_lease *lease;
    struct wf_status status;
    uint32_t rule;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 2 && strcmp(argv[1], "as") == 0) {
        if (become(argv[2]) != 0)
            return 2;
        argc -= 2, argv += 2;
    }
    if (argc > 3 && strcmp(argv[1], "many") == 0)
        return take_many(atoi(argv[2]), argv + 3);
    bool waits = argc > 2 && strcmp(argv[1], "wait") == 0;
    argc -= waits, argv += waits;
    struct memory memory = make_memory();
    if (argc < 2 || memory.dmabuf < 0)
        return 2;
    if ((waits ? wait_for_queue(argv[1], memory.dmabuf, &lease, &status)
               : wf_lease_open(NULL, argv[1], memory.dmabuf, 0, &lease, &status)) != 0) {
        printf("lease: %s\n", status.text);
        return 1;
    }
    printf("queue=%u\n", wf_lease_queue(lease));
    while (argc < 3)
        pause();
    int stream = take_stream((uint16_t)atoi(argv[2]));
    if (stream < 0 || wf_lease_steer(lease, stream, &rule, &status) != 0) {
        printf("steer: %s\n", stream < 0 ? wf_strerror(stream) : status.text);
        return 1;
    }
    printf("rule=%u\n", rule);
    while (argc < 4)
        pause();
    int result = receive(stream, &memory, strtoull(argv[3], NULL, 10));
    close(stream);
    wf_lease_close(lease);
    return result;
}
