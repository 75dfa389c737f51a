#include "memory_limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/words/words.h"

#define PATH_ROOM 4096
#define LINE_ROOM (3 * PATH_ROOM)
#define NO_LIMIT (1ull << 60) /* version 1 has no word for it, but a number beyond all memory */

static void read_boot_id(const char *root, char *buffer, size_t room)
{
    char path[PATH_ROOM];
    FILE *file;

    snprintf(path, sizeof path, "%s/proc/sys/kernel/random/boot_id", root);
    file = fopen(path, "re");
    buffer[0] = '\0';
    if (file && fgets(buffer, (int)room, file))
        buffer[strcspn(buffer, "\n")] = '\0';
    if (file)
        fclose(file);
}

void bench_boot_id(char *buffer, size_t room)
{
    read_boot_id("", buffer, room);
}

bool bench_read_number(const char *path, const char *key, uint64_t *value)
{
    char line[256];
    FILE *file = fopen(path, "re");
    bool found = false;

    while (file && !found && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            found = sscanf(line + strlen(key), "%*[: \t]%" SCNu64, value) == 1 ||
                    sscanf(line + strlen(key), "%" SCNu64, value) == 1;
    if (file)
        fclose(file);
    return found;
}

/* --- control groups --- */

static bool number_of(const char *folder, const char *file, const char *key, uint64_t *value)
{
    char path[PATH_ROOM];

    snprintf(path, sizeof path, "%s/%s", folder, file);
    return bench_read_number(path, key, value);
}

/* False: the group has no limit. */
static bool group_limit(const char *folder, bool unified, uint64_t *limit)
{
    uint64_t high;
    bool found = number_of(folder, unified ? "memory.max" : "memory.limit_in_bytes", "", limit);

    /* Beyond memory.high the kernel slows the group down until it hardly runs. "max" is no number. */
    if (unified && number_of(folder, "memory.high", "", &high) && (!found || high < *limit)) {
        *limit = high;
        found = true;
    }
    return found && *limit < NO_LIMIT;
}

/* What the group uses and cannot drop. */
static uint64_t group_used(const char *folder, bool unified)
{
    static const char *const keys[] = {"total_inactive_file ", "total_active_file "};
    uint64_t used, cached;

    if (!number_of(folder, unified ? "memory.current" : "memory.usage_in_bytes", "", &used))
        return 0;
    for (int i = 0; i < 2; i++)
        if (number_of(folder, "memory.stat", keys[i] + (unified ? strlen("total_") : 0), &cached))
            used = used > cached ? used - cached : 0;
    return used;
}

/* A hierarchy may be mounted in several places: each group counts once. */
static void keep(struct bench_limits *limits, const struct bench_limit *limit)
{
    struct bench_limit *loosest = &limits->all[0];

    for (int i = 0; i < limits->count; i++) {
        if (bench_limit_shared(&limits->all[i], limit))
            return;
        if (limits->all[i].free_bytes > loosest->free_bytes)
            loosest = &limits->all[i];
    }
    if (limits->count < BENCH_LIMITS_MAX)
        limits->all[limits->count++] = *limit;
    else if (limit->free_bytes < loosest->free_bytes)
        *loosest = *limit;
}

static void keep_group(struct bench_limits *limits, const char *folder, bool unified, const char *boot)
{
    struct bench_limit limit = {.group = true};
    uint64_t most;
    struct stat about;

    if (!group_limit(folder, unified, &most))
        return;
    uint64_t used = group_used(folder, unified);
    limit.free_bytes = most > used ? most - used : 0;
    /* Device and inode are the same however the group is mounted. */
    if (boot[0] && stat(folder, &about) == 0)
        snprintf(limit.id, sizeof limit.id, "%s %ju %ju", boot, (uintmax_t)about.st_dev, (uintmax_t)about.st_ino);
    keep(limits, &limit);
}

/* Comma separated. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == '\0' || at[length] == ','))
            return true;
    return false;
}

/* The path of this process in the hierarchy of version 2, or in that of version 1 which has the controller. */
static bool own_group(const char *root, bool unified, char *path, size_t room)
{
    char line[LINE_ROOM], name[PATH_ROOM];
    FILE *file;
    bool found = false;

    snprintf(name, sizeof name, "%s/proc/self/cgroup", root);
    file = fopen(name, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':'), *at = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!at)
            continue;
        *at++ = '\0';
        at[strcspn(at, "\n")] = '\0';
        found = unified ? controllers[1] == '\0' : has_word(controllers + 1, "memory");
        if (found)
            bench_copy_text(path, room, strcmp(at, "/") == 0 ? "" : at);
    }
    if (file)
        fclose(file);
    return found;
}

/* The groups from `folder` up to the one that its first `top` characters name. */
static void keep_up_to(struct bench_limits *limits, char *folder, size_t top, bool unified, const char *boot)
{
    char *slash;

    do {
        keep_group(limits, folder, unified, boot);
        slash = strrchr(folder + top, '/');
        if (slash)
            *slash = '\0';
    } while (slash);
}

/* A line of mountinfo: "31 23 0:28 ROOT POINT OPTIONS... - TYPE SOURCE OPTIONS". Where the own group is not below ROOT,
 * as in a container, what is mounted is the container's. */
static void keep_mounted(struct bench_limits *limits, const char *root, const char *line, const char *boot)
{
    char from[PATH_ROOM], at[PATH_ROOM], type[32], options[512], own[PATH_ROOM], folder[3 * PATH_ROOM];
    const char *filesystem = strstr(line, " - "), *below = own;
    int top;

    if (!filesystem || sscanf(line, "%*s %*s %*s %4095s %4095s", from, at) != 2 ||
        sscanf(filesystem, " - %31s %*s %511s", type, options) != 2)
        return;
    bool unified = strcmp(type, "cgroup2") == 0;
    if (!unified && (strcmp(type, "cgroup") != 0 || !has_word(options, "memory")))
        return;
    if (!own_group(root, unified, own, sizeof own))
        return;
    if (strcmp(from, "/") != 0)
        below = strncmp(own, from, strlen(from)) == 0 ? own + strlen(from) : "";
    snprintf(folder, sizeof folder, "%s%s%n%s", root, at, &top, below[0] == '/' ? below : "");
    keep_up_to(limits, folder, (size_t)top, unified, boot);
}

static void read_groups(struct bench_limits *limits, const char *root, const char *boot)
{
    char line[LINE_ROOM], path[PATH_ROOM];
    FILE *file;

    snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        keep_mounted(limits, root, line, boot);
    if (file)
        fclose(file);
}

/* --- all of them --- */

void bench_limits_read(struct bench_limits *limits, const char *root)
{
    struct bench_limit machine = {.group = false};
    char path[PATH_ROOM], boot[48];
    uint64_t kib;

    limits->count = 0;
    read_boot_id(root, boot, sizeof boot);
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (bench_read_number(path, "MemAvailable:", &kib)) {
        machine.free_bytes = kib * 1024;
        bench_copy_text(machine.id, sizeof machine.id, boot);
        keep(limits, &machine);
    }
    read_groups(limits, root, boot);
}

json_t *bench_limits_to_json(const struct bench_limits *limits)
{
    json_t *all = json_array();

    for (int i = 0; i < limits->count; i++)
        json_array_append_new(all,
                              json_pack("{s:s, s:b, s:I}", "id", limits->all[i].id, "group", (int)limits->all[i].group,
                                        "free_bytes", (json_int_t)limits->all[i].free_bytes));
    return all;
}

void bench_limits_from_json(struct bench_limits *limits, const json_t *all)
{
    const json_t *entry;
    size_t index;

    limits->count = 0;
    json_array_foreach(all, index, entry)
    {
        struct bench_limit limit = {.group = json_is_true(json_object_get(entry, "group"))};
        const char *id = json_string_value(json_object_get(entry, "id"));
        json_int_t bytes = json_integer_value(json_object_get(entry, "free_bytes"));
        bench_copy_text(limit.id, sizeof limit.id, id ? id : "");
        limit.free_bytes = bytes > 0 ? (uint64_t)bytes : 0;
        keep(limits, &limit);
    }
}

bool bench_limit_shared(const struct bench_limit *one, const struct bench_limit *other)
{
    return one == other || (one->id[0] && strcmp(one->id, other->id) == 0);
}

const char *bench_limit_name(const struct bench_limit *limit)
{
    return limit->group ? "the memory limit of the control group" : "MemAvailable";
}

uint64_t bench_memory_available(const char **why)
{
    struct bench_limits limits;
    uint64_t least = UINT64_MAX;

    *why = "MemAvailable";
    bench_limits_read(&limits, "");
    for (int i = 0; i < limits.count; i++)
        if (limits.all[i].free_bytes < least) {
            least = limits.all[i].free_bytes;
            *why = bench_limit_name(&limits.all[i]);
        }
    return least;
}
