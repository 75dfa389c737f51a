/* conform_connect.c: cases of listen, connect and accept. */
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "conform.h"

static const struct flow few = {.messages = 20, .largest = 100000};

/* ------------------------------------------------------------------------------------------- basic */

static void basic(void)
{
    ranks_begin(1);
    CHECK(log_lines(NCCL_LOG_INFO) > 0, "no INFO line at init says what is there");
    links_ring(2);
    links_open();
    flows_everywhere(&few);
    links_close();
    if (!getenv("WEFT_FAULT"))
        CHECK(!log_first(NCCL_LOG_WARN), "a run without faults warns: %s", log_first(NCCL_LOG_WARN));
    ranks_end();
}

static void gpus_named(void)
{
    CHECK(setenv("WEFT_GPUS", "0", 1) == 0, "no memory");
    basic();
}

static bool has_ipv6_loopback(void)
{
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&loopback, sizeof loopback) == 0;
    if (fd >= 0)
        close(fd);
    return has;
}

/* Streams of this process that have an address of `family`. */
static int streams_of(int family)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_storage own = {0};
        int type = 0;
        socklen_t size = sizeof own, type_size = sizeof type;
        bool stream = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM;
        count += stream && getsockname(fd, (struct sockaddr *)&own, &size) == 0 && own.ss_family == family;
    }
    return count;
}

/* Loopback is not taken unasked, and of a list what is there. */
static void nccl_names(void)
{
    int family = has_ipv6_loopback() ? AF_INET6 : AF_INET, other = family == AF_INET6 ? AF_INET : AF_INET6;
    unsetenv("WEFT_RAILS");
    unsetenv("WEFT_FAULT"); /* that of a second rail would be refused */
    CHECK(setenv("NCCL_SOCKET_IFNAME", "none,lo", 1) == 0, "no memory");
    CHECK(setenv("NCCL_SOCKET_FAMILY", family == AF_INET6 ? "AF_INET6" : "AF_INET", 1) == 0, "no memory");
    int others = streams_of(other);
    ranks_begin(1);
    CHECK(log_says(NCCL_LOG_INFO, ": rails lo,"), "NCCL_SOCKET_IFNAME=none,lo: the log does not name the rail lo");
    links_ring(1);
    links_open();
    flows_everywhere(&few);
    CHECK(streams_of(family) >= 2, "%d streams of the family of NCCL_SOCKET_FAMILY", streams_of(family));
    CHECK(streams_of(other) == others, "%d streams of the other family", streams_of(other) - others);
    boot_barrier();
    links_close();
    ranks_end();
}

/* Each process sends to one and receives from one. Messages of more than `eager` go in chunks; NCCL's
 * example of a profiler has room for eight events of a request. */
static void profiled(void)
{
    static const size_t sizes[] = {1 << 20, 8000000};
    static const struct flow flow = {
        .messages = 20, .sizes = sizes, .size_count = 2, .exact = true, .largest = 8000000};

    ranks_begin(1);
    links_ring(1);
    links_open();
    flows_everywhere(&flow);
    links_close();
    int64_t sent = profile_chunks(NCCL_PROFILE_OP_SEND), came = profile_chunks(NCCL_PROFILE_OP_RECV);
    int64_t requests = profile_events() - sent - came;
    CHECK(requests >= 2 * flow.messages, "%lld events of %d messages each way", (long long)requests, flow.messages);
    CHECK(sent >= flow.messages && came >= flow.messages, "%lld chunks were sent, %lld came", (long long)sent,
          (long long)came);
    CHECK(sent + came <= 7 * requests, "%lld chunks of %lld requests", (long long)(sent + came), (long long)requests);
    ranks_end(); /* and what has started has stopped */
}

/* TCP sockets of this process whose packets have the mark. */
static int marked(int dscp)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        int mark = 0, type = 0;
        socklen_t size = sizeof mark, type_size = sizeof type;
        bool stream = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM;
        count += stream && getsockopt(fd, IPPROTO_IP, IP_TOS, &mark, &size) == 0 && mark >> 2 == dscp;
    }
    return count;
}

static void traffic_class(void)
{
    CHECK(setenv("WEFT_DSCP", "0,8,46,0", 1) == 0, "no memory");
    net_traffic_class = 2;
    ranks_begin(1);
    links_ring(2);
    links_open();
    flows_everywhere(&few);
    int64_t limit = now_ms() + 5000 * CONFORM_SLOWER; /* the streams of a class are made when it is first used */
    while (marked(46) == 0) {
        CHECK(now_ms() < limit, "no socket has the mark of the communicator's class");
        sched_yield();
    }
    CHECK(marked(8) == 0, "%d sockets have the mark of another class", marked(8));
    boot_barrier(); /* who closes first ends the other's streams, too */
    links_close();
    CHECK(!log_says(NCCL_LOG_WARN, "traffic class"), "a class is warned of: %s", log_first(NCCL_LOG_WARN));
    ranks_end();
}

/* Another plugin's numbers may be larger. */
static void unknown_class(void)
{
    net_traffic_class = 104;
    ranks_begin(1);
    CHECK(log_says(NCCL_LOG_WARN, "traffic class 104"), "no word of a class that there is not");
    links_ring(1);
    links_open();
    flows_everywhere(&few);
    links_close();
    ranks_end();
}

static void every_device(void)
{
    struct footprint before;
    footprint_take(&before);
    net_open();
    int ndev = 1;
    for (int dev = 0; dev < ndev; dev++) {
        void *context = NULL;
        MUST(net_init(&context, 1));
        MUST(net_devices(&ndev));
        rank_start(&ranks[0], dev);
        rank_count = 1;
        links_ring(1);
        links_open();
        flows_everywhere(&few);
        links_close();
        rank_stop(&ranks[0]);
        MUST(net_finalize(context));
    }
    net_close();
    footprint_check(&before, true, "after dlclose");
}

/* ------------------------------------------------------------------------------------------- call again */

static void accept_too_early(void *arg)
{
    struct link *link = arg;
    int64_t until = now_ms() + 50;
    do {
        MUST(net_accept(link->listener, &link->recv));
        CHECK(!link->recv, "accept has a comm before anybody has connected");
        sched_yield();
    } while (now_ms() < until);
}

/* A comm may be there before the other side has called accept. */
static void connect_too_early(void *arg)
{
    struct link *link = arg;
    int64_t until = now_ms() + 50;
    do {
        if (!link->send)
            MUST(net_connect(ranks[0].context, ranks[0].dev, link->handle, &link->send));
        sched_yield();
    } while (now_ms() < until);
}

static void call_again(void)
{
    ranks_begin(1);
    links_ring(1);
    links_listen();
    for (int i = 0; i < link_count; i++) {
        if (links[i].to == conform.me)
            worker_run(&ranks[0].service, accept_too_early, &links[i]);
    }
    boot_barrier();
    for (int i = 0; i < link_count; i++) {
        if (links[i].from == conform.me)
            worker_run(&ranks[0].service, connect_too_early, &links[i]);
    }
    boot_barrier();
    links_join();
    flows_everywhere(&few);
    links_close();
    ranks_end();
}

static void wait_for_warning(void *arg)
{
    struct link *link = arg;
    int64_t until = now_ms() + CONFORM_LIMIT_MS;
    int warnings = log_lines(NCCL_LOG_WARN);
    while (log_lines(NCCL_LOG_WARN) == warnings) {
        if (link->to == conform.me)
            MUST(net_accept(link->listener, &link->recv));
        else
            MUST(net_connect(ranks[0].context, ranks[0].dev, link->handle, &link->send));
        CHECK(!link->send && !link->recv, "a comm is there though the other side has not called");
        CHECK(now_ms() < until, "no word in the log on who is waited for");
        sched_yield();
    }
}

/* NCCL waits without a limit: first the one side has not called, then the other. */
static void waits_are_said(void)
{
    CHECK(setenv("WEFT_CONNECT_TIMEOUT", CONFORM_SLOWER > 1 ? "5" : "2", 1) == 0, "no memory");
    ranks_begin(1);
    links_ring(1);
    links_listen();
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < link_count; i++) {
            if (conform.me == (side ? links[i].from : links[i].to))
                worker_run(&ranks[0].service, wait_for_warning, &links[i]);
        }
        boot_barrier();
    }
    links_join();
    flows_everywhere(&few);
    links_close();
    ranks_end();
}

static void *given_up; /* the context of a communicator that is aborted in its connect */

static void connect_until_said(void *arg)
{
    struct link *link = arg;
    int64_t until = now_ms() + CONFORM_LIMIT_MS;
    while (!log_says(NCCL_LOG_WARN, "has not called accept()")) {
        MUST(net_connect(given_up, ranks[0].dev, link->handle, &link->send));
        CHECK(!link->send, "a comm is there though nobody has called accept");
        CHECK(now_ms() < until, "no word in the log on who is waited for");
        sched_yield();
    }
}

static void receive_in_vain(void *arg)
{
    struct link *link = arg;
    int64_t until = now_ms() + CONFORM_LIMIT_MS;
    char byte;
    void *data = &byte, *mhandle = NULL, *request = NULL;
    size_t size = 1;
    int tag = 0, got;
    bool done = false;
    while (!link->recv) {
        MUST(net_accept(link->listener, &link->recv));
        CHECK(now_ms() < until, "nobody has connected");
        sched_yield();
    }
    MUST(net_reg(link->recv, data, size, NCCL_PTR_HOST, &mhandle));
    enum nccl_result result = net_irecv(link->recv, 1, &data, &size, &tag, &mhandle, &request);
    while (result == NCCL_SUCCESS) {
        CHECK(!done && now_ms() < until, "what a communicator that is gone has begun to connect is still open");
        if (request)
            result = net_test(request, &done, &got);
        else
            result = net_irecv(link->recv, 1, &data, &size, &tag, &mhandle, &request);
        sched_yield();
    }
    MUST(net_dereg(link->recv, mhandle));
}

/* NCCL aborts: it calls connect() no more, and finalises that communicator, but not the other one. */
static void connect_given_up(void)
{
    CHECK(setenv("WEFT_CONNECT_TIMEOUT", CONFORM_SLOWER > 1 ? "5" : "2", 1) == 0, "no memory");
    ranks_begin(1);
    for (int process = 0; process < conform.processes; process++)
        links_add(process, process, 0);
    links_listen();
    MUST(net_init(&given_up, 77));
    worker_run(&ranks[0].service, connect_until_said, &links[conform.me]);
    MUST(net_finalize(given_up));
    worker_run(&ranks[0].service, receive_in_vain, &links[conform.me]);
    links_close();
    links_ring(1);
    links_open();
    flows_everywhere(&few);
    links_close();
    ranks_end();
}

static void self(void)
{
    ranks_begin(1);
    for (int round = 0; round < 4; round++) {
        struct flow mine[CONFORM_LINKS_MAX];
        int count = 0;
        for (int i = 0; i < 3 * conform.processes; i++)
            links_add(i % conform.processes, i % conform.processes, 0);
        links_open();
        for (int i = 0; i < link_count; i++) {
            if (links[i].from == conform.me) {
                mine[count] = few;
                mine[count++].link = &links[i];
            }
        }
        flows_run(mine, count);
        links_close();
    }
    ranks_end();
}

/* ------------------------------------------------------------------------------------------- handles */

/* Connecting must end in an error, soon. */
static void must_be_refused(void *arg)
{
    int64_t limit = now_ms() + 2000 * CONFORM_SLOWER;
    void *comm = NULL;
    enum nccl_result result;
    do {
        result = net_connect(ranks[0].context, ranks[0].dev, arg, &comm);
        CHECK(!comm, "a foreign handle is accepted");
        CHECK(result != NCCL_SUCCESS || now_ms() < limit, "a foreign handle is neither refused nor accepted");
    } while (result == NCCL_SUCCESS);
}

static void foreign_handle(void)
{
    ranks_begin(1);
    links_ring(1);
    links_listen();
    for (int i = 0; i < link_count; i++) {
        unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
        if (links[i].from != conform.me)
            continue;
        for (int byte = 0; byte < 9; byte++) { /* of Weft's, the last one is the version; the others are who it is */
            memcpy(handle, links[i].handle, sizeof handle);
            handle[byte] ^= 0x40;
            int warnings = log_lines(NCCL_LOG_WARN);
            worker_run(&ranks[0].service, must_be_refused, handle);
            CHECK(log_lines(NCCL_LOG_WARN) > warnings, "no word on why a handle is refused");
        }
        CHECK(log_says(NCCL_LOG_WARN, "another version"), "no word of another version");
        memset(handle, 0, sizeof handle);
        worker_run(&ranks[0].service, must_be_refused, handle);
        fill(handle, sizeof handle, conform.seed);
        worker_run(&ranks[0].service, must_be_refused, handle);
    }
    boot_barrier();
    links_join();
    flows_everywhere(&few);
    links_close();
    ranks_end();
}

static void give_up_listening(void *arg)
{
    (void)arg;
    for (int i = 0; i < conform.rounds; i++) {
        unsigned char handle[NCCL_NET_HANDLE_MAXSIZE] = {0};
        void *listener = NULL, *comm = NULL;
        MUST(net_listen(ranks[0].context, ranks[0].dev, handle, &listener));
        CHECK(listener, "listen succeeds without a comm");
        if (i % 2)
            MUST(net_accept(listener, &comm));
        CHECK(!comm, "accept has a comm before anybody has connected");
        MUST(net_close_listen(listener));
    }
}

static void listen_only(void)
{
    struct footprint before;
    ranks_begin(1);
    worker_run(&ranks[0].service, give_up_listening, NULL);
    footprint_take(&before);
    worker_run(&ranks[0].service, give_up_listening, NULL);
    footprint_check(&before, false, "after listening in vain");
    links_ring(1);
    links_open();
    flows_everywhere(&few);
    links_close();
    ranks_end();
}

/* Both sides of each pair dial at once when no session is there yet, beside comms with themselves. */
static void crossed(void)
{
    for (int round = 0; round < conform.rounds / 5 + 1; round++) {
        ranks_begin(1);
        uint64_t order = mix(conform.seed, (uint64_t)round);
        for (int i = 0; i < conform.processes * conform.processes; i++) {
            int at =
                (int)((order + (uint64_t)i * (order & 8 ? 1 : 3)) % (unsigned)(conform.processes * conform.processes));
            int from = at / conform.processes, to = at % conform.processes;
            if (from != to || mix(order, (uint64_t)at) % 2)
                links_add(from, to, 0);
        }
        links_listen();
        nanosleep(&(struct timespec){.tv_nsec = (long)(mix(order, (uint64_t)conform.me) % 15 * 1000000)}, NULL);
        links_join();
        flows_everywhere(&few);
        links_close();
        ranks_end();
    }
}

/* ------------------------------------------------------------------------------------------- many */

static void ranks_at_once(void)
{
    ranks_begin(4);
    links_ring(8);
    links_open();
    flows_everywhere(&few);
    links_close();
    ranks_end();
}

static void comms_64(void)
{
    ranks_begin(8);
    links_ring(conform.processes == 2 ? 32 : 8);
    links_open();
    flows_everywhere(&(struct flow){.messages = 30, .largest = 30000, .order = ANY});
    links_close();
    ranks_end();
}

/* However many comms there are to a process: the sockets are those of one session. */
static void shared_sockets(void)
{
    ranks_begin(1);
    links_ring(1);
    links_open();
    flows_everywhere(&few);
    boot_barrier();
    int with_few = socket_count();
    boot_barrier();
    for (int i = 0; i < (conform.processes == 2 ? 15 : 6); i++)
        links_ring(1);
    struct link kept[CONFORM_LINKS_MAX]; /* links_open() opens all: what is open already must not be opened again */
    int all = link_count, open = conform.processes == 2 ? 2 : 2 * conform.processes;
    memcpy(kept, links, sizeof kept);
    link_count = 0;
    for (int i = open; i < all; i++)
        links_add(kept[i].from, kept[i].to, 0);
    links_open();
    flows_everywhere(&few);
    boot_barrier();
    int with_many = socket_count();
    CHECK(with_many <= with_few + 4, "%d sockets with %d comms, %d with %d", with_few, open, with_many, all);
    links_close();
    memcpy(links, kept, sizeof kept);
    link_count = open;
    links_close();
    ranks_end();
}

const struct conform_case conform_connect_cases[] = {
    {"basic", "connect", "a few messages in a ring: nothing blocks, nothing is printed, no warning", basic, 0, 30,
     false},
    {"gpus_named", "connect", "GPUs of the environment are no matter where host memory alone is taken", gpus_named, 0,
     30, false},
    {"nccl_names", "connect", "NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose the rail and its family", nccl_names, 0,
     30, false},
    {"profiled", "connect", "NCCL's profiler gets events of requests and of their chunks, and each of them stops",
     profiled, 10, 90, false},
    {"traffic_class", "connect", "the traffic class of a communicator marks its packets", traffic_class, 11, 30, false},
    {"unknown_class", "connect", "a traffic class that there is not is said, and is the first one", unknown_class, 11,
     30, false},
    {"every_device", "connect", "each device that is announced carries messages", every_device, 0, 60, false},
    {"call_again", "connect", "accept before connect gives NULL, connect before accept does not block", call_again, 0,
     30, false},
    {"waits_are_said", "connect", "the log says that nobody connects, and that nobody accepts", waits_are_said, 0, 60,
     false},
    {"connect_given_up", "connect", "finalize ends what the communicator has begun to connect", connect_given_up, 11,
     60, false},
    {"self", "connect", "a process connects to itself, accept and connect on one thread", self, 0, 30, false},
    {"crossed", "connect", "all connect to all at once, themselves included, before there is anything", crossed, 0, 120,
     false},
    {"foreign_handle", "connect", "a handle with another magic or version is refused, with a warning", foreign_handle,
     0, 60, false},
    {"listen_only", "connect", "a listener that nobody called is closed and leaves nothing", listen_only, 0, 30, false},
    {"ranks_at_once", "connect", "four ranks of a process with their own threads", ranks_at_once, 0, 60, false},
    {"comms_64", "connect", "64 comms at once on eight ranks", comms_64, 0, 90, false},
    {"shared_sockets", "connect", "more comms to a process need no more sockets", shared_sockets, 0, 60, false},
    {0},
};
