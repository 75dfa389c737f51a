#include "shade.h"

#include <string.h>
#include <unistd.h>

#define SMALL 0.2 /* up to here a number is bold */

/* Background, and black or white text on it: codes of the 256 colours. Their luminance grows from step to step. */
static const char *const ramp[] = {
    "\033[48;5;18;38;5;15m", "\033[48;5;54;38;5;15m",  "\033[48;5;24;38;5;15m",  "\033[48;5;30;38;5;16m",
    "\033[48;5;36;38;5;16m", "\033[48;5;113;38;5;16m", "\033[48;5;227;38;5;16m",
};

#define STEPS ((int)(sizeof ramp / sizeof ramp[0]))

/* "" where it is not set. */
static const char *variable(char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return "";
}

enum bench_shades bench_shades_of(bool terminal, char *const *environment)
{
    const char *term = variable(environment, "TERM");

    if (!terminal || !term[0] || strcmp(term, "dumb") == 0 || variable(environment, "NO_COLOR")[0])
        return BENCH_SHADES_NONE;
    if (strstr(term, "256color") || strstr(term, "direct") || variable(environment, "COLORTERM")[0])
        return BENCH_SHADES_256;
    return BENCH_SHADES_BOLD;
}

enum bench_shades bench_shades_on(FILE *out)
{
    return bench_shades_of(isatty(fileno(out)), environ);
}

const char *bench_shade_begin(enum bench_shades shades, double share)
{
    int step = share > 0 ? (int)(share * STEPS) : 0;

    if (shades == BENCH_SHADES_256)
        return ramp[step < STEPS ? step : STEPS - 1];
    return shades == BENCH_SHADES_BOLD && share <= SMALL ? "\033[1m" : "";
}

const char *bench_shade_end(enum bench_shades shades, double share)
{
    return bench_shade_begin(shades, share)[0] ? "\033[0m" : "";
}
