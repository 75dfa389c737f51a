/* calls.h: one collective at one member, from its inputs to the check of its result. */
#ifndef CALLS_H
#define CALLS_H

#include "group_support.h"
#include "inputs.h"

/* One collective at one member. */
struct call {
    struct reference what;
    enum inputs inputs;
    bool in_place;
    void *kept[16]; /* the inputs of all members */
    void *in, *out, *memory[2], *expected;
};

/* `what`, `inputs` and `in_place` are filled in. */
void call_init(struct call *call, uint32_t rank);
void call_fini(struct call *call);
/* Waits, or only starts: then `user_data` is the call. */
int call_make(struct call *call, struct weft_group *group, bool waits, struct weft_error *err);
/* The same, with what stands in `in`. */
int call_post(struct call *call, struct weft_group *group, bool waits, struct weft_error *err);
/* To the bit, as the reference has it; of sums also how far it may be from one in float64. */
void call_check(const struct call *call, uint32_t rank);

#endif
