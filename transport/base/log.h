/*
 * log.h: one line per event on standard error, `weft[level] text`, written with a single write(2) so that lines of
 * several threads and processes do not mix. The level is held by the logger, not by the process.
 */
#ifndef WF_BASE_LOG_H
#define WF_BASE_LOG_H

#include <stdint.h>

enum wf_log_level { WF_LOG_ERROR = 0, WF_LOG_WARN = 1, WF_LOG_INFO = 2, WF_LOG_DEBUG = 3 };

/* Takes a line, without the newline, where lines do not go to a descriptor; any thread calls it. */
typedef void wf_log_taker(void *user, int level, const char *line);

/* Owner: the struct that holds it. `level` may be read from any thread; set it before sharing. */
struct wf_log {
    enum wf_log_level level; /* lines above it are dropped */
    int fd;                  /* lines are written to it; 2 by default */
    wf_log_taker *taker;     /* gets the lines instead; NULL by default */
    void *user;              /* of the taker */
};

void wf_log_init(struct wf_log *log, enum wf_log_level level);

/* From now on `taker` gets the lines; NULL: the descriptor does. Before the log is shared. */
void wf_log_hand_over(struct wf_log *log, wf_log_taker *taker, void *user);

void wf_log(const struct wf_log *log, enum wf_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Logs at most one line in `interval_ns`, for events that a stranger can cause. The next line says how many lines were
 * dropped before it. `now_ns`: the time of the caller's clock. Owner: one thread, or guarded by its user.
 */
struct wf_log_limit {
    int64_t interval_ns;
    int64_t next_ns;  /* 0: never logged yet */
    uint64_t dropped; /* since the last line */
};
void wf_log_limited(const struct wf_log *log, struct wf_log_limit *limit, int64_t now_ns, enum wf_log_level level,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
