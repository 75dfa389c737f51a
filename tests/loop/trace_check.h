/*
 * trace_check.h: whether the traces, the graphs and the log of a profile's folder are well formed, and tell the same:
 *
 *     every message of the log is once in the trace and once in the graph of its source, and of its destination
 *     there it has the log's times, to a microsecond, and its spans lie within it
 *     events of a tid are in the order of time, and nest or do not overlap
 *     ids of a graph ascend, and a parent stands before its children
 */
#ifndef WEFT_TESTS_TRACE_CHECK_H
#define WEFT_TESTS_TRACE_CHECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line of the log, and where it was found. */
struct check_row {
    unsigned config, src, dst, repetition;
    unsigned long long size;
    int64_t start_ns, end_ns;
    /* At its source and at its destination. */
    bool traced[2], graphed[2];
    bool weft;       /* its backend was */
    unsigned pieces; /* that are drawn, at both ends */
    json_int_t record[2];
};

/* Owner: the caller of check_folder(). */
struct check {
    struct check_row *rows; /* in the order of the log */
    size_t count, cursor;   /* cursor: where the next message is looked for first */
    bool pieces;            /* each lies within its message's bytes, and each message of Weft's has one */
    unsigned rank, world;   /* of the file that is read */
    char file[400];         /* its path, for errors */
    char why[600];          /* the first error */
};

/* 0; negative, and `why` says what is wrong. Afterwards check_end() frees it in either case. */
int check_folder(struct check *check, const char *folder, bool pieces);
void check_end(struct check *check);

/* Sets `why`, and returns -1. */
int check_refuse(struct check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

int check_read_log(struct check *check, const char *folder);

/* The row of a message by its name; `side` is 0 at its source and 1 at its destination. NULL: refused. */
struct check_row *check_find(struct check *check, const char *name, int *side);

/* A member of an object that has the wanted type; NULL: refused. `place` says whose member it is. */
json_t *check_member(struct check *check, const json_t *object, const char *place, const char *name, json_type type);

int check_trace(struct check *check, const json_t *root);
int check_graph(struct check *check, const json_t *root);

#endif
