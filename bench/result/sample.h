/*
 * sample.h: one measurement: a directed pair, a size, a mode, a backend. The receiver makes it.
 */
#ifndef WF_BENCH_SAMPLE_H
#define WF_BENCH_SAMPLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/status.h"
#include "bench/buffers/pattern.h"
#include "bench/nodes/link.h"
#include "bench/plan/schedule.h"
#include "path.h"
#include "stamp.h"

/* Messages that came in some time. */
struct bench_flux {
    uint64_t messages, elapsed_ns;
};

struct bench_sample {
    const struct bench_backend_ops *backend;
    enum bench_mode mode;
    struct bench_pair pair;
    uint64_t size;
    uint32_t iters;
    uint32_t inflight;               /* messages outstanding at most */
    uint32_t buffers;                /* areas they landed in; with the setting `buffers`, also those they left from */
    uint32_t grouped;                /* completions that each time was taken over */
    bool latency;                    /* the times are half round trips */
    bool checked;                    /* wrong.bytes says something */
    bool timed_check;                /* the times contain verification */
    uint8_t path_send, path_receive; /* enum bench_path, of all messages that were under way at once */
    uint64_t verified_bytes;
    struct wf_times time;
    struct bench_wrong wrong;
    double cpu_s_per_gb;   /* processor time of both nodes over all bytes of the phase; negative: no bytes */
    uint64_t page_faults;  /* of both nodes in the measured time of the phase */
    uint64_t retransmits;  /* of both nodes */
    uint64_t failures;     /* channels lost meanwhile, at the node that lost more: its times are not typical then */
    uint64_t resent_bytes; /* of both nodes, for that */
    uint64_t background;   /* latency: bytes of the messages that were exchanged meanwhile; 0: none were */
    uint32_t background_inflight;
    struct bench_flux forth, back; /* of these, from source to destination and from destination to source */
    unsigned stamps;               /* what makes it doubtful: bits of enum bench_stamp */
    int rail_count;
    uint64_t rail_bytes[BENCH_RAILS_MAX]; /* by rail of the receiving node */
};

/* Names of a node's rails, in the order of rail_bytes. */
struct bench_rail_names {
    int count;
    char names[BENCH_RAILS_MAX][32];
};

/* GB/s (10^9 bytes) from the median time; negative where there is none to report: latency, nothing moved, no time. */
double bench_sample_rate(const struct bench_sample *sample);

/* Messages per second over the whole measured time; negative where bench_sample_rate() has none. */
double bench_sample_messages_per_s(const struct bench_sample *sample);

/* Whether the messages were so small that any number of them was under way: their number by the second says something,
 * and the time of one nothing. */
bool bench_sample_counted(const struct bench_sample *sample);

/* Payload of the timed messages; of a ping-pong, pings and pongs. */
uint64_t bench_sample_measured_bytes(const struct bench_sample *sample);

/* GB/s of the background, one way; negative where there was none. */
double bench_background_rate(const struct bench_sample *sample, const struct bench_flux *flux);

#define BENCH_SAMPLES_PER_TEXT 200u /* that one text to the other node has: about 200 KiB of JSON */

/* The sample as it stands in a result; a new reference, NULL without memory. `pattern` is that of the plan. */
json_t *bench_sample_to_json(const struct bench_sample *sample, const char *pattern,
                             const struct bench_rail_names *rails);

/* The other way, for samples of another node, on one of these backends, between endpoints of the plan. -EPROTO. */
int bench_sample_from_json(const json_t *json, const struct bench_backend_choice *backends,
                           const struct bench_plan *plan, struct bench_sample *sample, struct wf_status *status);

#endif
