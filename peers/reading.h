/*
 * reading.h: what several adapters need to read a tool's output: numbers with a point, whatever the locale; and
 * errors that quote the first words of an output that was not understood.
 */
#ifndef WF_PEERS_READING_H
#define WF_PEERS_READING_H

#include <jansson.h>
#include <stddef.h>

#include "peer.h"

#define PEER_COLUMNS_MAX 16

/* The words of one line, parted by any of `marks`; empty ones are left out. */
struct peer_columns {
    char text[512];
    const char *words[PEER_COLUMNS_MAX];
    int count;
};

/* A number that is finite and not negative; the whole of `text` but for blanks at its end. 0 or -EINVAL. */
int peer_number(const char *text, double *out);

/* The first line from `text` on that has something in it, in columns. Returns what follows it; NULL: there is none, it
 * does not fit, or it does not end: its last number may have lost digits. */
const char *peer_columns(const char *text, const char *marks, struct peer_columns *out);

/* The column called `name`; -1: none. */
int peer_column(const struct peer_columns *columns, const char *name);

/* -EPROTO: "PROGRAM printed no result: 'first line of it'". */
int peer_not_understood(const char *program, const char *text, struct wf_status *status);

/* Processor seconds of both programs per 10^9 bytes that they moved, of which the case's warm-up is a part; negative
 * where one of them does not tell. `server` may be NULL: all is in the client. `ways`: 2 where data went both ways. */
double peer_cpu_per_gb(const struct peer_case *asked, const struct peer_output *server,
                       const struct peer_output *client, int ways);

/* The number `name` of an object; -1: it has none, or a negative one. */
double peer_json_number(const json_t *object, const char *name);

/* Reads the line of JSON of one of Weft's own programs: "schema" must be `schema`; the other keys are the fields of
 * struct peer_reading; null or no key: not told. -EPROTO where it lacks what the metric asks for. */
int peer_read_json(const struct peer_case *asked, const char *program, const char *schema, const char *text,
                   struct peer_reading *out, struct wf_status *status);

/* The interfaces of all rails, each once, with commas between; returns how many, 0 where one of them is not known, or
 * -ENOBUFS. */
int peer_devices(const struct peer_place *place, char *list, size_t room);

/* How many processors this process may use; 1 where the system does not say. */
int peer_processors(void);

/* What a program has printed, or a user has named, need not be UTF-8, as JSON has to be; nor is it where it was cut
 * within a letter. What is none becomes '?'. Returns `text`. */
char *peer_make_utf8(char *text);

#endif
