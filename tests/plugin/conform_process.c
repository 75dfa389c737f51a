/* conform_process.c: the processes of a case, what they say, and how they end. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conform.h"

struct conform conform = {
    .version = 12, .processes = 2, .seed = 1, .schedules = 5, .rounds = 50, .bound_ms = 200, .limit_ms = 20000};

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * UINT64_C(0x9E3779B97F4A7C15) + b + UINT64_C(0x632BE59BD9B4E019);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static void say(const char *word, const char *text)
{
    dprintf(conform.report, "%s: %s v%d seed %llu schedule %d, process %d of %d: %s\n", word, conform.at->name,
            conform.version, (unsigned long long)conform.seed, conform.number, conform.me, conform.processes, text);
}

void conform_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    static int failed; /* one thread has the word */
    while (__atomic_exchange_n(&failed, 1, __ATOMIC_ACQ_REL))
        pause();
    char text[1024], doing[512];
    size_t used = (size_t)snprintf(text, sizeof text, "%s:%d: (%s) ", file, line, condition);
    va_list arguments;
    va_start(arguments, format);
    if (used < sizeof text)
        vsnprintf(text + used, sizeof text - used, format, arguments);
    va_end(arguments);
    calls_describe(doing, sizeof doing);
    say("FAILED", text);
    if (doing[0])
        say("   while", doing);
    _exit(CONFORM_FAILED);
}

void conform_skip(const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!conform.me)
        say("skipped", text);
    _exit(CONFORM_SKIPPED);
}

static void alarmed(int number)
{
    (void)number;
    conform_fail(__FILE__, __LINE__, "alarm", "the case takes longer than %d s", conform.at->seconds * CONFORM_SLOWER);
}

/* ------------------------------------------------------------------------------------------- between processes */

void boot_send(int to, const void *data, size_t size)
{
    ssize_t sent = send(conform.boot[to], data, size, MSG_NOSIGNAL);
    CHECK(sent == (ssize_t)size, "process %d is gone: %s", to, strerror(errno));
}

void boot_receive(int from, void *data, size_t size)
{
    size_t taken = 0;
    while (taken < size) {
        ssize_t result = recv(conform.boot[from], (char *)data + taken, size - taken, 0);
        CHECK(result > 0, "process %d is gone", from);
        taken += (size_t)result;
    }
}

void boot_barrier(void)
{
    char word = 'b';
    for (int i = 0; i < conform.processes; i++) {
        if (i != conform.me)
            boot_send(i, &word, 1);
    }
    for (int i = 0; i < conform.processes; i++) {
        if (i != conform.me)
            boot_receive(i, &word, 1);
    }
}

/* ------------------------------------------------------------------------------------------- a case */

static void *nothing(void *arg)
{
    return arg;
}

/* A sanitizer's own thread comes with the first one of the process: it must not be taken for the plugin's. */
static void have_had_a_thread(void)
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, nothing, NULL) && !pthread_join(thread, NULL), "no thread");
}

_Noreturn static void be_process(int me, int sockets[][CONFORM_PROCESSES_MAX], int output)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    conform.me = me;
    for (int i = 0; i < conform.processes; i++) {
        for (int j = 0; j < conform.processes; j++) {
            if (i == me)
                conform.boot[j] = sockets[i][j];
            else if (i != j)
                close(sockets[i][j]);
        }
    }
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    close(output);
    signal(SIGALRM, alarmed);
    alarm((unsigned)(conform.at->seconds * CONFORM_SLOWER));
    have_had_a_thread();
    conform.at->body();
    exit(CONFORM_PASSED);
}

/* What the plugin has printed, which is nothing. */
static bool printed(int output)
{
    char text[4096];
    ssize_t size = pread(output, text, sizeof text - 1, 0);
    if (size <= 0)
        return false;
    text[size] = 0;
    dprintf(conform.report, "FAILED: %s v%d: printed beside NCCL's logger:\n%s\n", conform.at->name, conform.version,
            text);
    return true;
}

/* Awaits all of them. After the first failure the others have no partner any more. */
static enum conform_status reap(pid_t *pids)
{
    enum conform_status status = CONFORM_PASSED;
    int left = conform.processes;
    while (left) {
        int word, me = 0;
        pid_t pid = wait(&word);
        CHECK(pid > 0, "wait: %s", strerror(errno));
        while (me < conform.processes && pids[me] != pid)
            me++;
        CHECK(me < conform.processes, "a child that is no process of this case");
        left--;
        pids[me] = 0;
        if (me == 1 && conform.at->killed && WIFSIGNALED(word) && WTERMSIG(word) == SIGKILL)
            continue;
        if (WIFEXITED(word) && WEXITSTATUS(word) == CONFORM_PASSED)
            continue;
        if (WIFEXITED(word) && WEXITSTATUS(word) == CONFORM_SKIPPED) {
            if (status == CONFORM_PASSED)
                status = CONFORM_SKIPPED;
            continue;
        }
        if (status != CONFORM_FAILED && WIFSIGNALED(word))
            dprintf(conform.report, "FAILED: %s v%d seed %llu, process %d: %s\n", conform.at->name, conform.version,
                    (unsigned long long)conform.seed, me, strsignal(WTERMSIG(word)));
        else if (status != CONFORM_FAILED && WEXITSTATUS(word) != CONFORM_FAILED)
            dprintf(conform.report, "FAILED: %s v%d, process %d: status %d\n", conform.at->name, conform.version, me,
                    WEXITSTATUS(word));
        if (status != CONFORM_FAILED) {
            status = CONFORM_FAILED;
            for (int i = 0; i < conform.processes; i++) {
                if (pids[i])
                    kill(pids[i], SIGKILL);
            }
        }
    }
    return status;
}

enum conform_status conform_run(const struct conform_case *at)
{
    int sockets[CONFORM_PROCESSES_MAX][CONFORM_PROCESSES_MAX];
    pid_t pids[CONFORM_PROCESSES_MAX] = {0};
    conform.at = at;
    if (conform.version < at->versions)
        return CONFORM_SKIPPED;
    for (int i = 0; i < conform.processes; i++) {
        for (int j = i + 1; j < conform.processes; j++) {
            int pair[2];
            CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), "socketpair: %s", strerror(errno));
            sockets[i][j] = pair[0];
            sockets[j][i] = pair[1];
        }
    }
    int output = memfd_create("output", MFD_CLOEXEC);
    CHECK(output >= 0, "memfd_create: %s", strerror(errno));
    for (int i = 0; i < conform.processes; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0, "fork: %s", strerror(errno));
        if (!pids[i])
            be_process(i, sockets, output);
    }
    for (int i = 0; i < conform.processes; i++) {
        for (int j = 0; j < conform.processes; j++) {
            if (i != j)
                close(sockets[i][j]);
        }
    }
    enum conform_status status = reap(pids);
    if (printed(output))
        status = CONFORM_FAILED;
    close(output);
    return status;
}
