/*
 * peers.h: the comparison: every case on every tool, so that what disturbs the machine disturbs all of them alike.
 *
 *     for each case: messages from a first run of Weft; of a fixed number, how long they take;
 *         for each trial, where a tool has more than two variants: every one of them once;
 *         for each round: every tool once, with each of its variants, or with the two that were best in the trials
 *
 * The order of a round is that of the round before, moved on by one. A variant that fails twice at the start, or is far
 * from the best of its tool in each of the first three trials, is not run again. Only rounds count: the best of many
 * medians would be the luckiest, and its luck would count as speed.
 */
#ifndef WF_PEERS_PEERS_H
#define WF_PEERS_PEERS_H

#include <stdbool.h>

#include "base/status.h"
#include "peer.h"
#include "run.h"

#define PEERS_CASES_MAX 64
#define PEERS_ROUNDS_MAX 1000
#define PEERS_VARIANTS_MAX 64 /* of one tool for one case */
#define PEERS_TOOLS_MAX 8
#define PEERS_FINALISTS 2  /* variants of a tool in the rounds that count */
#define PEERS_TRIALS_MAX 5 /* but not more than rounds */

/* --- what is asked --- */

/*
 * The other machine, where the servers run: it makes their command lines itself, from the names of tools and the
 * numbers of a case. NULL in the plan: they run here.
 */
struct peers_far {
    /* Starts the server; 0 once it listens on `port`. */
    int (*begin)(void *context, const struct peer_tool *tool, const struct peer_case *asked, int variant, int *port,
                 struct wf_status *status);
    /* The command line of the server that was started last. */
    void (*tell_command)(void *context, struct peer_command *server);
    /* The client has ended: collects what the server printed, which stays until the next call. `text` NULL: there was
     * none. Where the client failed (not `worked`), `status` says why the server did, if it did. */
    int (*end)(void *context, bool worked, struct peer_output *server, struct wf_status *status);
};

struct peers_result;

struct peers_plan {
    struct peer_place place; /* `port` 0: a free one for each run */
    struct peer_case cases[PEERS_CASES_MAX];
    int case_count;
    const struct peer_tool *tools[PEERS_TOOLS_MAX]; /* in the order of the report */
    int tool_count;
    int rounds;
    double seconds;      /* that Weft shall take for the messages of a case */
    bool fixed_messages; /* the cases say how many messages; else they are found */
    bool fixed_warmup;   /* the cases say how many come before; of fixed messages they always do */

    const struct peers_far *far;
    void *far_context;
    peer_stop *stop; /* NULL: nothing stops it */
    /* Told before each run: how many are done, of how many, and what comes. NULL: not wanted. */
    void (*progress)(void *context, int done, int total, const char *doing);
    /* Told after each case, before the next one begins, and of one that was cut short. NULL: not wanted. */
    void (*measured)(void *context, const struct peers_result *result, int index);
    void *context; /* of all three */
};

/* --- what is found --- */

struct peers_variant {
    struct peer_commands commands; /* of its last run: the port may differ from round to round */
    struct peer_reading *trials;   /* PEERS_TRIALS_MAX of them; owned */
    struct peer_reading *rounds;   /* plan->rounds of them; owned */
    int runs, failures;            /* trials and rounds */
    bool given_up;                 /* not run again: it failed, was slow, or others are run in the rounds */
};

/* A tool in a case. Owns its variants. */
struct peers_row {
    const struct peer_tool *tool;
    bool absent;     /* it is not on this machine */
    char why[252];   /* there is nothing to measure, for this reason; "": there is */
    char error[252]; /* of the last run that failed; "": none did */
    struct peers_variant *variants;
    int variant_count;
};

struct peers_block {
    struct peer_case asked;
    double weft_s;   /* that Weft takes for all messages; 0: not known */
    char error[252]; /* it could not be measured at all */
    struct peers_row rows[PEERS_TOOLS_MAX];
    int trials_done, rounds_done;
};

struct peers_result {
    const struct peers_plan *plan;
    struct peers_block *blocks;
    int block_count; /* begun */
    bool complete;   /* all rounds of all cases were run */
    double seconds;  /* that it took */
};

/* 0 also when tools failed; else what `stop` said, -ENOMEM, or that Weft itself could not be measured. `result` holds
 * what there is, and can be given to fini(), whatever the result; it refers to the plan. */
int peers_measure(const struct peers_plan *plan, struct peers_result *result, struct wf_status *status);
void peers_result_fini(struct peers_result *result);

/* Whether everything ran, and Weft itself never failed. */
bool peers_passed(const struct peers_result *result);

/* --- the tools --- */

/* "iperf3,ucx", "^nccl" (all but), "" (all). -EINVAL names the word that is no tool. */
int peers_choose_tools(const char *list, struct peers_plan *plan, struct wf_status *status);
const struct peer_tool *peers_find_tool(const char *name);

/* Whether it is the one that the others are compared with. */
bool peers_is_weft(const struct peer_tool *tool);

/* Whether it is another tool: neither Weft, in whatever way, nor plain sockets, which are the floor of all. */
bool peers_is_rival(const struct peer_tool *tool);

/* --- what a row comes to --- */

/* What counts in a round: GB/s, messages/s, or the half round trip in us, the median one unless `mean`. Negative:
 * unknown. */
double peers_value(const struct peer_reading *reading, enum peer_metric metric, bool mean);

struct peers_summary {
    int variant;        /* whose these are: the best; -1: there is none, and nothing else counts */
    int runs, failures; /* of all variants */
    bool mean;          /* latency: the values are means, as the tool tells no median */
    double median, min, max, spread;
    double ratio; /* of Weft's values to these, paired by rounds; negative: unknown */
    double p50_us, p99_us, mean_us, gb_per_s, messages_per_s, cpu_s_per_gb; /* medians; negative: unknown */
};
void peers_sum_up(const struct peers_result *result, const struct peers_block *block, const struct peers_row *row,
                  struct peers_summary *summary);

/* The index of the variant with the best median of the rounds; -1: none ever worked. */
int peers_best_variant(const struct peers_block *block, const struct peers_row *row);

/* The same of the trials, among the variants that are not given up. */
int peers_best_in_trials(const struct peers_block *block, const struct peers_row *row);

/* What its last failure was; NULL: it had none, or none to speak of, as it worked in the trials and there was no round.
 */
const char *peers_failure(const struct peers_block *block, const struct peers_row *row);

#endif
