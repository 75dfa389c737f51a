/* The calls of weft_coll.h. */
#include "collective/group/group.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collective/group/words.h"

#define GOODBYE_NS (1000 * 1000000LL)
#define LISTEN_TRIES 16 /* the port that the kernel chose at one rail may be taken at another */

int64_t wf_coll_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void wf_coll_note(struct weft_group *group, int64_t *at)
{
    *at = wf_coll_now_ns() - group->began_ns;
}

int wf_coll_refuse(struct weft_error *err, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    err->code = code;
    vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    return code;
}

/* --- names and failures --- */

void wf_coll_name(struct weft_group *group, uint32_t rank, const char *host, uint32_t process)
{
    struct wf_coll_member *member = &group->members[rank];
    if (host)
        snprintf(member->name, sizeof member->name, "rank %u (%s, process %u)", rank, host, process);
    else
        snprintf(member->name, sizeof member->name, "rank %u", rank);
}

uint32_t wf_coll_list(struct weft_group *group, bool (*is)(struct weft_group *, uint32_t rank), char *text, size_t room)
{
    uint32_t count = 0, only = 0;
    size_t used = 0;
    for (uint32_t rank = 0; rank < group->size; rank++)
        if (is(group, rank)) {
            only = rank;
            count++;
        }
    if (count <= 1) {
        snprintf(text, room, "%s", count == 1 ? group->members[only].name : "nobody");
        return count;
    }
    used = (size_t)snprintf(text, room, "ranks");
    for (uint32_t rank = 0; rank < group->size && used + 32 < room; rank++) {
        uint32_t last = rank;
        if (!is(group, rank))
            continue;
        while (last + 1 < group->size && is(group, last + 1))
            last++;
        const char *comma = used > 5 ? "," : "";
        used += (size_t)(last > rank ? snprintf(text + used, room - used, "%s %u-%u", comma, rank, last)
                                     : snprintf(text + used, room - used, "%s %u", comma, rank));
        if (used + 32 >= room)
            snprintf(text + used, room - used, "... (%u)", count);
        rank = last;
    }
    return count;
}

void wf_coll_fail(struct weft_group *group, int code, const char *format, ...)
{
    va_list arguments;
    if (group->status < 0)
        return;
    group->status = code;
    va_start(arguments, format);
    vsnprintf(group->text, sizeof group->text, format, arguments);
    va_end(arguments);
    for (struct wf_coll_session *session = group->sessions; session; session = session->next)
        if (session->state == WF_COLL_OPEN)
            wf_coll_say(group, session, WF_COLL_FAIL, "%d %s", code, group->text);
    wf_coll_operations_end(group);
}

int64_t wf_coll_margin_ns(int timeout_ms)
{
    int64_t margin_ms = timeout_ms / 16 > 100 ? timeout_ms / 16 : 100;
    if (margin_ms > timeout_ms / 4)
        margin_ms = timeout_ms / 4;
    return (margin_ms < 1000 ? margin_ms : 1000) * 1000000;
}

/* --- making --- */

static int listen_on(struct weft_group *group, const char *address, struct weft_error *err)
{
    char any[80];
    struct weft_rail_info rail[1];
    int port = weft_listen_port(group->context);
    if (port >= 0) {
        const char *colon = address ? strrchr(address, ':') : NULL;
        if (colon && atoi(colon + 1) != port)
            return wf_coll_refuse(err, -EINVAL,
                                  "the context listens on port %d already, and this rank is to be met at %.120s", port,
                                  address);
        return 0;
    }
    if (address)
        return weft_listen(group->context, address, err);
    if (weft_context_rails(group->context, rail, 1) < 1)
        return wf_coll_refuse(err, -ENODEV, "the context has no rail");
    snprintf(any, sizeof any, strchr(rail[0].address, ':') ? "[%s]:0" : "%s:0", rail[0].address);
    int result = -EADDRINUSE;
    for (int i = 0; i < LISTEN_TRIES && result == -EADDRINUSE; i++)
        result = weft_listen(group->context, any, err);
    return result;
}

/* "HOST:PORT" of every rail. */
static void own_addresses(struct weft_group *group)
{
    struct weft_rail_info rails[WF_COLL_RAILS_MAX];
    int count = weft_context_rails(group->context, rails, WF_COLL_RAILS_MAX);
    int port = weft_listen_port(group->context);
    size_t used = 0;
    for (int i = 0; i < count && i < WF_COLL_RAILS_MAX; i++) {
        char one[96];
        int length = snprintf(one, sizeof one, strchr(rails[i].address, ':') ? "%s[%s]:%d" : "%s%s:%d",
                              used > 0 ? "," : "", rails[i].address, port);
        if (used + (size_t)length + 1 >= sizeof group->addresses)
            break;
        memcpy(group->addresses + used, one, (size_t)length + 1);
        used += (size_t)length;
    }
}

static void own_host(struct weft_group *group)
{
    if (gethostname(group->host, sizeof group->host) < 0 || !group->host[0])
        snprintf(group->host, sizeof group->host, "unknown");
    group->host[sizeof group->host - 1] = '\0';
    for (char *at = group->host; *at; at++)
        if (*at <= ' ')
            *at = '_';
}

static int make_members(struct weft_group *group, struct weft_error *err)
{
    group->members = calloc(group->size, sizeof *group->members);
    if (!group->members)
        return wf_coll_refuse(err, -ENOMEM, "no memory for a group of %u", group->size);
    for (uint32_t i = 0; i < group->size; i++)
        wf_coll_name(group, i, NULL, 0);
    return 0;
}

static int open_endpoints(struct weft_group *group, struct weft_error *err)
{
    int result = weft_endpoint_create(group->context, WF_COLL_CONTROL, &group->control, err);
    if (result == -EEXIST)
        return wf_coll_refuse(err, -EBUSY,
                              "the context has a group already: destroy that one first, or use another context");
    if (result == 0)
        result = weft_endpoint_create(group->context, WF_COLL_DATA, &group->data, err);
    if (result == 0)
        result = weft_endpoint_create(group->context, WF_COLL_WORK, &group->work, err);
    if (result == 0)
        result = weft_queue_create(group->context, &group->queue, err);
    if (result == 0)
        result = wf_coll_drive_open(group, err);
    if (result == 0) {
        result = wf_coll_listen_for(group);
        if (result < 0)
            wf_coll_refuse(err, result, "%s", weft_last_error());
    }
    return result;
}

static int open_all(struct weft_group *group, const char *const *addresses, struct weft_error *err)
{
    int result = make_members(group, err);
    if (result == 0)
        result = open_endpoints(group, err);
    if (result == 0)
        result = wf_coll_board_create(group, err);
    const char *own = addresses                                                                ? addresses[group->rank]
                      : group->rank == 0 && group->meet.way == WF_MEET_HOST && group->size > 1 ? group->meet.place
                                                                                               : NULL;
    if (result == 0)
        result = listen_on(group, own, err);
    if (result < 0)
        return result;
    own_addresses(group);
    own_host(group);
    struct wf_coll_member *self = &group->members[group->rank];
    self->process = (uint32_t)getpid();
    snprintf(self->host, sizeof self->host, "%s", group->host);
    wf_coll_name(group, group->rank, group->host, self->process);
    for (uint32_t i = 0; i < group->size; i++)
        if (addresses || i == group->rank) {
            group->members[i].addresses = strdup(addresses ? addresses[i] : group->addresses);
            if (!group->members[i].addresses)
                return wf_coll_refuse(err, -ENOMEM, "no memory for a group of %u", group->size);
        }
    return 0;
}

/* Until all have met, or it has failed. */
static int gather(struct weft_group *group, struct weft_error *err)
{
    int result = wf_coll_meet(group, err);
    if (result < 0)
        wf_coll_fail(group, result, "%s", err->text);
    for (;;) {
        wf_coll_drive(group);
        if (group->status < 0)
            return wf_coll_refuse(err, group->status, "%s", group->text);
        if (group->operations && group->operations->ended)
            break;
        wf_coll_sleep(group, WF_COLL_NEVER);
    }
    wf_coll_operations_free(group);
    group->phase = WF_COLL_MADE;
    wf_coll_note(group, &group->times.made_ns);
    struct wf_coll_session *first = group->rank > 0 ? group->members[0].session : NULL;
    if (first && !wf_coll_is_near(group, 0))
        wf_coll_part(group, first);
    return 0;
}

static int make(struct weft_context *context, struct wf_meet *meet, const char *const *addresses, uint32_t limit,
                int timeout_ms, struct weft_group **out, struct weft_error *err)
{
    struct weft_group *group = calloc(1, sizeof *group);
    if (!group) {
        wf_meet_fini(meet);
        return wf_coll_refuse(err, -ENOMEM, "no memory for a group");
    }
    pthread_mutex_init(&group->lock, NULL);
    group->set = group->timer = group->bell = -1;
    group->context = context;
    wf_coll_port_init(group);
    group->meet = *meet;
    group->rank = meet->rank;
    group->size = meet->size;
    group->session_limit = limit;
    group->from = addresses != NULL;
    group->timeout_ms = timeout_ms;
    group->began_ns = wf_coll_now_ns();
    group->deadline_ns = timeout_ms < 0 ? WF_COLL_NEVER : group->began_ns + timeout_ms * 1000000LL;
    group->knows_ns = timeout_ms < 0 ? WF_COLL_NEVER : group->deadline_ns - wf_coll_margin_ns(timeout_ms);
    pthread_mutex_lock(&group->lock);
    int result = open_all(group, addresses, err);
    wf_coll_note(group, &group->times.opened_ns);
    if (result == 0)
        result = gather(group, err);
    if (group->rank == 0)
        wf_meet_clear(&group->meet);
    wf_meet_fini(&group->meet);
    pthread_mutex_unlock(&group->lock);
    if (result < 0)
        weft_group_destroy(group);
    else
        *out = group;
    return result;
}

int weft_group_create(struct weft_context *context, const struct weft_group_options *options, int timeout_ms,
                      struct weft_group **out, struct weft_error *err)
{
    struct weft_error unused = {0};
    struct weft_group_options defaults = {0};
    struct wf_meet_env env = wf_meet_environment();
    struct wf_meet meet;
    err = err ? err : &unused;
    if (!context || !out)
        return wf_coll_refuse(err, -EINVAL, "weft_group_create: %s is NULL", context ? "out" : "context");
    int result = wf_meet_init(&meet, options ? options : &defaults, &env, err);
    if (result < 0) {
        wf_meet_fini(&meet);
        return result;
    }
    return make(context, &meet, NULL, options ? options->sessions : 0, timeout_ms, out, err);
}

int weft_group_create_from(struct weft_context *context, const char *const *addresses, uint32_t size, uint32_t rank,
                           const char *name, int timeout_ms, struct weft_group **out, struct weft_error *err)
{
    struct weft_error unused = {0};
    struct weft_group_options options = {.size = size, .rank = rank, .name = name, .rendezvous = "none:0"};
    struct wf_meet_env env = wf_meet_environment();
    struct wf_meet meet;
    err = err ? err : &unused;
    if (!context || !out || !addresses || size == 0)
        return wf_coll_refuse(err, -EINVAL, "weft_group_create_from: %s",
                              !context     ? "context is NULL"
                              : !out       ? "out is NULL"
                              : !addresses ? "addresses is NULL"
                                           : "size is 0");
    for (uint32_t i = 0; i < size; i++)
        if (!addresses[i] || !strrchr(addresses[i], ':') || strlen(addresses[i]) > 255 || strpbrk(addresses[i], ", \n"))
            return wf_coll_refuse(err, -EINVAL, "the address of rank %u, '%.120s', must be HOST:PORT", i,
                                  addresses[i] ? addresses[i] : "NULL");
    int result = wf_meet_init(&meet, &options, &env, err);
    if (result < 0)
        return result;
    meet.way = WF_MEET_NOWHERE;
    snprintf(meet.said, sizeof meet.said, "rank %u of %u by the addresses of the caller", rank, size);
    return make(context, &meet, addresses, 0, timeout_ms, out, err);
}

/* --- the end --- */

static void say_goodbye(struct weft_group *group)
{
    for (struct wf_coll_session *session = group->sessions, *next; session; session = next) {
        next = session->next;
        if (session->state == WF_COLL_OPEN && group->status == 0)
            wf_coll_say(group, session, WF_COLL_LEAVE, "-");
        wf_coll_session_close(group, session);
    }
}

static void free_group(struct weft_group *group)
{
    wf_coll_operations_free(group);
    for (uint32_t i = 0; group->members && i < group->size; i++)
        free(group->members[i].addresses);
    wf_coll_sessions_free(group);
    free(group->members);
    pthread_mutex_destroy(&group->lock);
    free(group);
}

static bool under_way(const struct weft_group *group)
{
    return group->sessions || group->notes > 0 || group->transfers > 0;
}

void weft_group_destroy(struct weft_group *group)
{
    if (!group)
        return;
    pthread_mutex_lock(&group->lock);
    group->ending = true;
    wf_coll_dials_cancel(group);
    wf_coll_collectives_stop(group);
    say_goodbye(group);
    int64_t until_ns = wf_coll_now_ns() + GOODBYE_NS;
    while (group->queue && under_way(group) && wf_coll_now_ns() < until_ns) {
        wf_coll_drive(group);
        if (under_way(group))
            wf_coll_sleep(group, until_ns);
        say_goodbye(group); /* to who has come meanwhile */
    }
    weft_endpoint_destroy(group->work);
    weft_endpoint_destroy(group->data);
    weft_endpoint_destroy(group->control); /* ends the receive */
    if (group->queue)
        wf_coll_drive(group); /* takes the end of the receive */
    while (group->queue && weft_queue_destroy(group->queue) == -EBUSY && wf_coll_now_ns() < until_ns + GOODBYE_NS) {
        wf_coll_sleep(group, wf_coll_now_ns() + 10000000);
        wf_coll_drive(group);
    }
    wf_coll_board_destroy(group);
    wf_coll_drive_close(group);
    pthread_mutex_unlock(&group->lock);
    free_group(group);
}

/* --- what is known --- */

int weft_group_launched(void)
{
    struct wf_meet_env env = wf_meet_environment();
    return wf_meet_is_launched(&env);
}

uint32_t weft_group_rank(const struct weft_group *group)
{
    return group ? group->rank : 0;
}

uint32_t weft_group_size(const struct weft_group *group)
{
    return group ? group->size : 0;
}

uint32_t weft_group_local_rank(const struct weft_group *group)
{
    return group ? group->local_rank : 0;
}

const char *weft_group_member_name(const struct weft_group *group, uint32_t rank)
{
    return group && rank < group->size ? group->members[rank].name : "";
}

const char *weft_group_source(const struct weft_group *group)
{
    return group ? group->meet.said : "";
}

const char *weft_group_refused(const struct weft_group *group)
{
    return group ? group->refused : "";
}

static int64_t no_less(int64_t at_ns, int64_t before_ns)
{
    return at_ns > before_ns ? at_ns : before_ns;
}

void weft_group_times(const struct weft_group *group, struct weft_group_times *out)
{
    if (!group || !out)
        return;
    *out = group->times;
    out->found_ns = no_less(out->found_ns, out->opened_ns);
    out->connected_ns = no_less(out->connected_ns, out->found_ns);
    out->met_ns = no_less(out->met_ns, out->connected_ns);
    out->made_ns = no_less(out->made_ns, out->met_ns);
}

int weft_group_status(struct weft_group *group, struct weft_error *err)
{
    struct weft_error unused = {0};
    err = err ? err : &unused;
    if (!group)
        return wf_coll_refuse(err, -EINVAL, "weft_group_status: group is NULL");
    pthread_mutex_lock(&group->lock);
    wf_coll_drive(group);
    int status = group->status;
    if (status < 0)
        wf_coll_refuse(err, status, "%s", group->text);
    wf_coll_unlock(group);
    return status;
}
