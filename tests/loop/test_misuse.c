/*
 * test_misuse.c: what a program is told that calls the library wrongly. NULL in the place of a handle or of a result is
 * refused in every call of weft.h, and never a crash; a posting call names the argument, its value and the remedy.
 */
#include "loop_support.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

/* --- NULL --- */

static struct loop_pair pair;
static struct weft_error err;
static char called[128][64]; /* functions that a row below has called with NULL */
static int called_count;

/* The name of the function of a call, noted as called. */
static const char *function_of(const char *call)
{
    static char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(call, "("), call);
    for (int i = 0; i < called_count; i++)
        if (strcmp(called[i], name) == 0)
            return name;
    LOOP_CHECK(called_count < 128, "more calls than there is room for");
    snprintf(called[called_count++], sizeof called[0], "%s", name);
    return name;
}

static void said(const char *call, const char *argument, const char *text)
{
    char wanted[128];
    snprintf(wanted, sizeof wanted, "%s(): %s is NULL: give a valid one", function_of(call), argument);
    LOOP_CHECK(strcmp(text, wanted) == 0, "%s: '%s', not '%s'", call, text, wanted);
}

static void refused(const char *call, const char *argument, long result, const char *text)
{
    LOOP_CHECK(result == -EINVAL, "%s returned %ld", call, result);
    said(call, argument, text);
}

/* A call that is refused, for this argument: it has `err`, or says it in weft_last_error(). */
#define ERR(argument, call) (memset(&err, 0, sizeof err), refused(#call, argument, (call), err.text))
#define LAST(argument, call) refused(#call, argument, (call), weft_last_error())
/* A call that returns no errno, and has this value then. */
#define GIVES(argument, value, call)                                                                                   \
    do {                                                                                                               \
        LOOP_CHECK((call) == (value), "%s is not " #value, #call);                                                     \
        said(#call, argument, weft_last_error());                                                                      \
    } while (0)
#define EMPTY(argument, call)                                                                                          \
    do {                                                                                                               \
        LOOP_CHECK(strcmp((call), "") == 0, "%s is not empty", #call);                                                 \
        said(#call, argument, weft_last_error());                                                                      \
    } while (0)
/* A call that NULL is allowed for. */
#define ALLOWED(call) (function_of(#call), (void)(call))

static void settings_and_contexts(void)
{
    struct weft_context *context = pair.node[0].context, *made;
    struct weft_config *config = loop_config(NULL, 1);
    struct weft_interface_info interfaces[1];
    struct weft_rail_info rails[1];
    struct weft_thread_info threads[1];
    struct weft_fault_stats faults;

    ERR("out", weft_config_create(NULL, &err));
    ERR("out", weft_config_create_logged(NULL, NULL, NULL, &err));
    ERR("config", weft_config_set(NULL, "chunk", "64K", &err));
    ERR("name", weft_config_set(config, NULL, "64K", &err));
    ERR("value", weft_config_set(config, "chunk", NULL, &err));
    GIVES("config", NULL, weft_config_get(NULL, "chunk"));
    GIVES("name", NULL, weft_config_get(config, NULL));
    GIVES("config", -EINVAL, weft_config_is_set(NULL, "chunk"));
    GIVES("name", -EINVAL, weft_config_is_set(config, NULL));
    ERR("config", weft_interfaces(NULL, interfaces, 1, &err));
    ERR("list", weft_interfaces(config, NULL, 1, &err));
    LOOP_CHECK(weft_interfaces(config, NULL, 0, &err) > 0, "%s", err.text);
    ERR("out", weft_context_create(config, NULL, &err));
    weft_config_destroy(config);
    ALLOWED(weft_config_destroy(NULL));

    ALLOWED(weft_context_destroy(NULL));
    ERR("context", weft_listen(NULL, "127.0.1.1:0", &err));
    ERR("address", weft_listen(context, NULL, &err));
    LAST("context", weft_listen_port(NULL));
    LAST("context", weft_context_rails(NULL, rails, 1));
    LAST("rails", weft_context_rails(context, NULL, 1));
    LOOP_CHECK(weft_context_rails(context, NULL, 0) == 1, "the rails are not counted");
    LAST("context", weft_context_threads(NULL, threads, 1));
    LAST("threads", weft_context_threads(context, NULL, 1));
    EMPTY("context", weft_context_engine(NULL));
    EMPTY("context", weft_context_fallbacks(NULL));
    EMPTY("context", weft_context_memory(NULL));
    LAST("context", weft_context_faults(NULL, &faults));
    LAST("stats", weft_context_faults(context, NULL));
    struct weft_trace_event events[1];
    ERR("context", weft_trace_start(NULL, 1, &err));
    LAST("context", weft_trace_take(NULL, events, 1, NULL));
    LAST("events", weft_trace_take(context, NULL, 1, NULL));
    LOOP_CHECK(weft_trace_take(context, events, -1, NULL) == -EINVAL, "less than nothing is taken");
    LOOP_CHECK(weft_trace_take(context, NULL, 0, NULL) == 0, "events of a trace that is off");
    LOOP_CHECK(weft_listen(NULL, "0", NULL) == -EINVAL, "no place for a text");
    made = NULL;
    LOOP_CHECK(weft_context_create(NULL, &made, &err) == 0, "the defaults: %s", err.text);
    weft_context_destroy(made);
    LOOP_CHECK(weft_version()[0] && function_of("weft_version("), "no version");
    function_of("weft_last_error(");
}

static void gpus(void)
{
    struct weft_context *context = pair.node[0].context;
    struct weft_gpu_info infos[1];
    struct weft_gpu_stats stats[1];
    struct weft_devmem_stats devmem[1];
    char byte;

    LAST("context", weft_context_gpus(NULL, infos, 1));
    LAST("gpus", weft_context_gpus(context, NULL, 1));
    LAST("context", weft_context_gpu_stats(NULL, stats, 1));
    LAST("stats", weft_context_gpu_stats(context, NULL, 1));
    LAST("context", weft_context_devmem_stats(NULL, devmem, 1));
    LAST("stats", weft_context_devmem_stats(context, NULL, 1));
    void *memory;
    ERR("context", weft_gpu_alloc(NULL, 0, 1, &memory, &err));
    ERR("out", weft_gpu_alloc(context, 0, 1, NULL, &err));
    ALLOWED(weft_gpu_free(NULL, 0, NULL));
    weft_gpu_free(NULL, 0, &byte);
    ERR("context", weft_gpu_copy(NULL, &byte, &byte, 1, &err));
    ERR("to", weft_gpu_copy(context, NULL, &byte, 1, &err));
    ERR("from", weft_gpu_copy(context, &byte, NULL, 1, &err));
}

static void peers_and_connections(void)
{
    struct weft_context *context = pair.node[0].context;
    struct weft_endpoint *endpoint = pair.node[0].endpoint, *made;
    struct weft_peer *peer = pair.node[0].peer, *other;
    struct weft_connection *connection;
    struct weft_rail_stats stats[1];

    ERR("context", weft_connect(NULL, "127.0.1.1:1", 0, &other, &err));
    ERR("address", weft_connect(context, NULL, 0, &other, &err));
    ERR("out", weft_connect(context, "127.0.1.1:1", 0, NULL, &err));
    ERR("context", weft_accept(NULL, 0, &other, &err));
    ERR("out", weft_accept(context, 0, NULL, &err));
    ERR("peer", weft_peer_close(NULL, 0, &err));
    EMPTY("peer", weft_peer_name(NULL));
    ERR("peer", weft_peer_status(NULL, &err));
    LAST("peer", weft_peer_rails(NULL, stats, 1));
    LAST("stats", weft_peer_rails(peer, NULL, 1));
    GIVES("peer", 0, weft_peer_denied(NULL));

    ERR("context", weft_endpoint_create(NULL, 5, &made, &err));
    ERR("out", weft_endpoint_create(context, 5, NULL, &err));
    LAST("endpoint", weft_endpoint_set_node(NULL, 0));
    ALLOWED(weft_endpoint_destroy(NULL));
    ERR("endpoint", weft_connection_open(NULL, peer, 0, 0, &connection, &err));
    ERR("peer", weft_connection_open(endpoint, NULL, 0, 0, &connection, &err));
    ERR("out", weft_connection_open(endpoint, peer, 0, 0, NULL, &err));
    ERR("endpoint", weft_connection_accept(NULL, peer, 0, 0, &connection, &err));
    ERR("peer", weft_connection_accept(endpoint, NULL, 0, 0, &connection, &err));
    ERR("out", weft_connection_accept(endpoint, peer, 0, 0, NULL, &err));
    ERR("connection", weft_connection_close(NULL, 0, &err));
    GIVES("connection", WEFT_ANY_ENDPOINT, weft_connection_remote(NULL));
    LAST("endpoint", weft_endpoint_set_class(NULL, 0));
    GIVES("connection", 0, weft_connection_class(NULL));
    LAST("peer", weft_peer_set_rate(NULL, 0, 0));
    ERR("context", weft_greeting_set(NULL, "", 0, &err));
    uint32_t length;
    ALLOWED(weft_peer_greeting(NULL, &length));
}

/* Setting up without waiting, and events. */
static void starts_and_events(void)
{
    struct weft_context *context = pair.node[0].context;
    struct weft_endpoint *endpoint = pair.node[0].endpoint;
    struct weft_peer *peer = pair.node[0].peer;
    struct weft_connection *connection = pair.node[0].connection;
    struct weft_request *request;
    struct weft_event event;

    ERR("context", weft_connect_start(NULL, "127.0.1.1:1", NULL, &request, &err));
    ERR("address", weft_connect_start(context, NULL, NULL, &request, &err));
    ERR("out", weft_connect_start(context, "127.0.1.1:1", NULL, NULL, &err));
    ERR("context", weft_accept_start(NULL, NULL, &request, &err));
    ERR("out", weft_accept_start(context, NULL, NULL, &err));
    ERR("peer", weft_peer_close_start(NULL, NULL, &request, &err));
    ERR("out", weft_peer_close_start(peer, NULL, NULL, &err));
    ERR("endpoint", weft_connection_open_start(NULL, peer, 0, NULL, &request, &err));
    ERR("peer", weft_connection_open_start(endpoint, NULL, 0, NULL, &request, &err));
    ERR("out", weft_connection_open_start(endpoint, peer, 0, NULL, NULL, &err));
    ERR("endpoint", weft_connection_accept_start(NULL, peer, 0, NULL, &request, &err));
    ERR("peer", weft_connection_accept_start(endpoint, NULL, 0, NULL, &request, &err));
    ERR("out", weft_connection_accept_start(endpoint, peer, 0, NULL, NULL, &err));
    ERR("connection", weft_connection_close_start(NULL, NULL, &request, &err));
    ERR("out", weft_connection_close_start(connection, NULL, NULL, &err));
    LAST("context", weft_event_poll(NULL, &event, 1));
    LAST("events", weft_event_poll(context, NULL, 1));
    LAST("context", weft_event_fd(NULL));
}

static void memory(void)
{
    struct weft_context *context = pair.node[0].context;
    struct weft_registration *registration;
    char byte;

    ERR("context", weft_register(NULL, &byte, 1, &registration, &err));
    ERR("out", weft_register(context, &byte, 1, NULL, &err));
    ERR("context", weft_register_for(NULL, &byte, 1, 0, &registration, &err));
    ERR("out", weft_register_for(context, &byte, 1, 0, NULL, &err));
    GIVES("registration", WEFT_MEMORY_HOST, weft_registration_kind(NULL));
    GIVES("registration", 0, weft_registration_key(NULL));
    ALLOWED(weft_deregister(NULL));
}

static void operations(void)
{
    struct weft_connection *connection = pair.node[0].connection;
    struct weft_request *request;
    struct weft_piece piece = {0, 0, 1};
    char byte = 0;
    struct iovec iov = {&byte, 1};

    LAST("connection", weft_send(NULL, &byte, 1, 0, NULL, &request));
    LAST("out", weft_send(connection, &byte, 1, 0, NULL, NULL));
    LAST("connection", weft_recv(NULL, &byte, 1, 0, NULL, &request));
    LAST("out", weft_recv(connection, &byte, 1, 0, NULL, NULL));
    LAST("connection", weft_sendv(NULL, &iov, 1, 0, NULL, &request));
    LAST("out", weft_sendv(connection, &iov, 1, 0, NULL, NULL));
    LAST("connection", weft_recvv(NULL, &iov, 1, 0, NULL, &request));
    LAST("out", weft_recvv(connection, &iov, 1, 0, NULL, NULL));
    LAST("connection", weft_write(NULL, &byte, 1, 1, 0, NULL, &request));
    LAST("out", weft_write(connection, &byte, 1, 1, 0, NULL, NULL));
    LAST("connection", weft_read(NULL, &byte, 1, 1, 0, NULL, &request));
    LAST("out", weft_read(connection, &byte, 1, 1, 0, NULL, NULL));
    LAST("connection", weft_write_list(NULL, &byte, &piece, 1, 1, NULL, &request));
    LAST("out", weft_write_list(connection, &byte, &piece, 1, 1, NULL, NULL));
    LAST("connection", weft_read_list(NULL, &byte, &piece, 1, 1, NULL, &request));
    LAST("out", weft_read_list(connection, &byte, &piece, 1, 1, NULL, NULL));
    LAST("connection", weft_recv_notification(NULL, &byte, 1, NULL, &request));
    LAST("out", weft_recv_notification(connection, &byte, 1, NULL, NULL));
    LAST("connection", weft_notify(NULL, &byte, 1, 0, NULL, &request));
    LAST("out", weft_notify(connection, &byte, 1, 0, NULL, NULL));
    struct weft_endpoint *endpoint = pair.node[0].endpoint;
    struct weft_message message;
    LAST("endpoint", weft_endpoint_recv(NULL, &byte, 1, 0, NULL, &request));
    LAST("out", weft_endpoint_recv(endpoint, &byte, 1, 0, NULL, NULL));
    LAST("connection", weft_probe(NULL, 0, NULL, &message));
    LAST("out", weft_probe(connection, 0, NULL, NULL));
    LAST("endpoint", weft_endpoint_probe(NULL, 0, NULL, &message));
    LAST("out", weft_endpoint_probe(endpoint, 0, NULL, NULL));
}

static void requests_and_queues(void)
{
    struct weft_context *context = pair.node[0].context;
    struct weft_completion completion;
    struct weft_queue *queue;
    int index;

    LAST("request", weft_test(NULL, &completion));
    LAST("request", weft_wait(NULL, 0, &completion));
    LAST("requests", weft_wait_any(NULL, 1, 0, &index, &completion));
    LOOP_CHECK(weft_wait_any(NULL, 0, 0, &index, &completion) == -ENOENT, "no requests are no mistake");
    weft_cancel(NULL);
    said("weft_cancel(", "request", weft_last_error());
    ERR("context", weft_queue_create(NULL, &queue, &err));
    ERR("out", weft_queue_create(context, NULL, &err));
    LAST("queue", weft_queue_destroy(NULL));
    LAST("queue", weft_queue_poll(NULL, &completion, 1));
    LOOP_CALL(weft_queue_create(context, &queue, &err), &err);
    LAST("completions", weft_queue_poll(queue, NULL, 1));
    LAST("queue", weft_queue_wait(NULL, 0, &completion, 1));
    LAST("completions", weft_queue_wait(queue, 0, NULL, 1));
    LOOP_CALL(weft_queue_destroy(queue), NULL);
    LAST("queue", weft_completion_fd(NULL));
}

/* weft.map has the names of all functions. */
static void check_that_none_is_left_out(void)
{
    FILE *map = fopen(WEFT_MAP, "re");
    char line[256], name[64];
    int names = 0;

    LOOP_CHECK(map, "no %s", WEFT_MAP);
    while (fgets(line, sizeof line, map)) {
        bool known = false;
        if (sscanf(line, " %63[a-z0-9_];", name) != 1 || strncmp(name, "weft_", 5) != 0)
            continue;
        names += 1;
        for (int i = 0; i < called_count; i++)
            known |= strcmp(called[i], name) == 0;
        LOOP_CHECK(known, "%s() is not called with NULL above: give it a row", name);
    }
    fclose(map);
    LOOP_CHECK(names > 50, "%s has hardly any functions", WEFT_MAP);
}

static void null_is_refused_everywhere(void)
{
    loop_pair_create(&pair, NULL, NULL, 1);
    settings_and_contexts();
    gpus();
    peers_and_connections();
    starts_and_events();
    memory();
    operations();
    requests_and_queues();
    check_that_none_is_left_out();
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 1000, 1); /* and nothing has come to harm */
    loop_pair_destroy(&pair);
}

/* --- what a posting call says --- */

static void check_said(const char *call, int result, int wanted, const char *const words[3])
{
    LOOP_CHECK(result == wanted, "%s returned %d, not %d", call, result, wanted);
    LOOP_CHECK(strncmp(weft_last_error(), "weft_", 5) == 0 && !strchr(weft_last_error(), '\n'), "'%s'",
               weft_last_error());
    for (int i = 0; i < 3 && words[i]; i++)
        LOOP_CHECK(strstr(weft_last_error(), words[i]), "%s: '%s' lacks '%s'", call, weft_last_error(), words[i]);
}

/* The call fails so, and its line has these words: who, what, and the remedy. */
#define SAYS(call, status, ...) check_said(#call, (call), status, (const char *const[3]){__VA_ARGS__})

static void arguments_are_named(void)
{
    struct weft_registration *registration, *foreign;
    struct weft_queue *queue;
    struct weft_request *request;
    struct weft_options options;
    static char bytes[100], large[WEFT_NOTIFICATION_MAX + 1];
    struct weft_piece piece = {0, UINT64_MAX, 1};
    struct weft_message message;
    struct iovec vector[2] = {{bytes, 1}, {bytes + 2, 1}};

    loop_pair_create(&pair, NULL, NULL, 1);
    struct weft_connection *here = pair.node[0].connection;
    LOOP_CALL(weft_register(pair.node[0].context, bytes, 50, &registration, &err), &err);
    LOOP_CALL(weft_register(pair.node[1].context, bytes, 100, &foreign, &err), &err);
    LOOP_CALL(weft_queue_create(pair.node[1].context, &queue, &err), &err);

    SAYS(weft_send(here, NULL, 77, 0, NULL, &request), -EINVAL, "weft_send(): the buffer is NULL", "77", "length of 0");
    SAYS(weft_recv(here, bytes, UINT64_MAX, 0, NULL, &request), -EINVAL, "weft_recv()", "18446744073709551615",
         "the most is");
    options = (struct weft_options){.flags = WEFT_NOTIFY | 1u << 30};
    SAYS(weft_send(here, bytes, 1, 0, &options, &request), -EINVAL, "options.flags is 0x40000002", "leave it out");
    SAYS(weft_write(here, bytes, 1, 1, 0, &options, &request), -EINVAL, "weft_write()", "0x40000000 is not");
    options = (struct weft_options){.timeout_ms = -5};
    SAYS(weft_recv(here, bytes, 1, 0, &options, &request), -EINVAL, "options.timeout_ms is -5", "or 0");
    options = (struct weft_options){.flags = WEFT_SYNC};
    SAYS(weft_recv_notification(here, bytes, 1, &options, &request), -EINVAL, "weft_recv_notification()",
         "options.flags is 0x");
    options = (struct weft_options){.flags = WEFT_ANY_TAG | WEFT_TAG_MASK};
    SAYS(weft_recv(here, bytes, 1, 0, &options, &request), -EINVAL, "weft_recv()", "leave one of them out");
    SAYS(weft_endpoint_recv(pair.node[0].endpoint, bytes, 1, 0, &options, &request), -EINVAL, "weft_endpoint_recv()",
         "leave one of them out");
    SAYS(weft_recvv(here, vector, 2, 0, &options, &request), -EINVAL, "weft_recvv()", "leave one of them out");
    options = (struct weft_options){.flags = WEFT_NOTIFY};
    SAYS(weft_probe(here, 0, &options, &message), -EINVAL, "weft_probe()", "a probe takes");
    SAYS(weft_endpoint_probe(pair.node[0].endpoint, 0, &options, &message), -EINVAL, "weft_endpoint_probe()",
         "a probe takes");
    SAYS(weft_notify(here, bytes, WEFT_NOTIFICATION_MAX + 1, 0, NULL, &request), -EMSGSIZE, "weft_notify()",
         "the notification has 65537 bytes");
    options = (struct weft_options){.queue = queue};
    SAYS(weft_send(here, bytes, 1, 0, &options, &request), -EINVAL, "options.queue", "another context");
    options = (struct weft_options){.registration = foreign};
    SAYS(weft_send(here, bytes, 1, 0, &options, &request), -EINVAL, "options.registration", "another context");
    options = (struct weft_options){.registration = registration};
    SAYS(weft_send(here, bytes, 51, 0, &options, &request), -EINVAL, "51 bytes at", "has 50 bytes");
    struct iovec iov[2] = {{bytes, 1}, {NULL, 4}};
    SAYS(weft_sendv(here, iov, -1, 0, NULL, &request), -EINVAL, "weft_sendv(): count is -1", "0 to 1024");
    SAYS(weft_recvv(here, iov, WEFT_IOV_MAX + 1, 0, NULL, &request), -E2BIG, "weft_recvv(): count is 1025",
         "0 to 1024");
    SAYS(weft_sendv(here, NULL, 2, 0, NULL, &request), -EINVAL, "iov is NULL", "count 2");
    SAYS(weft_sendv(here, iov, 2, 0, NULL, &request), -EINVAL, "iov[1] is 4 bytes at", "length of 0");
    iov[1] = (struct iovec){bytes + 1, SIZE_MAX};
    SAYS(weft_recvv(here, iov, 2, 0, NULL, &request), -EINVAL, "iov[1] is 18446744073709551615 bytes");
    iov[1] = (struct iovec){bytes + 50, 1};
    options = (struct weft_options){.registration = registration};
    SAYS(weft_sendv(here, iov, 2, 0, &options, &request), -EINVAL, "weft_sendv(): 51 bytes", "has 50 bytes");

    options = (struct weft_options){.flags = WEFT_ON_STREAM};
    SAYS(weft_send(here, bytes, 0, 0, &options, &request), -EINVAL, "WEFT_ON_STREAM", "leave the flag out");

    options =
        (struct weft_options){.flags = WEFT_NOTIFY, .notify_data = large, .notify_length = WEFT_NOTIFICATION_MAX + 1};
    SAYS(weft_write(here, bytes, 1, 1, 0, &options, &request), -EMSGSIZE, "notify_length is 65537", "at most 65536");
    options = (struct weft_options){.flags = WEFT_NOTIFY, .notify_length = 3};
    SAYS(weft_read(here, bytes, 1, 1, 0, &options, &request), -EINVAL, "weft_read(): options.notify_data is NULL", "3");
    SAYS(weft_read(here, bytes, 1, 1, UINT64_MAX, NULL, &request), -EINVAL, "offset is 18446744073709551615");
    SAYS(weft_write_list(here, bytes, NULL, 4, 1, NULL, &request), -EINVAL, "pieces is NULL", "count 4");
    SAYS(weft_write_list(here, NULL, &piece, 1, 1, NULL, &request), -EINVAL, "base is NULL", "count 1");
    SAYS(weft_read_list(here, bytes, &piece, 1, 1, NULL, &request), -EINVAL, "pieces[0]", "below 2^63");
    SAYS(weft_read_list(here, bytes, &piece, 1u << 30, 1, NULL, &request), -E2BIG, "count is 1073741824",
         "at most 1048576");
    SAYS(weft_listen_port(pair.node[0].context), -ENOTCONN, "weft_listen() first");
    SAYS(weft_endpoint_destroy(pair.node[0].endpoint), -EBUSY, "endpoint 0", "close them on both sides");
    SAYS(weft_endpoint_set_node(pair.node[0].endpoint, -2), -EINVAL, "numa_node is -2", "or -1");

    options = (struct weft_options){.registration = registration};
    weft_deregister(foreign);
    LOOP_CALL(weft_queue_destroy(queue), NULL);
    weft_deregister(registration);
    loop_pair_destroy(&pair);
}

static void requests_are_named(void)
{
    struct weft_completion completion;
    struct weft_queue *queue;
    struct weft_request *in_queue, *plain[2];
    struct weft_options options = {0};
    char bytes[8];

    loop_pair_create(&pair, NULL, NULL, 1);
    LOOP_CALL(weft_queue_create(pair.node[0].context, &queue, &err), &err);
    options.queue = queue;
    LOOP_CALL(weft_recv(pair.node[0].connection, bytes, 8, 1, &options, &in_queue), NULL);
    SAYS(weft_test(in_queue, &completion), -EINVAL, "weft_test()", "weft_queue_poll()");
    SAYS(weft_wait(in_queue, 0, &completion), -EINVAL, "requests[0]", "weft_queue_poll()");
    SAYS(weft_queue_destroy(queue), -EBUSY, "weft_queue_destroy(): 1 requests");
    SAYS(weft_queue_poll(queue, &completion, 0), -EINVAL, "weft_queue_poll(): max is 0");
    for (int i = 0; i < 2; i++)
        plain[i] = loop_recv(pair.node[i].connection, bytes, 8, 1);
    SAYS(weft_wait_any(plain, 2, 0, NULL, &completion), -EINVAL, "weft_wait_any(): requests[1]", "another context");
    weft_cancel(in_queue);
    int64_t until_ms = loop_now_ms() + LOOP_WAIT_MS;
    while (weft_queue_poll(queue, &completion, 1) == 0)
        LOOP_CHECK(loop_now_ms() < until_ms, "the cancelled receive does not end");
    for (int i = 0; i < 2; i++) {
        weft_cancel(plain[i]);
        loop_done(plain[i], -ECANCELED, 0);
    }
    LOOP_CALL(weft_queue_destroy(queue), NULL);
    loop_pair_destroy(&pair);
}

/* What is no mistake of the arguments has a line, too, and it is never the one of an earlier call. */
static void limits_and_ends_are_named(void)
{
    struct weft_request *first, *request;
    char bytes[8];

    loop_pair_create(&pair, "requests=1", NULL, 1);
    first = loop_recv(pair.node[0].connection, bytes, 8, 1);
    LOOP_CHECK(weft_send(pair.node[0].connection, NULL, 9, 0, NULL, &request) == -EINVAL, "NULL was sent");
    SAYS(weft_recv(pair.node[0].connection, bytes, 8, 1, NULL, &request), -EAGAIN, "weft_recv(): 1 operations",
         "setting requests allows 1");
    weft_cancel(first);
    loop_done(first, -ECANCELED, 0);
    LOOP_CALL(weft_connection_close(pair.node[1].connection, LOOP_WAIT_MS, &err), &err);
    pair.node[1].connection = NULL;
    first = loop_recv(pair.node[0].connection, bytes, 8, 1); /* ends when the close has come */
    loop_done(first, -ESHUTDOWN, 0);
    SAYS(weft_send(pair.node[0].connection, bytes, 8, 1, NULL, &request), -ESHUTDOWN, "closed the connection",
         "endpoint 0");
    LOOP_CALL(weft_peer_close(pair.node[1].peer, LOOP_WAIT_MS, &err), &err);
    pair.node[1].peer = NULL;
    int64_t until_ms = loop_now_ms() + LOOP_WAIT_MS;
    while (weft_peer_status(pair.node[0].peer, &err) == 0) {
        LOOP_CHECK(loop_now_ms() < until_ms, "the peer's close does not come");
        loop_sleep_ms(1);
    }
    SAYS(weft_recv(pair.node[0].connection, bytes, 8, 1, NULL, &request), -ESHUTDOWN, "closed");
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOOP_CASE(null_is_refused_everywhere, 30),
        LOOP_CASE(arguments_are_named, 20),
        LOOP_CASE(requests_are_named, 20),
        LOOP_CASE(limits_and_ends_are_named, 30),
    };
    loop_begin(argc, argv);
    if (weft_last_error()[0]) {
        print_message("before the first failure: '%s'\n", weft_last_error());
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
