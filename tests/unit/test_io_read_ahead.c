/* Reading ahead: which way is taken after what, which bytes are read, and that no others are. Time is the test's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/read_ahead.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define LEAST (64 * KIB) /* what is worth looking at */
#define NEWS (32 * KIB)  /* the same, behind what has been read */
#define ASKING_NS 10
#define HOT_NS 95
#define COLD_NS 300
#define ABSENT_NS 100000

/* --- the trial --- */

#define PHASE 8 /* calls of a MiB that go one way before as many go the other */
#define PAIR (2 * PHASE)
#define AT_FIRST (4 * PAIR) /* before the first pause, */
#define SHORT_PAUSE 128     /* which is as long as this, */
#define LONG_PAUSE 1024     /* and later as this */
#define SETTLED 8192        /* when it is so, if nothing changes meanwhile */

/* `calls` of a machine on which a MiB takes so long without and with reading; how many of them read. */
static int go(struct wf_trial *trial, int calls, int64_t plain_ns, int64_t read_ns)
{
    int reads = 0;
    for (int i = 0; i < calls; i++) {
        bool read = wf_trial_reads(trial);
        reads += read;
        wf_trial_tell(trial, MIB, read ? read_ns : plain_ns);
    }
    return reads;
}

/* On to the next pause, at least a pair later: whether it reads then. */
static bool reads_in_pause(struct wf_trial *trial, int64_t plain_ns, int64_t read_ns)
{
    do
        go(trial, 1, plain_ns, read_ns);
    while (!wf_trial_compares(trial));
    while (wf_trial_compares(trial))
        go(trial, 1, plain_ns, read_ns);
    return wf_trial_reads(trial);
}

static void the_faster_way_is_taken(void **state)
{
    (void)state;
    struct wf_trial trial;
    wf_trial_init(&trial);
    for (int phase = 0; phase < AT_FIRST / PHASE; phase++) /* both at first, each of them first in every other pair */
        assert_int_equal(go(&trial, PHASE, 200000, 150000), phase % 4 == 0 || phase % 4 == 3 ? PHASE : 0);
    assert_int_equal(go(&trial, SHORT_PAUSE, 200000, 150000), SHORT_PAUSE);
    assert_int_equal(go(&trial, PAIR, 200000, 150000), PHASE);
    assert_int_equal(go(&trial, SHORT_PAUSE, 200000, 150000), SHORT_PAUSE);

    go(&trial, 1024, 150000, 200000); /* the machine is another one now */
    assert_false(reads_in_pause(&trial, 150000, 200000));
    assert_int_equal(go(&trial, SHORT_PAUSE, 150000, 200000), 0);
    go(&trial, 1024, 200000, 150000);
    assert_true(reads_in_pause(&trial, 200000, 150000));
}

/* The slower way costs time. */
static void what_is_settled_is_tried_less(void **state)
{
    (void)state;
    struct wf_trial trial;
    wf_trial_init(&trial);
    go(&trial, SETTLED, 200000, 150000);
    assert_int_equal(go(&trial, 4 * (LONG_PAUSE + PAIR), 200000, 150000), 4 * (LONG_PAUSE + PHASE));

    int pairs = 0; /* and yet it is found when it has changed, */
    for (; reads_in_pause(&trial, 150000, 200000); pairs++)
        assert_in_range(pairs, 0, 8);
    assert_int_equal(go(&trial, SHORT_PAUSE, 150000, 200000), 0); /* which may not be all */
    assert_true(wf_trial_compares(&trial));
}

static void what_gains_nothing_is_left_alone(void **state)
{
    (void)state;
    struct wf_trial trial;
    wf_trial_init(&trial);
    go(&trial, AT_FIRST, 200000, 200000); /* no longer than that */
    assert_int_equal(go(&trial, SHORT_PAUSE, 200000, 200000), 0);
    for (int pair = 0; pair < 20; pair++)
        assert_false(reads_in_pause(&trial, 200000, 200000));
    for (int pair = 0; pair < 20; pair++)
        assert_false(reads_in_pause(&trial, 200000, 190000)); /* 5 % less, of which a little is rounded off */
}

static void one_interrupted_call_decides_nothing(void **state)
{
    (void)state;
    const int64_t times[][2] = {{150000, 200000}, {200000, 200000}, {200000, 150000}}; /* without and with */
    for (int i = 0; i < 6; i++) { /* one of each way is interrupted */
        struct wf_trial trial;
        int64_t plain_ns = times[i % 3][0], read_ns = times[i % 3][1];
        wf_trial_init(&trial);
        go(&trial, SETTLED, plain_ns, read_ns);
        reads_in_pause(&trial, plain_ns, read_ns);
        while (!wf_trial_compares(&trial) || wf_trial_reads(&trial) != (i / 3 == 1))
            go(&trial, 1, plain_ns, read_ns);
        go(&trial, PHASE / 2, plain_ns, read_ns);
        wf_trial_tell(&trial, MIB, 1000000000);
        while (wf_trial_compares(&trial))
            go(&trial, 1, plain_ns, read_ns);
        assert_int_equal(wf_trial_reads(&trial), i % 3 == 2);
    }
}

/* What the way before has left in caches and queues is not this one's doing. */
static void the_start_of_a_phase_does_not_count(void **state)
{
    (void)state;
    struct wf_trial trial, other;
    wf_trial_init(&trial);
    wf_trial_init(&other);
    for (int i = 0; i < AT_FIRST; i++) {
        wf_trial_tell(&trial, MIB, wf_trial_reads(&trial) && i % PHASE < 2 ? 1000000 : 100000);
        wf_trial_tell(&other, MIB, 100000);
    }
    assert_int_equal(trial.gain, other.gain);
}

static void what_cannot_be_compared_is_not(void **state)
{
    (void)state;
    struct wf_trial trial;
    wf_trial_init(&trial);
    go(&trial, 1024, 200000, 150000);
    int64_t gain = trial.gain;
    for (int i = 0; i < SETTLED; i++)
        wf_trial_tell(&trial, MIB, wf_trial_reads(&trial) ? 0 : 1); /* one way of each pair only */
    assert_int_equal(trial.gain, gain);
    for (int i = 0; i < SETTLED; i++)
        wf_trial_tell(&trial, MIB, i % 8 == 7 ? 1 : 0); /* too few of each */
    assert_int_equal(trial.gain, gain);
    /* Nor tried as often as at first. */
    reads_in_pause(&trial, 0, 0);
    assert_int_equal(go(&trial, LONG_PAUSE, 0, 0), LONG_PAUSE);
}

/* Both ways take the same, and all of it ever longer. */
static void drift_is_no_gain(void **state)
{
    (void)state;
    struct wf_trial trial;
    wf_trial_init(&trial);
    int64_t ns = 100000;
    for (int i = 0; i < SETTLED; i++, ns += ns / 1000)
        wf_trial_tell(&trial, MIB, ns);
    assert_in_range(trial.gain + 160, 0, 320);
}

/* Now one way is interrupted and now the other. */
static void noise_is_no_gain(void **state)
{
    (void)state;
    struct wf_trial trial;
    wf_trial_init(&trial);
    for (int i = 0; i < 8 * SETTLED; i++) {
        bool read = wf_trial_reads(&trial);
        assert_true(i < 2 * SETTLED || wf_trial_compares(&trial) || !read);
        wf_trial_tell(&trial, MIB, read == (trial.pairs % 2 == 0) ? 400000 : 100000);
    }
}

/* --- what is read --- */

struct fixture {
    struct wf_clock clock;
    int64_t now_ns, step_ns; /* each time that it is asked takes a step */
    int asked;
    struct wf_read_ahead ahead;
    struct wf_op op;
    struct iovec pieces[3];
    int fd;
    char *memory; /* nobody has touched it: pages come to be when they are read */
};

static int64_t ask(const struct wf_clock *clock)
{
    struct fixture *fixture = WF_CONTAINER((struct wf_clock *)clock, struct fixture, clock);
    int64_t now = fixture->now_ns;
    fixture->now_ns += fixture->step_ns;
    fixture->asked++;
    return now;
}

static void set_up(struct fixture *fixture, enum wf_read_ahead_when when, int64_t sample_ns)
{
    *fixture = (struct fixture){.clock = {ask}, .step_ns = ASKING_NS};
    wf_read_ahead_init(&fixture->ahead, when, &fixture->clock);
    if (when != WF_READ_AHEAD_OFF)
        assert_in_range(fixture->ahead.slice, 2 * LEAST, 512 * KIB);
    fixture->step_ns = ASKING_NS + sample_ns;
    fixture->asked = 0;
    fixture->fd = memfd_create("payload", MFD_CLOEXEC);
    assert_true(fixture->fd >= 0);
    assert_int_equal(ftruncate(fixture->fd, 8 * (off_t)MIB), 0);
    fixture->memory = mmap(NULL, 8 * MIB, PROT_READ, MAP_SHARED, fixture->fd, 0);
    assert_ptr_not_equal(fixture->memory, MAP_FAILED);
    madvise(fixture->memory, 8 * MIB, MADV_NOHUGEPAGE); /* a kernel without them says no */
    fixture->pieces[0] = (struct iovec){fixture->memory, 8 * MIB};
    fixture->op = (struct wf_op){.kind = WF_OP_SEND, .fd = -1, .iov = fixture->pieces, .iov_count = 1};
}

static void tear_down(struct fixture *fixture)
{
    munmap(fixture->memory, 8 * MIB);
    close(fixture->fd);
}

/* Bytes of the payload whose page has been touched. */
static size_t touched(const struct fixture *fixture)
{
    struct stat stat;
    assert_int_equal(fstat(fixture->fd, &stat), 0);
    return (size_t)stat.st_blocks * 512;
}

/* One call: the most it may take. `took_ns`: how long it takes. */
static size_t call(struct fixture *fixture, size_t limit, size_t moves, int64_t took_ns)
{
    size_t most = wf_read_ahead_before(&fixture->ahead, &fixture->op, limit);
    assert_true(moves <= most);
    fixture->now_ns += took_ns;
    wf_read_ahead_after(&fixture->ahead, moves ? (ssize_t)moves : -EAGAIN);
    fixture->op.moved += moves;
    fixture->op.iov->iov_base = (char *)fixture->op.iov->iov_base + moves;
    fixture->op.iov->iov_len -= moves;
    return most;
}

static void off_does_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture, WF_READ_AHEAD_OFF, COLD_NS);
    assert_int_equal(call(&fixture, 8 * MIB, 0, 0), 8 * MIB);
    assert_int_equal(touched(&fixture), 0);
    assert_int_equal(fixture.asked, 0);
    tear_down(&fixture);
}

static void little_is_not_worth_a_look(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture, WF_READ_AHEAD_ON, COLD_NS);
    fixture.pieces[0].iov_len = LEAST - 1;
    assert_int_equal(call(&fixture, 8 * MIB, 0, 0), 8 * MIB);
    fixture.pieces[0].iov_len = 8 * MIB;
    assert_int_equal(call(&fixture, LEAST - 1, 0, 0), LEAST - 1);
    assert_int_equal(touched(&fixture), 0);
    assert_int_equal(fixture.asked, 0);
    tear_down(&fixture);
}

/* Of what is in a cache, and of what is not in memory, one page is looked at, and a call takes all that it may. */
static void what_is_not_cold_is_left_alone(void **state)
{
    (void)state;
    const int64_t samples[] = {HOT_NS, ABSENT_NS};
    for (int i = 0; i < 2; i++) {
        struct fixture fixture;
        set_up(&fixture, WF_READ_AHEAD_ON, samples[i]);
        assert_int_equal(call(&fixture, 4 * MIB, 2 * MIB, 0), 4 * MIB);
        assert_int_equal(touched(&fixture), 4 * KIB);
        assert_int_equal(fixture.op.read, 0);
        tear_down(&fixture);
    }
}

static void a_slice_is_read_and_sent(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture, WF_READ_AHEAD_ON, COLD_NS);
    size_t slice = fixture.ahead.slice;
    assert_int_equal(call(&fixture, 8 * MIB, slice, 0), slice);
    assert_int_equal(touched(&fixture), slice);
    assert_int_equal(call(&fixture, 8 * MIB, slice, 0), slice);
    assert_int_equal(touched(&fixture), 2 * slice);
    assert_int_equal(call(&fixture, 2 * LEAST, LEAST, 0), 2 * LEAST); /* the call may be the smaller one */
    assert_int_equal(touched(&fixture), 2 * slice + 2 * LEAST);
    tear_down(&fixture);
}

/* A full socket takes little by little: nothing is read twice, and never more ahead than a slice. */
static void what_was_read_is_known(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture, WF_READ_AHEAD_ON, COLD_NS);
    size_t slice = fixture.ahead.slice;
    assert_int_equal(call(&fixture, 8 * MIB, 0, 0), slice);
    int asked = fixture.asked;
    assert_int_equal(call(&fixture, 8 * MIB, 4 * KIB, 0), slice);
    assert_int_equal(fixture.asked, asked);
    assert_int_equal(touched(&fixture), slice);
    for (size_t sent = 4 * KIB; sent < 4 * MIB; sent += 4 * KIB) {
        size_t most = call(&fixture, 8 * MIB, 4 * KIB, 0);
        assert_in_range(most, slice - NEWS, slice);
        assert_int_equal(touched(&fixture), sent + most);
    }
    tear_down(&fixture);
}

/* A call takes 64 pieces of a list: what is behind them is not read, and the trial is told of what it could move. */
static void what_a_call_cannot_take_is_not_read(void **state)
{
    (void)state;
    struct fixture fixture;
    struct iovec pieces[200];
    set_up(&fixture, WF_READ_AHEAD_AUTO, COLD_NS);
    for (size_t i = 0; i < 200; i++)
        pieces[i] = (struct iovec){fixture.memory + 4 * KIB * i, 4 * KIB};
    fixture.op.iov = pieces;
    fixture.op.iov_count = 200;
    assert_int_equal(wf_read_ahead_before(&fixture.ahead, &fixture.op, 8 * MIB), 256 * KIB);
    assert_int_equal(touched(&fixture), 256 * KIB);
    wf_read_ahead_after(&fixture.ahead, 256 * KIB);
    assert_int_equal(fixture.ahead.trial.left, 8 * MIB - 256 * KIB);
    tear_down(&fixture);
}

/* The pieces of a list lie anywhere, end anywhere, and what lies beside them may not be readable at all. */
static void nothing_else_is_read(void **state)
{
    (void)state;
    const size_t lengths[] = {1, 63, 64, 65, 4095, 4096};
    long page = sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < 36; i++) {
        struct fixture fixture;
        set_up(&fixture, WF_READ_AHEAD_ON, COLD_NS);
        char *walled = mmap(NULL, 3 * (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(walled, MAP_FAILED);
        assert_int_equal(mprotect(walled + page, (size_t)page, PROT_READ | PROT_WRITE), 0);
        size_t first = lengths[i % 6], last = lengths[i / 6];
        fixture.pieces[0] = (struct iovec){walled + 2 * page - first, first};
        fixture.pieces[1] = (struct iovec){fixture.memory + 17, LEAST};
        fixture.pieces[2] = (struct iovec){walled + page, last};
        fixture.op.iov_count = 3;
        assert_int_equal(wf_read_ahead_before(&fixture.ahead, &fixture.op, 8 * MIB), first + LEAST + last);
        assert_int_equal(fixture.op.read, first + LEAST + last);
        assert_int_equal(touched(&fixture), LEAST + 4 * KIB);
        munmap(walled, 3 * (size_t)page);
        tear_down(&fixture);
    }
}

/* A connected socket of loopback, with the size of its segments. */
static int connected(int *segment)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
    close(listener);
    size = sizeof(*segment);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, segment, &size), 0);
    assert_in_range(*segment, 500, 65536);
    return fd;
}

/* A slice is of whole segments, but for the last: what is left over would leave in one of its own. */
static void a_slice_leaves_no_rest(void **state)
{
    (void)state;
    struct fixture fixture;
    int segment;
    set_up(&fixture, WF_READ_AHEAD_ON, COLD_NS);
    fixture.op.fd = connected(&segment);
    size_t most = call(&fixture, 8 * MIB, 0, 0);
    assert_in_range(most, fixture.ahead.slice - (size_t)segment + 1, fixture.ahead.slice);
    assert_int_equal(most % (size_t)segment, 0);
    assert_int_equal(fixture.op.read, most);

    const size_t rests[] = {fixture.ahead.slice, fixture.ahead.slice + LEAST - 1}; /* nor a little of the operation */
    for (int i = 0; i < 2; i++) {
        fixture.pieces[0].iov_len = rests[i];
        fixture.op.read = 0;
        assert_int_equal(call(&fixture, 8 * MIB, 0, 0), rests[i]);
    }
    close(fixture.op.fd);
    tear_down(&fixture);
}

/* In a pair all calls are of a slice; later the slower way is not taken, and calls are whole again. */
static void both_ways_are_compared(void **state)
{
    (void)state;
    for (int pays = 0; pays < 2; pays++) {
        struct fixture fixture;
        set_up(&fixture, WF_READ_AHEAD_AUTO, COLD_NS);
        size_t slice = fixture.ahead.slice;
        int phase = (int)((PHASE * MIB + slice - 1) / slice);
        for (int i = 0; i < 9 * phase; i++) {
            bool compares = wf_trial_compares(&fixture.ahead.trial), reads = wf_trial_reads(&fixture.ahead.trial);
            fixture.pieces[0] = (struct iovec){fixture.memory, 8 * MIB};
            fixture.op.read = fixture.op.moved = 0;
            size_t most = wf_read_ahead_before(&fixture.ahead, &fixture.op, MIB);
            assert_int_equal(compares, i < 8 * phase);
            assert_int_equal(most, reads || compares ? slice : MIB);
            assert_int_equal(fixture.op.read, reads ? slice : 0);
            assert_int_equal(reads, compares ? i / phase % 4 == 0 || i / phase % 4 == 3 : pays);
            fixture.now_ns += reads == (pays == 1) ? 10000 : 20000;
            wf_read_ahead_after(&fixture.ahead, (ssize_t)slice);
        }
        tear_down(&fixture);
    }
}

/* A call that moved less than it was to is no measurement: the socket was full. */
static void a_full_socket_is_no_measurement(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture, WF_READ_AHEAD_AUTO, COLD_NS);
    int64_t gain = fixture.ahead.trial.gain;
    uint64_t left = fixture.ahead.trial.left;
    for (int i = 0; i < 1000; i++) {
        bool reads = wf_trial_reads(&fixture.ahead.trial);
        fixture.pieces[0] = (struct iovec){fixture.memory, 8 * MIB};
        fixture.op.read = fixture.op.moved = 0;
        call(&fixture, 8 * MIB, i % 4 == 3 ? 0 : LEAST, reads ? 10000 : 90000);
        if (i == 7)
            assert_int_equal(fixture.ahead.trial.left, left - 6 * LEAST);
    }
    assert_true(fixture.ahead.trial.pairs > 1);
    assert_int_equal(fixture.ahead.trial.gain, gain);
    tear_down(&fixture);
}

int main(void)
{
    if (sysconf(_SC_PAGESIZE) != 4096) {
        print_message("skipped: pages are not of 4 KiB\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_faster_way_is_taken),
        cmocka_unit_test(what_is_settled_is_tried_less),
        cmocka_unit_test(what_gains_nothing_is_left_alone),
        cmocka_unit_test(the_start_of_a_phase_does_not_count),
        cmocka_unit_test(one_interrupted_call_decides_nothing),
        cmocka_unit_test(what_cannot_be_compared_is_not),
        cmocka_unit_test(drift_is_no_gain),
        cmocka_unit_test(noise_is_no_gain),
        cmocka_unit_test(off_does_nothing),
        cmocka_unit_test(little_is_not_worth_a_look),
        cmocka_unit_test(what_is_not_cold_is_left_alone),
        cmocka_unit_test(a_slice_is_read_and_sent),
        cmocka_unit_test(what_was_read_is_known),
        cmocka_unit_test(what_a_call_cannot_take_is_not_read),
        cmocka_unit_test(nothing_else_is_read),
        cmocka_unit_test(a_slice_leaves_no_rest),
        cmocka_unit_test(both_ways_are_compared),
        cmocka_unit_test(a_full_socket_is_no_measurement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
