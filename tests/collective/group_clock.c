#include "group_clock.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000LL
#define PRESENT 14 /* tags of collective/group/words.h: to rank 0, "this member waits", */
#define HERE 15    /* and from rank 0, "so does rank 0" */

enum state { OFF, BEGINS, RUNS };

/* Of the one thread that makes the group's calls. */
static _Thread_local struct {
    enum state state;
    bool looked;      /* at the time, while the barrier begins */
    int64_t start_ns; /* of the barrier; the true time */
    int64_t patience_ns;
    bool early; /* group_clock_start_early() */
    uint32_t rank;
    uint64_t waiting;
    uint64_t *told;    /* the marks that are on the board, of all members */
    int heard;         /* of rank 0; at rank 0: of the others */
    bool answered;     /* by the board */
    void *mark, *look; /* user_data of the write to the board, of the read of it; NULL: none is under way */
} held;

static int64_t true_ns(clockid_t clock)
{
    struct timespec now;
    syscall(SYS_clock_gettime, clock, &now);
    return now.tv_sec * 1000 * NS_PER_MS + now.tv_nsec;
}

static void start(int patience_ms)
{
    memset(&held, 0, sizeof held);
    held.start_ns = true_ns(CLOCK_MONOTONIC);
    held.patience_ns = patience_ms * NS_PER_MS;
    held.state = BEGINS;
}

void group_clock_start(const struct group_process *process, int patience_ms, uint64_t waiting, uint64_t *told)
{
    start(patience_ms);
    held.rank = process->rank;
    held.waiting = waiting;
    held.told = told;
}

void group_clock_start_early(int patience_ms)
{
    start(patience_ms);
    held.early = true;
}

void group_clock_stop(void)
{
    held.state = OFF;
}

/* All who wait have told the board, and rank 0 if it is there; and this member knows what it is told in messages. */
static bool all_have_told(void)
{
    int others = __builtin_popcountll(held.waiting & ~1ull);
    if (held.rank == 0)
        return held.heard >= others;
    return __atomic_load_n(held.told, __ATOMIC_SEQ_CST) >= (uint64_t)others && (!(held.waiting & 1) || held.heard > 0);
}

/* The latest time that this thread may see. */
static int64_t limit_ns(void)
{
    if (held.state == BEGINS)
        return held.start_ns;
    if (held.early)
        return held.start_ns + held.patience_ns / 4 * 3;
    if (!all_have_told())
        return held.start_ns + held.patience_ns / 2;
    return held.rank == 0 || held.answered ? INT64_MAX : held.start_ns + held.patience_ns / 24 * 23;
}

static bool is_of_group(void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) != 0 && strstr(info.dli_fname, "libweft_coll");
}

/* Stands before the C library's. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *out)
{
    if (held.state == OFF || clock != CLOCK_MONOTONIC || !is_of_group(__builtin_return_address(0)))
        return (int)syscall(SYS_clock_gettime, clock, out);
    held.looked = true;
    int64_t now_ns = true_ns(clock), until_ns = limit_ns();
    if (now_ns > until_ns && now_ns < held.start_ns + LOOP_WAIT_MS / 2 * NS_PER_MS) {
        if (held.state == RUNS)
            loop_sleep_ms(1); /* its timer is over: it would look again and again */
        now_ns = until_ns;
    }
    out->tv_sec = now_ns / (1000 * NS_PER_MS);
    out->tv_nsec = now_ns % (1000 * NS_PER_MS);
    return 0;
}

/* --- what the barrier does meanwhile: these stand before libweft's --- */

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    LOOP_CHECK(found, "%s: %s", name, dlerror());
    return found;
}

int weft_write(struct weft_connection *connection, const void *buffer, uint64_t length, uint64_t key, uint64_t offset,
               const struct weft_options *options, struct weft_request **out)
{
    int (*real)(struct weft_connection *, const void *, uint64_t, uint64_t, uint64_t, const struct weft_options *,
                struct weft_request **) = next("weft_write");
    if (held.state != OFF)
        held.mark = options->user_data;
    return real(connection, buffer, length, key, offset, options, out);
}

int weft_read(struct weft_connection *connection, void *buffer, uint64_t length, uint64_t key, uint64_t offset,
              const struct weft_options *options, struct weft_request **out)
{
    int (*real)(struct weft_connection *, void *, uint64_t, uint64_t, uint64_t, const struct weft_options *,
                struct weft_request **) = next("weft_read");
    if (held.state != OFF)
        held.look = options->user_data;
    return real(connection, buffer, length, key, offset, options, out);
}

static void note(const struct weft_completion *ended)
{
    void *user_data = ended->user_data;
    held.heard += ended->tag == (held.rank == 0 ? PRESENT : HERE);
    if (held.told && user_data && user_data == held.mark && ended->status == 0) {
        held.mark = NULL;
        __atomic_add_fetch(held.told, 1, __ATOMIC_SEQ_CST);
    } else if (user_data && user_data == held.look && ended->status == 0) {
        held.look = NULL;
        held.answered = true;
    }
}

int weft_queue_poll(struct weft_queue *queue, struct weft_completion *completions, int max)
{
    int (*real)(struct weft_queue *, struct weft_completion *, int) = next("weft_queue_poll");
    if (held.state == BEGINS && held.looked) /* the barrier has its place, and its start */
        held.state = RUNS;
    int count = real(queue, completions, max);
    for (int i = 0; i < count && held.state != OFF; i++)
        note(&completions[i]);
    return count;
}
