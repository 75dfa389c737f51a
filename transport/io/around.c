#include "io/around.h"

const struct wf_engine_ops *wf_around_set(struct wf_around *around, const struct wf_engine_ops *ops,
                                          const struct wf_engine_ops *inner, void *host)
{
    around->inner = inner;
    around->host = host;
    around->ops = *ops;
    around->ops.name = inner->name;
    around->ops.cuts_calls = inner->cuts_calls;
    if (!inner->zero_copy)
        around->ops.zero_copy = NULL;
    if (!inner->descriptor)
        around->ops.descriptor = NULL;
    return &around->ops;
}

int wf_around_probe(void *host, struct wf_status *status)
{
    struct wf_around *around = host;
    return around->inner->probe(around->host, status);
}

int wf_around_zero_copy(void *host, struct wf_status *status)
{
    struct wf_around *around = host;
    return around->inner->zero_copy(around->host, status);
}

int wf_around_socket(void *host, int family, const struct wf_socket_options *options, bool *bound_device)
{
    struct wf_around *around = host;
    return around->inner->socket(around->host, family, options, bound_device);
}

int wf_around_listen(void *host, const struct wf_socket_options *options, int backlog)
{
    struct wf_around *around = host;
    return around->inner->listen(around->host, options, backlog);
}

int wf_around_bind_device(void *host, int fd, const char *device)
{
    struct wf_around *around = host;
    return around->inner->bind_device(around->host, fd, device);
}

int wf_around_mark(void *host, int fd, int dscp)
{
    struct wf_around *around = host;
    return around->inner->mark(around->host, fd, dscp);
}

int wf_around_pace(void *host, int fd, uint64_t bytes_per_second)
{
    struct wf_around *around = host;
    return around->inner->pace(around->host, fd, bytes_per_second);
}

int wf_around_address(void *host, int fd, bool remote, struct sockaddr_storage *out)
{
    struct wf_around *around = host;
    return around->inner->address(around->host, fd, remote, out);
}

void wf_around_shutdown(void *host, int fd)
{
    struct wf_around *around = host;
    around->inner->shutdown(around->host, fd);
}

void wf_around_kill(void *host, int fd)
{
    struct wf_around *around = host;
    around->inner->kill(around->host, fd);
}

uint64_t wf_around_retransmits(void *host, int fd)
{
    struct wf_around *around = host;
    return around->inner->retransmits(around->host, fd);
}

int wf_around_give_back(void *host, int fd, const struct wf_tokens *ranges, int count)
{
    const struct wf_around *around = host;
    return around->inner->give_back(around->host, fd, ranges, count);
}

int wf_around_progress(void *host, int fd, struct wf_progress *out)
{
    struct wf_around *around = host;
    return around->inner->progress(around->host, fd, out);
}

void wf_around_close_fd(void *host, int fd)
{
    struct wf_around *around = host;
    around->inner->close_fd(around->host, fd);
}
