/*
 * load FILE|NAME ROUNDS: what NCCL does with a plugin that it loads and drops again, ROUNDS times over: the file of a
 * name is libnccl-net-NAME.so, and of the tables in it the newest is taken. The process is to be the same afterwards:
 * no mapping of FILE, no thread, no descriptor, no key of threads, and no memory by the round (with
 * GLIBC_TUNABLES=glibc.malloc.tcache_count=0: caches look like a leak). It needs the C library alone, and prints a line
 * for each thing that is left.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEYS_MOST 1024
#define PROPERTIES_ROOM 1024        /* more than those of any version */
#define THREADS_PATIENCE_US 2000000 /* a joined thread may be seen for a moment longer */
#define GROWTH_MOST_BYTES 4096      /* of all rounds but the first */

/* The beginning of ncclNet_v11_t and of ncclNet_v12_t, and their end. */
struct table {
    const char *name;
    int (*init)(void **context, uint64_t id, void *config, void *log, void *profile);
    int (*devices)(int *count);
    int (*properties)(int device, void *properties);
    void *between[16];
    int (*finalize)(void *context);
};

/* What a process has. */
struct state {
    int threads, descriptors, keys;
    size_t heap; /* bytes in use */
};

static int entries_of(const char *folder)
{
    int count = 0;
    DIR *stream = opendir(folder);
    if (!stream) {
        perror(folder);
        exit(1);
    }
    while (readdir(stream))
        count++;
    closedir(stream);
    return count - 2; /* . and .. */
}

static int keys_in_use(void)
{
    pthread_key_t keys[KEYS_MOST];
    int free_keys = 0;
    while (free_keys < KEYS_MOST && pthread_key_create(&keys[free_keys], NULL) == 0)
        free_keys++;
    for (int i = 0; i < free_keys; i++)
        pthread_key_delete(keys[i]);
    return KEYS_MOST - free_keys;
}

static struct state look(int threads_wanted)
{
    struct state state = {.threads = entries_of("/proc/self/task")};
    for (int waited = 0; threads_wanted && state.threads > threads_wanted && waited < THREADS_PATIENCE_US;
         waited += 1000) {
        usleep(1000);
        state.threads = entries_of("/proc/self/task");
    }
    state.descriptors = entries_of("/proc/self/fd");
    state.keys = keys_in_use();
    state.heap = mallinfo2().uordblks;
    return state;
}

static bool is_mapped(const char *file)
{
    char line[4096];
    bool found = false;
    const char *name = strrchr(file, '/');
    name = name ? name + 1 : file;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps) {
        perror("/proc/self/maps");
        exit(1);
    }
    while (!found && fgets(line, sizeof line, maps))
        found = strstr(line, name) != NULL;
    fclose(maps);
    return found;
}

static void *nothing(void *unused)
{
    return unused;
}

/* The thread sanitizer starts one of its own beside the first. */
static void have_had_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) == 0)
        pthread_join(thread, NULL);
}

/* As ncclCommInitRank() and ncclCommDestroy() would, with nothing sent. */
static int use(const struct table *table)
{
    void *context = NULL;
    int count = -1;
    int result = table->init(&context, 1, NULL, NULL, NULL);
    if (result == 0)
        result = table->devices(&count);
    for (int device = 0; result == 0 && device < count; device++) {
        char properties[PROPERTIES_ROOM] = {0}; /* they begin with the name */
        result = table->properties(device, properties);
        if (result == 0 && !*(char **)(void *)properties)
            result = -1;
    }
    if (result == 0 && count < 1)
        result = -1;
    int finalized = table->finalize(context); /* also when init has failed */
    return result ? result : finalized;
}

/* As NCCL looks for NCCL_NET_PLUGIN: as it is, then as part of a file's name, which `file` gets. */
static void *load(const char *name, char *file, size_t room)
{
    snprintf(file, room, "%s", name);
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library || strchr(name, '/'))
        return library;
    snprintf(file, room, "libnccl-net-%s.so", name);
    return dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

static const struct table *newest_table(void *library)
{
    static const char *names[] = {"ncclNetPlugin_v12", "ncclNetPlugin_v11"};
    const struct table *table = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !table; i++)
        table = dlsym(library, names[i]);
    return table;
}

static int load_and_drop(const char *name)
{
    char file[PATH_MAX];
    void *library = load(name, file, sizeof file);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return -1;
    }
    const struct table *table = newest_table(library);
    if (!table) {
        fprintf(stderr, "%s\n", dlerror());
        return -1;
    }
    int result = use(table);
    if (result)
        fprintf(stderr, "the plugin fails: %d\n", result);
    if (dlclose(library) != 0) {
        fprintf(stderr, "%s\n", dlerror());
        return -1;
    }
    if (is_mapped(file)) {
        printf("%s is still mapped\n", file);
        return -1;
    }
    return result;
}

static int compare(const struct state *before, const struct state *first, const struct state *last)
{
    int wrong = 0;
    if (last->threads != before->threads)
        wrong++, printf("threads: %d before, %d after\n", before->threads, last->threads);
    if (last->descriptors != before->descriptors)
        wrong++, printf("descriptors: %d before, %d after\n", before->descriptors, last->descriptors);
    /* Libraries of the machine that the plugin has brought along may stay, with what is theirs. */
    if (last->keys > first->keys)
        wrong++, printf("keys of threads: %d after the first round, %d after the last\n", first->keys, last->keys);
    if (last->heap > first->heap + GROWTH_MOST_BYTES)
        wrong++, printf("bytes in use: %zu after the first round, %zu after the last\n", first->heap, last->heap);
    return wrong;
}

int main(int argc, char **argv)
{
    int rounds = argc == 3 ? atoi(argv[2]) : 0;
    if (rounds < 2) {
        fprintf(stderr, "usage: load FILE|NAME ROUNDS\n");
        return 2;
    }
    have_had_a_thread();
    struct state before = look(0), first = {0};
    for (int round = 0; round < rounds; round++) {
        if (load_and_drop(argv[1]) != 0)
            return 1;
        if (round == 0)
            first = look(before.threads);
    }
    struct state last = look(before.threads);
    printf("%d rounds; keys of threads %d, %d, %d; bytes in use %zu, %zu, %zu\n", rounds, before.keys, first.keys,
           last.keys, before.heap, first.heap, last.heap);
    return compare(&before, &first, &last) ? 1 : 0;
}
