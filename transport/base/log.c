#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

#define LINE_BYTES 1024 /* below PIPE_BUF: a pipe takes such a line whole or not at all */
#define NOTE_BYTES 64   /* room for what wf_log_limited() adds, and the newline */

static const char *const level_names[] = {
    [WF_LOG_ERROR] = "error",
    [WF_LOG_WARN] = "warn",
    [WF_LOG_INFO] = "info",
    [WF_LOG_DEBUG] = "debug",
};

void wf_log_init(struct wf_log *log, enum wf_log_level level)
{
    log->level = level;
    log->fd = STDERR_FILENO;
    wf_log_hand_over(log, NULL, NULL);
}

void wf_log_hand_over(struct wf_log *log, wf_log_taker *taker, void *user)
{
    log->taker = taker;
    log->user = user;
}

/* If the line cannot be written, it is lost and the program goes on: there is no other place to report it. */
static void write_line(int fd, const char *line, size_t length)
{
    ssize_t written;

    do {
        written = write(fd, line, length);
    } while (written < 0 && errno == EINTR);
}

static void emit(const struct wf_log *log, enum wf_log_level level, uint64_t dropped, const char *format,
                 va_list arguments) __attribute__((format(printf, 4, 0)));
static void emit(const struct wf_log *log, enum wf_log_level level, uint64_t dropped, const char *format,
                 va_list arguments)
{
    int saved = errno; /* callers log between a failed call and the look at its errno */
    char line[LINE_BYTES];
    size_t used = log->taker ? 0 : (size_t)snprintf(line, sizeof(line), "weft[%s] ", level_names[level]);

    (void)vsnprintf(line + used, sizeof(line) - NOTE_BYTES - used, format, arguments);
    /* One event is one line, and what a stranger sent must not speak to the terminal. */
    wf_text_plain(line);
    used = strlen(line);
    if (dropped)
        used += (size_t)snprintf(line + used, sizeof(line) - used, " (%" PRIu64 " more not shown)", dropped);
    if (log->taker) {
        log->taker(log->user, (int)level, line);
    } else {
        line[used++] = '\n';
        write_line(log->fd, line, used);
    }
    errno = saved;
}

void wf_log(const struct wf_log *log, enum wf_log_level level, const char *format, ...)
{
    va_list arguments;

    if (level > log->level)
        return;
    va_start(arguments, format);
    emit(log, level, 0, format, arguments);
    va_end(arguments);
}

void wf_log_limited(const struct wf_log *log, struct wf_log_limit *limit, int64_t now_ns, enum wf_log_level level,
                    const char *format, ...)
{
    va_list arguments;

    if (level > log->level)
        return;
    if (limit->next_ns != 0 && now_ns < limit->next_ns) {
        limit->dropped++;
        return;
    }
    va_start(arguments, format);
    emit(log, level, limit->dropped, format, arguments);
    va_end(arguments);
    limit->dropped = 0;
    if (__builtin_add_overflow(now_ns, limit->interval_ns, &limit->next_ns))
        limit->next_ns = INT64_MAX;
}
