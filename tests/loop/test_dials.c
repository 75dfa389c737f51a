/*
 * test_dials.c: many dials at once, and names. A thousand connects to an address that stays silent, from one thread: no
 * call takes a millisecond of its processor, and all end at their deadline. Names are looked up by one thread of the
 * context, and a name server that is slow, or answers nothing, holds up nothing else: the look-up here is this test's
 * own.
 */
#include "loop_support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DIALS 1000
#define DEADLINE_MS (1500 * LOOP_SLOWER)

/* ------------------------------------------------------------------------------------------- look-ups */

/* Stands before the C library's. "slow...": waits until the test lets it go on; "here...": 127.0.1.1; else: no such
 * name. The real one is not needed: addresses are not looked up. */
static pthread_mutex_t lookup_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t lookup_changed = PTHREAD_COND_INITIALIZER;
static int lookups, lookups_at_once, most_at_once;
static bool held_back;

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints, struct addrinfo **out)
{
    (void)service;
    (void)hints;
    pthread_mutex_lock(&lookup_lock);
    lookups += 1;
    lookups_at_once += 1;
    if (lookups_at_once > most_at_once)
        most_at_once = lookups_at_once;
    pthread_cond_broadcast(&lookup_changed);
    while (strncmp(node, "slow", 4) == 0 && held_back)
        pthread_cond_wait(&lookup_changed, &lookup_lock);
    lookups_at_once -= 1;
    pthread_cond_broadcast(&lookup_changed);
    pthread_mutex_unlock(&lookup_lock);
    if (strncmp(node, "here", 4) != 0)
        return EAI_NONAME;
    struct {
        struct addrinfo info;
        struct sockaddr_in address;
    } *found = calloc(1, sizeof(*found));
    if (!found)
        return EAI_MEMORY;
    found->address.sin_family = AF_INET;
    inet_pton(AF_INET, "127.0.1.1", &found->address.sin_addr);
    found->info.ai_family = AF_INET;
    found->info.ai_addr = (struct sockaddr *)&found->address;
    found->info.ai_addrlen = sizeof(found->address);
    *out = &found->info;
    return 0;
}

__attribute__((visibility("default"))) void freeaddrinfo(struct addrinfo *found)
{
    free(found);
}

static void hold_lookups(bool held)
{
    pthread_mutex_lock(&lookup_lock);
    held_back = held;
    pthread_cond_broadcast(&lookup_changed);
    pthread_mutex_unlock(&lookup_lock);
}

static void await_lookup(void)
{
    pthread_mutex_lock(&lookup_lock);
    while (lookups_at_once == 0)
        pthread_cond_wait(&lookup_changed, &lookup_lock);
    pthread_mutex_unlock(&lookup_lock);
}

/* ------------------------------------------------------------------------------------------- helpers */

static struct weft_request *dial(struct weft_context *context, const char *address, int timeout_ms)
{
    struct weft_options options = {.timeout_ms = timeout_ms};
    struct weft_request *request = NULL;
    struct weft_error err = {0};

    LOOP_CALL(weft_connect_start(context, address, &options, &request, &err), &err);
    return request;
}

static void fails(struct weft_request *request, int status, const char *word)
{
    struct weft_completion completion = loop_end(request);

    LOOP_CHECK(completion.status == status, "status %d (%s), expected %d", completion.status, completion.text, status);
    LOOP_CHECK(strstr(completion.text, word), "'%s' does not say '%s'", completion.text, word);
}

/* What has ended leaves a thread or a descriptor for a moment. */
static void settle(int fds, int threads)
{
    int64_t until = loop_now_ms() + LOOP_WAIT_MS;

    while (loop_fds() != fds || loop_threads() != threads)
        LOOP_CHECK(loop_now_ms() < until, "%d descriptors, %d threads; %d and %d before", loop_fds(), loop_threads(),
                   fds, threads);
}

static int64_t own_cpu_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* ------------------------------------------------------------------------------------------- a thousand dials */

/* A socket that listens, takes nothing, and whose queue is full: the kernel lets callers go unanswered. */
static int silent_port(int *listener, int full[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);

    inet_pton(AF_INET, "127.0.1.1", &address.sin_addr);
    *listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    LOOP_CHECK(bind(*listener, (struct sockaddr *)&address, length) == 0, "bind: %s", strerror(errno));
    LOOP_CHECK(listen(*listener, 0) == 0, "listen: %s", strerror(errno));
    LOOP_CHECK(getsockname(*listener, (struct sockaddr *)&address, &length) == 0, "%s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(full[i], (struct sockaddr *)&address, length);
    }
    return ntohs(address.sin_port);
}

static void dial_all(struct weft_context *context, const char *address, bool cancelled)
{
    static struct weft_completion completions[64];
    struct weft_queue *queue = NULL;
    struct weft_error err = {0};
    static struct weft_request *requests[DIALS];
    int64_t most_ns = 0, start_ms = loop_now_ms();

    LOOP_CALL(weft_queue_create(context, &queue, &err), &err);
    for (int i = 0; i < DIALS; i++) {
        struct weft_options options = {.timeout_ms = cancelled ? 0 : DEADLINE_MS, .queue = queue};
        int64_t before_ns = own_cpu_ns();
        LOOP_CALL(weft_connect_start(context, address, &options, &requests[i], &err), &err);
        int64_t took_ns = own_cpu_ns() - before_ns;
        most_ns = took_ns > most_ns ? took_ns : most_ns;
    }
    LOOP_CHECK(LOOP_SANITIZED || most_ns < 1000000, "a call took %lld ns of the processor", (long long)most_ns);
    print_message("the dearest call of %d took %lld us of the processor\n", DIALS, (long long)most_ns / 1000);
    for (int i = 0; cancelled && i < DIALS; i++)
        weft_cancel(requests[i]);
    for (int left = DIALS; left > 0;) {
        loop_note("%d dials left", left);
        int count = weft_queue_wait(queue, LOOP_WAIT_MS, completions, 64);
        LOOP_CHECK(count > 0, "weft_queue_wait: %d", count);
        for (int i = 0; i < count; i++) {
            LOOP_CHECK(completions[i].status == (cancelled ? -ECANCELED : -ETIMEDOUT), "status %d: %s",
                       completions[i].status, completions[i].text);
            LOOP_CHECK(strstr(completions[i].text, address), "'%s' does not name %s", completions[i].text, address);
        }
        left -= count;
    }
    LOOP_CHECK(cancelled || loop_now_ms() - start_ms >= DEADLINE_MS, "they ended before their deadline");
    LOOP_CHECK(weft_queue_destroy(queue) == 0, "the queue is busy");
}

static void a_thousand_silent_dials(void)
{
    struct rlimit limit;
    int listener, full[2];
    char address[32];

    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < DIALS + 200) {
        print_message("skipped: the limit of open files is %llu\n", (unsigned long long)limit.rlim_max);
        skip();
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    struct weft_context *context = loop_context(NULL, 1);
    loop_address(address, sizeof(address), silent_port(&listener, full));
    int fds = loop_fds(), threads = loop_threads();
    dial_all(context, address, false);
    settle(fds, threads);
    dial_all(context, address, true);
    settle(fds, threads);
    loop_context_end(context);
    close(listener);
    close(full[0]);
    close(full[1]);
}

/* The request that ends next of `count`; its place becomes NULL. */
static struct weft_completion end_of_any(struct weft_request **requests, int count)
{
    struct weft_completion completion;
    int index;
    int rc = weft_wait_any(requests, count, LOOP_WAIT_MS, &index, &completion);

    LOOP_CHECK(rc == 0, "weft_wait_any: %s (%d)", strerror(-rc), rc);
    requests[index] = NULL;
    return completion;
}

/* Too few descriptors for all: some fail, and say so; those that have one are not harmed, and later ones work. How many
 * have one is not exact: a thread of a context may close a descriptor of its own after dup() looked for the lowest. So
 * fewer failures are awaited than there must be. No deadline is near: on a busy machine it could pass before the
 * context's thread begins a dial. */
static void dials_that_get_no_descriptor(void)
{
    enum { COUNT = 60, FREE = 20, FAILURES = COUNT - FREE - 10 };
    struct rlimit before, less;
    struct loop_node node, other;
    struct weft_request *requests[COUNT];
    struct weft_error err = {0};
    struct weft_peer *peer;
    int listener, full[2], short_of = 0, cancelled = 0;
    char address[32], good[32];

    loop_node_start(&node, NULL, 1);
    loop_node_start(&other, NULL, 1);
    loop_address(good, sizeof(good), loop_node_listen(&other));
    loop_address(address, sizeof(address), silent_port(&listener, full));
    int fds = loop_fds(), next = dup(listener);
    close(next);
    getrlimit(RLIMIT_NOFILE, &before);
    less = before;
    less.rlim_cur = (rlim_t)next + FREE;
    setrlimit(RLIMIT_NOFILE, &less);
    for (int i = 0; i < COUNT; i++)
        requests[i] = dial(node.context, address, 2 * LOOP_WAIT_MS);
    for (; short_of < FAILURES; short_of++) {
        loop_note("%d without a descriptor", short_of);
        struct weft_completion completion = end_of_any(requests, COUNT);
        LOOP_CHECK(completion.status == -EMFILE && strstr(completion.text, "ulimit -n"), "status %d: %s",
                   completion.status, completion.text);
    }
    setrlimit(RLIMIT_NOFILE, &before);
    LOOP_CHECK(loop_fds() >= fds + FREE / 2, "%d descriptors, %d before the dials", loop_fds(), fds);
    for (int i = 0; i < COUNT; i++)
        if (requests[i])
            weft_cancel(requests[i]);
    for (int i = 0; i < COUNT; i++)
        if (requests[i]) {
            struct weft_completion completion = loop_end(requests[i]);
            short_of += completion.status == -EMFILE && strstr(completion.text, "ulimit -n") != NULL;
            cancelled += completion.status == -ECANCELED;
        }
    LOOP_CHECK(short_of + cancelled == COUNT && cancelled > 0, "%d without a descriptor, %d cancelled", short_of,
               cancelled);
    LOOP_CALL(weft_connect(node.context, good, LOOP_WAIT_MS, &peer, &err), &err);
    weft_peer_close(peer, LOOP_WAIT_MS, NULL);
    loop_node_stop(&node);
    loop_node_stop(&other);
    close(listener);
    close(full[0]);
    close(full[1]);
}

/* ------------------------------------------------------------------------------------------- a crowded door */

/* A socket that names a port which loop_hold_port() holds, and listens on it. */
static int listen_on(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    LOOP_CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0, "bind: %s", strerror(errno));
    LOOP_CHECK(listen(listener, 16) == 0, "listen: %s", strerror(errno));
    return listener;
}

/* A machine that has too much to do shows a caller out again and again; in the end the caller is served. It gives up
 * when it was shown out 16 times and more than 5 s have passed: a slow run stops at 15 times. */
static void a_dial_that_is_shown_out_comes_again(void)
{
    const struct linger at_once = {.l_onoff = 1};
    struct loop_node node, other;
    struct weft_error err = {0};
    int port, held = loop_hold_port(&port), listener = listen_on(port);
    char address[32];

    loop_node_start(&node, NULL, 1);
    loop_node_start(&other, NULL, 1);
    loop_address(address, sizeof(address), port);
    struct weft_request *request = dial(node.context, address, LOOP_WAIT_MS);
    int64_t began_ms = loop_now_ms();
    for (int i = 0; i < 15 || (i < 25 && loop_now_ms() - began_ms < 2000); i++) {
        int visitor = accept(listener, NULL, NULL);
        LOOP_CHECK(visitor >= 0, "accept: %s", strerror(errno));
        setsockopt(visitor, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        close(visitor);
    }
    close(listener);
    LOOP_CALL(weft_listen(other.context, address, &err), &err);
    struct weft_completion completion = loop_end(request);
    LOOP_CHECK(completion.status == 0, "shown out for good: %s", completion.text);
    weft_peer_close(completion.peer, LOOP_WAIT_MS, NULL);
    loop_node_stop(&node);
    loop_node_stop(&other);
    close(held);
}

/* ------------------------------------------------------------------------------------------- names */

static void names(void)
{
    struct loop_node nodes[2];
    struct weft_error err = {0};
    char here[32], slow[32];
    int port;

    for (int i = 0; i < 2; i++)
        loop_node_start(&nodes[i], NULL, 1);
    port = loop_node_listen(&nodes[0]);
    snprintf(here, sizeof(here), "here:%d", port);
    snprintf(slow, sizeof(slow), "slow:%d", port);
    int fds = loop_fds(), threads = loop_threads();
    lookups = most_at_once = 0;

    struct weft_completion completion = loop_end(dial(nodes[1].context, here, 0));
    LOOP_CHECK(completion.status == 0, "%s", completion.text);
    weft_peer_close(completion.peer, LOOP_WAIT_MS, NULL);
    fails(dial(nodes[1].context, "nowhere:9", 0), -EHOSTUNREACH, "cannot resolve 'nowhere'");
    struct weft_peer *peer = NULL;
    int rc = weft_connect(nodes[1].context, "nowhere:9", LOOP_WAIT_MS, &peer, &err);
    LOOP_CHECK(rc == -EHOSTUNREACH && strstr(err.text, "cannot resolve 'nowhere'"), "%d %s", rc, err.text);
    LOOP_CHECK(lookups == 3, "%d look-ups", lookups);

    /* One look-up at a time, by one thread; who has no name is not held up by it. */
    hold_lookups(true);
    struct weft_request *waits = dial(nodes[1].context, slow, 0), *cancelled = dial(nodes[1].context, slow, 0),
                        *late = dial(nodes[1].context, here, 200);
    await_lookup();
    char address[32];
    loop_address(address, sizeof(address), port);
    completion = loop_end(dial(nodes[1].context, address, 0));
    LOOP_CHECK(completion.status == 0, "%s", completion.text);
    weft_peer_close(completion.peer, LOOP_WAIT_MS, NULL);
    fails(late, -ETIMEDOUT, "cannot resolve");
    weft_cancel(cancelled);
    fails(cancelled, -ECANCELED, slow);
    hold_lookups(false);
    fails(waits, -EHOSTUNREACH, "cannot resolve 'slow'");
    LOOP_CHECK(most_at_once == 1, "%d look-ups at once", most_at_once);
    settle(fds, threads);

    /* The one that is being looked up is cancelled: what comes of it is nobody's. */
    hold_lookups(true);
    cancelled = dial(nodes[1].context, slow, 0);
    await_lookup();
    weft_cancel(cancelled);
    fails(cancelled, -ECANCELED, slow);
    hold_lookups(false);
    settle(fds, threads);
    for (int i = 0; i < 2; i++)
        loop_node_stop(&nodes[i]);
}

/* The context goes while the look-up waits: it does not wait for it. */
static void a_slow_name_does_not_hold_up_the_end(void)
{
    int fds = loop_fds(), threads = loop_threads();
    struct weft_context *context = loop_context(NULL, 1);

    hold_lookups(true);
    for (int i = 0; i < 3; i++)
        dial(context, "slow:9", 0);
    await_lookup();
    loop_context_end(context);
    LOOP_CHECK(loop_threads() == threads + 1, "the look-up has been waited for");
    hold_lookups(false);
    settle(fds, threads);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOOP_CASE(a_thousand_silent_dials, 40),
        LOOP_CASE(dials_that_get_no_descriptor, 20),
        LOOP_CASE(a_dial_that_is_shown_out_comes_again, 30),
        LOOP_CASE(names, 20),
        LOOP_CASE(a_slow_name_does_not_hold_up_the_end, 20),
    };
    loop_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
