/* How much memory there is: of the machine, and of the control groups of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "bench/machine/memory_limits.h"

#define MIB (1ull << 20)

/* A machine in a folder. */
struct tree {
    char root[64];
};

/* Writes a file, and the folders that lead there. */
static void put(const struct tree *tree, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s%s", tree->root, name);
    for (char *slash = strchr(path + strlen(tree->root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make_tree(struct tree *tree, const char *groups, const char *mounts)
{
    snprintf(tree->root, sizeof(tree->root), "/tmp/weft-fit.XXXXXX");
    assert_non_null(mkdtemp(tree->root));
    put(tree, "/proc/sys/kernel/random/boot_id", "9b1f\n");
    put(tree, "/proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:    8388608 kB\n");
    put(tree, "/proc/self/cgroup", groups);
    put(tree, "/proc/self/mountinfo", mounts);
}

static void remove_tree(const struct tree *tree)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -rf %s", tree->root);
    assert_int_equal(system(command), 0);
}

/* The smallest of the limits in MiB. */
static uint64_t least_of(const struct tree *tree, int count)
{
    struct bench_limits limits;
    uint64_t least = UINT64_MAX;

    bench_limits_read(&limits, tree->root);
    assert_int_equal(limits.count, count);
    for (int i = 0; i < limits.count; i++)
        if (limits.all[i].free_bytes < least)
            least = limits.all[i].free_bytes;
    return least / MIB;
}

#define UNIFIED "30 20 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void all_groups_from_the_own_one_up_count(void **state)
{
    struct tree tree;

    (void)state;
    make_tree(&tree, "0::/pod/box\n", UNIFIED);
    put(&tree, "/sys/fs/cgroup/pod/box/memory.max", "max\n");
    put(&tree, "/sys/fs/cgroup/pod/box/memory.high", "max\n");
    assert_int_equal(least_of(&tree, 1), 8192);
    put(&tree, "/sys/fs/cgroup/pod/memory.max", "2147483648\n");
    put(&tree, "/sys/fs/cgroup/pod/memory.current", "1073741824\n");
    put(&tree, "/sys/fs/cgroup/pod/memory.stat", "anon 1\nfile 2\ninactive_file 104857600\nactive_file 10485760\n");
    assert_int_equal(least_of(&tree, 2), 1024 + 110);
    put(&tree, "/sys/fs/cgroup/pod/box/memory.high", "536870912\n");
    put(&tree, "/sys/fs/cgroup/pod/box/memory.current", "12582912\n");
    assert_int_equal(least_of(&tree, 3), 500);
    put(&tree, "/sys/fs/cgroup/pod/box/memory.current", "1073741824\n");
    assert_int_equal(least_of(&tree, 3), 0);
    remove_tree(&tree);
}

/* As version 1 and 2 stand beside each other, at a place of the hierarchy that is mounted twice. */
static void groups_of_version_1_count_once(void **state)
{
    struct tree tree;

    (void)state;
    make_tree(&tree, "4:cpu,cpuacct:/x\n3:memory:/box/in\n0::/\n",
              "30 20 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
              "31 20 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
              "32 20 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
              "33 20 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    put(&tree, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(&tree, "/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1073741824\n");
    put(&tree, "/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "209715200\n");
    put(&tree, "/sys/fs/cgroup/memory/box/memory.stat", "inactive_file 1\ntotal_inactive_file 104857600\n");
    put(&tree, "/sys/fs/cgroup/memory/box/in/memory.limit_in_bytes", "9223372036854771712\n");
    put(&tree, "/sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "4096\n");
    assert_int_equal(least_of(&tree, 2), 1024 - 100);
    remove_tree(&tree);
}

static void a_container_sees_its_own_groups(void **state)
{
    struct tree tree;

    (void)state;
    /* With a namespace of its own; with the group of the host as the root of the mount; with a path that is not there.
     */
    make_tree(&tree, "0::/\n", UNIFIED);
    put(&tree, "/sys/fs/cgroup/memory.max", "1073741824\n");
    put(&tree, "/sys/fs/cgroup/memory.current", "0\n");
    assert_int_equal(least_of(&tree, 2), 1024);
    put(&tree, "/proc/self/cgroup", "0::/docker/1234/in\n");
    put(&tree, "/sys/fs/cgroup/in/memory.max", "536870912\n");
    assert_int_equal(least_of(&tree, 2), 1024);
    put(&tree, "/proc/self/mountinfo", "30 20 0:26 /docker/1234 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
    assert_int_equal(least_of(&tree, 3), 512);
    put(&tree, "/proc/self/mountinfo", "30 20 0:26 /docker/12 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
    assert_int_equal(least_of(&tree, 2), 1024);
    remove_tree(&tree);
}

static void the_tightest_of_many_limits_are_kept(void **state)
{
    struct bench_limits limits;
    json_t *all = json_array();
    uint64_t sum = 0;

    (void)state;
    for (int i = 0; i < 3 * BENCH_LIMITS_MAX; i++)
        json_array_append_new(all, json_pack("{s:o, s:b, s:i}", "id", json_sprintf("%d", i), "group", 1, "free_bytes",
                                             (i * 7) % (3 * BENCH_LIMITS_MAX)));
    bench_limits_from_json(&limits, all);
    assert_int_equal(limits.count, BENCH_LIMITS_MAX);
    for (int i = 0; i < limits.count; i++)
        sum += limits.all[i].free_bytes;
    assert_int_equal(sum, BENCH_LIMITS_MAX * (BENCH_LIMITS_MAX - 1) / 2);
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_groups_from_the_own_one_up_count),
        cmocka_unit_test(groups_of_version_1_count_once),
        cmocka_unit_test(a_container_sees_its_own_groups),
        cmocka_unit_test(the_tightest_of_many_limits_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
