/*
 * backend.h: what carries the messages of a measurement. One table per backend; the measuring code knows no other
 * difference. Contract:
 *
 *   - One thread drives everything; only `open` and `wait` may block, `wait` at most for its timeout.
 *   - `pair` is an index of plan->pairs. Messages of a pair are matched in the order in which they were posted.
 *   - A buffer belongs to the backend from a successful send or recv until its request has been returned by `wait`.
 *   - A request stands in the caller's array until `wait` returns its index; the caller then clears the entry.
 *   - 0 or a negative errno; `status` gets one line for a person. `send` and `recv` give -errno only.
 */
#ifndef WF_BENCH_BACKEND_H
#define WF_BENCH_BACKEND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "bench/nodes/link.h"
#include "bench/plan/schedule.h"
#include "weft.h"

#define BENCH_BOTH_NODES (-1)

struct bench_backend;
typedef void *bench_request; /* NULL: none */

struct bench_backend_ops {
    const char *name;
    /*
     * Whether it can be used for this plan here; NULL: always. May put another table of the same backend into `ops`.
     * `node`: the one whose memory the plan already knows, or BENCH_BOTH_NODES. -EINVAL: settings that it cannot do, or
     * that would make a comparison unfair; -EOPNOTSUPP: something is not available.
     */
    int (*check)(const struct bench_backend_ops **ops, const struct bench_plan *plan, const struct wf_config *config,
                 int node, struct wf_status *status);
    bool moves_data; /* false: only the harness runs; its times are no bandwidth and there is nothing to verify */
    int (*open)(struct bench_link *link, const struct bench_plan *plan, struct bench_backend **out,
                struct wf_status *status);
    /* Of a team of nodes (link->team), where `open` connects only what lies within this node. Connects `count` pairs
     * from `first` on, all with link->other; and parts again, when none of their requests is under way. NULL: not for
     * teams. */
    int (*meet)(struct bench_backend *backend, uint32_t first, uint32_t count, struct wf_status *status);
    void (*part)(struct bench_backend *backend, uint32_t first, uint32_t count);
    int (*send)(struct bench_backend *backend, uint32_t pair, const void *data, uint64_t length, uint64_t tag,
                bench_request *out);
    int (*recv)(struct bench_backend *backend, uint32_t pair, void *landing, uint64_t length, uint64_t tag,
                bench_request *out);
    /* No request is under way, and up to `count` will be: before the first, and when that changes. */
    int (*expect)(struct bench_backend *backend, uint64_t count, struct wf_status *status);
    /* As weft_wait_any(). */
    int (*wait)(struct bench_backend *backend, bench_request *requests, int count, int timeout_ms, int *index,
                struct weft_completion *completion);
    /* The caller gives these requests up and frees their array; their memory stays until the link is closed. NULL:
     * nothing has to be done for that. */
    void (*abandon)(struct bench_backend *backend, const bench_request *requests, size_t count);
    /* What the rails have carried so far, on the path of the pairs between the nodes or within this one. */
    int (*rails)(struct bench_backend *backend, bool intra, struct weft_rail_stats *stats, int max);
    /* The context of the library that carries the pairs between the nodes, or within this one, which can be traced;
     * NULL: there is none. The same for a backend that knows none. */
    struct weft_context *(*context)(const struct bench_backend *backend, bool intra);
    /* What was in force, for the node's entry in a result, a new reference; NULL: nothing to tell. */
    json_t *(*facts)(const struct bench_backend *backend);
    void (*close)(struct bench_backend *backend);
};

extern const struct bench_backend_ops bench_backend_weft;
extern const struct bench_backend_ops bench_backend_null;

#endif
