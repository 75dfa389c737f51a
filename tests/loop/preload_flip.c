/*
 * preload_flip.c: a library to preload that damages data on its way in: of every FLIP_EVERY-th receive of 32 KiB or
 * more it inverts one bit in the middle. Nothing else changes; without FLIP_EVERY nothing at all.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* the build hides what is not asked for */

#define LARGE (32 * 1024)

static atomic_ulong seen;

static unsigned long every(void)
{
    const char *text = getenv("FLIP_EVERY");

    return text ? strtoul(text, NULL, 10) : 0;
}

static void flip(const struct iovec *parts, size_t count, ssize_t received)
{
    unsigned long period = every();
    int kept = errno;

    if (received >= LARGE && period && atomic_fetch_add(&seen, 1) % period == period - 1) {
        size_t at = (size_t)received / 2;
        for (size_t i = 0; i < count; at -= parts[i].iov_len, i++) {
            if (at < parts[i].iov_len) {
                ((unsigned char *)parts[i].iov_base)[at] ^= 0x10;
                break;
            }
        }
    }
    errno = kept;
}

static void flip_one(void *data, size_t length, ssize_t received)
{
    struct iovec part = {.iov_base = data, .iov_len = length};

    flip(&part, 1, received);
}

/* A file is not on its way from anywhere. */
static int is_socket(int fd)
{
    int type, kept = errno;
    socklen_t length = sizeof(type);
    int result = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0;

    errno = kept;
    return result;
}

#define NEXT(type, name)                                                                                               \
    static type next;                                                                                                  \
    if (!next)                                                                                                         \
    next = (type)dlsym(RTLD_NEXT, name)

typedef ssize_t (*recv_fn)(int, void *, size_t, int);
typedef ssize_t (*recvfrom_fn)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
typedef ssize_t (*recvmsg_fn)(int, struct msghdr *, int);
typedef ssize_t (*readv_fn)(int, const struct iovec *, int);
typedef ssize_t (*read_fn)(int, void *, size_t);

ssize_t recv(int fd, void *data, size_t length, int flags)
{
    NEXT(recv_fn, "recv");
    ssize_t received = next(fd, data, length, flags);

    flip_one(data, length, received);
    return received;
}

ssize_t recvfrom(int fd, void *data, size_t length, int flags, struct sockaddr *address, socklen_t *room)
{
    NEXT(recvfrom_fn, "recvfrom");
    ssize_t received = next(fd, data, length, flags, address, room);

    flip_one(data, length, received);
    return received;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    NEXT(recvmsg_fn, "recvmsg");
    ssize_t received = next(fd, message, flags);

    if (!(flags & MSG_ERRQUEUE))
        flip(message->msg_iov, message->msg_iovlen, received);
    return received;
}

ssize_t readv(int fd, const struct iovec *parts, int count)
{
    NEXT(readv_fn, "readv");
    ssize_t received = next(fd, parts, count);

    if (received >= LARGE && is_socket(fd))
        flip(parts, (size_t)count, received);
    return received;
}

ssize_t read(int fd, void *data, size_t length)
{
    NEXT(read_fn, "read");
    ssize_t received = next(fd, data, length);

    if (received >= LARGE && is_socket(fd))
        flip_one(data, length, received);
    return received;
}
