/*
 * row.h: what a profile is made of, as plain data: a message that was timed, the pieces of it, and what is to be said
 * against it. All times are of node0's CLOCK_MONOTONIC, whoever has taken them.
 */
#ifndef WF_BENCH_PROFILE_ROW_H
#define WF_BENCH_PROFILE_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "bench/result/stamp.h"

#define BENCH_PROFILE_NO_TIME 1 /* ns: the clocks say that a message took no time, or less; they are wrong by more */

/* A message that was timed: from the start of its send to the end of its receive. */
struct bench_profile_row {
    uint32_t config;
    uint32_t src, dst; /* ranks: node x endpoints + endpoint */
    uint64_t size;     /* bytes */
    uint32_t repetition;
    uint8_t backend; /* its place in a list of names */
    unsigned stamps; /* of enum bench_stamp; 0: nothing is to be said against it */
    int64_t start_ns, end_ns;
    uint32_t received, sent; /* pieces that its destination and its source have traced, of which some are drawn */
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

/* "p2p_cfg0042_s0d1_sz1048576_r0". Returns `name`. */
#define BENCH_PROFILE_NAME 96
char *bench_profile_name(const struct bench_profile_row *row, char *name, size_t room);

#endif
