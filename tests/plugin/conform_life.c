/* conform_life.c: cases of loading, init, devices, finalize and unloading. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conform.h"

static const struct flow few = {.messages = 10, .largest = 50000};

/* ------------------------------------------------------------------------------------------- what a process has */

static int entries(const char *folder)
{
    DIR *open = opendir(folder);
    CHECK(open, "%s: %s", folder, strerror(errno));
    int count = 0;
    while (readdir(open))
        count++;
    closedir(open);
    return count;
}

static int mapped_files(const char *with)
{
    char line[PATH_MAX + 200];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps, "no maps");
    while (fgets(line, sizeof line, maps))
        count += strstr(line, " r-xp ") && strchr(line, '/') && (!with || strstr(line, with));
    fclose(maps);
    return count;
}

void footprint_take(struct footprint *now)
{
    now->threads = entries("/proc/self/task");
    now->descriptors = entries("/proc/self/fd");
    now->mapped = mapped_files(NULL);
}

static void list_descriptors(void)
{
    char path[64], target[PATH_MAX];
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(path, target, sizeof target - 1);
        if (size > 0)
            dprintf(conform.report, "  descriptor %d: %.*s\n", fd, (int)size, target);
    }
}

/* A thread that has been joined stands in /proc for a moment more. */
void footprint_check(const struct footprint *was, bool mapped, const char *when)
{
    struct footprint now;
    int64_t limit = now_ms() + 2000 * CONFORM_SLOWER;
    footprint_take(&now);
    while ((now.threads > was->threads || now.descriptors > was->descriptors) && now_ms() < limit) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        footprint_take(&now);
    }
    CHECK(now.threads <= was->threads, "%d threads %s, %d before", now.threads - 2, when, was->threads - 2);
    if (now.descriptors > was->descriptors)
        list_descriptors();
    CHECK(now.descriptors <= was->descriptors, "%d descriptors %s, %d before", now.descriptors - 3, when,
          was->descriptors - 3);
    const char *slash = strrchr(conform.plugin, '/');
    CHECK(!mapped || !mapped_files(slash ? slash + 1 : conform.plugin), "the plugin is still mapped %s", when);
    CHECK(!mapped || !conform.alone || now.mapped <= was->mapped, "%d files are mapped %s, %d before", now.mapped, when,
          was->mapped);
}

int socket_count(void)
{
    char path[64], target[64];
    int count = 0;
    for (int fd = 0; fd < 4096; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(path, target, sizeof target - 1);
        count += size > 7 && !memcmp(target, "socket:", 7);
    }
    return count;
}

/* ------------------------------------------------------------------------------------------- cases */

static void check_properties(int dev, const struct nccl_net_properties_v12 *seen)
{
    const int unwritten = (int)0xA5A5A5A5;
    CHECK(seen->name && seen->name[0] && strlen(seen->name) < 64, "device %d has no name", dev);
    CHECK(!seen->pci_path || !access(seen->pci_path, F_OK), "device %d is at %s, which is not there", dev,
          seen->pci_path);
    CHECK(seen->ptr_support != unwritten && seen->ptr_support & NCCL_PTR_HOST &&
              !(seen->ptr_support & ~(NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF)),
          "device %d takes pointers of kind %#x", dev, (unsigned)seen->ptr_support);
    CHECK(seen->reg_is_global == 0 || seen->reg_is_global == 1, "device %d: regIsGlobal %d", dev, seen->reg_is_global);
    CHECK(seen->force_flush == 0 || seen->force_flush == 1, "device %d: forceFlush %d", dev, seen->force_flush);
    CHECK(seen->speed > 0, "device %d: speed %d", dev, seen->speed);
    CHECK(seen->port != unwritten, "device %d: no port", dev);
    CHECK(seen->latency >= 0 && seen->latency < 1e6f, "device %d: latency %f", dev, (double)seen->latency);
    CHECK(seen->max_comms > 0, "device %d: %d comms at most", dev, seen->max_comms);
    CHECK(seen->max_recvs > 0 && seen->max_recvs <= 32, "device %d: receives of %d slots", dev, seen->max_recvs);
    CHECK(seen->device_type == NCCL_NET_DEVICE_HOST && seen->device_version == NCCL_NET_DEVICE_INVALID_VERSION,
          "device %d offloads: type %d, version %d", dev, (int)seen->device_type, seen->device_version);
    CHECK(seen->vprops.ndevs >= 1 && seen->vprops.ndevs <= NCCL_NET_MAX_DEVS_V12, "device %d is made of %d", dev,
          seen->vprops.ndevs);
    CHECK(seen->max_p2p_bytes >= 1 << 20 && seen->max_p2p_bytes <= NCCL_NET_MAX_SIZE_BYTES, "device %d: %zu bytes", dev,
          seen->max_p2p_bytes);
    CHECK(seen->max_coll_bytes >= 1 << 20 && seen->max_coll_bytes <= NCCL_NET_MAX_SIZE_BYTES, "device %d: %zu bytes",
          dev, seen->max_coll_bytes);
    CHECK(seen->max_multi_request_size >= 1 && seen->max_multi_request_size <= 32, "device %d: multi-requests of %d",
          dev, seen->max_multi_request_size);
    CHECK(seen->rail_id >= -1 && seen->plane_id >= -1, "device %d: rail %d, plane %d", dev, seen->rail_id,
          seen->plane_id);
}

static void properties(void)
{
    ranks_begin(1);
    int ndev = 0;
    uint64_t guids[64];
    MUST(net_devices(&ndev));
    CHECK(ndev >= 1 && ndev <= 64, "%d devices", ndev);
    for (int dev = 0; dev < ndev; dev++) {
        struct nccl_net_properties_v12 first, again;
        MUST(net_properties(dev, &first));
        check_properties(dev, &first);
        guids[dev] = first.guid;
        for (int i = 0; i < dev; i++)
            CHECK(guids[i] != first.guid, "devices %d and %d are one port: guid %#llx", i, dev,
                  (unsigned long long)first.guid);
        int64_t start = now_ms();
        for (int i = 0; i < 1000; i++) {
            MUST(net_properties(dev, &again));
            CHECK(!strcmp(again.name, first.name) && again.speed == first.speed && again.guid == first.guid,
                  "device %d is another one when asked again", dev);
        }
        CHECK(now_ms() - start < 1000 * CONFORM_SLOWER, "asked 1000 times, a device takes %lld ms",
              (long long)(now_ms() - start));
    }
    struct nccl_net_properties_v12 none;
    CHECK(net_properties(ndev, &none) != NCCL_SUCCESS, "device %d of %d has properties", ndev, ndev);
    CHECK(net_properties(-1, &none) != NCCL_SUCCESS, "device -1 has properties");
    ranks_end();
}

static void never_used(void)
{
    struct footprint before;
    footprint_take(&before);
    for (int i = 0; i < conform.rounds; i++) {
        void *context = NULL;
        int ndev;
        net_open();
        if (i % 2) {
            MUST(net_init(&context, (uint64_t)i));
            MUST(net_devices(&ndev));
            MUST(net_finalize(context));
        }
        net_close();
        footprint_check(&before, true, "after dlclose without a comm");
    }
}

static void unload(void)
{
    for (int i = 0; i < conform.rounds / 10 + 3; i++) {
        ranks_begin(1);
        links_ring(1);
        links_open();
        flows_everywhere(&few);
        links_close();
        if (i % 2) /* otherwise the other side may still be at work */
            boot_barrier();
        ranks_end();
    }
}

/* NCCL finalises a plugin whose init has failed with whatever context there is. */
static void finalize_null(void)
{
    net_open();
    MUST(net_finalize(NULL));
    void *context = NULL;
    MUST(net_init(&context, 1));
    MUST(net_finalize(NULL));
    MUST(net_finalize(context));
    MUST(net_finalize(NULL));
    net_close();
    ranks_begin(1);
    links_ring(1);
    links_open();
    MUST(net_finalize(NULL));
    flows_everywhere(&few);
    links_close();
    ranks_end();
}

/* Another communicator comes and goes while one has comms. */
static void contexts(void)
{
    void *context[4] = {NULL};
    ranks_begin(2);
    links_ring(2);
    links_open();
    for (int i = 0; i < 4; i++)
        MUST(net_init(&context[i], 100 + (uint64_t)i));
    for (int i = 0; i < 4; i++)
        CHECK(!i || !context[0] || context[i] != context[0], "two communicators, one context");
    flows_everywhere(&few);
    MUST(net_finalize(context[1]));
    MUST(net_finalize(context[3]));
    flows_everywhere(&few);
    MUST(net_init(&context[1], 200));
    MUST(net_finalize(context[0]));
    MUST(net_finalize(context[2]));
    flows_everywhere(&few);
    MUST(net_finalize(context[1]));
    flows_everywhere(&few);
    links_close();
    ranks_end();
}

/* Up to v10 nobody says that it is over: NCCL may then initialise the plugin again as it is. */
static void init_again(void)
{
    struct footprint before;
    footprint_take(&before);
    net_open();
    for (int i = 0; i < 3; i++) {
        rank_start(&ranks[0], 0);
        rank_count = 1;
        links_ring(1);
        links_open();
        flows_everywhere(&few);
        links_close();
        rank_stop(&ranks[0]);
    }
    rank_count = 0;
    net_close();
    footprint_check(&before, true, "after dlclose");
}

/* A process that has the plugin loaded forks, and the child is the one that uses it. `initialised`: the parent has,
 * too, and is done: its threads are not the child's. */
static void use_in_child(bool initialised)
{
    void *context = NULL;
    net_open();
    if (initialised)
        MUST(net_init(&context, 1));
    pid_t child = fork();
    CHECK(child >= 0, "fork: %s", strerror(errno));
    if (!child) {
        if (initialised)
            MUST(net_finalize(context));
        rank_start(&ranks[0], 0);
        rank_count = 1;
        links_ring(1);
        links_open();
        flows_everywhere(&few);
        links_close();
        rank_stop(&ranks[0]);
        net_close();
        if (initialised)
            _exit(0); /* what the parent has made lies there */
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status), "the child ended with %#x",
          (unsigned)status);
    if (initialised)
        MUST(net_finalize(context));
    net_close();
}

static void fork_before_init(void)
{
    use_in_child(false);
}

static void fork_after_init(void)
{
#ifdef __SANITIZE_ADDRESS__ /* gcc 12's does not free its allocator in the child of what the other threads held */
    conform_skip("this address sanitizer may hang in the child of a process with threads");
#endif
#ifdef __SANITIZE_THREAD__ /* gcc 12's still counts the parent's, and ends where a stack of theirs is used again */
    conform_skip("this thread sanitizer takes no new thread in the child of a process with threads");
#endif
    use_in_child(true);
}

const struct conform_case conform_life_cases[] = {
    {"properties", "life", "devices have sane properties, which cost nothing to ask for", properties, 0, 30, false},
    {"never_used", "life", "loaded and unloaded without a comm", never_used, 0, 120, false},
    {"unload", "life", "dlclose leaves no thread, descriptor or mapping; and it loads again", unload, 0, 120, false},
    {"finalize_null", "life", "finalize(NULL) at any time", finalize_null, 11, 30, false},
    {"contexts", "life", "contexts come and go beside one that is used", contexts, 11, 60, false},
    {"init_again", "life", "init after all comms are closed, without unloading", init_again, 0, 60, false},
    {"fork_before_init", "life", "a fork between dlopen and init", fork_before_init, 0, 60, false},
    {"fork_after_init", "life", "a fork of a process that has initialised it", fork_after_init, 0, 60, false},
    {0},
};
