#include "group_support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A process of these tests ends by _exit(), which looks for no leaks. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static uint64_t peak_kb(void)
{
    char line[128];
    unsigned long long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %llu", &kb) == 1)
            break;
    if (file)
        fclose(file);
    return kb;
}

static int run(int in, int out, void *arg)
{
    struct group_process *process = arg;
    struct group_shared *shared = process->world->shared;
    struct weft_group_options options = {
        .size = process->size,
        .rank = process->rank,
        .rendezvous = process->world->rendezvous,
        .name = process->name,
        .sessions = process->sessions,
    };
    struct weft_error err = {0};
    struct weft_group *group = NULL;
    process->in = in;
    process->out = out;
    struct weft_context *context = process->context =
        loop_context(process->settings, process->rails ? process->rails : 2);
    int64_t began_ms = loop_now_ms();
    int result = weft_group_create(context, &options, process->timeout_ms, &group, &err);
    shared->took_ms[process->slot] = loop_now_ms() - began_ms;
    shared->memory_kb[process->slot] = peak_kb();
    if (result == 0) {
        snprintf(shared->source[process->slot], WEFT_TEXT_BYTES, "%s", weft_group_source(group));
        snprintf(shared->refused[process->slot], 1024, "%s", weft_group_refused(group));
        result = process->body ? process->body(process, group, &err) : 0;
    }
    shared->status[process->slot] = result;
    snprintf(shared->text[process->slot], WEFT_TEXT_BYTES, "%s", err.text);
    weft_group_destroy(group);
    loop_context_end(context);
    if (process->kept) {
        struct weft_group *none = NULL;
        LOOP_CHECK(weft_group_split(process->kept, 0, 0, GROUP_MS, &none, &err) == -ESHUTDOWN && !none,
                   "a group of one whose whole is gone: '%s'", err.text);
    }
    weft_group_destroy(process->kept);
    return __lsan_do_recoverable_leak_check ? __lsan_do_recoverable_leak_check() : 0;
}

struct group_process *group_world_add(struct group_world *world, uint32_t rank)
{
    struct group_process *process = &world->process[world->count];
    LOOP_CHECK(world->count <= GROUP_MAX, "%d processes", world->count);
    *process = world->process[0];
    process->child = (struct loop_child){0};
    process->rank = rank;
    process->slot = world->count++;
    world->shared->status[process->slot] = 1;
    return process;
}

void group_world_create(struct group_world *world, uint32_t size,
                        int (*body)(struct group_process *, struct weft_group *, struct weft_error *))
{
    *world = (struct group_world){0};
    world->shared = mmap(NULL, sizeof *world->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    LOOP_CHECK(world->shared != MAP_FAILED, "mmap: %s", strerror(errno));
    snprintf(world->folder, sizeof world->folder, "/tmp/weft-group.XXXXXX");
    LOOP_CHECK(mkdtemp(world->folder), "mkdtemp: %s", strerror(errno));
    snprintf(world->rendezvous, sizeof world->rendezvous, "file:%s/meeting", world->folder);
    world->process[0] = (struct group_process){.world = world, .size = size, .timeout_ms = GROUP_MS, .body = body};
    for (uint32_t i = 0; i < size; i++)
        group_world_add(world, i);
}

void group_start(struct group_process *process)
{
    loop_child_start(&process->child, run, process);
}

void group_start_all(struct group_world *world)
{
    for (int i = 0; i < world->count; i++)
        group_start(&world->process[i]);
}

void group_join_all(struct group_world *world)
{
    for (int i = 0; i < world->count; i++)
        if (world->process[i].child.pid > 0)
            loop_child_join(&world->process[i].child);
}

void group_world_destroy(struct group_world *world)
{
    char path[128];
    group_join_all(world);
    snprintf(path, sizeof path, "%s/meeting", world->folder);
    unlink(path);
    LOOP_CHECK(rmdir(world->folder) == 0, "%s is not empty: %s", world->folder, strerror(errno));
    munmap(world->shared, sizeof *world->shared);
}

void group_check(struct group_world *world, int slot, int status, const char *words)
{
    const struct group_shared *shared = world->shared;
    LOOP_CHECK(shared->status[slot] == status, "process %d (rank %u) ended in %d, not in %d: '%s'", slot,
               world->process[slot].rank, shared->status[slot], status, shared->text[slot]);
    LOOP_CHECK(!words || strstr(shared->text[slot], words), "process %d (rank %u) says '%s', not '%s'", slot,
               world->process[slot].rank, shared->text[slot], words);
}

void group_check_all(struct group_world *world, int but, int status, const char *words)
{
    for (int i = 0; i < world->count; i++)
        if (i != but)
            group_check(world, i, status, words);
}

void group_run_all(uint32_t size, int (*body)(struct group_process *, struct weft_group *, struct weft_error *))
{
    struct group_world world;
    group_world_create(&world, size, body);
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    group_world_destroy(&world);
}

void group_check_named(struct group_world *world, uint32_t victim, const char *how)
{
    char words[64];
    snprintf(words, sizeof words, "rank %u (", victim);
    for (uint32_t i = 0; i < (uint32_t)world->count; i++) {
        const char *text = world->shared->text[i];
        LOOP_CHECK(i == victim || world->shared->status[i] < 0, "rank %u did not fail", i);
        LOOP_CHECK(i == victim || (strncmp(text, words, strlen(words)) == 0 && strstr(text, how)),
                   "rank %u says '%s', not '%s... %s'", i, text, words, how);
    }
}

int64_t group_stop_one(struct group_world *world, uint32_t victim)
{
    struct loop_child *child = &world->process[victim].child, kept = *child;
    loop_child_stop(child);
    int64_t began_ms = loop_now_ms();
    child->pid = 0;
    group_join_all(world);
    int64_t took_ms = loop_now_ms() - began_ms;
    *child = kept;
    loop_child_kill(child);
    return took_ms;
}

void group_join_late(struct group_world *world, uint64_t late)
{
    for (int i = 0; i < world->count; i++)
        if (late & 1u << i)
            loop_hear(world->process[i].child.in);
    for (int i = 0; i < world->count; i++)
        if (!(late & 1u << i))
            loop_child_join(&world->process[i].child);
    for (int i = 0; i < world->count; i++)
        if (late & 1u << i) {
            loop_tell(world->process[i].child.out, 1);
            loop_child_join(&world->process[i].child);
        }
}

int group_pass(struct group_process *process, struct weft_group *group, int timeout_ms, struct weft_error *err)
{
    uint64_t *entered = process->world->shared->entered;
    uint64_t number = __atomic_add_fetch(&entered[process->rank], 1, __ATOMIC_SEQ_CST);
    int result = weft_group_barrier(group, timeout_ms, err);
    if (result < 0)
        return result;
    for (uint32_t i = 0; i < process->size; i++) {
        uint64_t seen = __atomic_load_n(&entered[i], __ATOMIC_SEQ_CST);
        LOOP_CHECK(seen >= number && seen <= number + 1, "rank %u left barrier %llu, and rank %u has entered %llu",
                   process->rank, (unsigned long long)number, i, (unsigned long long)seen);
    }
    return 0;
}

/* The one line of the file: a mark, its version, then what rank 0 has written. */
static void read_meeting(struct group_world *world, char token[17], char address[128])
{
    int64_t limit_ms = loop_now_ms() + LOOP_WAIT_MS;
    for (;;) {
        FILE *file = fopen(world->rendezvous + strlen("file:"), "r");
        int count = file ? fscanf(file, "weft-rendezvous 1 %16[0-9a-f];%127[^,\n]", token, address) : 0;
        if (file)
            fclose(file);
        if (count == 2)
            return;
        LOOP_CHECK(loop_now_ms() < limit_ms, "rank 0 writes no file");
        loop_sleep_ms(5);
    }
}

int group_play(struct group_world *world, struct weft_context *context, unsigned version, unsigned rank, unsigned size,
               char answer[512])
{
    struct weft_endpoint *endpoint[3];
    struct weft_connection *connection[3];
    struct weft_completion completion;
    struct weft_request *request;
    struct weft_peer *peer;
    struct weft_error err = {0};
    char token[17], address[128], hello[512];
    read_meeting(world, token, address);
    LOOP_CALL(weft_connect(context, address, GROUP_MS, &peer, &err), &err);
    for (uint32_t i = 0; i < 3; i++) {
        LOOP_CALL(weft_endpoint_create(context, 0xFFFFFF00u + i, &endpoint[i], &err), &err);
        LOOP_CALL(weft_connection_open(endpoint[i], peer, 0xFFFFFF00u + i, GROUP_MS, &connection[i], &err), &err);
    }
    int length = snprintf(hello, sizeof hello, "weft-group %u %u %u %u %s 60000 - played 0.0.1 127.0.1.1:1", version,
                          rank, size, (unsigned)getpid(), token);
    loop_done(loop_send(connection[0], hello, (size_t)length, 1), 0, (uint64_t)length);
    LOOP_CHECK(weft_recv(connection[0], answer, 511, 0, &(struct weft_options){.flags = WEFT_ANY_TAG}, &request) == 0,
               "weft_recv: %s", weft_last_error());
    completion = loop_end(request);
    LOOP_CHECK(completion.status == 0, "no answer to HELLO: %s", completion.text);
    answer[completion.bytes] = '\0';
    return (int)completion.tag;
}
