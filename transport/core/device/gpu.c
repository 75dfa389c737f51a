#include "core/device/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "affinity/cpus.h"

static bool is_there(const struct wf_device_info *infos, int count, long index)
{
    for (int i = 0; i < count; i++)
        if (infos[i].index == index)
            return true;
    return false;
}

/* The text "0, 1, 2": the numbers of the GPUs of this machine. */
static const char *those_there(const struct wf_device_info *infos, int count, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < count && used + 8 < room; i++)
        used += (size_t)snprintf(text + used, room - used, i ? ", %d" : "%d", infos[i].index);
    return text;
}

int wf_gpu_list_read(const char *list, const struct wf_device_info *infos, int count, bool wanted[WF_DEVICES_MAX],
                     struct wf_status *status)
{
    char there[256];
    if (strcmp(list, "all") == 0) {
        for (int i = 0; i < count; i++)
            wanted[infos[i].index] = true;
        return 0;
    }
    for (const char *at = list;; at++) {
        long first, last;
        if (!wf_cpus_range(&at, &first, &last))
            return wf_fail(status, -EINVAL, "gpus = %s: write numbers as in 0,2,5-7, or all", list);
        for (long i = first; i <= last; i++) {
            if (!is_there(infos, count, i))
                return wf_fail(status, -EINVAL, "gpus = %s: there is no GPU %ld, only %s", list, i,
                               those_there(infos, count, there, sizeof there));
            wanted[i] = true;
        }
        if (*at == '\0')
            return 0;
    }
}
