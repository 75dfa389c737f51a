/* loop_support.c: the frame of a loop test, and waiting with a limit. */
#include "loop_support.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop_world.h"

extern char **environ;

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
#define FATAL_COUNT (sizeof(fatal_signals) / sizeof(fatal_signals[0]))

/* Children are forked while this process has one thread of its own; the first report ends the test. */
const char *__tsan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
    return "die_after_fork=0:halt_on_error=1";
}

/* Owner: the test's thread; the watchdog only reads. */
static struct sigaction own_actions[FATAL_COUNT];
static const char *current_test = "(no test)";
static char current_note[256];
static _Thread_local bool test_thread;

/* ------------------------------------------------------------------------------------------- test frame */

#define BUSY 3 /* times longer than alone takes a test on a machine that is busy with other things */

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        abort();
}

static void bark(int signal_number)
{
    (void)signal_number;
    say("WATCHDOG: ");
    say(current_test);
    say(" passed its time limit, at: ");
    say(current_note);
    say("\n");
    abort();
}

void loop_begin(int argc, char **argv)
{
    for (size_t i = 0; i < FATAL_COUNT; i++)
        sigaction(fatal_signals[i], NULL, &own_actions[i]);
    for (char **entry = environ; *entry;) {
        char name[128];
        const char *equals = strchr(*entry, '=');
        size_t length = equals ? (size_t)(equals - *entry) : 0;
        bool kept = strncmp(*entry, "WEFT_LOG=", 9) == 0 || strncmp(*entry, "WEFT_EMULATED_", 14) == 0;
        if (strncmp(*entry, "WEFT_", 5) == 0 && length < sizeof(name) && !kept) {
            memcpy(name, *entry, length);
            name[length] = '\0';
            unsetenv(name);
            entry = environ;
        } else {
            entry++;
        }
    }
    loop_world_begin(loop_memory() != LOOP_ALL_HOST);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
}

void loop_run(void **state)
{
    const struct loop_case *test = *state;

    /* cmocka leaves a faulting test by longjmp(): wrong on a worker's stack, and it hides where it happened. */
    for (size_t i = 0; i < FATAL_COUNT; i++)
        sigaction(fatal_signals[i], &own_actions[i], NULL);
    signal(SIGALRM, bark);
    current_test = test->name;
    current_note[0] = '\0';
    test_thread = true;
    alarm((unsigned)(test->seconds * LOOP_SLOWER * BUSY));
    test->body();
    alarm(0);
}

void loop_child_enter(void)
{
    test_thread = false;
}

void loop_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(current_note, sizeof(current_note), format, args);
    va_end(args);
}

void loop_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "%s:%d: %s: %s: not (%s)%s%s\n", file, line, current_test, text, condition,
            current_note[0] ? "; at: " : "", current_note);
    fflush(stderr);
    if (test_thread) {
        alarm(0);
        _fail(file, line);
    }
    abort();
}

int loop_called(const char *file, int line, const char *call, int result, const struct weft_error *err)
{
    if (result < 0)
        loop_fail(file, line, call, "%s (%d): %s", strerror(-result), result, err ? err->text : "");
    return result;
}

int64_t loop_now_ms(void)
{
    return loop_world_now_ns() / 1000000;
}

void loop_sleep_ms(int ms)
{
    loop_world_sleep_ns((int64_t)ms * 1000000);
}

void loop_needs_kernel(const char *what)
{
    if (!loop_world_simulated)
        return;
    alarm(0);
    print_message("skipped in the simulated world: it has no %s\n", what);
    skip();
}

/* ------------------------------------------------------------------------------------------- requests */

struct weft_request *loop_send(struct weft_connection *connection, const void *data, size_t size, uint64_t tag)
{
    struct weft_request *request = NULL;
    int rc = weft_send(connection, data, size, tag, NULL, &request);

    LOOP_CHECK(rc == 0, "weft_send of %zu bytes, tag %llu: %s", size, (unsigned long long)tag, strerror(-rc));
    LOOP_CHECK(request != NULL, "no request from weft_send");
    return request;
}

static struct weft_request *receive(struct weft_connection *connection, void *data, size_t size, uint64_t tag,
                                    const struct weft_options *options)
{
    struct weft_request *request = NULL;
    int rc = weft_recv(connection, data, size, tag, options, &request);

    LOOP_CHECK(rc == 0, "weft_recv of %zu bytes, tag %llu: %s", size, (unsigned long long)tag, strerror(-rc));
    LOOP_CHECK(request != NULL, "no request from weft_recv");
    return request;
}

struct weft_request *loop_recv(struct weft_connection *connection, void *data, size_t size, uint64_t tag)
{
    return receive(connection, data, size, tag, NULL);
}

struct weft_request *loop_recv_any(struct weft_connection *connection, void *data, size_t size)
{
    return receive(connection, data, size, 0, &(struct weft_options){.flags = WEFT_ANY_TAG});
}

struct weft_completion loop_end(struct weft_request *request)
{
    struct weft_completion completion;

    memset(&completion, 0xEE, sizeof(completion));
    int rc = weft_wait(request, LOOP_WAIT_MS, &completion);
    LOOP_CHECK(rc == 0, "weft_wait: %s (%d)", strerror(-rc), rc);
    LOOP_CHECK(completion.status <= 0, "status %d", completion.status);
    LOOP_CHECK(completion.reserved == 0, "reserved %u", completion.reserved);
    LOOP_CHECK(memchr(completion.text, 0, sizeof(completion.text)), "the text is not terminated");
    LOOP_CHECK((completion.status == 0) == (completion.text[0] == '\0'), "status %d has the text '%s'",
               completion.status, completion.text);
    LOOP_CHECK(completion.completed_ns > 0 && completion.completed_ns / 1000000 <= loop_now_ms(),
               "completed_ns %lld is not in the past", (long long)completion.completed_ns);
    return completion;
}

void loop_done(struct weft_request *request, int status, uint64_t bytes)
{
    struct weft_completion completion = loop_end(request);

    LOOP_CHECK(completion.status == status, "status %d (%s), expected %d", completion.status, completion.text, status);
    if (status == 0 || status == -EMSGSIZE)
        LOOP_CHECK(completion.bytes == bytes, "%llu bytes, expected %llu", (unsigned long long)completion.bytes,
                   (unsigned long long)bytes);
}

void loop_exchange(struct weft_connection *a, struct weft_connection *b, size_t size, uint64_t tag)
{
    struct weft_connection *ends[2] = {a, b};
    struct loop_message message[2];

    for (int side = 0; side < 2; side++) {
        loop_message_create(&message[side], size, tag * 977 + size + (uint64_t)side * 5);
        message[side].recv = loop_recv(ends[!side], message[side].sink.data, size, tag);
    }
    for (int side = 0; side < 2; side++)
        message[side].send = loop_send(ends[side], message[side].source.data, size, tag);
    for (int side = 0; side < 2; side++) {
        loop_done(message[side].recv, 0, size);
        loop_done(message[side].send, 0, size);
        loop_message_verify(&message[side]);
        loop_message_destroy(&message[side]);
    }
}

static int entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;

    LOOP_CHECK(folder != NULL, "%s: %s", path, strerror(errno));
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

int loop_threads(void)
{
    return entries("/proc/self/task");
}

int loop_fds(void)
{
    return entries("/proc/self/fd") - 1; /* its own */
}
