#include "base/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* KiB that `resource` allows, or 0: it does not limit. */
static unsigned long long limit_kib(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    return limit.rlim_cur < 1024 ? 1 : (unsigned long long)limit.rlim_cur / 1024;
}

char *wf_memory_limit_text(char *buffer, size_t room)
{
    unsigned long long space = limit_kib(RLIMIT_AS), data = limit_kib(RLIMIT_DATA);
    buffer[0] = '\0';
    if (space)
        (void)snprintf(buffer, room, " (this process may have %llu KiB of address space: ulimit -v)", space);
    else if (data)
        (void)snprintf(buffer, room, " (this process may have %llu KiB of data: ulimit -d)", data);
    return buffer;
}

void wf_blame_memory_limit(struct wf_status *status)
{
    char text[96];
    if (!status || status->code != -ENOMEM || strstr(status->text, "ulimit -"))
        return;
    wf_memory_limit_text(text, sizeof text);
    if (text[0])
        (void)wf_fail(status, -ENOMEM, "%.*s%s", (int)(WF_STATUS_TEXT - 1 - strlen(text)), status->text, text);
}

char *wf_thread_remedy(char *buffer, size_t room)
{
    char text[96];
    (void)snprintf(buffer, room, "raise the limit of processes (ulimit -u)%s%s",
                   wf_memory_limit_text(text, sizeof text)[0] ? ", or that of memory" : "", text);
    return buffer;
}
