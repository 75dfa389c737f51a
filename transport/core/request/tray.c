#include "core/request/tray.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int wf_tray_create(struct wf_waiting *waiting, struct wf_tray **out)
{
    struct wf_tray *tray = calloc(1, sizeof *tray);
    if (!tray)
        return -ENOMEM;
    tray->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (tray->fd < 0) {
        int result = -errno;
        free(tray);
        return result;
    }
    tray->waiting = waiting;
    atomic_init(&tray->references, 1);
    pthread_mutex_init(&tray->lock, NULL);
    pthread_mutex_init(&tray->level_lock, NULL);
    wf_list_init(&tray->list);
    wf_list_init(&tray->sleepers);
    wf_link_init(&tray->signal_link);
    *out = tray;
    return 0;
}

void wf_tray_let_go(struct wf_tray *tray)
{
    if (atomic_fetch_sub(&tray->references, 1) != 1)
        return;
    close(tray->fd);
    pthread_mutex_destroy(&tray->level_lock);
    pthread_mutex_destroy(&tray->lock);
    free(tray);
}

void wf_tray_destroy(struct wf_tray *tray)
{
    pthread_mutex_lock(&tray->lock); /* waits until the thread that put the last link has let go of the tray */
    pthread_mutex_unlock(&tray->lock);
    pthread_mutex_lock(&tray->waiting->lock);
    wf_link_remove(&tray->signal_link);
    pthread_mutex_unlock(&tray->waiting->lock);
    wf_tray_let_go(tray);
}

/* tray->lock held. */
static bool tell(struct wf_tray *tray, bool signal)
{
    struct wf_waiting *waiting = tray->waiting;
    bool sleepers = atomic_load(&tray->sleeper_count) > 0;
    if (!signal && !sleepers)
        return false;
    pthread_mutex_lock(&waiting->lock);
    if (signal && !wf_link_in_list(&tray->signal_link))
        wf_list_push_back(&waiting->signals, &tray->signal_link);
    bool poked = sleepers && wf_wait_poke(waiting, &tray->sleepers);
    pthread_mutex_unlock(&waiting->lock);
    return signal || poked;
}

static bool put(struct wf_tray *tray, struct wf_link *link, bool quietly)
{
    bool wake = false;
    pthread_mutex_lock(&tray->lock);
    if (!wf_link_in_list(link)) {
        bool due = tray->watched && (tray->hidden || wf_list_empty(&tray->list));
        tray->hidden = due && (tray->drivers > 0 || (quietly && tray->looking));
        wf_list_push_back(&tray->list, link);
        wake = tell(tray, due && !tray->hidden);
    }
    pthread_mutex_unlock(&tray->lock);
    return wake;
}

bool wf_tray_holds(struct wf_tray *tray)
{
    pthread_mutex_lock(&tray->lock);
    bool holds = !wf_list_empty(&tray->list);
    pthread_mutex_unlock(&tray->lock);
    return holds;
}

bool wf_tray_pass_on(struct wf_tray *tray)
{
    pthread_mutex_lock(&tray->lock);
    bool wake = !wf_list_empty(&tray->list) && tell(tray, false);
    pthread_mutex_unlock(&tray->lock);
    return wake;
}

bool wf_tray_put(struct wf_tray *tray, struct wf_link *link)
{
    return put(tray, link, false);
}

bool wf_tray_put_quietly(struct wf_tray *tray, struct wf_link *link)
{
    return put(tray, link, true);
}

/*
 * Makes the descriptor readable if the tray is watched and its list is not empty, else not. Each thread that made the
 * list empty, or not empty any more, calls this afterwards. level_lock lets one thread in at a time, so the last call
 * sets the right level.
 */
static void show_level(struct wf_tray *tray)
{
    pthread_mutex_lock(&tray->level_lock);
    pthread_mutex_lock(&tray->lock);
    bool level = tray->watched && !wf_list_empty(&tray->list);
    tray->hidden = false;
    pthread_mutex_unlock(&tray->lock);
    if (level != tray->level) {
        uint64_t count = 1;
        ssize_t done;
        do
            done = level ? write(tray->fd, &count, sizeof count) : read(tray->fd, &count, sizeof count);
        while (done < 0 && errno == EINTR);
        tray->level = level;
    }
    pthread_mutex_unlock(&tray->level_lock);
}

int wf_tray_take(struct wf_tray *tray, struct wf_list *taken, int max, bool *watched)
{
    struct wf_link *link;
    int count = 0;
    pthread_mutex_lock(&tray->lock);
    while (count < max && (link = wf_list_pop_front(&tray->list))) {
        wf_list_push_back(taken, link);
        count += 1;
    }
    *watched = tray->watched;
    tray->looking = count > 0 && tray->settles;
    bool emptied = count > 0 && wf_list_empty(&tray->list), hidden = tray->hidden;
    pthread_mutex_unlock(&tray->lock);
    if ((emptied || hidden) && *watched)
        show_level(tray);
    return count;
}

struct wf_link *wf_tray_pop(struct wf_tray *tray, bool *watched)
{
    pthread_mutex_lock(&tray->lock);
    struct wf_link *link = wf_list_pop_front(&tray->list);
    *watched = tray->watched;
    bool emptied = link && wf_list_empty(&tray->list);
    pthread_mutex_unlock(&tray->lock);
    if (emptied && *watched)
        show_level(tray);
    return link;
}

void wf_tray_drop(struct wf_tray *tray, struct wf_link *link)
{
    pthread_mutex_lock(&tray->lock);
    bool there = wf_link_in_list(link), watched = tray->watched;
    wf_link_remove(link);
    pthread_mutex_unlock(&tray->lock);
    if (there && watched)
        show_level(tray);
}

void wf_tray_drive(struct wf_tray *tray, bool begins)
{
    pthread_mutex_lock(&tray->lock);
    tray->drivers += begins ? 1 : -1;
    pthread_mutex_unlock(&tray->lock);
}

void wf_tray_let_settle(struct wf_tray *tray, bool settles)
{
    pthread_mutex_lock(&tray->lock);
    tray->settles = settles;
    pthread_mutex_unlock(&tray->lock);
    if (!settles)
        wf_tray_settle(tray);
}

void wf_tray_settle(struct wf_tray *tray)
{
    pthread_mutex_lock(&tray->lock);
    bool hidden = tray->hidden && tray->drivers == 0;
    tray->looking = false;
    pthread_mutex_unlock(&tray->lock);
    if (hidden)
        show_level(tray);
}

int wf_tray_watch(struct wf_tray *tray)
{
    pthread_mutex_lock(&tray->lock);
    tray->watched = true;
    pthread_mutex_unlock(&tray->lock);
    show_level(tray);
    return tray->fd;
}

void wf_tray_hold(struct wf_tray *tray)
{
    atomic_fetch_add(&tray->references, 1);
}

void wf_tray_signal(struct wf_tray *tray)
{
    show_level(tray);
    wf_tray_let_go(tray);
}
