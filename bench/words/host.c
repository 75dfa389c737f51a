#include "host.h"

#include <sys/utsname.h>
#include <unistd.h>

#include "heard.h"

json_t *bench_host_to_json(const char *node)
{
    struct utsname system;

    uname(&system);
    return json_pack("{s:s, s:o, s:s, s:s, s:I, s:I}", "node", node, "name", bench_heard_string(system.nodename),
                     "kernel", system.release, "machine", system.machine, "cpus",
                     (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes",
                     (json_int_t)sysconf(_SC_PHYS_PAGES) * (json_int_t)sysconf(_SC_PAGESIZE));
}
