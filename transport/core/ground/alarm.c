#include "core/ground/alarm.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

void wf_alarm_init(struct wf_alarm *alarm)
{
    pthread_mutex_init(&alarm->lock, NULL);
    wf_list_init(&alarm->asked);
}

void wf_alarm_fini(struct wf_alarm *alarm)
{
    free(alarm->heap);
    pthread_mutex_destroy(&alarm->lock);
}

/* False: it was as early, or earlier. */
static bool lower(_Atomic int64_t *at, int64_t when_ns)
{
    int64_t known = atomic_load(at);
    while (when_ns < known)
        if (atomic_compare_exchange_weak(at, &known, when_ns))
            return true;
    return false;
}

void wf_alarm_by(struct wf_alarm *alarm, struct wf_visit *visit, int64_t when_ns)
{
    struct wf_engine *engine = atomic_load(&alarm->engine);
    if (!engine || !lower(&visit->by_ns, when_ns))
        return;
    pthread_mutex_lock(&alarm->lock);
    if (!wf_link_in_list(&visit->link))
        wf_list_push_back(&alarm->asked, &visit->link);
    pthread_mutex_unlock(&alarm->lock);
    if (lower(&alarm->due_ns, when_ns))
        engine->ops->wake(engine);
}

void wf_alarm_listen(struct wf_alarm *alarm, struct wf_engine *engine)
{
    atomic_store(&alarm->due_ns, 0);
    atomic_store(&alarm->engine, engine);
}

/* --- the heap --- */

static void put(struct wf_alarm *alarm, int index, struct wf_visit *visit)
{
    alarm->heap[index] = visit;
    visit->place = index + 1;
}

/* Moves `visit` from `index` towards the front, past those that are due later. Returns where it is then. */
static int rise(struct wf_alarm *alarm, int index, struct wf_visit *visit)
{
    while (index > 0 && alarm->heap[(index - 1) / 2]->due_ns > visit->due_ns) {
        put(alarm, index, alarm->heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    put(alarm, index, visit);
    return index;
}

static void sink(struct wf_alarm *alarm, int index, struct wf_visit *visit)
{
    for (;;) {
        int next = 2 * index + 1;
        if (next + 1 < alarm->count && alarm->heap[next + 1]->due_ns < alarm->heap[next]->due_ns)
            next += 1;
        if (next >= alarm->count || alarm->heap[next]->due_ns >= visit->due_ns)
            break;
        put(alarm, index, alarm->heap[next]);
        index = next;
    }
    put(alarm, index, visit);
}

static void set_due(struct wf_alarm *alarm, struct wf_visit *visit, int64_t due_ns)
{
    int index = visit->place - 1;
    visit->due_ns = due_ns;
    sink(alarm, rise(alarm, index, visit), visit);
}

/* --- for the door --- */

int wf_alarm_enter(struct wf_alarm *alarm, struct wf_visit *visit)
{
    if (alarm->count == alarm->room) {
        int room = alarm->room ? 2 * alarm->room : 16;
        struct wf_visit **heap = realloc(alarm->heap, (size_t)room * sizeof *heap);
        if (!heap)
            return -ENOMEM;
        alarm->heap = heap;
        alarm->room = room;
    }
    wf_link_init(&visit->link);
    visit->due_ns = 0;
    atomic_store(&visit->by_ns, 0);
    rise(alarm, alarm->count++, visit);
    struct wf_engine *engine = atomic_load(&alarm->engine);
    if (lower(&alarm->due_ns, 0) && engine)
        engine->ops->wake(engine);
    return 0;
}

void wf_alarm_leave(struct wf_alarm *alarm, struct wf_visit *visit)
{
    if (visit->place == 0)
        return;
    pthread_mutex_lock(&alarm->lock);
    wf_link_remove(&visit->link);
    pthread_mutex_unlock(&alarm->lock);
    struct wf_visit *last = alarm->heap[--alarm->count];
    if (last != visit) {
        put(alarm, visit->place - 1, last);
        set_due(alarm, last, last->due_ns);
    }
    visit->place = 0;
}

/* Takes the visits that were asked for into the heap. */
static void collect(struct wf_alarm *alarm)
{
    struct wf_link *link;
    pthread_mutex_lock(&alarm->lock);
    while ((link = wf_list_pop_front(&alarm->asked))) {
        struct wf_visit *visit = WF_CONTAINER(link, struct wf_visit, link);
        int64_t by_ns = atomic_load(&visit->by_ns);
        if (by_ns < visit->due_ns)
            set_due(alarm, visit, by_ns);
    }
    pthread_mutex_unlock(&alarm->lock);
}

struct wf_visit *wf_alarm_next(struct wf_alarm *alarm, int64_t now_ns)
{
    /* Before the look: what is asked for during the look lowers it again. */
    atomic_store(&alarm->due_ns, WF_NEVER);
    collect(alarm);
    struct wf_visit *first = alarm->count > 0 ? alarm->heap[0] : NULL;
    if (first && first->due_ns <= now_ns) {
        set_due(alarm, first, WF_NEVER);
        atomic_store(&first->by_ns, WF_NEVER);
        return first;
    }
    if (first)
        lower(&alarm->due_ns, first->due_ns);
    return NULL;
}

void wf_alarm_again(struct wf_alarm *alarm, struct wf_visit *visit, int64_t due_ns)
{
    lower(&visit->by_ns, due_ns);
    lower(&alarm->due_ns, due_ns);
    if (due_ns < visit->due_ns)
        set_due(alarm, visit, due_ns);
}
