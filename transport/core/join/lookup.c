#include "core/join/lookup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "core/rail/address.h"

/* A name. In `waiting` or `answers`; while the thread is about it, in neither. */
struct wf_query {
    struct wf_link link;
    struct wf_dial *dial; /* NULL: nobody wants the answer; lookup.lock, also while the thread is about it */
    char name[WF_DIAL_NAME];
    int default_port;
    struct sockaddr_storage addresses[WF_DIAL_ADDRESSES];
    int count; /* or -errno, with `status` */
    struct wf_status status;
};

/* Owner: the door, and the thread while there is one: the last of the two frees it. */
struct wf_lookup {
    pthread_mutex_t lock; /* guards all */
    struct wf_engine *bell;
    struct wf_list waiting, answers;
    struct wf_query *running;
    bool has_thread;
    bool orphaned; /* the door is gone */
};

struct wf_lookup *wf_lookup_create(struct wf_engine *bell)
{
    struct wf_lookup *lookup = calloc(1, sizeof *lookup);
    if (!lookup)
        return NULL;
    pthread_mutex_init(&lookup->lock, NULL);
    lookup->bell = bell;
    wf_list_init(&lookup->waiting);
    wf_list_init(&lookup->answers);
    return lookup;
}

static void free_lookup(struct wf_lookup *lookup)
{
    pthread_mutex_destroy(&lookup->lock);
    free(lookup);
}

static void free_queries(struct wf_list *list)
{
    struct wf_link *link;
    while ((link = wf_list_pop_front(list)))
        free(WF_CONTAINER(link, struct wf_query, link));
}

void wf_lookup_destroy(struct wf_lookup *lookup)
{
    if (!lookup)
        return;
    pthread_mutex_lock(&lookup->lock);
    free_queries(&lookup->waiting);
    free_queries(&lookup->answers);
    lookup->orphaned = true;
    bool last = !lookup->has_thread;
    pthread_mutex_unlock(&lookup->lock);
    if (last)
        free_lookup(lookup);
}

static void look_up(struct wf_query *query)
{
    query->count =
        wf_address_parse_all(query->name, query->default_port, query->addresses, WF_DIAL_ADDRESSES, &query->status);
}

static void *run(void *argument)
{
    struct wf_lookup *lookup = argument;
    pthread_setname_np(pthread_self(), "weft-lookup");
    pthread_mutex_lock(&lookup->lock);
    struct wf_link *link;
    while (!lookup->orphaned && (link = wf_list_pop_front(&lookup->waiting))) {
        struct wf_query *query = lookup->running = WF_CONTAINER(link, struct wf_query, link);
        pthread_mutex_unlock(&lookup->lock);
        look_up(query);
        pthread_mutex_lock(&lookup->lock);
        lookup->running = NULL;
        if (lookup->orphaned || !query->dial) {
            free(query);
        } else {
            wf_list_push_back(&lookup->answers, &query->link);
            lookup->bell->ops->wake(lookup->bell);
        }
    }
    lookup->has_thread = false;
    bool last = lookup->orphaned;
    pthread_mutex_unlock(&lookup->lock);
    if (last)
        free_lookup(lookup);
    return NULL;
}

/* Lock held. */
static int start_thread(struct wf_lookup *lookup)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int result = pthread_attr_init(&attributes);
    if (result == 0) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        result = pthread_create(&thread, &attributes, run, lookup);
        pthread_attr_destroy(&attributes);
    }
    lookup->has_thread = result == 0;
    return -result;
}

int wf_lookup_ask(struct wf_lookup *lookup, struct wf_dial *dial, int default_port, struct wf_status *status)
{
    struct wf_query *query = calloc(1, sizeof *query);
    if (!query)
        return wf_fail(status, -ENOMEM, "no memory to look up '%.100s'", dial->name);
    query->dial = dial;
    query->default_port = default_port;
    memcpy(query->name, dial->name_text, sizeof query->name);
    pthread_mutex_lock(&lookup->lock);
    wf_list_push_back(&lookup->waiting, &query->link);
    int result = lookup->has_thread ? 0 : start_thread(lookup);
    dial->query = result < 0 ? NULL : query;
    if (result < 0) {
        wf_link_remove(&query->link);
        free(query);
    }
    pthread_mutex_unlock(&lookup->lock);
    char remedy[160];
    if (result < 0)
        return wf_fail(status, result, "cannot start a thread to look up '%.100s': %s; %s", dial->name,
                       wf_strerror(result), wf_thread_remedy(remedy, sizeof remedy));
    return 0;
}

void wf_lookup_forget(struct wf_lookup *lookup, struct wf_dial *dial)
{
    struct wf_query *query = dial->query;
    dial->query = NULL;
    if (!query)
        return;
    pthread_mutex_lock(&lookup->lock);
    bool running = query == lookup->running;
    query->dial = NULL; /* the thread frees it, if it is about it */
    if (!running)
        wf_link_remove(&query->link);
    pthread_mutex_unlock(&lookup->lock);
    if (!running)
        free(query);
}

struct wf_dial *wf_lookup_answered(struct wf_lookup *lookup)
{
    pthread_mutex_lock(&lookup->lock);
    struct wf_link *link = wf_list_pop_front(&lookup->answers);
    pthread_mutex_unlock(&lookup->lock);
    if (!link)
        return NULL;
    struct wf_query *query = WF_CONTAINER(link, struct wf_query, link);
    struct wf_dial *dial = query->dial;
    dial->name = NULL;
    dial->query = NULL;
    if (query->count < 0)
        dial->status = query->status;
    else
        memcpy(dial->addresses, query->addresses, sizeof dial->addresses);
    dial->address_count = query->count < 0 ? 0 : query->count;
    free(query);
    return dial;
}
