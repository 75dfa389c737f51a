/* NCCL's log, and NCCL's words for errors. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "plugins/nccl/plugin.h"

#define LINE_BYTES 1024

static _Atomic(nccl_logger) log_to;

void plugin_log_to(nccl_logger logger)
{
    atomic_store(&log_to, logger);
}

static void say(enum nccl_log_level level, unsigned long part, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
static void say(enum nccl_log_level level, unsigned long part, const char *format, va_list arguments)
{
    nccl_logger logger = atomic_load(&log_to);
    if (!logger)
        return;
    char line[LINE_BYTES];
    vsnprintf(line, sizeof line, format, arguments);
    logger(level, part, level == NCCL_LOG_WARN ? "net/weft" : "weft", 0, "NET/Weft : %s", line);
}

void plugin_warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(NCCL_LOG_WARN, NCCL_ALL, format, arguments);
    va_end(arguments);
}

void plugin_info(unsigned long part, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(NCCL_LOG_INFO, part, format, arguments);
    va_end(arguments);
}

void plugin_take_line(void *user, int level, const char *line)
{
    (void)user;
    if (level <= WEFT_LOG_WARN)
        plugin_warn("%s", line);
    else
        plugin_info(NCCL_NET, "%s", line);
}

enum nccl_result plugin_result(int error)
{
    switch (-error) {
    case 0:
        return NCCL_SUCCESS;
    case ECANCELED: /* the other side has closed its comm in the middle of a message */
    case ECONNRESET:
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPIPE:
    case EPROTO:
    case ESHUTDOWN:
    case ETIMEDOUT:
        return NCCL_REMOTE_ERROR;
    case EMSGSIZE:
        return NCCL_INVALID_USAGE;
    case EINVAL:
        return NCCL_INVALID_ARGUMENT;
    default:
        return NCCL_SYSTEM_ERROR;
    }
}
