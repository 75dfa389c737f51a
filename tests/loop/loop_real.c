/* loop_real.c: the world as it is. */
#include "loop_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

const char *const loop_world_settings = "";
const bool loop_world_simulated = false;

/* LOOP_ENGINE=NAME: the same tests on that engine, or skipped where it cannot be had. */
void loop_world_begin(void)
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

int loop_world_context(const struct weft_config *config, struct weft_context **out, struct weft_error *err)
{
    return weft_context_create(config, out, err);
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
