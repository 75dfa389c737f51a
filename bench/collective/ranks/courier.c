#include "courier.h"

#include <errno.h>
#include <time.h>

double courier_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* With the lock, which is let go of meanwhile. */
static void carry(struct courier *courier)
{
    struct courier_times *times = &courier->times[courier->done];
    const struct rank_bucket *bucket = &courier->buckets[courier->done];
    struct wf_status status = {0};
    int result = 0;

    if (courier->status.code == 0) {
        pthread_mutex_unlock(&courier->lock);
        times->begun = courier_now();
        result = courier->work(courier->context, bucket, &status);
        times->ended = courier_now();
        pthread_mutex_lock(&courier->lock);
    }
    if (result)
        courier->status = status;
    courier->done++;
    pthread_cond_broadcast(&courier->changed);
}

static void *run(void *argument)
{
    struct courier *courier = argument;

    pthread_mutex_lock(&courier->lock);
    while (!courier->ending)
        if (courier->done < courier->handed)
            carry(courier);
        else
            pthread_cond_wait(&courier->changed, &courier->lock);
    pthread_mutex_unlock(&courier->lock);
    return NULL;
}

int courier_start(struct courier *courier, courier_work work, void *context, struct wf_status *status)
{
    *courier = (struct courier){.work = work, .context = context};
    pthread_mutex_init(&courier->lock, NULL);
    pthread_cond_init(&courier->changed, NULL);
    int failed = pthread_create(&courier->thread, NULL, run, courier);
    if (failed)
        return wf_fail(status, -failed, "no thread to communicate in: %s", wf_strerror(failed));
    courier->running = true;
    return 0;
}

void courier_stop(struct courier *courier)
{
    if (!courier->running)
        return;
    pthread_mutex_lock(&courier->lock);
    courier->ending = true;
    pthread_cond_broadcast(&courier->changed);
    pthread_mutex_unlock(&courier->lock);
    pthread_join(courier->thread, NULL);
    pthread_cond_destroy(&courier->changed);
    pthread_mutex_destroy(&courier->lock);
    courier->running = false;
}

void courier_begin(struct courier *courier, const struct rank_bucket *buckets, struct courier_times *times)
{
    pthread_mutex_lock(&courier->lock);
    courier->buckets = buckets;
    courier->times = times;
    courier->handed = courier->done = 0;
    pthread_mutex_unlock(&courier->lock);
}

void courier_hand(struct courier *courier)
{
    pthread_mutex_lock(&courier->lock);
    courier->times[courier->handed].ready = courier_now();
    courier->handed++;
    pthread_cond_broadcast(&courier->changed);
    pthread_mutex_unlock(&courier->lock);
}

int courier_wait(struct courier *courier, struct wf_status *status)
{
    pthread_mutex_lock(&courier->lock);
    while (courier->done < courier->handed)
        pthread_cond_wait(&courier->changed, &courier->lock);
    *status = courier->status;
    pthread_mutex_unlock(&courier->lock);
    return status->code;
}
