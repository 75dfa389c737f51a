#include "core/ground/world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define LINE_BYTES 1100 /* of one fallback; a note of a plan fits */

void wf_world_init(struct wf_world *world, enum wf_log_level level, uint64_t seed)
{
    wf_log_init(&world->log, level);
    pthread_mutex_init(&world->lock, NULL);
    pthread_mutex_init(&world->fallbacks_lock, NULL);
    wf_alarm_init(&world->alarm);
    wf_trace_init(&world->trace);
    world->seed = seed;
    if (gethostname(world->host_name, sizeof world->host_name - 1) != 0)
        snprintf(world->host_name, sizeof world->host_name, "unnamed");
}

void wf_world_fini(struct wf_world *world)
{
    wf_trace_fini(&world->trace);
    wf_alarm_fini(&world->alarm);
    pthread_mutex_destroy(&world->fallbacks_lock);
    pthread_mutex_destroy(&world->lock);
}

int wf_world_random(struct wf_world *world, void *bytes, size_t length)
{
    if (world->seed == 0) {
        ssize_t got = getrandom(bytes, length, 0);
        return got == (ssize_t)length ? 0 : -EIO;
    }
    pthread_mutex_lock(&world->lock);
    for (size_t i = 0; i < length; i++) { /* xorshift64: reproducible, for tests only */
        world->seed ^= world->seed << 13;
        world->seed ^= world->seed >> 7;
        world->seed ^= world->seed << 17;
        ((uint8_t *)bytes)[i] = (uint8_t)(world->seed >> 32);
    }
    pthread_mutex_unlock(&world->lock);
    return 0;
}

/* Another thread may be reading the earlier lines without the lock: so the first byte of a line is written last. */
void wf_world_fallback(struct wf_world *world, const char *format, ...)
{
    char line[LINE_BYTES] = "\n";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + 1, sizeof line - 1, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&world->fallbacks_lock);
    size_t used = strlen(world->fallbacks), left = sizeof world->fallbacks - used;
    const char *text = used > 0 ? line : line + 1;
    if (left > 2 && !strstr(world->fallbacks, line + 1)) { /* said once */
        snprintf(world->fallbacks + used + 1, left - 1, "%s", text + 1);
        __atomic_store_n(&world->fallbacks[used], text[0], __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&world->fallbacks_lock);
}

/* Traffic over loopback shares no network with other hosts. A congestion control that paces, such as bbr, uses timers,
 * which cost the sending thread time. reno does not pace, and every kernel lets every user choose it. */
const char *wf_world_congestion(const struct wf_world *world, bool on_this_machine)
{
    if (world->tuning.congestion[0] || !on_this_machine)
        return world->tuning.congestion;
    return "reno";
}
