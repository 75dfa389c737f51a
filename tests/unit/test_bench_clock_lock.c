/*
 * Clocks that are locked for the time of a run do not stay locked, however it ends. Runs are children of the test: they
 * say that they have locked, and are killed. The GPUs are emulated: a file says what their clocks are locked to.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/machine/clock_lock.h"

#define LIMIT_MS 10000
#define NO_PID 0x3ffffff /* more than the kernel gives */

static char records[64], state[64]; /* folders */

/* ------------------------------------------------------------------------------------------- what can be seen */

static const char *in(const char *folder, const char *name)
{
    static char path[160];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *folder, const char *name, const char *text)
{
    FILE *file = fopen(in(folder, name), "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static bool there_is(const char *folder, const char *name)
{
    struct stat there;

    return lstat(in(folder, name), &there) == 0;
}

/* "" where the clocks are not locked. */
static const char *locked(int gpu)
{
    static char text[32];
    char name[32];

    snprintf(name, sizeof name, "gpu%d.locked", gpu);
    FILE *file = fopen(in(state, name), "r");
    text[0] = '\0';
    if (file && !fgets(text, sizeof text, file))
        text[0] = '\0';
    if (file)
        fclose(file);
    return text;
}

/* Waits until it is gone. */
static void await_removal(const char *folder, const char *name)
{
    int64_t end_ns = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), LIMIT_MS);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    struct pollfd changed = {.fd = watch, .events = POLLIN};
    char events[4096];

    assert_true(watch >= 0);
    assert_true(inotify_add_watch(watch, folder, IN_DELETE | IN_MOVED_FROM) >= 0);
    while (there_is(folder, name)) {
        int64_t left_ms = (end_ns - wf_clock_now(&wf_clock_monotonic)) / WF_NS_PER_MS;
        if (left_ms <= 0)
            fail_msg("%s is still there after %d ms", name, LIMIT_MS);
        poll(&changed, 1, (int)left_ms);
        while (read(watch, events, sizeof events) > 0)
            ;
    }
    close(watch);
}

static char *record_of(pid_t run, char name[32])
{
    snprintf(name, 32, "clocks.%d", (int)run);
    return name;
}

/* ------------------------------------------------------------------------------------------- runs */

static const struct bench_gpus gpus = {
    .memory = BENCH_EMULATED,
    .count = 2,
    .infos = {{.index = 0, .pci = "0000:18:00.0"}, {.index = 1, .pci = "0000:3a:00.0"}}};

struct run {
    pid_t pid, guardian;
    pid_t heir; /* a child of its own that has all of its descriptors; 0: none */
    int result;
    struct wf_status status;
};

/* In the child: says what came of it, and then waits for its end. */
static _Noreturn void be_run(int news, int mhz, bool with_heir)
{
    struct bench_clock_lock lock;
    struct run run = {.pid = getpid()};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run.result = bench_clocks_lock(&lock, &gpus, 2, mhz, records, &run.status);
    run.guardian = lock.guardian;
    run.heir = with_heir ? fork() : 0;
    if (with_heir && run.heir == 0)
        prctl(PR_SET_PDEATHSIG, 0);
    else if (write(news, &run, sizeof run) != sizeof run)
        _exit(1);
    for (;;)
        pause();
}

static struct run start_run(int mhz, bool with_heir)
{
    struct run run;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        be_run(ends[1], mhz, with_heir);
    close(ends[1]);
    assert_int_equal(read(ends[0], &run, sizeof run), sizeof run);
    close(ends[0]);
    assert_int_equal(run.pid, child);
    return run;
}

static void end_run(const struct run *run)
{
    assert_int_equal(kill(run->pid, SIGKILL), 0);
    assert_int_equal(waitpid(run->pid, NULL, 0), run->pid);
}

/* ------------------------------------------------------------------------------------------- tests */

static void a_run_locks_and_unlocks(void **unused)
{
    struct bench_clock_lock lock;
    struct wf_status status = {0};
    char name[32];

    (void)unused;
    assert_int_equal(bench_clocks_lock(&lock, &gpus, 2, 777, records, &status), 0);
    assert_int_equal(lock.count, 2);
    assert_int_equal(lock.mhz[1], 777);
    assert_string_equal(locked(0), "777 777\n");
    assert_string_equal(locked(1), "777 777\n");
    assert_true(there_is(records, record_of(getpid(), name)));
    assert_int_equal(bench_clocks_unlock(&lock, &status), 0);
    assert_string_equal(locked(0), "");
    assert_string_equal(locked(1), "");
    assert_false(there_is(records, name));
    assert_int_equal(waitpid(lock.guardian, NULL, WNOHANG), -1); /* nothing is left of it */
    assert_int_equal(bench_clocks_unlock(&lock, &status), 0);
}

static void the_highest_clock_is_found(void **unused)
{
    struct bench_clock_lock lock;
    struct wf_status status = {0};

    (void)unused;
    assert_int_equal(bench_clocks_lock(&lock, &gpus, 1, 0, records, &status), 0);
    assert_int_equal(lock.count, 1);
    assert_int_equal(lock.mhz[0], 1111);
    assert_string_equal(locked(0), "1111 1111\n");
    assert_string_equal(locked(1), ""); /* no endpoint is on it */
    assert_int_equal(bench_clocks_unlock(&lock, &status), 0);
    assert_string_equal(locked(0), "");
}

static void a_killed_run_leaves_nothing_locked(void **unused)
{
    struct run run = start_run(777, false);
    char name[32];

    (void)unused;
    assert_int_equal(run.result, 0);
    assert_string_equal(locked(1), "777 777\n");
    end_run(&run);
    await_removal(records, record_of(run.pid, name));
    assert_string_equal(locked(0), "");
    assert_string_equal(locked(1), "");
}

static void a_child_of_a_killed_run_does_not_keep_clocks_locked(void **unused)
{
    struct run run = start_run(777, true);
    char name[32];

    (void)unused;
    assert_int_equal(run.result, 0);
    end_run(&run);
    await_removal(records, record_of(run.pid, name));
    assert_string_equal(locked(0), "");
    assert_int_equal(kill(run.heir, SIGKILL), 0);
}

static void the_terminal_does_not_end_a_guardian(void **unused)
{
    struct run run = start_run(777, false);
    char name[32];

    (void)unused;
    assert_int_equal(run.result, 0);
    assert_int_equal(kill(run.guardian, SIGINT), 0);
    assert_int_equal(kill(run.guardian, SIGTERM), 0);
    assert_int_equal(kill(run.guardian, SIGHUP), 0);
    assert_int_not_equal(getsid(run.guardian), getsid(0));
    end_run(&run);
    await_removal(records, record_of(run.pid, name));
    assert_string_equal(locked(0), "");
}

/* Both are killed, as by the end of a container. The run is an orphan's parent no more: who inherits the guardian
 * takes it away in its own time, and a dead process is known as one before that. */
static struct run run_that_left_clocks_locked(void)
{
    struct run run = start_run(777, false);
    char name[32];

    assert_int_equal(run.result, 0);
    assert_int_equal(kill(run.guardian, SIGKILL), 0);
    end_run(&run);
    assert_string_equal(locked(0), "777 777\n");
    assert_true(there_is(records, record_of(run.pid, name)));
    return run;
}

static void the_next_run_undoes_what_was_left(void **unused)
{
    struct run left = run_that_left_clocks_locked();
    struct bench_clock_lock lock;
    struct wf_status status = {0};
    char name[32];

    (void)unused;
    assert_int_equal(bench_clocks_lock(&lock, &gpus, 1, 888, records, &status), 0);
    assert_false(there_is(records, record_of(left.pid, name)));
    assert_string_equal(locked(0), "888 888\n");
    assert_string_equal(locked(1), "");
    assert_int_equal(bench_clocks_unlock(&lock, &status), 0);
}

static void what_was_left_is_undone_on_demand(void **unused)
{
    struct run left = run_that_left_clocks_locked(), running = start_run(777, false);
    struct wf_status status = {0};
    char text[1024] = "", number[32], name[32];
    int undone = -1;

    (void)unused;
    /* That run has begun by undoing it. */
    assert_false(there_is(records, record_of(left.pid, name)));
    FILE *news = fmemopen(text, sizeof text, "w");
    assert_int_equal(bench_clocks_undo(records, news, &undone, &status), 0);
    fclose(news);
    assert_int_equal(undone, 0);
    snprintf(number, sizeof number, "process %d", (int)running.pid);
    assert_non_null(strstr(text, number));
    assert_string_equal(locked(0), "777 777\n");
    assert_int_equal(kill(running.guardian, SIGKILL), 0);
    end_run(&running);
    news = fmemopen(text, sizeof text, "w");
    assert_int_equal(bench_clocks_undo(records, news, &undone, &status), 0);
    fclose(news);
    assert_int_equal(undone, 1);
    assert_non_null(strstr(text, "0000:3a:00.0"));
    assert_string_equal(locked(0), "");
    assert_int_equal(bench_clocks_undo(records, NULL, &undone, &status), 0);
    assert_int_equal(undone, 0);
    assert_int_equal(bench_clocks_undo("/nowhere/at/all", NULL, &undone, &status), 0);
}

/* The same number, and another process: this one, which began later than that. */
static void a_number_that_is_used_again_is_another_process(void **unused)
{
    struct wf_status status = {0};
    char text[128], name[32];
    int undone = 0;

    (void)unused;
    snprintf(text, sizeof text, "run %d 1\nguardian %d 1\nmhz 777\ngpu 0000:18:00.0\n", (int)getpid(), (int)getppid());
    put(records, record_of(getpid(), name), text);
    put(state, "gpu0.locked", "777 777\n");
    assert_int_equal(bench_clocks_undo(records, NULL, &undone, &status), 0);
    assert_int_equal(undone, 1);
    assert_string_equal(locked(0), "");
}

static void runs_share_clocks_and_the_last_one_unlocks(void **unused)
{
    struct run one = start_run(777, false), two = start_run(777, false), other = start_run(888, false);
    char name[32];

    (void)unused;
    assert_int_equal(one.result, 0);
    assert_int_equal(two.result, 0);
    assert_int_equal(other.result, -EBUSY);
    assert_non_null(strstr(other.status.text, "0000:18:00.0"));
    assert_string_equal(locked(0), "777 777\n");
    end_run(&other);
    end_run(&one);
    await_removal(records, record_of(one.pid, name));
    assert_string_equal(locked(0), "777 777\n");
    end_run(&two);
    await_removal(records, record_of(two.pid, name));
    assert_string_equal(locked(0), "");
}

static void a_run_unlocks_when_its_guardian_was_killed(void **unused)
{
    struct bench_clock_lock lock;
    struct wf_status status = {0};
    char name[32];

    (void)unused;
    assert_int_equal(bench_clocks_lock(&lock, &gpus, 2, 777, records, &status), 0);
    assert_int_equal(kill(lock.guardian, SIGKILL), 0);
    assert_int_equal(bench_clocks_unlock(&lock, &status), 0);
    assert_string_equal(locked(1), "");
    assert_false(there_is(records, record_of(getpid(), name)));
}

/* The first GPU could be locked, and is unlocked again. */
static void without_permission_nothing_is_locked(void **unused)
{
    static const char *const refuses[] = {"gpu0.refuse", "gpu1.refuse"};
    struct bench_clock_lock lock;
    struct wf_status status = {0};
    char name[32];

    (void)unused;
    for (int i = 0; i < 2; i++) {
        put(state, refuses[i], "");
        assert_int_equal(bench_clocks_lock(&lock, &gpus, 2, 777, records, &status), -EPERM);
        assert_non_null(strstr(status.text, "root"));
        assert_non_null(strstr(status.text, gpus.infos[i].pci));
        assert_int_equal(lock.count, 0);
        assert_string_equal(locked(0), "");
        unlink(in(state, refuses[i]));
        /* Where none was locked there is nothing to undo. Else the record stays: one GPU did not let itself be
         * unlocked. */
        assert_int_equal(there_is(records, record_of(getpid(), name)), i);
        assert_int_equal(bench_clocks_unlock(&lock, &status), 0);
    }
    assert_int_equal(unlink(in(records, name)), 0);
}

/* What cannot be unlocked now is kept in mind. */
static void a_record_stays_until_it_is_undone(void **unused)
{
    struct bench_clock_lock lock;
    struct wf_status status = {0};
    char name[32];
    int undone = -1;

    (void)unused;
    assert_int_equal(bench_clocks_lock(&lock, &gpus, 1, 777, records, &status), 0);
    put(state, "gpu0.refuse", "");
    assert_int_equal(bench_clocks_unlock(&lock, &status), -EPERM);
    assert_non_null(strstr(status.text, "may still be locked"));
    assert_true(there_is(records, record_of(getpid(), name)));
    unlink(in(state, "gpu0.refuse"));
    /* Its process goes on, and cannot lock again before that is clear. */
    assert_int_equal(bench_clocks_lock(&lock, &gpus, 1, 777, records, &status), -EEXIST);
    assert_int_equal(bench_clocks_undo(records, NULL, &undone, &status), 0);
    assert_int_equal(undone, 0);
    assert_int_equal(unlink(in(records, name)), 0);
}

static void nothing_foreign_is_followed(void **unused)
{
    struct bench_clock_lock lock;
    struct wf_status status = {0};
    char target[128], text[128] = "", name[32];
    int undone = -1;

    (void)unused;
    put(state, "kept", "as it was");
    snprintf(target, sizeof target, "%s/kept", state);
    assert_int_equal(symlink(target, in(records, record_of(getpid(), name))), 0);
    assert_int_equal(bench_clocks_lock(&lock, &gpus, 2, 777, records, &status), -EEXIST);
    assert_non_null(strstr(status.text, name));
    assert_string_equal(locked(0), "");
    assert_int_equal(unlink(in(records, name)), 0);
    put(records, record_of(NO_PID, name), "run away\n");
    assert_int_equal(bench_clocks_undo(records, NULL, &undone, &status), 0);
    assert_int_equal(undone, 0);
    assert_true(there_is(records, name));
    FILE *file = fopen(target, "r");
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "as it was");
}

/* Who could put a record there could have any clocks unlocked. */
static void a_folder_that_others_write_to_is_refused(void **unused)
{
    struct bench_clock_lock lock;
    struct wf_status status = {0};

    (void)unused;
    assert_int_equal(chmod(records, 0777), 0);
    assert_int_equal(bench_clocks_lock(&lock, &gpus, 2, 777, records, &status), -EPERM);
    assert_non_null(strstr(status.text, records));
    assert_string_equal(locked(0), "");
    assert_int_equal(bench_clocks_lock(&lock, &gpus, 2, 777, "/proc/self/nowhere", &status), -ENOENT);
    assert_non_null(strstr(status.text, "/proc/self/nowhere"));
    assert_int_equal(bench_clocks_lock(&lock, &(struct bench_gpus){0}, 2, 777, records, &status), -EINVAL);
}

/* ------------------------------------------------------------------------------------------- the scene */

static void empty(const char *folder)
{
    static const char *const names[] = {"gpu0.refuse", "gpu1.refuse", "gpu0.locked",
                                        "gpu1.locked", "kept",        "clocks.67108863"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in(folder, names[i]));
}

static int set_up(void **unused)
{
    (void)unused;
    snprintf(records, sizeof records, "/tmp/weft-clocks-XXXXXX");
    snprintf(state, sizeof state, "/tmp/weft-gpus-XXXXXX");
    if (!mkdtemp(records) || !mkdtemp(state))
        return -1;
    return setenv("WEFT_EMULATED_NVML_STATE", state, 1);
}

static int tear_down(void **unused)
{
    (void)unused;
    empty(records);
    empty(state);
    return rmdir(records) | rmdir(state); /* a record that is left fails the test */
}

static int load(void **unused)
{
    (void)unused;
    return dlopen(EMULATED_NVML, RTLD_NOW | RTLD_LOCAL) ? 0 : -1; /* under its name it is found from now on */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_run_locks_and_unlocks),
        TEST(the_highest_clock_is_found),
        TEST(a_killed_run_leaves_nothing_locked),
        TEST(a_child_of_a_killed_run_does_not_keep_clocks_locked),
        TEST(the_terminal_does_not_end_a_guardian),
        TEST(the_next_run_undoes_what_was_left),
        TEST(what_was_left_is_undone_on_demand),
        TEST(a_number_that_is_used_again_is_another_process),
        TEST(runs_share_clocks_and_the_last_one_unlocks),
        TEST(a_run_unlocks_when_its_guardian_was_killed),
        TEST(without_permission_nothing_is_locked),
        TEST(a_record_stays_until_it_is_undone),
        TEST(nothing_foreign_is_followed),
        TEST(a_folder_that_others_write_to_is_refused),
    };
#undef TEST
    return cmocka_run_group_tests_name("locked clocks", tests, load, NULL);
}
