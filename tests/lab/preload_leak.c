/*
 * preload_leak.c: a library to preload that loses memory: LEAK_KIB_PER_MIN, a page at a time, which it writes to and
 * forgets.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE_KIB 4

static void *leak(void *unused)
{
    double kib = atof(getenv("LEAK_KIB_PER_MIN")), pause_s = 60.0 * PAGE_KIB / kib;
    struct timespec pause = {.tv_sec = (time_t)pause_s, .tv_nsec = (long)((pause_s - (double)(time_t)pause_s) * 1e9)};

    for (;;) {
        char *volatile lost = malloc(PAGE_KIB << 10);
        if (lost)
            memset(lost, 1, PAGE_KIB << 10);
        nanosleep(&pause, NULL);
    }
    return unused;
}

/* Signals are for the program's own threads. */
__attribute__((constructor)) static void begin(void)
{
    const char *rate = getenv("LEAK_KIB_PER_MIN");
    sigset_t all, before;
    pthread_t thread;

    if (!rate || atof(rate) <= 0)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_create(&thread, NULL, leak, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
