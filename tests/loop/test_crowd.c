/* test_crowd.c: one context with very many sessions: what each takes at rest, and that a quarter of their peers, killed
 * at once, disturb none of the others. LOOP_CROWD: how many sessions. */
#include "loop_support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 16, REST_BYTES = 150 * 1000, MESSAGE = 3000 };

#define SETTINGS "peers=65536 workers=shared"

static int each; /* sessions of a child */

/* --- the peers: each child is one context, with a session for each of its connections --- */

struct caller {
    int index, port;
};

static uint64_t seed_of(int child, int session)
{
    return (uint64_t)(child * 100000 + session);
}

static int caller_body(int in, int out, void *arg)
{
    const struct caller *caller = arg;
    struct loop_node *nodes = calloc((size_t)each, sizeof *nodes);
    struct loop_buffer source;
    LOOP_CHECK(nodes, "no memory for %d nodes", each);
    loop_hear(in);
    loop_node_start(&nodes[0], SETTINGS, 1);
    loop_buffer_create(&source, LOOP_HOST, MESSAGE);
    for (int i = 0; i < each; i++) {
        nodes[i].context = nodes[0].context;
        nodes[i].endpoint = nodes[0].endpoint;
        loop_node_connect(&nodes[i], caller->port);
        loop_node_open(&nodes[i]);
    }
    loop_tell(out, 1);
    while (loop_hear(in)) { /* a message on every connection; 0: the end */
        for (int i = 0; i < each; i++) {
            loop_fill(source.data, MESSAGE, seed_of(caller->index, i));
            loop_done(loop_send(nodes[i].connection, source.data, MESSAGE, seed_of(caller->index, i)), 0, MESSAGE);
        }
        loop_tell(out, 1);
    }
    loop_buffer_unmap(&source);
    loop_context_end(nodes[0].context);
    free(nodes);
    return 0;
}

/* --- the context under test --- */

struct crowd {
    struct loop_child children[CHILDREN];
    struct loop_node *nodes;
    int count;
    int *child_of; /* of a node: known from its first message */
};

static int64_t resident_bytes(void)
{
    long pages[2] = {0, 0};
    FILE *file = fopen("/proc/self/statm", "r");
    LOOP_CHECK(file && fscanf(file, "%ld %ld", &pages[0], &pages[1]) == 2, "no /proc/self/statm");
    fclose(file);
    return pages[1] * sysconf(_SC_PAGESIZE);
}

static void tell_all(struct crowd *crowd, int first, uint64_t word)
{
    for (int i = first; i < CHILDREN; i++)
        loop_tell(crowd->children[i].out, word);
}

static void hear_all(struct crowd *crowd, int first)
{
    for (int i = first; i < CHILDREN; i++)
        loop_hear(crowd->children[i].in);
}

/* Takes one message of each node from child `first` on; all of them are posted before any is waited for. */
static void receive_all(struct crowd *crowd, int first, bool tell)
{
    struct weft_request **requests = calloc((size_t)crowd->count, sizeof(struct weft_request *));
    unsigned char *bytes = malloc((size_t)crowd->count * MESSAGE);
    LOOP_CHECK(requests && bytes, "no memory for %d messages", crowd->count);
    for (int i = 0; i < crowd->count; i++)
        if (crowd->child_of[i] >= first)
            requests[i] = loop_recv_any(crowd->nodes[i].connection, bytes + (size_t)i * MESSAGE, MESSAGE);
    if (tell)
        tell_all(crowd, first, 1);
    for (int i = 0; i < crowd->count; i++) {
        if (!requests[i])
            continue;
        struct weft_completion done = loop_end(requests[i]);
        LOOP_CHECK(done.status == 0 && done.bytes == MESSAGE, "session %d: %d", i, done.status);
        LOOP_CHECK(loop_wrong(bytes + (size_t)i * MESSAGE, MESSAGE, done.tag) < 0, "session %d has wrong bytes", i);
        crowd->child_of[i] = (int)(done.tag / 100000);
    }
    hear_all(crowd, first);
    free(requests);
    free(bytes);
}

static void begin(struct crowd *crowd, int count)
{
    static struct caller callers[CHILDREN];
    struct weft_error err = {0};
    struct loop_node first;
    char address[32];
    int port, held = loop_hold_port(&port);
    each = count / CHILDREN;
    *crowd = (struct crowd){.count = each * CHILDREN};
    for (int i = 0; i < CHILDREN; i++) {
        callers[i] = (struct caller){i, port};
        loop_child_start(&crowd->children[i], caller_body, &callers[i]);
    }
    crowd->nodes = calloc((size_t)crowd->count, sizeof *crowd->nodes);
    crowd->child_of = calloc((size_t)crowd->count, sizeof *crowd->child_of);
    LOOP_CHECK(crowd->nodes && crowd->child_of, "no memory for %d nodes", crowd->count);
    loop_node_start(&first, SETTINGS " timeout=30", 1);
    loop_address(address, sizeof address, port);
    LOOP_CALL(weft_listen(first.context, address, &err), &err);
    int64_t before = resident_bytes(), start = loop_now_ms();
    tell_all(crowd, 0, 1);
    for (int i = 0; i < crowd->count; i++) {
        crowd->nodes[i] = (struct loop_node){.context = first.context, .endpoint = first.endpoint};
        loop_node_accept(&crowd->nodes[i]);
    }
    hear_all(crowd, 0);
    int64_t took = loop_now_ms() - start, bytes = (resident_bytes() - before) / crowd->count;
    printf("%d sessions in %lld ms, %lld bytes each at rest\n", crowd->count, (long long)took, (long long)bytes);
    LOOP_CHECK(LOOP_SANITIZED || bytes <= REST_BYTES, "a session takes %lld bytes at rest", (long long)bytes);
    for (int i = 0; i < crowd->count; i++)
        loop_node_take(&crowd->nodes[i]);
    close(held);
}

/* Two descriptors a session here, and a few. */
static bool has_descriptors(int count)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur > (rlim_t)(2 * count + 200);
}

static double processor_s(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static int count_dead(const struct crowd *crowd)
{
    int dead = 0;
    loop_sleep_ms(20);
    for (int i = 0; i < crowd->count; i++)
        dead += weft_peer_status(crowd->nodes[i].peer, NULL) < 0;
    return dead;
}

static void a_quarter_is_killed(void)
{
    struct crowd crowd;
    const char *wanted = getenv("LOOP_CROWD");
    int count = wanted ? atoi(wanted) : LOOP_COUNT(256, 64);
    loop_needs_kernel("processes");
    if (!has_descriptors(count)) {
        printf("skipped: %d sessions need more descriptors (ulimit -Hn)\n", count);
        skip();
    }
    begin(&crowd, count);
    receive_all(&crowd, 0, true);
    double before = processor_s();
    loop_sleep_ms(3000);
    printf("%.1f ms of processor time in 3 s of rest\n", 1e3 * (processor_s() - before));
    loop_note("a quarter of them killed");
    int killed = CHILDREN / 4;
    for (int i = 0; i < killed; i++)
        loop_child_kill(&crowd.children[i]);
    for (int round = 0; round < 3; round++)
        receive_all(&crowd, killed, true);
    int dead = 0;
    for (int64_t limit = loop_now_ms() + LOOP_WAIT_MS; dead < killed * each && loop_now_ms() < limit;)
        dead = count_dead(&crowd);
    LOOP_CHECK(dead == killed * each, "%d sessions have ended, %d peers were killed", dead, killed * each);
    receive_all(&crowd, killed, true);
    tell_all(&crowd, killed, 0);
    for (int i = killed; i < CHILDREN; i++)
        loop_child_join(&crowd.children[i]);
    loop_context_end(crowd.nodes[0].context);
    free(crowd.nodes);
    free(crowd.child_of);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {LOOP_CASE(a_quarter_is_killed, 100)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
