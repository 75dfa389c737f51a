/*
 * preload_clock.c: a library to preload that makes the clocks of a process other ones:
 *
 *     shown = true + SKEW_MS milliseconds + SKEW_PPM millionths of (true - SKEW_FROM)
 *
 * of CLOCK_MONOTONIC, and with SKEW_RAW=1 also of CLOCK_MONOTONIC_RAW, as if the machine had another crystal; without
 * it, as if somebody steered the clock. SKEW_FROM is in seconds of the true CLOCK_MONOTONIC.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

#pragma GCC visibility push(default) /* the build hides what is not asked for */

#define NS_PER_S 1000000000ll

typedef int get_clock(clockid_t clock, struct timespec *out);

static double setting(const char *name)
{
    const char *text = getenv(name);

    return text ? strtod(text, NULL) : 0;
}

static int get_true(clockid_t clock, struct timespec *out)
{
    static get_clock *_Atomic real;
    get_clock *found = real;

    if (!found) {
        found = (get_clock *)dlsym(RTLD_NEXT, "clock_gettime");
        real = found;
    }
    return found(clock, out);
}

/* Read once: the environment is searched too slowly for every look at a clock. */
static struct {
    double ppm, ms, from;
    int raw;
} skew;

__attribute__((constructor)) static void read_settings(void)
{
    skew.ppm = setting("SKEW_PPM");
    skew.ms = setting("SKEW_MS");
    skew.from = setting("SKEW_FROM");
    skew.raw = setting("SKEW_RAW") != 0;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = get_true(clock, out);

    if (result || (clock != CLOCK_MONOTONIC && (clock != CLOCK_MONOTONIC_RAW || !skew.raw)))
        return result;
    long long now = out->tv_sec * NS_PER_S + out->tv_nsec;
    now += (long long)(skew.ms * 1e6 + ((double)now - skew.from * 1e9) * skew.ppm * 1e-6);
    out->tv_sec = now / NS_PER_S;
    out->tv_nsec = now % NS_PER_S;
    return 0;
}
