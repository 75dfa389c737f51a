/* Binding a thread and memory, and what the kernel says of it afterwards. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "affinity/pin.h"

static bool refused_here(int status)
{
    return status == -EPERM || status == -ENOSYS;
}

/* A thread of the test's own, so that what it does to itself stays there. */
struct worker {
    struct wf_cpus cpus;
    char name[16];
    int status, read_status, listed;
    char why[256];
    struct wf_thread_place place;
    struct wf_thread_place all[64];
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    pthread_setname_np(pthread_self(), worker->name);
    worker->status = wf_pin_thread(&worker->cpus, worker->why, sizeof(worker->why));
    worker->read_status = wf_pin_read(gettid(), &worker->place);
    worker->listed = wf_pin_threads_of(0, worker->all, 64);
    return NULL;
}

static void run(struct worker *worker, const char *name)
{
    pthread_t thread;
    snprintf(worker->name, sizeof(worker->name), "%s", name);
    assert_int_equal(pthread_create(&thread, NULL, work, worker), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_thread_goes_where_it_is_bound(void **state)
{
    struct wf_thread_place before, after;
    struct worker worker = {0};
    int cpu;

    (void)state;
    assert_int_equal(wf_pin_read(getpid(), &before), 0);
    cpu = wf_cpus_next(&before.allowed, 0);
    assert_true(cpu >= 0);
    wf_cpus_add(&worker.cpus, cpu);
    run(&worker, "a) b (c");
    if (refused_here(worker.status)) {
        print_message("skipped: %s\n", worker.why);
        skip();
    }
    assert_int_equal(worker.status, 0);
    assert_int_equal(worker.read_status, 0);
    assert_true(wf_cpus_equal(&worker.place.allowed, &worker.cpus));
    assert_int_equal(worker.place.last_cpu, cpu);
    assert_string_equal(worker.place.name, "a) b (c");
    assert_int_equal(wf_pin_read(getpid(), &after), 0);
    assert_true(wf_cpus_equal(&after.allowed, &before.allowed));
}

static void all_threads_are_listed(void **state)
{
    struct worker worker = {0};
    struct wf_thread_place one;
    bool main_seen = false, worker_seen = false;

    (void)state;
    run(&worker, "lister");
    assert_true(worker.listed >= 2);
    for (int i = 0; i < worker.listed && i < 64; i++) {
        main_seen |= worker.all[i].tid == getpid();
        worker_seen |= worker.all[i].tid == worker.place.tid && strcmp(worker.all[i].name, "lister") == 0;
        assert_true(i == 0 || worker.all[i].tid > worker.all[i - 1].tid);
        assert_true(wf_cpus_count(&worker.all[i].allowed) > 0);
    }
    assert_true(main_seen && worker_seen);
    /* How many there are, however few fit. */
    assert_int_equal(wf_pin_threads_of(0, &one, 0), wf_pin_threads_of(0, &one, 1));
    assert_true(wf_pin_threads_of(0, &one, 1) >= 1); /* a sanitizer has a thread of its own */
    assert_int_equal(one.tid, getpid());
}

static void a_thread_that_is_not_there_is_not_read(void **state)
{
    struct wf_thread_place place = {.tid = 77};

    (void)state;
    assert_int_equal(wf_pin_read(0, &place), -ESRCH);
    assert_int_equal(place.tid, 77);
}

static void a_set_that_cannot_be_is_refused(void **state)
{
    struct worker empty = {0}, foreign = {0};
    struct wf_thread_place place;

    (void)state;
    run(&empty, "empty");
    assert_int_equal(empty.status, -EINVAL);
    assert_non_null(strstr(empty.why, "no processor"));

    assert_int_equal(wf_pin_read(getpid(), &place), 0);
    if (wf_cpus_has(&place.allowed, WF_CPUS_MAX - 1)) {
        print_message("skipped: this machine has every processor that a set can name\n");
        skip();
    }
    wf_cpus_add(&foreign.cpus, WF_CPUS_MAX - 1);
    run(&foreign, "foreign");
    if (refused_here(foreign.status)) {
        assert_non_null(strstr(foreign.why, "not permitted"));
        return;
    }
    assert_int_equal(foreign.status, -EINVAL);
    assert_non_null(strstr(foreign.why, "2047"));
    assert_true(wf_cpus_equal(&foreign.place.allowed, &place.allowed));
}

/* --- memory --- */

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

/* The first node that this process may have memory of; 0 where the kernel says nothing. */
static int usable_node(void)
{
    char line[4096];
    int node = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file) && sscanf(line, "Mems_allowed_list: %d", &node) != 1)
        continue;
    if (file)
        fclose(file);
    return node < 64 ? node : 0;
}

static void memory_is_found_where_it_was_sent(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 3000 * page;
    char *memory = map(bytes), why[256] = "";
    int counts[64], node = usable_node();

    (void)state;
    /* Half of it is there before, and is moved; half comes after. */
    memset(memory, 1, bytes / 2);
    int status = wf_place_memory(memory, bytes, node, why, sizeof(why));
    if (status == 0)
        status = wf_place_where(memory, bytes, counts, 64);
    if (refused_here(status)) {
        print_message("skipped: the kernel refuses mbind or move_pages: %s\n", why);
        munmap(memory, bytes);
        skip();
    }
    assert_int_equal(status, 1024);
    /* Or more, where pages are huge. */
    assert_true(counts[node] >= 512);
    memset(memory, 2, bytes);
    assert_int_equal(wf_place_where(memory, bytes, counts, 64), 1024);
    assert_int_equal(counts[node], 1024);
    /* Ten bytes in two pages. */
    assert_int_equal(wf_place_where(memory + page - 5, 10, counts, 64), 2);
    assert_int_equal(counts[node], 2);
    assert_int_equal(wf_place_where(memory, 0, counts, 64), 0);
    assert_int_equal(counts[node], 0);
    munmap(memory, bytes);
}

static void memory_that_cannot_be_placed_is_refused(void **state)
{
    static const int nodes[] = {-1, 1023, 1024, 1 << 30};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = map(page), why[256];

    (void)state;
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        why[0] = '\0';
        int status = wf_place_memory(memory, page, nodes[i], why, sizeof(why));
        assert_true(status == -EINVAL || refused_here(status));
        assert_non_null(strstr(why, status == -EINVAL ? "is not there" : "not permitted"));
    }
    assert_int_equal(wf_place_memory(memory + 1, page, 0, why, sizeof(why)), -EINVAL);
    assert_non_null(strstr(why, "does not begin with a page"));
    munmap(memory, page);
}

/* --- a container --- */

/* From now on the system calls fail with EPERM in this process. False: it cannot be arranged here. */
static bool refuse_calls(const int *calls, int count)
{
    struct sock_filter filter[16] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    struct sock_fprog program = {.filter = filter};
    int used = 1;
    for (int i = 0; i < count; i++) {
        filter[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
        filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = (unsigned short)used;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#define CANNOT 77

/* In a process of its own, which the filter ends with. Its exit status says what was wrong; 0: nothing. */
static int in_a_container(const int *calls, int count, int (*check)(void))
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(refuse_calls(calls, count) ? check() : CANNOT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int all_is_refused(void)
{
    struct wf_cpus cpus = {.words = {1}};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), why[256] = "";
    int counts[4];
    *memory = 1;
    if (wf_pin_thread(&cpus, why, sizeof(why)) != -EPERM || !strstr(why, "sched_setaffinity: not permitted"))
        return 1;
    if (wf_place_memory(memory, page, 0, why, sizeof(why)) != -EPERM || !strstr(why, "mbind: not permitted") ||
        !strstr(why, "SYS_NICE"))
        return 2;
    return wf_place_where(memory, page, counts, 4) == -EPERM ? 0 : 3;
}

static int pages_are_found_one_by_one(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int counts[64], sum = 0;
    memory[0] = memory[3 * page] = 1;
    int status = wf_place_where(memory, 4 * page, counts, 64);
    if (refused_here(status))
        return CANNOT;
    for (int i = 0; i < 64; i++)
        sum += counts[i];
    return status == 4 && sum == 2 ? 0 : 1;
}

static void a_container_that_refuses_is_named(void **state)
{
    static const int calls[] = {SYS_sched_setaffinity, SYS_mbind, SYS_move_pages, SYS_get_mempolicy};
    (void)state;
    int result = in_a_container(calls, 4, all_is_refused);
    if (result == CANNOT) {
        print_message("skipped: seccomp filters cannot be set here\n");
        skip();
    }
    assert_int_equal(result, 0);
}

static void pages_are_found_without_move_pages(void **state)
{
    static const int calls[] = {SYS_move_pages};
    (void)state;
    int result = in_a_container(calls, 1, pages_are_found_one_by_one);
    if (result == CANNOT) {
        print_message("skipped: seccomp filters cannot be set here, or get_mempolicy is refused\n");
        skip();
    }
    assert_int_equal(result, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_goes_where_it_is_bound),
        cmocka_unit_test(all_threads_are_listed),
        cmocka_unit_test(a_thread_that_is_not_there_is_not_read),
        cmocka_unit_test(a_set_that_cannot_be_is_refused),
        cmocka_unit_test(memory_is_found_where_it_was_sent),
        cmocka_unit_test(memory_that_cannot_be_placed_is_refused),
        cmocka_unit_test(a_container_that_refuses_is_named),
        cmocka_unit_test(pages_are_found_without_move_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
