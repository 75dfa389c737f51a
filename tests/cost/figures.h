/*
 * figures.h: what core_cost measures, and what it tells of it.
 */
#ifndef TESTS_COST_FIGURES_H
#define TESTS_COST_FIGURES_H

#include "meter.h"
#include "world.h"

#define ROUNDS_MAX 99
#define CHUNK_BYTES (512u * 1024) /* the default of the setting chunk */

/* Of one side. All but HOLDS in nanoseconds. */
enum figure {
    CHUNK,         /* for a chunk, without the engine */
    CHUNK_ENGINE,  /* of the engine, for a chunk: already subtracted */
    CHUNK_LOCK,    /* under the session's lock, for a chunk */
    CHUNK_HOLDS,   /* times that the lock is taken for a chunk */
    CHUNK_P99,     /* a hold: 99 of 100 are not longer */
    CHUNK_LONGEST, /* the longest hold of a round */
    MESSAGE,       /* as CHUNK, CHUNK_ENGINE and CHUNK_LOCK, for a small message */
    MESSAGE_ENGINE,
    MESSAGE_LOCK,
    FIGURES
};

/* A row of the tables. Rows of one series follow each other, and differ in what the series is about. */
struct cost_row {
    const char *series;
    struct cost_size size;
    double samples[METER_SIDES][FIGURES][ROUNDS_MAX];
    double median[METER_SIDES][FIGURES];
    double share; /* the least share of a pass in which the program ran */
};

/* Fills `median` from the samples. */
void figures_settle(struct cost_row *row, int rounds);

/* The tables, the growth of each series, and the verdict, as Markdown. */
void figures_print(const struct cost_row *rows, int count);

#endif
