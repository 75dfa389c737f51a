/* Opening a ring: what is needed of the kernel, what is used where it is there, and why it is refused. */
#include "io/uring_ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define SUBMISSIONS 256u  /* more in one poll take more than one call */
#define COMPLETIONS 2048u /* more wait in the kernel */
#define LENT_ALIGNMENT 4096
#define LENT_BYTES (1024u * 1024) /* a few calls' worth */

/* Linux 5.13: timeouts as an argument (5.11), no lost completions, arguments read when submitted, repeated polls. */
#define NEEDED                                                                                                         \
    (IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_FAST_POLL |                    \
     IORING_FEAT_RSRC_TAGS)

static const uint8_t needed_operations[] = {
    IORING_OP_POLL_ADD, IORING_OP_SEND, IORING_OP_RECV, IORING_OP_SENDMSG, IORING_OP_RECVMSG, IORING_OP_ASYNC_CANCEL,
};

static int disabled_by_sysctl(void)
{
    int value = 0;
    FILE *file = fopen("/proc/sys/kernel/io_uring_disabled", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%d", &value) != 1)
        value = 0;
    fclose(file);
    return value;
}

static int refused_ring(struct wf_status *status, int result)
{
    int disabled = disabled_by_sysctl();
    switch (result) {
    case -ENOSYS:
        return wf_fail(status, -EOPNOTSUPP, "io_uring is not in this kernel, or hidden by a sandbox");
    case -EPERM:
    case -EACCES:
        if (disabled)
            return wf_fail(status, -EOPNOTSUPP, "io_uring is forbidden: sysctl kernel.io_uring_disabled = %d",
                           disabled);
        return wf_fail(status, -EOPNOTSUPP, "io_uring is forbidden (%s): a seccomp filter, as containers have",
                       wf_strerror(result));
    case -ENOMEM:
        return wf_fail(status, -EOPNOTSUPP, "io_uring gets no memory: raise the limit of locked memory (ulimit -l)");
    default:
        return wf_fail(status, result, "io_uring_setup: %s", wf_strerror(result));
    }
}

static int setup(struct wf_ring *ring, unsigned flags)
{
    struct io_uring_params params = {.flags = IORING_SETUP_CQSIZE | flags, .cq_entries = COMPLETIONS};
    return io_uring_queue_init_params(SUBMISSIONS, &ring->uring, &params);
}

static int check_operations(struct wf_ring *ring, struct wf_status *status)
{
    struct io_uring_probe *probe = io_uring_get_probe_ring(&ring->uring);
    if (!probe)
        return wf_fail(status, -EOPNOTSUPP, "io_uring does not tell what it can do");
    int missing = -1;
    for (unsigned i = 0; i < sizeof needed_operations && missing < 0; i++)
        if (!io_uring_opcode_supported(probe, needed_operations[i]))
            missing = needed_operations[i];
#ifdef WEFT_URING_5_19
    ring->poll_first = io_uring_opcode_supported(probe, IORING_OP_SOCKET); /* came in the same release */
#endif
#ifdef WEFT_URING_ZERO_COPY
    ring->zero_copy =
        io_uring_opcode_supported(probe, IORING_OP_SEND_ZC) && io_uring_opcode_supported(probe, IORING_OP_SENDMSG_ZC);
#endif
    io_uring_free_probe(probe);
    return missing < 0 ? 0 : wf_fail(status, -EOPNOTSUPP, "io_uring lacks operation %d in this kernel", missing);
}

int wf_ring_open(struct wf_ring *ring, bool pinned, struct wf_status *status)
{
    int result = -EINVAL;
    (void)pinned;
#ifdef WEFT_URING_5_19
    if (pinned)
        result = setup(ring, IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
#endif
    if (result == -EINVAL)
        result = setup(ring, 0);
    if (result < 0)
        return refused_ring(status, result);
    ring->open = true;
    if ((ring->uring.features & NEEDED) != NEEDED)
        return wf_fail(status, -EOPNOTSUPP, "io_uring of this kernel is too old: Linux 5.13 or newer is needed");
    return check_operations(ring, status);
}

/* What is lent counts as locked memory, as what is registered does: a try with the latter leaves nothing behind. */
int wf_ring_check_zero_copy(struct wf_ring *ring, struct wf_status *status)
{
    if (!ring->zero_copy)
        return wf_fail(status, -EOPNOTSUPP,
                       "io_uring has no send without a copy: Linux 6.1 and liburing 2.3 or newer are needed");
    struct iovec trial = {.iov_base = aligned_alloc(LENT_ALIGNMENT, LENT_BYTES), .iov_len = LENT_BYTES};
    if (!trial.iov_base)
        return wf_fail(status, -ENOMEM, "no memory to try a send without a copy");
    int result = io_uring_register_buffers(&ring->uring, &trial, 1);
    free(trial.iov_base);
    if (result == -ENOMEM)
        return wf_fail(status, result, "the limit of locked memory is too small to lend any: raise it (ulimit -l)");
    return result < 0 ? wf_fail(status, result, "lending memory to the kernel: %s", wf_strerror(result)) : 0;
}

void wf_ring_close(struct wf_ring *ring)
{
    if (ring->open)
        io_uring_queue_exit(&ring->uring);
    ring->open = false;
}

void wf_ring_wait(struct wf_ring *ring, int64_t timeout_ns)
{
    struct io_uring_cqe *ignored;
    if (timeout_ns < 0) {
        (void)io_uring_submit_and_wait(&ring->uring, 1);
        return;
    }
    struct __kernel_timespec wait = {.tv_sec = timeout_ns / WF_NS_PER_S, .tv_nsec = timeout_ns % WF_NS_PER_S};
#ifdef WEFT_URING_WAIT_TIMEOUT
    (void)io_uring_submit_and_wait_timeout(&ring->uring, &ignored, 1, &wait, NULL);
#else
    (void)io_uring_submit(&ring->uring);
    (void)io_uring_wait_cqes(&ring->uring, &ignored, 1, &wait, NULL);
#endif
}
