/* The control messages of a recvmsg(MSG_SOCK_DEVMEM): pieces of the stream, in its order. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "intake.h"
#include "intake_parts.h"

/* A message that is being read; nothing of it counts before all of it is. */
struct reading {
    const uint8_t *control;
    size_t left;    /* bytes of control messages */
    uint64_t host;  /* address of the next bytes in host memory */
    uint64_t bytes; /* of the pieces so far */
    uint64_t host_bytes;
    uint32_t count, devices; /* pieces; those in device memory */
};

static int too_many(const struct wf_devmem_intake *intake, struct wf_status *status)
{
    return wf_fail(status, -ENOBUFS, "more fragments than there is room for: %u of %u are in use", intake->used,
                   intake->setup.fragments_max);
}

static int add(struct wf_devmem_intake *intake, struct reading *reading, const struct wf_devmem_piece *piece,
               struct wf_status *status)
{
    if (reading->count == wf_devmem_intake_room(intake))
        return too_many(intake, status);
    intake->piece[(intake->pieces.end + reading->count++) & intake->pieces.mask] = *piece;
    reading->bytes += piece->bytes;
    if (piece->device) {
        reading->devices++;
    } else {
        reading->host += piece->bytes;
        reading->host_bytes += piece->bytes;
    }
    return 0;
}

static int add_fragment(struct wf_devmem_intake *intake, struct reading *reading, const struct wf_devmem_cmsg *data,
                        struct wf_status *status)
{
    const struct wf_devmem_intake_setup *setup = &intake->setup;
    struct wf_devmem_piece piece = {.from = data->offset, .bytes = data->bytes, .token = data->token, .device = true};

    if (data->dmabuf != setup->dmabuf)
        return wf_fail(status, -EBADMSG, "a fragment of dma-buf %u, not of %u", data->dmabuf, setup->dmabuf);
    if (data->bytes == 0 || data->bytes > setup->dmabuf_bytes || data->offset > setup->dmabuf_bytes - data->bytes)
        return wf_fail(status, -EBADMSG, "a fragment of %u bytes at %" PRIu64 " of a dma-buf of %" PRIu64, data->bytes,
                       data->offset, setup->dmabuf_bytes);
    return add(intake, reading, &piece, status);
}

static int add_host(struct wf_devmem_intake *intake, struct reading *reading, uint64_t bytes, struct wf_status *status)
{
    struct wf_devmem_piece piece = {.from = reading->host, .bytes = (uint32_t)bytes};

    if (bytes == 0 || bytes > UINT32_MAX)
        return wf_fail(status, -EBADMSG, "a part of %" PRIu64 " bytes in host memory", bytes);
    return add(intake, reading, &piece, status);
}

/* The next control message. Those of others are passed over. */
static int read_one(struct wf_devmem_intake *intake, struct reading *reading, struct wf_status *status)
{
    struct wf_devmem_cmsg data;
    struct cmsghdr header;

    if (reading->left < sizeof header)
        return wf_fail(status, -EBADMSG, "%zu bytes of a control message", reading->left);
    memcpy(&header, reading->control, sizeof header);
    if (header.cmsg_len < CMSG_LEN(0) || header.cmsg_len > reading->left)
        return wf_fail(status, -EBADMSG, "a control message of %zu bytes in %zu", (size_t)header.cmsg_len,
                       reading->left);
    const uint8_t *at = reading->control + CMSG_LEN(0);
    size_t space = CMSG_ALIGN(header.cmsg_len);
    reading->control += space < reading->left ? space : reading->left;
    reading->left -= space < reading->left ? space : reading->left;
    if (header.cmsg_level != SOL_SOCKET ||
        (header.cmsg_type != WF_DEVMEM_SCM_DMABUF && header.cmsg_type != WF_DEVMEM_SCM_LINEAR))
        return 0;
    if (header.cmsg_len < CMSG_LEN(sizeof data))
        return wf_fail(status, -EBADMSG, "a fragment's control message of %zu bytes", (size_t)header.cmsg_len);
    memcpy(&data, at, sizeof data);
    return header.cmsg_type == WF_DEVMEM_SCM_DMABUF ? add_fragment(intake, reading, &data, status)
                                                    : add_host(intake, reading, data.bytes, status);
}

uint32_t wf_devmem_intake_room(const struct wf_devmem_intake *intake)
{
    return intake->setup.fragments_max - intake->used;
}

int wf_devmem_intake_take(struct wf_devmem_intake *intake, const struct msghdr *message, size_t received,
                          struct wf_status *status)
{
    struct reading reading = {.control = message->msg_control,
                              .left = message->msg_control ? message->msg_controllen : 0,
                              .host = (uintptr_t)message->msg_iov->iov_base};
    int result = 0;

    if (message->msg_flags & (MSG_CTRUNC | MSG_ERRQUEUE))
        return wf_fail(status, -EBADMSG, "control messages are cut off (flags %#x)", (unsigned)message->msg_flags);
    while (reading.left && result == 0)
        result = read_one(intake, &reading, status);
    if (result == 0 && reading.count == 0) /* an ordinary packet: all of it is in host memory */
        result = add_host(intake, &reading, received, status);
    if (result)
        return result;
    if (reading.bytes != received || reading.host_bytes > message->msg_iov->iov_len)
        return wf_fail(status, -EBADMSG, "fragments of %" PRIu64 " bytes, %" PRIu64 " of them in host memory, for %zu",
                       reading.bytes, reading.host_bytes, received);
    intake->pieces.end += reading.count;
    intake->used += reading.count;
    intake->held += reading.devices;
    intake->counts.host_bytes += reading.host_bytes;
    intake->counts.device_bytes += reading.bytes - reading.host_bytes;
    return 0;
}
