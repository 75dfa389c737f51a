/* host.h: the machine that measures, as it stands in results. */
#ifndef WF_BENCH_HOST_H
#define WF_BENCH_HOST_H

#include <jansson.h>

/* An object: node, name, kernel, machine, cpus, memory_bytes. A new reference. */
json_t *bench_host_to_json(const char *node);

#endif
