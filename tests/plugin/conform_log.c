/* conform_log.c: NCCL's log and profiler. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conform.h"

#define LINES_MAX 4096
#define LINE_BYTES 512

static struct {
    pthread_mutex_t mutex;
    enum nccl_log_level level[LINES_MAX];
    char text[LINES_MAX][LINE_BYTES];
    int count;
} lines = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void net_logger(enum nccl_log_level level, unsigned long flags, const char *file, int line, const char *format, ...)
{
    char text[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    CHECK(level >= NCCL_LOG_VERSION && level <= NCCL_LOG_TRACE, "log level %d: %s", (int)level, text);
    CHECK(file != NULL, "a log line without a file or function: %s", text);
    CHECK(!strchr(text, '\n'), "a line break in a log line: %s", text);
    CHECK(flags != 0, "a log line of no part of NCCL: %s", text);
    pthread_mutex_lock(&lines.mutex);
    if (lines.count < LINES_MAX) {
        lines.level[lines.count] = level;
        memcpy(lines.text[lines.count++], text, sizeof text);
    }
    pthread_mutex_unlock(&lines.mutex);
    if (conform.verbose)
        dprintf(conform.report, "  [%d] level %d, %s:%d: %s\n", conform.me, (int)level, file, line, text);
}

int log_lines(enum nccl_log_level level)
{
    int count = 0;
    pthread_mutex_lock(&lines.mutex);
    for (int i = 0; i < lines.count; i++)
        count += lines.level[i] == level;
    pthread_mutex_unlock(&lines.mutex);
    return count;
}

static const char *pick(enum nccl_log_level level, bool last)
{
    const char *found = NULL;
    pthread_mutex_lock(&lines.mutex);
    for (int i = 0; i < lines.count && (last || !found); i++)
        found = lines.level[i] == level ? lines.text[i] : found;
    pthread_mutex_unlock(&lines.mutex);
    return found;
}

const char *log_first(enum nccl_log_level level)
{
    return pick(level, false);
}

const char *log_last(enum nccl_log_level level)
{
    return pick(level, true);
}

bool log_says(enum nccl_log_level level, const char *words)
{
    bool found = false;
    pthread_mutex_lock(&lines.mutex);
    for (int i = 0; i < lines.count && !found; i++)
        found = lines.level[i] == level && strstr(lines.text[i], words);
    pthread_mutex_unlock(&lines.mutex);
    return found;
}

static bool names_an_address(const char *text)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    if (host[0] && strstr(text, host))
        return true;
    for (; *text; text++) {
        unsigned part[4];
        if (sscanf(text, "%3u.%3u.%3u.%3u", &part[0], &part[1], &part[2], &part[3]) == 4 || !strncmp(text, "::", 2))
            return true;
    }
    return false;
}

const char *log_names_peer(enum nccl_log_level level)
{
    const char *found = NULL;
    pthread_mutex_lock(&lines.mutex);
    for (int i = 0; i < lines.count && !found; i++) {
        if (lines.level[i] == level && names_an_address(lines.text[i]))
            found = lines.text[i];
    }
    pthread_mutex_unlock(&lines.mutex);
    return found;
}

static struct {
    int64_t started, stopped;
    int64_t chunks[2]; /* by NCCL_PROFILE_OP_* */
} profile;

static void add(int64_t *count, int64_t by)
{
    __atomic_add_fetch(count, by, __ATOMIC_RELAXED);
}

/* A chunk has the descriptor of its stream, and begins while some request is open. */
static void note_start(const struct nccl_profile_socket *socket)
{
    CHECK(socket->type == NCCL_PROFILE_SOCKET &&
              (socket->sock.op == NCCL_PROFILE_OP_SEND || socket->sock.op == NCCL_PROFILE_OP_RECV),
          "an event of type %d, operation %d", socket->type, socket->sock.op);
    if (socket->sock.fd >= 0) {
        CHECK(profile_open() > 0, "a chunk begins outside of every request");
        CHECK(socket->sock.length > 0, "a chunk without bytes");
        add(&profile.chunks[socket->sock.op], 1);
    }
    add(&profile.started, 1);
}

enum nccl_result net_profiler(void **event, int kind, void *phandle, int64_t plugin, void *descriptor)
{
    CHECK(event != NULL, "a profiler event without a place for its handle");
    if (kind == NCCL_PROFILE_START) {
        CHECK(phandle != NULL && descriptor != NULL, "an event starts without what it belongs to");
        CHECK(plugin == (NCCL_PROFILE_PLUGIN_SOCKET | NCCL_PROFILE_SOCKET_VERSION), "an event of plugin %lld",
              (long long)plugin);
        *event = malloc(1); /* an event that never stops is a leak, too */
        note_start(descriptor);
    } else if (kind == NCCL_PROFILE_STOP || kind == NCCL_PROFILE_UPDATE_AND_STOP) {
        CHECK(*event != NULL, "an event stops that has not started");
        free(*event);
        add(&profile.stopped, 1);
    } else {
        CHECK(kind == NCCL_PROFILE_UPDATE, "kind %d of an event", kind);
    }
    return NCCL_SUCCESS;
}

int64_t profile_open(void)
{
    return __atomic_load_n(&profile.started, __ATOMIC_RELAXED) - __atomic_load_n(&profile.stopped, __ATOMIC_RELAXED);
}

int64_t profile_events(void)
{
    return __atomic_load_n(&profile.started, __ATOMIC_RELAXED);
}

int64_t profile_chunks(int op)
{
    return __atomic_load_n(&profile.chunks[op], __ATOMIC_RELAXED);
}
