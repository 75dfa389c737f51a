/*
 * cause.h: what a run knows about something slow: what is different there from the other nodes. It is no proof that
 * this is why.
 */
#ifndef WF_BENCH_CAUSE_H
#define WF_BENCH_CAUSE_H

#include <jansson.h>

#include "slow.h"

/* Owner: the caller. What is not known is NULL. */
struct bench_known {
    const struct bench_readings *readings;
    const struct bench_slow *slow; /* all that was found in these */
    size_t slow_count;
    const json_t *hosts;      /* list, as it stands in a result */
    const json_t *rails;      /* the same */
    const char *const *names; /* of the rails */
};

/* "it has 1 rail, most have 2; TCP sent 311 segments again there"; "" where nothing is known. Returns `text`. */
const char *bench_cause_of(const struct bench_known *known, const struct bench_slow *slow, char *text, size_t room);

/* Whether every rail was to serve every endpoint (settings of the nodes' hosts): else what they carried follows from
 * who sent, and says nothing of the rails. */
bool bench_rails_compare(const json_t *hosts, bool on_gpus);

/* Whether NVML's reason is one that holds a GPU back: heat or power, and not that it was idle. */
bool bench_is_forced(const char *throttling);

#endif
