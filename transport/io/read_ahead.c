#include "io/read_ahead.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/vector.h"

#define LINE_BYTES 64
#define SAMPLE_BYTES 4096
#define SAMPLE_AT (16 * 1024)    /* into what would be read: as far as no cache comes that fetches what follows */
#define LEAST_BYTES (64 * 1024)  /* less is not looked at, and not left over where it can go along */
#define NEWS_BYTES (32 * 1024)   /* less is not worth a look of its own */
#define SLICE_LEAST (256 * 1024) /* a slice ends a call, which costs */
#define SLICE_MOST (512 * 1024)

/* 4 KiB come out of a second-level cache in 40 to 80 ns, and out of memory in no less than 120: 64 lines, of which a
 * core has 10 to 24 under way at a time, for 80 ns or more each. */
#define COLD_NS 100
/* Slower than 1 GB/s: a large page that is not there yet, one that comes from a disk, memory that is never cached, or
 * this thread was interrupted. The kernel's copy will be as slow, and to wait once is enough. */
#define ABSENT_NS 4096

#define UNIT 16384 /* of a gain */
#define MIB (UINT64_C(1) << 20)
#define PHASE_BYTES (8 * MIB) /* one way for so long, */
#define PHASE_START (2 * MIB) /* of which so much does not count: caches and queues are as the other way left them */
#define PHASE_LEAST (2 * MIB) /* has to be counted of each of two that are compared */
#define PAIRS_AT_FIRST 4      /* without a pause */
#define PAUSE_LEAST (128 * MIB)
#define PAUSE_MOST (1024 * MIB) /* twice as long each time that */
#define SMOOTHING 8             /* so many pairs have changed nothing; the mean of fewer is their own */
#define BELIEVED 1600 /* before any, and as much as one: 1.2 times the time (docs/decisions/0016-read-ahead.md) */
#define WORTH 400     /* 1.05 times: a slice ends a call that could have gone on, and that costs something */
#define MOST 3072     /* 1.46 times: from a gain of nothing one that was interrupted does not decide */

/* --- the trial --- */

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

void wf_trial_init(struct wf_trial *trial)
{
    *trial = (struct wf_trial){.phase = WF_TRIAL_FIRST, .left = PHASE_BYTES, .pause = PAUSE_LEAST, .gain = BELIEVED};
}

bool wf_trial_compares(const struct wf_trial *trial)
{
    return trial->phase != WF_TRIAL_PAUSE;
}

static bool pays(const struct wf_trial *trial)
{
    return trial->gain >= WORTH;
}

bool wf_trial_reads(const struct wf_trial *trial)
{
    if (!wf_trial_compares(trial))
        return pays(trial);
    /* Each way is first in every other pair: what drifts cancels. */
    return (trial->phase == WF_TRIAL_FIRST) == (trial->pairs % 2 == 0);
}

/* Nothing, where it cannot be compared. */
static void judge(struct wf_trial *trial)
{
    if (trial->bytes[false] < PHASE_LEAST || trial->bytes[true] < PHASE_LEAST)
        return;
    int64_t without = (int64_t)(trial->ns[false] * MIB / trial->bytes[false]);
    int64_t with = (int64_t)(trial->ns[true] * MIB / trial->bytes[true]);
    if (without == 0 || with == 0)
        return;
    int64_t gain = clamp((without - with) * UNIT / (without + with), -MOST, MOST);
    trial->judged += trial->judged < SMOOTHING - 1;
    trial->gain = (trial->gain * trial->judged + gain) / (trial->judged + 1);
}

static void end_pair(struct wf_trial *trial)
{
    bool before = pays(trial);
    judge(trial);
    trial->settled = pays(trial) == before ? trial->settled + 1 : 0;
    if (trial->settled == 0)
        trial->pause = PAUSE_LEAST;
    else if (trial->settled % SMOOTHING == 0 && trial->pause < PAUSE_MOST)
        trial->pause *= 2;
    trial->pairs += 1;
    trial->bytes[false] = trial->bytes[true] = trial->ns[false] = trial->ns[true] = 0;
    trial->phase = trial->pairs < PAIRS_AT_FIRST ? WF_TRIAL_FIRST : WF_TRIAL_PAUSE;
    trial->left = trial->pairs < PAIRS_AT_FIRST ? PHASE_BYTES : trial->pause;
}

void wf_trial_tell(struct wf_trial *trial, uint64_t moved, int64_t ns)
{
    if (wf_trial_compares(trial) && ns > 0 && trial->left <= PHASE_BYTES - PHASE_START) {
        trial->bytes[wf_trial_reads(trial)] += moved;
        trial->ns[wf_trial_reads(trial)] += (uint64_t)ns;
    }
    trial->left -= moved < trial->left ? moved : trial->left;
    if (trial->left > 0)
        return;
    if (trial->phase == WF_TRIAL_SECOND) {
        end_pair(trial);
        return;
    }
    trial->phase = trial->phase == WF_TRIAL_PAUSE ? WF_TRIAL_FIRST : WF_TRIAL_SECOND;
    trial->left = PHASE_BYTES;
}

/* --- reading --- */

/* Only fills the cache: the values are not used. Memory that a peer's READ is answered from may be written meanwhile;
 * that is no error here. */
__attribute__((noinline, no_sanitize("thread"))) static void read_lines(const char *at, size_t bytes)
{
    const char *end = at + bytes;
    (void)*(const volatile char *)at;
    for (at += LINE_BYTES - (uintptr_t)at % LINE_BYTES; at < end; at += LINE_BYTES)
        (void)*(const volatile char *)at;
}

/* The bytes from `from` to `to` of what is left of the operation. */
static void read_range(const struct wf_op *op, size_t from, size_t to)
{
    size_t at = 0;
    for (int i = 0; i < op->iov_count && at < to; i++) {
        const struct iovec *entry = &op->iov[i];
        size_t begin = from > at ? from - at : 0;
        size_t end = to - at < entry->iov_len ? to - at : entry->iov_len;
        if (begin < end)
            read_lines((const char *)entry->iov_base + begin, end - begin);
        at += entry->iov_len;
    }
}

/* Do the bytes from `from` to `to` come from memory? */
static bool is_cold(const struct wf_read_ahead *ahead, const struct wf_op *op, size_t from, size_t to)
{
    size_t at = from + (to - from > 2 * SAMPLE_AT ? SAMPLE_AT : (to - from) / 2);
    int64_t began = wf_clock_now(ahead->clock);
    read_range(op, at, to - at < SAMPLE_BYTES ? to : at + SAMPLE_BYTES);
    int64_t took = wf_clock_now(ahead->clock) - began - ahead->clock_ns;
    return took > COLD_NS && took < ABSENT_NS;
}

/* What a call can take of what is left of the operation, up to `limit`. */
static size_t front(const struct wf_op *op, size_t limit)
{
    size_t bytes = 0;
    for (int i = 0; i < op->iov_count && i < WF_PORTION_ENTRIES && bytes < limit; i++)
        bytes += op->iov[i].iov_len;
    return bytes < limit ? bytes : limit;
}

/* As many whole segments as `bytes` has room for: the rest of a slice would leave as a segment of its own. */
static size_t whole_segments(struct wf_op *op, size_t bytes)
{
    if (op->segment == 0) { /* it may change, but not with every slice */
        int segment = 0;
        socklen_t size = sizeof segment;
        bool known = getsockopt(op->fd, IPPROTO_TCP, TCP_MAXSEG, &segment, &size) == 0 && segment > 0;
        op->segment = known ? (uint32_t)segment : 1;
    }
    return op->segment > bytes ? bytes : bytes - bytes % op->segment;
}

static int64_t clock_cost(const struct wf_clock *clock)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < 8; i++) {
        int64_t began = wf_clock_now(clock), took = wf_clock_now(clock) - began;
        least = took < least ? took : least;
    }
    return least;
}

void wf_read_ahead_init(struct wf_read_ahead *ahead, enum wf_read_ahead_when when, const struct wf_clock *clock)
{
    *ahead = (struct wf_read_ahead){.when = when, .clock = clock};
    wf_trial_init(&ahead->trial);
    if (when == WF_READ_AHEAD_OFF)
        return;
    long cache = sysconf(_SC_LEVEL2_CACHE_SIZE); /* 0 or -1: the system does not tell */
    ahead->slice = (size_t)clamp(cache / 2, SLICE_LEAST, SLICE_MOST);
    ahead->clock_ns = clock_cost(clock);
}

/* What is looked at: a slice, or all that is left, if that is little more. */
static size_t next_slice(const struct wf_read_ahead *ahead, const struct wf_op *op, size_t limit)
{
    size_t most = ahead->slice + LEAST_BYTES;
    size_t bytes = front(op, limit < most ? limit : most);
    return bytes == most ? ahead->slice : bytes;
}

size_t wf_read_ahead_before(struct wf_read_ahead *ahead, struct wf_op *op, size_t limit)
{
    ahead->told = 0;
    ahead->goes_on = false;
    size_t bytes = ahead->slice ? next_slice(ahead, op, limit) : 0;
    if (bytes < LEAST_BYTES)
        return limit;
    size_t known = op->read > op->moved ? (size_t)(op->read - op->moved) : 0; /* a call took less than it was given */
    bool tries = ahead->when == WF_READ_AHEAD_AUTO;
    ahead->goes_on = tries && known > 0;
    if (known > 0 && known + NEWS_BYTES > bytes)
        return known < limit ? known : limit;
    if (!is_cold(ahead, op, known, bytes))
        return limit;
    if (front(op, bytes + 1) > bytes)
        bytes = whole_segments(op, bytes);
    if (known >= bytes)
        return known;
    bool reads = !tries || wf_trial_reads(&ahead->trial);
    bool compares = tries && known == 0 && wf_trial_compares(&ahead->trial);
    if (tries && known == 0) {
        ahead->told = bytes;
        ahead->began_ns = wf_clock_now(ahead->clock);
    }
    if (reads) {
        read_range(op, known, bytes);
        op->read = op->moved + bytes;
    }
    return reads || compares ? bytes : limit;
}

void wf_read_ahead_after(struct wf_read_ahead *ahead, ssize_t moved)
{
    if (!ahead->told && !ahead->goes_on)
        return;
    bool whole = ahead->told && moved > 0 && (size_t)moved == ahead->told;
    wf_trial_tell(&ahead->trial, moved > 0 ? (uint64_t)moved : 0,
                  whole ? wf_clock_now(ahead->clock) - ahead->began_ns : 0);
}
