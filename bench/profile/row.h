/*
 * row.h: what a profile is made of, as plain data: a message that was timed, the pieces of it, and what is to be said
 * against it. All times are of node0's CLOCK_MONOTONIC, whoever has taken them.
 */
#ifndef WF_BENCH_PROFILE_ROW_H
#define WF_BENCH_PROFILE_ROW_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

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

/* A message that was timed: from the start of its send to the end of its receive. */
struct bench_profile_row {
    uint32_t config;
    uint32_t src, dst; /* ranks: node x endpoints + endpoint */
    uint64_t size;     /* bytes */
    uint32_t repetition;
    uint8_t backend; /* its place in a list of names */
    unsigned stamps; /* of enum bench_stamp; 0: nothing is to be said against it */
    int64_t start_ns, end_ns;
};

enum bench_profile_kind {
    BENCH_SPAN_SENT,
    BENCH_SPAN_RECEIVED,
    BENCH_SPAN_COPIED_OUT, /* of a GPU's memory */
    BENCH_SPAN_COPIED_IN,
};

#define BENCH_SPAN_KINDS 4

/* What happened to some bytes of a message at one of its ends. */
struct bench_profile_span {
    int64_t begin_ns, end_ns;
    uint64_t offset, bytes;
    uint32_t row;               /* index of the message */
    uint32_t rank;              /* at whose end */
    int16_t rail, channel, gpu; /* -1: none */
    uint8_t kind;               /* enum bench_profile_kind */
};

/* "variance" of bit 0; NULL: there is no such bit. */
const char *bench_stamp_name(int bit);

/* The set as "variance;alignment"; empty of none. Returns `text`, of which BENCH_STAMPS_TEXT is always enough. */
#define BENCH_STAMPS_TEXT 128
char *bench_stamps_text(unsigned stamps, char *text, size_t room);

/* The set as an array of names. A new reference. */
json_t *bench_stamps_to_json(unsigned stamps);

/* "p2p_cfg0042_s0d1_sz1048576_r0". Returns `name`. */
#define BENCH_PROFILE_NAME 96
char *bench_profile_name(const struct bench_profile_row *row, char *name, size_t room);

#endif
