/*
 * shade.h: numbers of a table with a background that says how large they are, where a terminal shows colours. Pipes and
 * files get none.
 *
 *     colours = a terminal, TERM is set and not "dumb", and NO_COLOR is unset or empty (no-color.org)
 *
 * The ramp goes from dark blue to yellow and grows lighter at each step, so it can be read without telling red from
 * green.
 */
#ifndef WF_BENCH_SHADE_H
#define WF_BENCH_SHADE_H

#include <stdbool.h>
#include <stdio.h>

enum bench_shades {
    BENCH_SHADES_NONE,
    BENCH_SHADES_BOLD, /* the smallest numbers are bold: the terminal has not said that it knows 256 colours */
    BENCH_SHADES_256   /* TERM has "256color" or "direct", or COLORTERM is set */
};

/* What may be used on an output that is a terminal or not. `environment` is as `environ`. */
enum bench_shades bench_shades_of(bool terminal, char *const *environment);
enum bench_shades bench_shades_on(FILE *out);

/* What goes before a number, and behind it; "" where there is none. `share` is its place between the smallest, 0, and
 * the largest, 1. */
const char *bench_shade_begin(enum bench_shades shades, double share);
const char *bench_shade_end(enum bench_shades shades, double share);

#endif
