/* What a plugin says: any of its threads may. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"
#include "library.h"

#define LINE_BYTES 1024
#define LINES_MAX 16

static struct {
    pthread_mutex_t lock;
    struct wf_log log;
    char warned[256]; /* last */
    char lines[LINES_MAX][256];
    int count;
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void take_line(enum nccl_log_level level, unsigned long flags, const char *file, int number, const char *format,
                      ...) __attribute__((format(printf, 5, 6)));

static void take_line(enum nccl_log_level level, unsigned long flags, const char *file, int number, const char *format,
                      ...)
{
    char line[LINE_BYTES];
    va_list arguments;

    (void)file;
    (void)number;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&heard.lock);
    if (level == NCCL_LOG_WARN)
        bench_copy_text(heard.warned, sizeof heard.warned, line);
    else if (level == NCCL_LOG_INFO && (flags & NCCL_INIT) && heard.count < LINES_MAX)
        bench_copy_text(heard.lines[heard.count++], sizeof heard.lines[0], line);
    pthread_mutex_unlock(&heard.lock);
    wf_log(&heard.log, level <= NCCL_LOG_WARN ? WF_LOG_WARN : WF_LOG_INFO, "%s", line);
}

nccl_logger net_log_open(const char *level)
{
    wf_log_init(&heard.log, strcmp(level, "error") == 0   ? WF_LOG_ERROR
                            : strcmp(level, "warn") == 0  ? WF_LOG_WARN
                            : strcmp(level, "debug") == 0 ? WF_LOG_DEBUG
                                                          : WF_LOG_INFO);
    heard.warned[0] = '\0';
    heard.count = 0;
    return take_line;
}

json_t *net_log_lines(void)
{
    json_t *lines = json_array();

    pthread_mutex_lock(&heard.lock);
    for (int i = 0; i < heard.count; i++)
        json_array_append_new(lines, bench_heard_string(heard.lines[i]));
    pthread_mutex_unlock(&heard.lock);
    return lines;
}

static int code_of(enum nccl_result result)
{
    switch (result) {
    case NCCL_REMOTE_ERROR:
        return -ECONNRESET;
    case NCCL_INVALID_ARGUMENT:
    case NCCL_INVALID_USAGE:
        return -EINVAL;
    default:
        return -EIO;
    }
}

int net_failed(enum nccl_result result, const char *what, struct wf_status *status)
{
    if (result == NCCL_SUCCESS)
        return 0;
    pthread_mutex_lock(&heard.lock);
    wf_fail(status, code_of(result), "%s: result %d%s%s", what, result, heard.warned[0] ? ": " : "", heard.warned);
    pthread_mutex_unlock(&heard.lock);
    return status->code;
}
