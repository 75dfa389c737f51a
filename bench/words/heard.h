/*
 * heard.h: what the other node has said, before anybody looks at it. Of what comes out
 *
 *     no text and no key has a control character,  and  nothing is nested deeper than BENCH_HEARD_DEPTH
 *
 * so that it can be shown on a terminal, and written to a file without growing out of all proportion.
 */
#ifndef WF_BENCH_HEARD_H
#define WF_BENCH_HEARD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define BENCH_HEARD_DEPTH 16

/* A new reference to the JSON object in `bytes`; NULL: it is none, or not one of ours. A control character in a text
 * is '?' from here on; but in texts of the key "text", which programs have printed, lines still end. */
json_t *bench_heard(const char *bytes, size_t length);

/* The same of a text that is none of JSON's: what is no printable ASCII is '?'. */
void bench_heard_plain(char *text);

/* A text that need not be UTF-8, as JSON has to be: what is not becomes '?'. Whatever somebody else has named
 * goes this way, a host, an interface, a file; json_string() and json_pack() have nothing for them. A new reference. */
json_t *bench_heard_string(const char *text);

/* A text of `object`; "?" where there is none. For what is only shown. */
const char *bench_heard_text(const json_t *object, const char *name);

/* Pairs of hexadecimal digits, at most `most` of them: how many bytes they are; -1: not that. */
int bench_heard_bytes(const json_t *text, unsigned char *bytes, int most);

#endif
