/*
 * stamp.h: what is to be said against a time. A sample is stamped, and never dropped.
 */
#ifndef WF_BENCH_STAMP_H
#define WF_BENCH_STAMP_H

#include <jansson.h>
#include <stddef.h>

/* Reasons to doubt a time. */
enum bench_stamp {
    BENCH_STAMP_VARIANCE = 1 << 0,      /* the repetitions of its configuration: CV over 5 % */
    BENCH_STAMP_THROTTLED = 1 << 1,     /* a GPU slowed down for heat or power */
    BENCH_STAMP_CLOCK = 1 << 2,         /* a GPU's frequency was another than at the start */
    BENCH_STAMP_RETRANSMITS = 1 << 3,   /* TCP sent something again */
    BENCH_STAMP_OTHERS = 1 << 4,        /* another process used the GPU or the network */
    BENCH_STAMP_GPU_DRIFT = 1 << 5,     /* a GPU's clock against its processor's: over 10 ppm */
    BENCH_STAMP_DRIFT_CHANGED = 1 << 6, /* that or the nodes' drift changed by over 1 ppm */
    BENCH_STAMP_DISCIPLINED = 1 << 7,   /* a node's clock was being steered by over 10 ppm */
    BENCH_STAMP_NIC_ERRORS = 1 << 8,    /* a network card counted errors or drops */
    BENCH_STAMP_ALIGNMENT = 1 << 9,     /* shorter than twice the uncertainty of the clocks' alignment */
};

#define BENCH_STAMPS 10

/* "variance" of bit 0; NULL: there is no such bit. */
const char *bench_stamp_name(int bit);

/* The set as "variance;alignment"; empty of none. Returns `text`, of which BENCH_STAMPS_TEXT is always enough. */
#define BENCH_STAMPS_TEXT 128
char *bench_stamps_text(unsigned stamps, char *text, size_t room);

/* The set as an array of names. A new reference. */
json_t *bench_stamps_to_json(unsigned stamps);

/* The other way; names that are none count nothing. */
unsigned bench_stamps_from_json(const json_t *names);

#endif
