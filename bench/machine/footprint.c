#include "footprint.h"

#include <dirent.h>

#include "memory_limits.h"

static json_t *seconds(int64_t ns)
{
    return ns > 0 ? json_real((double)ns * 1e-9) : json_null();
}

/* A line "key number" of this process. */
static json_t *own_number(const char *key, uint64_t unit)
{
    uint64_t value;

    return bench_read_number("/proc/self/status", key, &value) ? json_integer((json_int_t)(value * unit)) : json_null();
}

static json_t *open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    json_int_t count = -1; /* that of the folder itself */

    if (!folder)
        return json_null();
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return json_integer(count);
}

json_t *bench_footprint_to_json(const struct bench_footprint *footprint)
{
    json_t *sessions = footprint->sessions ? json_integer(footprint->sessions) : json_null();

    /* Not getrusage(): its largest size outlives exec, so node1 of --local would inherit that of node0. */
    return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o}", "session_s", seconds(footprint->session_ns), "connect_s",
                     seconds(footprint->pairs_ns), "max_rss_bytes", own_number("VmHWM:", 1024), "buffer_bytes",
                     (json_int_t)footprint->buffer_bytes, "descriptors", open_descriptors(), "threads",
                     own_number("Threads:", 1), "sessions", sessions);
}
