/* One connection: one lease. What a client sends is read as if it meant harm. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devmem/helper.h"
#include "devmem/lend.h"
#include "serve.h"

struct visit {
    const struct serve_desk *desk;
    const struct wf_lent_holder *holder;
    int socket;
    bool lent;           /* there is a loan */
    char card[IFNAMSIZ]; /* of which */
    struct wf_loan loan;
};

void serve_log(const struct serve_desk *desk, const struct wf_lent_holder *holder, const char *format, ...)
{
    char line[WF_STATUS_TEXT + 64];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    wf_text_plain(line); /* a client's words may be in it */
    if (holder)
        fprintf(desk->log, "weft: user %u, process %d (%s): %s\n", holder->user, holder->process, holder->command,
                line);
    else
        fprintf(desk->log, "weft: %s\n", line);
    fflush(desk->log);
}

static bool is_served(const struct serve_desk *desk, const char *card)
{
    for (int i = 0; i < desk->card_count; i++)
        if (strcmp(desk->cards[i], card) == 0)
            return true;
    return desk->card_count == 0;
}

static int check_lease(const struct visit *visit, const struct wf_helper_request *request, int descriptor,
                       struct wf_status *status)
{
    if (!memchr(request->card, '\0', sizeof request->card) || descriptor < 0)
        return wf_fail(status, -EINVAL, "the helper wants the name of a card, and a dma-buf");
    if (visit->lent)
        return wf_fail(status, -EINVAL, "the helper lends one queue to a connection, and this one has queue %u",
                       visit->loan.lent.queue);
    if (request->network != wf_helper_network())
        return wf_fail(status, -ENODEV,
                       "the helper 'weft nic serve' is in another network namespace: start one in that of the cards");
    if (!is_served(visit->desk, request->card))
        return wf_fail(status, -EACCES, "%s: the helper was started for other cards: 'weft nic serve %s ...'",
                       request->card, request->card);
    return 0;
}

static int lease(struct visit *visit, const struct wf_helper_request *request, int descriptor,
                 struct wf_helper_reply *reply, struct wf_status *status)
{
    struct wf_lend_terms terms = {.card = request->card,
                                  .dmabuf = descriptor,
                                  .buffer = request->buffer,
                                  .holder = *visit->holder,
                                  .most = SERVE_EACH_MAX};
    int result = check_lease(visit, request, descriptor, status);

    if (result == 0)
        result = wf_lend(visit->desk->kernel, visit->desk->folder, &terms, &visit->loan, status);
    if (result)
        return result;
    visit->lent = true;
    memcpy(visit->card, request->card, sizeof visit->card);
    reply->queue = visit->loan.lent.queue;
    reply->binding = visit->loan.lent.binding;
    reply->by_port = visit->loan.by_port;
    serve_log(visit->desk, visit->holder, "%s: queue %u is bound", request->card, reply->queue);
    return 0;
}

static int change_rule(struct visit *visit, const struct wf_helper_request *request, int descriptor,
                       struct wf_helper_reply *reply, struct wf_status *status)
{
    bool add = request->verb == WF_HELPER_STEER;
    uint32_t rule = request->rule;

    if (!visit->lent || (add && descriptor < 0))
        return wf_fail(status, -EINVAL, "the helper wants %s before it leads a stream to a queue",
                       visit->lent ? "the stream's socket" : "to lend the queue");
    int result =
        add ? wf_loan_steer(&visit->loan, descriptor, &rule, status) : wf_loan_unsteer(&visit->loan, rule, status);
    if (result)
        return result;
    reply->rule = rule;
    serve_log(visit->desk, visit->holder, "%s: queue %u: rule %u is %s", visit->card, visit->loan.lent.queue, rule,
              add ? "set" : "taken away");
    return 0;
}

/* The reply has the binding where one was made; from then on it is the client's alone. */
static int answer(struct visit *visit, struct wf_helper_reply *reply, const struct wf_status *status)
{
    bool gives = visit->lent && visit->loan.binding;

    if (reply->result)
        memcpy(reply->words, status->text, sizeof reply->words);
    int result =
        wf_helper_send(visit->socket, reply, sizeof *reply, gives ? wf_devmem_socket(visit->loan.binding) : -1);
    if (gives) {
        wf_devmem_close(visit->loan.binding);
        visit->loan.binding = NULL;
    }
    return result;
}

/* 0: it may go on. */
static int serve_request(struct visit *visit, const struct wf_helper_request *request, int descriptor)
{
    struct wf_helper_reply reply = {.version = WF_HELPER_VERSION, .number = request->number};
    struct wf_status status = {0};
    bool other = request->version != WF_HELPER_VERSION;

    if (other)
        reply.result = wf_fail(&status, -EPROTO, "the helper is of version %d, and was asked as one of version %u",
                               WF_HELPER_VERSION, request->version);
    else if (request->verb == WF_HELPER_LEASE)
        reply.result = lease(visit, request, descriptor, &reply, &status);
    else if (request->verb == WF_HELPER_STEER || request->verb == WF_HELPER_UNSTEER)
        reply.result = change_rule(visit, request, descriptor, &reply, &status);
    else
        reply.result = wf_fail(&status, -EINVAL, "the helper knows no request %u", request->verb);
    if (reply.result)
        serve_log(visit->desk, visit->holder, "refused: %s", status.text);
    int result = answer(visit, &reply, &status);
    return other ? -EPROTO : result;
}

/* The last to close a client's descriptor may wait for it: a file of its own, a socket that lingers. Only this process
 * does, with nothing held. */
void serve_client(const struct serve_desk *desk, int socket, const struct wf_lent_holder *holder)
{
    struct visit *visit = calloc(1, sizeof *visit);
    struct wf_helper_request request;
    int descriptor, result = visit ? 0 : -ENOMEM;

    if (visit)
        *visit = (struct visit){.desk = desk, .holder = holder, .socket = socket};
    while (result == 0) {
        ssize_t bytes = wf_helper_receive(socket, &request, sizeof request, &descriptor);
        result = bytes == (ssize_t)sizeof request ? serve_request(visit, &request, descriptor) : -EPROTO;
        if (bytes > 0 && bytes != (ssize_t)sizeof request)
            serve_log(desk, holder, "ended: %zd bytes are no request", bytes);
        if (descriptor >= 0)
            close(descriptor);
    }
    if (visit && visit->lent) {
        int rules = wf_lent_count_rules(&visit->loan.lent);
        uint32_t queue = visit->loan.lent.queue;
        wf_loan_end(&visit->loan);
        serve_log(desk, holder, "has ended: %s: queue %u, %d rule%s taken away", visit->card, queue, rules,
                  rules == 1 ? "" : "s");
    }
    free(visit);
}
