/* json_words.h: what the parts of a machine are in JSON. No file outside of this room includes it. */
#ifndef WF_AFFINITY_SHOW_JSON_WORDS_H
#define WF_AFFINITY_SHOW_JSON_WORDS_H

#include <jansson.h>
#include <stdint.h>

/* Names from files of others may be no UTF-8: "?" then. New references, as all below. */
static inline json_t *wf_show_json_text(const char *text)
{
    json_t *string = json_string(text);
    return string ? string : json_string("?");
}

/* A number that is negative is not known. */
static inline json_t *wf_show_json_known(int64_t value)
{
    return value < 0 ? json_null() : json_integer(value);
}

/* The same of 1 and 0. */
static inline json_t *wf_show_json_on(int value)
{
    return value < 0 ? json_null() : json_boolean(value);
}

#endif
