/*
 * memory_limits.h: how much memory this process can still have. What limits it is the machine, and each control group that the
 * process is in: its own one and all above it, of version 1 and 2. Of these a container sees the ones mounted in it.
 *
 *     free(machine) = MemAvailable
 *     free(group)   = limit - (used - cached files),  limit = the lower of memory.max and memory.high
 */
#ifndef WF_BENCH_MEMORY_LIMITS_H
#define WF_BENCH_MEMORY_LIMITS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define BENCH_LIMITS_MAX 16

struct bench_limit {
    char id[96]; /* equal for processes that share the limit, of this machine or of another one; "": not known */
    bool group;  /* of a control group, not of the machine */
    uint64_t free_bytes;
};

/* Of more groups with a limit, the tightest are kept. */
struct bench_limits {
    struct bench_limit all[BENCH_LIMITS_MAX];
    int count;
};

/* `root` stands before every path that is read: "" but in tests. */
void bench_limits_read(struct bench_limits *limits, const char *root);

/* For the other node; a new reference. What it sends instead is believed as far as it can be read. */
json_t *bench_limits_to_json(const struct bench_limits *limits);
void bench_limits_from_json(struct bench_limits *limits, const json_t *all);

bool bench_limit_shared(const struct bench_limit *one, const struct bench_limit *other);

/* For people: "the memory limit of the control group". */
const char *bench_limit_name(const struct bench_limit *limit);

/* The tightest limit of this process in bytes, and its name. UINT64_MAX when the system does not say. */
uint64_t bench_memory_available(const char **why);

/* What the kernel calls this boot of the machine, "" where it does not say: equal for nodes on one machine. */
void bench_boot_id(char *buffer, size_t room);

/* The number behind `key` in a file of "key number" lines, as /proc has them; with an empty key, the first number.
 * False, and `value` as it was, where there is none. */
bool bench_read_number(const char *path, const char *key, uint64_t *value);

#endif
