#include "core/rail/watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/rail/address.h"

#define PAUSE_NS (5 * WF_NS_PER_MS)   /* the shortest time between two looks: news come in bursts */
#define AGAIN_NS (100 * WF_NS_PER_MS) /* the next look after one that failed */
#define DRAIN_MAX 1024                /* messages that are read at a time */

/* --- asking --- */

struct question {
    struct nlmsghdr header;
    union {
        struct ifinfomsg interface;
        struct ifaddrmsg address;
    } about;
    alignas(RTA_ALIGNTO) uint8_t attributes[RTA_SPACE(32)];
};

/* Called for each message of an answer. */
typedef void taker(void *context, const struct nlmsghdr *message);

static int refusal(const struct nlmsghdr *message)
{
    const struct nlmsgerr *answer = NLMSG_DATA(message);
    return message->nlmsg_len >= NLMSG_LENGTH(sizeof *answer) && answer->error < 0 ? answer->error : -EPROTO;
}

/* 0: more of the answer follows; 1: this was the end; < 0: the kernel's error. `*changed`: the kernel's list changed
 * while the kernel sent it. */
static int take_answer(const struct wf_rail_watch *watch, size_t length, taker *take, void *context, bool *changed)
{
    const struct nlmsghdr *message = (const struct nlmsghdr *)watch->answer;
    long left = (long)length;
    for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
        if (message->nlmsg_seq != watch->asked)
            continue; /* belongs to an earlier answer, which was not read to its end */
        *changed |= (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
        if (message->nlmsg_type == NLMSG_ERROR)
            return refusal(message);
        if (message->nlmsg_type == NLMSG_DONE)
            return 1;
        take(context, message);
        if (!(message->nlmsg_flags & NLM_F_MULTI))
            return 1;
    }
    return 0;
}

/* 0 or -errno. The kernel answers within these calls, so they never wait. */
static int ask(struct wf_rail_watch *watch, struct question *question, taker *take, void *context)
{
    int result = 0;
    bool changed = false;
    question->header.nlmsg_seq = ++watch->asked;
    if (send(watch->ask_fd, question, question->header.nlmsg_len, MSG_DONTWAIT) < 0)
        return -errno;
    while (result == 0) {
        ssize_t length = recv(watch->ask_fd, watch->answer, sizeof watch->answer, MSG_DONTWAIT);
        if (length >= 0)
            result = take_answer(watch, (size_t)length, take, context, &changed);
        else if (errno != EINTR)
            result = -errno;
    }
    return result < 0 ? result : changed ? -EINTR : 0;
}

static void take_interface(void *context, const struct nlmsghdr *message)
{
    struct wf_interface found;
    if (wf_interface_read(message, &found))
        *(struct wf_interface *)context = found;
}

/* Asks for the interface with this name, or, if `name` is NULL, with this number; `out->index` is 0 if there is none. 0
 * or -errno. */
static int ask_interface(struct wf_rail_watch *watch, uint32_t index, const char *name, struct wf_interface *out)
{
    struct question question = {
        .header = {.nlmsg_len = NLMSG_LENGTH(sizeof question.about.interface),
                   .nlmsg_type = RTM_GETLINK,
                   .nlmsg_flags = NLM_F_REQUEST},
        .about.interface = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index},
    };
    if (name) {
        struct rtattr *attribute = (struct rtattr *)((char *)&question + question.header.nlmsg_len);
        size_t length = strlen(name) + 1;
        *attribute = (struct rtattr){.rta_type = IFLA_IFNAME, .rta_len = (unsigned short)RTA_LENGTH(length)};
        memcpy(RTA_DATA(attribute), name, length);
        question.header.nlmsg_len += (uint32_t)RTA_SPACE(length);
    }
    *out = (struct wf_interface){0};
    int result = ask(watch, &question, take_interface, out);
    return result == -ENODEV ? 0 : result;
}

/* --- looking --- */

/* An interface that may be a rail's, and the best that its addresses mean to the rail. */
struct sight {
    struct wf_interface interface;
    enum wf_hold hold;
};

/* One look at all rails: the interface that has a rail's number, and the interface that has its name. */
struct look {
    const struct wf_rails *rails;
    struct sight numbered[WF_RAILS_MAX], named[WF_RAILS_MAX];
};

static int find_interfaces(struct wf_rail_watch *watch, struct look *look)
{
    int result = 0;
    for (int i = 0; i < look->rails->count && result == 0; i++) {
        const struct wf_rail *rail = &look->rails->each[i];
        struct wf_interface *numbered = &look->numbered[i].interface, *named = &look->named[i].interface;
        if (rail->index != 0)
            result = ask_interface(watch, rail->index, NULL, numbered);
        if (result == 0 && strcmp(numbered->name, rail->device) != 0)
            result = ask_interface(watch, 0, rail->device, named);
    }
    return result;
}

static void note_hold(const struct wf_rail *rail, struct sight *sight, const struct wf_held *held)
{
    enum wf_hold hold = wf_rail_hold(rail, &sight->interface, held);
    if (hold > sight->hold)
        sight->hold = hold;
}

static void take_address(void *context, const struct nlmsghdr *message)
{
    struct look *look = context;
    struct wf_held held;
    if (!wf_held_read(message, &held))
        return;
    for (int i = 0; i < look->rails->count; i++) {
        note_hold(&look->rails->each[i], &look->numbered[i], &held);
        note_hold(&look->rails->each[i], &look->named[i], &held);
    }
}

static int find_addresses(struct wf_rail_watch *watch, struct look *look)
{
    struct question question = {
        .header = {.nlmsg_len = NLMSG_LENGTH(sizeof question.about.address),
                   .nlmsg_type = RTM_GETADDR,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .about.address = {.ifa_family = AF_UNSPEC},
    };
    return ask(watch, &question, take_address, look);
}

/* --- what has changed --- */

static void log_trouble(const struct wf_rails *rails, const struct wf_rail *rail, enum wf_rail_trouble before,
                        enum wf_rail_trouble trouble)
{
    if (trouble == WF_RAIL_FINE)
        wf_log(&rails->world->log, WF_LOG_INFO, "rail %s is back", rail->name);
    else if (before == WF_RAIL_FINE)
        wf_log(&rails->world->log, WF_LOG_WARN, "rail %s is down: %s", rail->name, wf_rail_trouble_text(trouble));
    else
        wf_log(&rails->world->log, WF_LOG_INFO, "rail %s is still down: %s", rail->name, wf_rail_trouble_text(trouble));
}

static void set_trouble(struct wf_rail_watch *watch, int index, enum wf_rail_trouble trouble)
{
    struct wf_rails *rails = watch->rails;
    struct wf_rail *rail = &rails->each[index];
    enum wf_rail_trouble before = (enum wf_rail_trouble)atomic_load(&rail->trouble);
    bool down = trouble != WF_RAIL_FINE, changed = down != atomic_load(&rail->down);
    if (trouble == before)
        return;
    pthread_mutex_lock(&rails->world->lock);
    atomic_store(&rail->trouble, (int)trouble);
    atomic_store(&rail->down, down);
    pthread_mutex_unlock(&rails->world->lock);
    log_trouble(rails, rail, before, trouble);
    if (changed)
        watch->changed(watch->user, index);
}

/* The rail's interface has a new name, or a new number. With a new number it is a new interface: the sockets that were
 * bound to the old one are bound to nothing, so the rail is GONE first. */
static void follow(struct wf_rail_watch *watch, int index, const struct wf_interface *interface)
{
    struct wf_rails *rails = watch->rails;
    struct wf_rail *rail = &rails->each[index];
    bool made_anew = interface->index != rail->index;
    if (!made_anew && strcmp(interface->name, rail->device) == 0)
        return;
    if (made_anew)
        set_trouble(watch, index, WF_RAIL_GONE);
    else
        wf_log(&rails->world->log, WF_LOG_INFO, "the interface of rail %s is called %s now", rail->name,
               interface->name);
    pthread_mutex_lock(&rails->world->lock);
    rail->index = interface->index;
    wf_address_set_scope(&rail->address, rail->index);
    snprintf(rail->device, sizeof rail->device, "%s", interface->name);
    pthread_mutex_unlock(&rails->world->lock);
}

static void conclude(struct wf_rail_watch *watch, int index, const struct sight *numbered, const struct sight *named)
{
    struct wf_rails *rails = watch->rails;
    enum wf_rail_trouble before = (enum wf_rail_trouble)atomic_load(&rails->each[index].trouble);
    enum wf_rail_trouble trouble = wf_rail_judge(&numbered->interface, numbered->hold, before);
    enum wf_rail_trouble other = wf_rail_judge(&named->interface, named->hold, before);
    bool changes =
        named->interface.index != 0 && (trouble == WF_RAIL_GONE || (trouble != WF_RAIL_FINE && other == WF_RAIL_FINE));
    const struct sight *chosen = changes ? named : numbered;
    if (chosen->interface.index != 0)
        follow(watch, index, &chosen->interface);
    set_trouble(watch, index, changes ? other : trouble);
}

/* Looks at all rails. 0, or -errno: then no rail changes. */
static int look_at_rails(struct wf_rail_watch *watch)
{
    struct look look = {.rails = watch->rails};
    int result = find_interfaces(watch, &look);
    if (result == 0)
        result = find_addresses(watch, &look);
    for (int i = 0; i < watch->rails->count && result == 0; i++)
        conclude(watch, i, &look.numbered[i], &look.named[i]);
    return result;
}

static void look_now(struct wf_rail_watch *watch, int64_t now)
{
    bool done = look_at_rails(watch) == 0;
    watch->looked_ns = now;
    watch->due_ns = watch->period_ns ? now + watch->period_ns : WF_NEVER;
    if (!done && watch->due_ns > now + AGAIN_NS)
        watch->due_ns = now + AGAIN_NS;
}

/* --- news --- */

static void expect_look(struct wf_rail_watch *watch)
{
    int64_t due = watch->looked_ns + PAUSE_NS;
    watch->due_ns = due < watch->due_ns ? due : watch->due_ns;
}

static void use_timer(struct wf_rail_watch *watch)
{
    watch->tells = false;
    watch->period_ns = watch->rails->world->tuning.rail_timeout_ns / 2;
    watch->due_ns = 0;
}

/* Reads the messages behind the one that the operation received: the engine may report no event for them. True: there
 * may be still more. */
static bool drain(struct wf_rail_watch *watch)
{
    const struct wf_rails *rails = watch->rails;
    for (int i = 0; i < DRAIN_MAX; i++) {
        ssize_t length = recv(watch->news_fd, watch->answer, sizeof watch->answer, MSG_DONTWAIT);
        if (length < 0 && errno == EAGAIN)
            return false;
        if (length < 0 || wf_rail_news(watch->answer, (size_t)length, rails->each, rails->count))
            expect_look(watch);
    }
    return true;
}

bool wf_rail_watch_step(struct wf_rail_watch *watch, const struct wf_op *op)
{
    const struct wf_rails *rails = watch->rails;
    int64_t result = op->result;
    if (op != &watch->op)
        return false;
    if (result < 0 && result != -ENOBUFS && result != -ECANCELED) {
        wf_log(&rails->world->log, WF_LOG_WARN, "the kernel does not tell of changes of rails any more: %s",
               wf_strerror((int)result));
        use_timer(watch);
        return true;
    }
    if (result < 0 || wf_rail_news(watch->news, (size_t)result, rails->each, rails->count))
        expect_look(watch); /* ENOBUFS: the kernel had to drop news */
    if (drain(watch))
        expect_look(watch);
    return true;
}

static void post(struct wf_rail_watch *watch)
{
    watch->place = (struct iovec){.iov_base = watch->news, .iov_len = sizeof watch->news};
    watch->op.kind = WF_OP_RECV;
    watch->op.fd = watch->news_fd;
    watch->op.iov = &watch->place;
    watch->op.iov_count = 1;
    watch->engine->ops->post(watch->engine, &watch->op);
}

int64_t wf_rail_watch_tick(struct wf_rail_watch *watch, int64_t now)
{
    if (!watch->is_open)
        return WF_NEVER;
    if (watch->tells && !watch->op.posted)
        post(watch);
    if (now >= watch->due_ns)
        look_now(watch, now);
    return watch->due_ns;
}

/* --- open and close --- */

static int open_netlink(void)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    return fd < 0 ? -errno : fd;
}

/* 0 or -errno. */
static int subscribe(struct wf_rail_watch *watch)
{
    static const int groups[] = {RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR};
    struct sockaddr_nl anybody = {.nl_family = AF_NETLINK};
    watch->news_fd = open_netlink();
    if (watch->news_fd < 0)
        return watch->news_fd;
    if (bind(watch->news_fd, (const struct sockaddr *)&anybody, sizeof anybody))
        return -errno;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (setsockopt(watch->news_fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i], sizeof groups[i]))
            return -errno;
    return watch->engine->ops->attach(watch->engine, watch->news_fd);
}

void wf_rail_watch_open(struct wf_rail_watch *watch, struct wf_rails *rails, struct wf_engine *engine,
                        void (*changed)(void *user, int rail), void *user)
{
    if (rails->world->simulated)
        return;
    watch->rails = rails;
    watch->changed = changed;
    watch->user = user;
    watch->engine = engine;
    watch->news_fd = -1;
    watch->ask_fd = open_netlink();
    watch->is_open = true;
    if (watch->ask_fd < 0) {
        watch->due_ns = WF_NEVER;
        wf_world_fallback(rails->world, "rails: one that goes down is noticed by its connections alone, no netlink: %s",
                          wf_strerror(watch->ask_fd));
        return;
    }
    int result = subscribe(watch);
    watch->tells = result == 0;
    if (!watch->tells) {
        use_timer(watch);
        wf_world_fallback(rails->world, "rails: looked at every %lld ms, the kernel does not tell of their changes: %s",
                          (long long)(watch->period_ns / WF_NS_PER_MS), wf_strerror(result));
    }
    look_now(watch, wf_world_now(rails->world));
}

void wf_rail_watch_stop(struct wf_rail_watch *watch)
{
    if (watch->op.posted)
        watch->engine->ops->cancel(watch->engine, &watch->op);
}

void wf_rail_watch_close(struct wf_rail_watch *watch)
{
    if (!watch->is_open)
        return;
    if (watch->news_fd >= 0) {
        watch->engine->ops->detach(watch->engine, watch->news_fd); /* does nothing if the socket was never attached */
        close(watch->news_fd);
    }
    if (watch->ask_fd >= 0)
        close(watch->ask_fd);
    watch->is_open = false;
}
