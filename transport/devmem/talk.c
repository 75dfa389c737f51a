#include "talk.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of struct nlmsgerr's attributes, from 5.19 and 4.12 on. */
#define ERROR_WORDS 1
#define ERROR_MISSING_TYPE 5
#ifndef NLM_F_CAPPED
#define NLM_F_CAPPED 0x100
#endif
#ifndef NLM_F_ACK_TLVS
#define NLM_F_ACK_TLVS 0x200
#endif

#define WORDS_MAX 160
#define ANSWERS_MAX 64 /* reads of one request: more is no conversation */

/* --- requests --- */

void wf_devmem_start(struct wf_devmem *devmem, struct wf_devmem_request *request, uint16_t family, uint8_t command,
                     uint16_t flags)
{
    struct genlmsghdr *generic;

    memset(request, 0, sizeof *request);
    struct nlmsghdr *header = mnl_nlmsg_put_header(&request->at);
    header->nlmsg_type = family;
    header->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    header->nlmsg_seq = ++devmem->sequence;
    generic = mnl_nlmsg_put_extra_header(header, sizeof *generic);
    generic->cmd = command;
    generic->version = 1;
}

void wf_devmem_put(struct wf_devmem_request *request, uint16_t type, const void *data, size_t bytes)
{
    if (bytes > sizeof request->at || !mnl_attr_put_check(&request->at.header, sizeof request->at, type, bytes, data))
        request->full = true;
}

void wf_devmem_put_u32(struct wf_devmem_request *request, uint16_t type, uint32_t number)
{
    wf_devmem_put(request, type, &number, sizeof number);
}

struct nlattr *wf_devmem_begin(struct wf_devmem_request *request, uint16_t type)
{
    struct nlattr *nest = mnl_attr_nest_start_check(&request->at.header, sizeof request->at, type);

    if (!nest)
        request->full = true;
    return nest;
}

void wf_devmem_end(struct wf_devmem_request *request, struct nlattr *nest)
{
    if (nest)
        mnl_attr_nest_end(&request->at.header, nest);
}

/* --- answers --- */

int wf_devmem_number(const struct nlattr *attribute, enum mnl_attr_data_type type, uint32_t *number)
{
    if (mnl_attr_validate(attribute, type) != 0)
        return -EBADMSG;
    *number = type == MNL_TYPE_U8    ? mnl_attr_get_u8(attribute)
              : type == MNL_TYPE_U16 ? mnl_attr_get_u16(attribute)
                                     : mnl_attr_get_u32(attribute);
    return 0;
}

/* What the kernel says of a refusal, which ends where its attribute ends, or earlier. */
static void read_words(const struct nlmsghdr *message, char words[WORDS_MAX])
{
    const struct nlmsgerr *error = mnl_nlmsg_get_payload(message);
    const struct nlattr *attribute;
    size_t at = sizeof *error, all = mnl_nlmsg_get_payload_len(message);
    uint32_t missing;

    words[0] = '\0';
    if (!(message->nlmsg_flags & NLM_F_ACK_TLVS))
        return;
    /* The request comes back before its attributes, unless it was cut. */
    if (!(message->nlmsg_flags & NLM_F_CAPPED) && error->msg.nlmsg_len > sizeof error->msg)
        at += MNL_ALIGN((size_t)error->msg.nlmsg_len) - sizeof error->msg;
    if (at > all)
        return;
    mnl_attr_for_each(attribute, message, at)
    {
        if (mnl_attr_get_type(attribute) == ERROR_WORDS)
            snprintf(words, WORDS_MAX, "%.*s", (int)mnl_attr_get_payload_len(attribute),
                     (const char *)mnl_attr_get_payload(attribute));
        else if (mnl_attr_get_type(attribute) == ERROR_MISSING_TYPE && !words[0] &&
                 wf_devmem_number(attribute, MNL_TYPE_U32, &missing) == 0)
            snprintf(words, WORDS_MAX, "it wants attribute %u", missing);
    }
    wf_text_plain(words);
}

static int refused(const struct nlmsghdr *message, int code, const char *what, struct wf_status *status)
{
    char words[WORDS_MAX];

    read_words(message, words);
    if (code == -EPERM)
        return wf_fail(status, code, "%s: this needs the capability CAP_NET_ADMIN", what);
    return wf_fail(status, code, "%s: %s%s%s%s", what, words[0] ? words : wf_strerror(code), words[0] ? " (" : "",
                   words[0] ? wf_strerror(code) : "", words[0] ? ")" : "");
}

static int senseless(const char *what, struct wf_status *status)
{
    return wf_fail(status, -EBADMSG, "%s: the kernel's answer makes no sense", what);
}

/* 1: that was the last message; 0: there are more. */
static int take(const struct wf_devmem *devmem, const struct nlmsghdr *message, wf_devmem_answer *answer, void *data,
                const char *what, struct wf_status *status)
{
    size_t bytes = mnl_nlmsg_get_payload_len(message);

    if (message->nlmsg_seq != devmem->sequence) /* of a request that was given up */
        return 0;
    if (message->nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *error = mnl_nlmsg_get_payload(message);
        if (bytes < sizeof *error || error->error > 0)
            return senseless(what, status);
        return error->error ? refused(message, error->error, what, status) : 1;
    }
    if (message->nlmsg_type == NLMSG_DONE && bytes >= sizeof(int)) { /* of a list, which may have failed */
        int code = *(const int *)mnl_nlmsg_get_payload(message);
        return code < 0 ? wf_fail(status, code, "%s: %s", what, wf_strerror(code)) : 1;
    }
    if (message->nlmsg_type < NLMSG_MIN_TYPE)
        return message->nlmsg_type == NLMSG_DONE;
    if (bytes < sizeof(struct genlmsghdr) || (answer && answer(message, data) != 0))
        return senseless(what, status);
    return 0;
}

/* libmnl takes a length beyond INT_MAX for a negative one, and a negative one for one that fits. */
static bool is_whole(const struct nlmsghdr *message, int bytes)
{
    return mnl_nlmsg_ok(message, bytes) && message->nlmsg_len <= (uint32_t)bytes;
}

/* As take(), of all messages of a read. */
static int take_all(const struct wf_devmem *devmem, const void *messages, int bytes, wf_devmem_answer *answer,
                    void *data, const char *what, struct wf_status *status)
{
    const struct nlmsghdr *message = messages;
    int result = 0;

    while (result == 0 && is_whole(message, bytes)) {
        result = take(devmem, message, answer, data, what, status);
        message = mnl_nlmsg_next(message, &bytes);
    }
    return result == 0 && bytes > 0 ? senseless(what, status) : result;
}

int wf_devmem_ask(struct wf_devmem *devmem, struct wf_devmem_request *request, wf_devmem_answer *answer, void *data,
                  const char *what, struct wf_status *status)
{
    const struct wf_devmem_kernel *kernel = devmem->kernel;

    if (request->full)
        return wf_fail(status, -E2BIG, "%s: too much for one request", what);
    void *room = malloc(WF_DEVMEM_ANSWER_ROOM);
    if (!room)
        return wf_fail(status, -ENOMEM, "%s: no memory", what);
    int result = kernel->send(kernel, devmem->fd, &request->at, request->at.header.nlmsg_len);
    if (result)
        wf_fail(status, result, "%s: cannot ask the kernel: %s", what, wf_strerror(result));
    for (int reads = 0; result == 0; reads++) {
        ssize_t bytes = kernel->receive(kernel, devmem->fd, room, WF_DEVMEM_ANSWER_ROOM);
        if (bytes < 0)
            result = wf_fail(status, (int)bytes, "%s: no answer of the kernel: %s", what, wf_strerror((int)bytes));
        else if (bytes == 0 || reads == ANSWERS_MAX)
            result = senseless(what, status);
        else
            result = take_all(devmem, room, (int)bytes, answer, data, what, status);
    }
    free(room);
    return result > 0 ? 0 : result;
}

int wf_devmem_ethtool(const struct wf_devmem *devmem, const char *name, void *data)
{
    struct ifreq about = {0};

    if (!name[0] || strlen(name) >= sizeof about.ifr_name)
        return -ENODEV;
    snprintf(about.ifr_name, sizeof about.ifr_name, "%s", name);
    about.ifr_data = data;
    return devmem->kernel->ask(devmem->kernel, SIOCETHTOOL, &about);
}

/* --- families --- */

static void read_operations(const struct nlattr *list, struct wf_devmem_family *family)
{
    const struct nlattr *one, *attribute;
    uint32_t operation;

    family->bind_rx = family->bind_tx = 0;
    mnl_attr_for_each_nested(one, list)
    {
        mnl_attr_for_each_nested(attribute, one)
        {
            if (mnl_attr_get_type(attribute) != CTRL_ATTR_OP_ID ||
                wf_devmem_number(attribute, MNL_TYPE_U32, &operation) != 0)
                continue;
            family->bind_rx |= operation == WF_NETDEV_BIND_RX;
            family->bind_tx |= operation == WF_NETDEV_BIND_TX;
        }
    }
}

static int read_family(const struct nlmsghdr *message, void *data)
{
    struct wf_devmem_family *family = data;
    const struct nlattr *attribute;
    uint32_t id;

    mnl_attr_for_each(attribute, message, sizeof(struct genlmsghdr))
    {
        if (mnl_attr_get_type(attribute) == CTRL_ATTR_FAMILY_ID) {
            if (wf_devmem_number(attribute, MNL_TYPE_U16, &id) != 0)
                return -EBADMSG;
            family->id = (uint16_t)id;
        } else if (mnl_attr_get_type(attribute) == CTRL_ATTR_OPS) {
            read_operations(attribute, family);
        }
    }
    return 0;
}

/* A family that the kernel does not have is no failure: then it has none of the commands. */
static int find_family(struct wf_devmem *devmem, const char *name, struct wf_devmem_family *family,
                       struct wf_status *status)
{
    struct wf_devmem_request request;
    char what[64];

    *family = (struct wf_devmem_family){.bind_rx = -1, .bind_tx = -1};
    snprintf(what, sizeof what, "looking for the kernel's netlink family %s", name);
    wf_devmem_start(devmem, &request, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
    wf_devmem_put(&request, CTRL_ATTR_FAMILY_NAME, name, strlen(name) + 1);
    int result = wf_devmem_ask(devmem, &request, read_family, family, what, status);
    if (result == -ENOENT) {
        *family = (struct wf_devmem_family){0};
        result = 0;
    }
    return result;
}

/* --- handles --- */

int wf_devmem_open(const struct wf_devmem_kernel *kernel, struct wf_devmem **devmem, struct wf_status *status)
{
    struct wf_devmem *made = calloc(1, sizeof *made);

    if (!made)
        return wf_fail(status, -ENOMEM, "no memory to talk of network cards with the kernel");
    made->kernel = kernel ? kernel : wf_devmem_system();
    made->fd = made->kernel->open(made->kernel);
    int result = made->fd < 0 ? wf_fail(status, made->fd, "no netlink socket: %s", wf_strerror(made->fd)) : 0;
    if (result == 0)
        result = find_family(made, "netdev", &made->netdev, status);
    if (result == 0)
        result = find_family(made, "ethtool", &made->ethtool, status);
    if (result) {
        wf_devmem_close(made);
        return result;
    }
    *devmem = made;
    return 0;
}

void wf_devmem_close(struct wf_devmem *devmem)
{
    if (devmem && devmem->fd >= 0)
        devmem->kernel->close(devmem->kernel, devmem->fd);
    free(devmem);
}

bool wf_devmem_may_change(const struct wf_devmem *devmem)
{
    return devmem->kernel->may_change(devmem->kernel);
}

int wf_devmem_socket(const struct wf_devmem *devmem)
{
    return devmem->fd;
}
