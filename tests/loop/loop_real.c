/* loop_real.c: the world as it is. */
#include "loop_world.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loop_support.h"

const char *const loop_world_settings = "";
const bool loop_world_simulated = false;

/* Device memory is taken through a context of its own, which is there from the test's first context or buffer to the
 * last one. Owner: `lock`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_context *keeper;
static int keeper_users;
static bool with_devices;

/* A driver starts threads with the first use of a device: here, before a test counts threads. */
static void wake_devices(void)
{
    struct weft_error err = {0};
    int count = weft_context_gpus(keeper, NULL, 0);

    for (int i = 0; i < count; i++) {
        unsigned char byte = 1;
        void *memory = NULL;
        LOOP_CALL(weft_gpu_alloc(keeper, i, 1, &memory, &err), &err);
        LOOP_CALL(weft_gpu_copy(keeper, memory, &byte, 1, &err), &err);
        weft_gpu_free(keeper, i, memory);
    }
}

static void keep(void)
{
    struct weft_config *config;
    struct weft_error err = {0};

    pthread_mutex_lock(&lock);
    if (keeper_users++ == 0 && with_devices) {
        config = loop_config("workers=shared cuda=require", 1);
        LOOP_CALL(weft_context_create(config, &keeper, &err), &err);
        weft_config_destroy(config);
        wake_devices();
    }
    pthread_mutex_unlock(&lock);
}

static void let_go(void)
{
    pthread_mutex_lock(&lock);
    if (--keeper_users == 0) {
        weft_context_destroy(keeper);
        keeper = NULL;
    }
    pthread_mutex_unlock(&lock);
}

/* In a process of its own: a driver that has been loaded does not survive a fork, and tests fork. */
static void look_for_devices(void)
{
    struct weft_error err = {0};
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        struct weft_config *config = loop_config("cuda=require", 1);
        struct weft_context *context = NULL;
        int result = weft_context_create(config, &context, &err);
        if (result < 0)
            printf("%s: %s\n", result == -ENODEV ? "skipped: no device memory" : "device memory", err.text);
        weft_context_destroy(context);
        weft_config_destroy(config);
        exit(result == -ENODEV ? 77 : result < 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        exit(WIFEXITED(status) && WEXITSTATUS(status) == 77 ? 77 : 1);
}

/* LOOP_ENGINE=NAME: the same tests on that engine, or skipped where it cannot be had. */
static void choose_engine(void)
{
    const char *name = getenv("LOOP_ENGINE");
    struct weft_context *context = NULL;
    struct weft_error err = {0};

    if (!name || !name[0])
        return;
    setenv("WEFT_ENGINE", name, 1);
    if (weft_context_create(NULL, &context, &err) == -EOPNOTSUPP) {
        printf("skipped: %s\n", err.text);
        exit(77);
    }
    weft_context_destroy(context);
}

void loop_world_begin(bool device_memory)
{
    choose_engine();
    with_devices = device_memory;
    if (device_memory)
        look_for_devices();
}

int loop_world_devices(void)
{
    keep();
    int count = weft_context_gpus(keeper, NULL, 0);
    let_go();
    LOOP_CHECK(count > 0, "there are no devices");
    return count;
}

void *loop_world_take(int device, size_t bytes)
{
    struct weft_error err = {0};
    void *taken = NULL;

    keep();
    LOOP_CALL(weft_gpu_alloc(keeper, device, bytes, &taken, &err), &err);
    return taken;
}

void loop_world_give(int device, void *taken)
{
    weft_gpu_free(keeper, device, taken);
    let_go();
}

void loop_world_copy(void *to, const void *from, size_t bytes)
{
    struct weft_error err = {0};

    LOOP_CALL(weft_gpu_copy(keeper, to, from, bytes, &err), &err);
}

int loop_world_context(const struct weft_config *config, struct weft_context **out, struct weft_error *err)
{
    keep();
    int result = weft_context_create(config, out, err);
    if (result < 0)
        let_go();
    return result;
}

void loop_world_context_end(struct weft_context *context)
{
    weft_context_destroy(context);
    if (context)
        let_go();
}

int loop_world_connect(struct weft_context *context, const char *address, int timeout_ms, struct weft_peer **out,
                       struct weft_error *err)
{
    return weft_connect(context, address, timeout_ms, out, err);
}

int loop_world_accept(struct weft_context *context, int timeout_ms, struct weft_peer **out, struct weft_error *err)
{
    return weft_accept(context, timeout_ms, out, err);
}

void loop_world_deregister(struct weft_registration *registration)
{
    weft_deregister(registration);
}

int64_t loop_world_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void loop_world_sleep_ns(int64_t duration_ns)
{
    struct timespec left = {.tv_sec = duration_ns / 1000000000, .tv_nsec = duration_ns % 1000000000};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}
