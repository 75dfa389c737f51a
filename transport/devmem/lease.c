#include "lease.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "helper.h"
#include "lend.h"

#define PATIENCE_S 15 /* longer than the helper waits for others */

struct wf_lease {
    uint32_t queue, binding;
    bool by_port;
    int helper;          /* connection; -1: the loan is its own */
    uint32_t asked;      /* number of the last request */
    int keeper;          /* netlink socket with the binding, from the helper */
    struct wf_loan loan; /* unused where there is a helper */
};

/* --- the helper --- */

/* A reply to an earlier request, which was waited for in vain, is passed over. */
static ssize_t receive_reply(int helper, uint32_t number, struct wf_helper_reply *reply, int *descriptor)
{
    for (;;) {
        ssize_t bytes = wf_helper_receive(helper, reply, sizeof *reply, descriptor);
        if (bytes != (ssize_t)sizeof *reply || reply->version != WF_HELPER_VERSION || reply->number == number)
            return bytes;
        if (*descriptor >= 0)
            close(*descriptor);
    }
}

static int gone(struct wf_status *status)
{
    return wf_fail(status, -EPIPE, "the helper 'weft nic serve' has ended: start it again, then lease anew");
}

static int hear(int helper, uint32_t number, struct wf_helper_reply *reply, int *descriptor, struct wf_status *status)
{
    ssize_t bytes = receive_reply(helper, number, reply, descriptor);
    int result = bytes == (ssize_t)sizeof *reply && reply->version == WF_HELPER_VERSION ? reply->result : -EPROTO;

    if (bytes == 0 || bytes == -ECONNRESET) {
        result = gone(status);
    } else if (bytes < 0 && bytes != -EMSGSIZE) {
        result =
            wf_fail(status, (int)bytes, "the helper 'weft nic serve' does not answer: %s", wf_strerror((int)bytes));
    } else if (result == -EPROTO || result > 0) {
        result =
            wf_fail(status, -EPROTO, "the helper 'weft nic serve' is of another version of Weft: start this one's");
    } else if (result) {
        reply->words[sizeof reply->words - 1] = '\0';
        wf_text_plain(reply->words);
        wf_fail(status, result, "%s", reply->words);
    }
    if (result && *descriptor >= 0) {
        close(*descriptor);
        *descriptor = -1;
    }
    return result;
}

static int say(struct wf_lease *lease, struct wf_helper_request *request, int sent, struct wf_helper_reply *reply,
               int *received, struct wf_status *status)
{
    *received = -1;
    request->version = WF_HELPER_VERSION;
    request->number = ++lease->asked;
    if (wf_helper_send(lease->helper, request, sizeof *request, sent) != 0)
        return gone(status);
    return hear(lease->helper, request->number, reply, received, status);
}

/* A greeting tells whether it talks to this user at all. */
static int call_helper(const char *folder, const char *card, int *helper, struct wf_status *status)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct wf_helper_reply greeting;
    int length = snprintf(at.sun_path, sizeof at.sun_path, "%s/" WF_HELPER_SOCKET, folder), none;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int result = fd < 0 ? -errno : length >= (int)sizeof at.sun_path ? -ENAMETOOLONG : 0;

    if (result == 0 && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
                        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
                        connect(fd, (struct sockaddr *)&at, sizeof at) != 0))
        result = -errno;
    if (result)
        result = wf_fail(status, -EPERM,
                         "%s: this process has no CAP_NET_ADMIN, and no helper answers at %s (%s): 'weft nic serve' "
                         "as root",
                         card, at.sun_path, wf_strerror(result));
    else
        result = hear(fd, 0, &greeting, &none, status);
    if (result == 0) {
        if (none >= 0)
            close(none);
        *helper = fd;
    } else if (fd >= 0) {
        close(fd);
    }
    return result;
}

static int ask_for_queue(struct wf_lease *lease, const char *folder, const struct wf_lend_terms *terms,
                         struct wf_status *status)
{
    struct wf_helper_request request = {
        .verb = WF_HELPER_LEASE, .network = wf_helper_network(), .buffer = terms->buffer};
    struct wf_helper_reply reply;
    int result = call_helper(folder, terms->card, &lease->helper, status);

    if (result)
        return result;
    snprintf(request.card, sizeof request.card, "%.15s", terms->card);
    result = say(lease, &request, terms->dmabuf, &reply, &lease->keeper, status);
    if (result == 0 && lease->keeper < 0)
        result = wf_fail(status, -EPROTO, "%s: the helper 'weft nic serve' has sent no binding", terms->card);
    if (result == 0) {
        lease->queue = reply.queue;
        lease->binding = reply.binding;
        lease->by_port = reply.by_port;
    } else {
        close(lease->helper);
    }
    return result;
}

/* --- a process with the capability --- */

static int take_queue(struct wf_lease *lease, const struct wf_devmem_kernel *kernel, const char *folder,
                      struct wf_lend_terms *terms, struct wf_status *status)
{
    wf_lent_name_holder(&terms->holder, geteuid(), getpid());
    int result = wf_lend(kernel, folder, terms, &lease->loan, status);
    if (result == 0) {
        lease->queue = lease->loan.lent.queue;
        lease->binding = lease->loan.lent.binding;
        lease->by_port = lease->loan.by_port;
    }
    return result;
}

/* --- either --- */

/* What is in the way of everybody is told before what is in the way of this process. */
static int look_first(const struct wf_devmem_kernel *kernel, const char *folder, const char *name, bool *may,
                      struct wf_status *status)
{
    struct wf_lend_card *card = calloc(1, sizeof *card);
    struct wf_devmem *devmem = NULL;
    int result = card ? wf_devmem_open(kernel, &devmem, status) : wf_fail(status, -ENOMEM, "%s: no memory", name);

    if (result == 0) {
        *may = wf_devmem_may_change(devmem);
        result = wf_lend_look(devmem, folder, name, card, status);
    }
    wf_devmem_close(devmem);
    free(card);
    return result;
}

int wf_lease_open(const struct wf_lease_place *place, const char *card, int dmabuf, uint32_t buffer,
                  struct wf_lease **lease, struct wf_status *status)
{
    const struct wf_devmem_kernel *kernel = place ? place->kernel : NULL;
    const char *folder = place && place->folder ? place->folder : WF_LENT_FOLDER;
    struct wf_lend_terms terms = {.card = card, .dmabuf = dmabuf, .buffer = buffer};
    struct wf_lease *made = calloc(1, sizeof *made);
    bool may = false;
    int result =
        made ? look_first(kernel, folder, card, &may, status) : wf_fail(status, -ENOMEM, "%s: no memory", card);

    if (result == 0) {
        made->helper = made->keeper = -1;
        result = may ? take_queue(made, kernel, folder, &terms, status) : ask_for_queue(made, folder, &terms, status);
    }
    if (result == 0)
        *lease = made;
    else
        free(made);
    return result;
}

/* The helper hears that the connection has ended, and takes the rules away. */
void wf_lease_close(struct wf_lease *lease)
{
    if (!lease)
        return;
    if (lease->helper < 0) {
        wf_loan_end(&lease->loan);
    } else {
        close(lease->helper);
        close(lease->keeper);
    }
    free(lease);
}

uint32_t wf_lease_queue(const struct wf_lease *lease)
{
    return lease->queue;
}

uint32_t wf_lease_binding(const struct wf_lease *lease)
{
    return lease->binding;
}

bool wf_lease_by_port(const struct wf_lease *lease)
{
    return lease->by_port;
}

int wf_lease_steer(struct wf_lease *lease, int socket, uint32_t *rule, struct wf_status *status)
{
    struct wf_helper_request request = {.verb = WF_HELPER_STEER};
    struct wf_helper_reply reply;
    int none;

    if (lease->helper < 0)
        return wf_loan_steer(&lease->loan, socket, rule, status);
    int result = say(lease, &request, socket, &reply, &none, status);
    if (none >= 0)
        close(none);
    if (result == 0)
        *rule = reply.rule;
    return result;
}

int wf_lease_unsteer(struct wf_lease *lease, uint32_t rule, struct wf_status *status)
{
    struct wf_helper_request request = {.verb = WF_HELPER_UNSTEER, .rule = rule};
    struct wf_helper_reply reply;
    int none;

    if (lease->helper < 0)
        return wf_loan_unsteer(&lease->loan, rule, status);
    int result = say(lease, &request, -1, &reply, &none, status);
    if (none >= 0)
        close(none);
    return result;
}
