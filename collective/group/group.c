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
#define ASK_MS 200      /* between questions for a name that nobody knows yet */

int64_t wf_coll_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void wf_coll_note(struct wf_coll_hub *hub, int64_t *at)
{
    *at = wf_coll_now_ns() - hub->began_ns;
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

int64_t wf_coll_margin_ns(int timeout_ms)
{
    int64_t margin_ms = timeout_ms / 16 > 100 ? timeout_ms / 16 : 100;
    if (margin_ms > timeout_ms / 4)
        margin_ms = timeout_ms / 4;
    return (margin_ms < 1000 ? margin_ms : 1000) * 1000000;
}

/* --- making --- */

/* At a name that a cluster may give this machine only after its processes have started: it is asked for again until the
 * deadline, as the other members do. */
static int listen_at(struct wf_coll_hub *hub, const char *address, struct weft_error *err)
{
    const struct timespec pause = {.tv_nsec = ASK_MS * 1000000L};
    int result;
    while ((result = weft_listen(hub->context, address, err)) == -EHOSTUNREACH && wf_coll_now_ns() < hub->deadline_ns)
        nanosleep(&pause, NULL);
    return result;
}

static int listen_on(struct wf_coll_hub *hub, const char *address, struct weft_error *err)
{
    char any[80];
    struct weft_rail_info rail[1];
    int port = weft_listen_port(hub->context);
    if (port >= 0) {
        const char *colon = address ? strrchr(address, ':') : NULL;
        if (colon && atoi(colon + 1) != port)
            return wf_coll_refuse(err, -EINVAL,
                                  "the context listens on port %d already, and this rank is to be met at %.120s", port,
                                  address);
        return 0;
    }
    if (address)
        return listen_at(hub, address, err);
    if (weft_context_rails(hub->context, rail, 1) < 1)
        return wf_coll_refuse(err, -ENODEV, "the context has no rail");
    snprintf(any, sizeof any, strchr(rail[0].address, ':') ? "[%s]:0" : "%s:0", rail[0].address);
    int result = -EADDRINUSE;
    for (int i = 0; i < LISTEN_TRIES && result == -EADDRINUSE; i++)
        result = weft_listen(hub->context, any, err);
    return result;
}

/* "HOST:PORT" of every rail. */
static void own_addresses(struct wf_coll_hub *hub)
{
    struct weft_rail_info rails[WF_COLL_RAILS_MAX];
    int count = weft_context_rails(hub->context, rails, WF_COLL_RAILS_MAX);
    int port = weft_listen_port(hub->context);
    size_t used = 0;
    for (int i = 0; i < count && i < WF_COLL_RAILS_MAX; i++) {
        char one[96];
        int length = snprintf(one, sizeof one, strchr(rails[i].address, ':') ? "%s[%s]:%d" : "%s%s:%d",
                              used > 0 ? "," : "", rails[i].address, port);
        if (used + (size_t)length + 1 >= sizeof hub->addresses)
            break;
        memcpy(hub->addresses + used, one, (size_t)length + 1);
        used += (size_t)length;
    }
}

static void own_host(struct wf_coll_hub *hub)
{
    if (gethostname(hub->host, sizeof hub->host) < 0 || !hub->host[0])
        snprintf(hub->host, sizeof hub->host, "unknown");
    hub->host[sizeof hub->host - 1] = '\0';
    for (char *at = hub->host; *at; at++)
        if (*at <= ' ')
            *at = '_';
}

static int make_members(struct wf_coll_hub *hub, struct weft_error *err)
{
    hub->members = calloc(hub->size, sizeof *hub->members);
    if (!hub->members)
        return wf_coll_refuse(err, -ENOMEM, "no memory for a group of %u", hub->size);
    hub->whole.places = calloc(hub->size, sizeof *hub->whole.places);
    if (!hub->whole.places)
        return wf_coll_refuse(err, -ENOMEM, "no memory for a group of %u", hub->size);
    for (uint32_t i = 0; i < hub->size; i++) {
        hub->whole.places[i].member = i;
        wf_coll_name_place(&hub->whole, i);
    }
    return 0;
}

static int open_endpoints(struct wf_coll_hub *hub, struct weft_error *err)
{
    int result = weft_endpoint_create(hub->context, WF_COLL_CONTROL, &hub->control, err);
    if (result == -EEXIST)
        return wf_coll_refuse(err, -EBUSY,
                              "the context has a group already: destroy that one first, or use another context");
    if (result == 0)
        result = weft_endpoint_create(hub->context, WF_COLL_DATA, &hub->data, err);
    if (result == 0)
        result = weft_endpoint_create(hub->context, WF_COLL_WORK, &hub->work, err);
    if (result == 0)
        result = weft_queue_create(hub->context, &hub->queue, err);
    if (result == 0)
        result = wf_coll_drive_open(hub, err);
    if (result == 0) {
        result = wf_coll_listen_for(hub);
        if (result < 0)
            wf_coll_refuse(err, result, "%s", weft_last_error());
    }
    return result;
}

static int open_all(struct wf_coll_hub *hub, const char *const *addresses, struct weft_error *err)
{
    int result = make_members(hub, err);
    if (result == 0)
        result = open_endpoints(hub, err);
    if (result == 0 && hub->rank == 0)
        result = wf_coll_board_create(&hub->whole, err);
    const char *own = addresses                                                          ? addresses[hub->rank]
                      : hub->rank == 0 && hub->meet.way == WF_MEET_HOST && hub->size > 1 ? hub->meet.place
                                                                                         : NULL;
    if (result == 0)
        result = listen_on(hub, own, err);
    if (result < 0)
        return result;
    own_addresses(hub);
    own_host(hub);
    wf_coll_name(hub, hub->rank, hub->host, (uint32_t)getpid());
    for (uint32_t i = 0; i < hub->size; i++)
        if (addresses || i == hub->rank) {
            hub->members[i].addresses = strdup(addresses ? addresses[i] : hub->addresses);
            if (!hub->members[i].addresses)
                return wf_coll_refuse(err, -ENOMEM, "no memory for a group of %u", hub->size);
        }
    return 0;
}

/* Until all have met, or it has failed. */
static int gather(struct wf_coll_hub *hub, struct weft_error *err)
{
    int result = wf_coll_meet(hub, err);
    if (result < 0)
        wf_coll_fail(&hub->whole, result, "%s", err->text);
    for (;;) {
        wf_coll_drive(hub);
        if (hub->whole.status < 0)
            return wf_coll_refuse(err, hub->whole.status, "%s", hub->whole.text);
        if (hub->operations && hub->operations->ended)
            break;
        wf_coll_sleep(hub, WF_COLL_NEVER);
    }
    wf_coll_operations_free(&hub->whole);
    hub->phase = WF_COLL_MADE;
    wf_coll_note(hub, &hub->times.made_ns);
    struct wf_coll_session *first = hub->rank > 0 ? hub->members[0].session : NULL;
    if (first && !wf_coll_is_near(hub, 0))
        wf_coll_part(hub, first);
    return 0;
}

static int make(struct weft_context *context, struct wf_meet *meet, const char *const *addresses, uint32_t limit,
                int timeout_ms, struct weft_group **out, struct weft_error *err)
{
    struct wf_coll_hub *hub = calloc(1, sizeof *hub);
    if (!hub) {
        wf_meet_fini(meet);
        return wf_coll_refuse(err, -ENOMEM, "no memory for a group");
    }
    pthread_mutex_init(&hub->lock, NULL);
    hub->set = hub->inner = hub->timer = hub->bell = hub->waker = -1;
    hub->context = context;
    hub->meet = *meet;
    hub->rank = meet->rank;
    hub->size = meet->size;
    hub->whole = (struct weft_group){.hub = hub, .rank = meet->rank, .size = meet->size, .formed = true};
    wf_coll_port_init(&hub->whole);
    hub->session_limit = limit;
    hub->from = addresses != NULL;
    hub->timeout_ms = timeout_ms;
    hub->began_ns = wf_coll_now_ns();
    hub->deadline_ns = timeout_ms < 0 ? WF_COLL_NEVER : hub->began_ns + timeout_ms * 1000000LL;
    hub->knows_ns = timeout_ms < 0 ? WF_COLL_NEVER : hub->deadline_ns - wf_coll_margin_ns(timeout_ms);
    pthread_mutex_lock(&hub->lock);
    int result = open_all(hub, addresses, err);
    wf_coll_note(hub, &hub->times.opened_ns);
    if (result == 0)
        result = gather(hub, err);
    if (hub->rank == 0)
        wf_meet_clear(&hub->meet);
    wf_meet_fini(&hub->meet);
    pthread_mutex_unlock(&hub->lock);
    if (result < 0)
        weft_group_destroy(&hub->whole);
    else
        *out = &hub->whole;
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

static void close_sessions(struct wf_coll_hub *hub)
{
    for (struct wf_coll_session *session = hub->sessions, *next; session; session = next) {
        next = session->next;
        wf_coll_session_close(hub, session);
    }
}

void wf_coll_hub_free(struct wf_coll_hub *hub)
{
    wf_coll_drive_close(hub);
    for (uint32_t i = 0; hub->members && i < hub->size; i++)
        free(hub->members[i].addresses);
    wf_coll_sessions_free(hub);
    free(hub->members);
    free(hub->whole.places);
    wf_coll_stages_free(hub);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

static bool under_way(const struct wf_coll_hub *hub)
{
    return hub->sessions || hub->notes > 0 || hub->transfers > 0;
}

static void part_from_all(struct wf_coll_hub *hub, int64_t until_ns)
{
    while (hub->queue && hub->unsent && wf_coll_now_ns() < until_ns) { /* that it leaves, and why */
        wf_coll_drive(hub);
        if (hub->unsent) /* the timer is set to the next try */
            wf_coll_sleep(hub, until_ns);
    }
    close_sessions(hub);
    while (hub->queue && under_way(hub) && wf_coll_now_ns() < until_ns) {
        wf_coll_drive(hub);
        if (under_way(hub))
            wf_coll_sleep(hub, until_ns);
        close_sessions(hub); /* of who has come meanwhile */
    }
}

static bool close_endpoint(struct weft_endpoint **endpoint)
{
    bool closed = weft_endpoint_destroy(*endpoint) == 0;
    if (closed)
        *endpoint = NULL;
    return closed;
}

static bool close_parts(struct wf_coll_hub *hub)
{
    bool closed = close_endpoint(&hub->work);
    closed = close_endpoint(&hub->data) && closed;
    closed = close_endpoint(&hub->control) && closed; /* ends the receive */
    if (!hub->queue)
        return closed;
    wf_coll_drive(hub);  /* takes the end of the receive */
    close_sessions(hub); /* of who has come meanwhile */
    return closed && !hub->sessions && weft_queue_destroy(hub->queue) == 0;
}

/* An endpoint is in use until the session with a member that does not answer is cut, and that has our patience, too.
 * One left over would be in the way of the context's next group. */
static void close_all(struct wf_coll_hub *hub, int64_t until_ns)
{
    while (!close_parts(hub) && wf_coll_now_ns() < until_ns)
        wf_coll_sleep(hub, wf_coll_now_ns() + 10000000);
}

/* What is left is memory: where groups of a split are not destroyed yet, the last of them frees it. */
static void destroy_whole(struct wf_coll_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    if (hub->phase == WF_COLL_MADE)
        wf_coll_drive(hub);
    hub->left_at = wf_coll_operations_done(&hub->whole);
    hub->ending = true;
    if (hub->whole.places)
        wf_coll_say_leave(&hub->whole); /* before the other groups: what is not told of those costs time, this a loss */
    wf_coll_dials_cancel(hub);
    wf_coll_collectives_stop(&hub->whole);
    wf_coll_groups_end(hub);
    int64_t until_ns = wf_coll_now_ns() + GOODBYE_NS;
    part_from_all(hub, until_ns);
    close_all(hub, until_ns + GOODBYE_NS);
    for (struct weft_group *group = &hub->whole; group; group = wf_coll_next_group(hub, group))
        wf_coll_board_destroy(group);
    wf_coll_operations_free(&hub->whole);
    hub->over = true;
    wf_coll_groups_free(hub);
    bool last = !hub->groups;
    wf_coll_unlock(hub);
    if (last)
        wf_coll_hub_free(hub);
}

void weft_group_destroy(struct weft_group *group)
{
    if (group && group == &group->hub->whole)
        destroy_whole(group->hub);
    else if (group)
        wf_coll_leave(group);
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
    return group ? group->hub->local_rank : 0;
}

const char *weft_group_member_name(const struct weft_group *group, uint32_t rank)
{
    return group && rank < group->size ? group->places[rank].name : "";
}

const char *weft_group_source(const struct weft_group *group)
{
    return group ? group->hub->meet.said : "";
}

const char *weft_group_refused(const struct weft_group *group)
{
    return group ? group->hub->refused : "";
}

static int64_t no_less(int64_t at_ns, int64_t before_ns)
{
    return at_ns > before_ns ? at_ns : before_ns;
}

void weft_group_times(const struct weft_group *group, struct weft_group_times *out)
{
    if (!group || !out)
        return;
    *out = group->hub->times;
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
    pthread_mutex_lock(&group->hub->lock);
    wf_coll_drive(group->hub);
    int status = group->status;
    if (status < 0)
        wf_coll_refuse(err, status, "%s", group->text);
    wf_coll_unlock(group->hub);
    return status;
}
