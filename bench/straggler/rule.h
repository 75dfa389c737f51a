/*
 * rule.h: which rank came late to a barrier, from what each rank says of itself.
 *
 *     least(r)    = lower third over the others s of (wait(s) - starved(s)) - wait(r)
 *     late(r)     : least(r) >= limit,   limit = max(threshold, 4 * median of the last barriers' shortest waits)
 *     lateness(r) = the shortest wait of another that is least(r) + wait(r) or more, - wait(r)
 *     named(r)    : late(r) and lateness(r) - kept(r) >= limit: also without what it waited for a processor before
 *
 * A wait is a rank's own: from entering the barrier to its end, by its own clock. Clocks are never compared, so they
 * may differ by any amount. The last rank waits least: as long as a barrier takes where nobody is late. That is what
 * the network adds, and a figure can be wrong by so much. A message that gets lost on the way up keeps all waiting, the
 * rank that sent it, too; one on the way down keeps those below it, which are up to two thirds of a tree. Hence the
 * lower third (the value that a third of the others do not exceed, of 2 to 5 others the least), and not the median: it
 * is of a rank that heard in time. So many others less one may be late at once. Of two ranks one is compared with one:
 * there a packet that gets lost on the way to rank 1 makes rank 0 late.
 *
 * While a rank is starved (it could run, and another has its processor) the barrier may have ended already, or not: a
 * wait lies between two bounds, and only the lower one can make another rank late. Between two barriers all tell all
 * (the telling). A rank that was starved at its end enters the next barrier late by as much at most as its telling took
 * longer than that of others.
 */
#ifndef WF_BENCH_STRAGGLER_RULE_H
#define WF_BENCH_STRAGGLER_RULE_H

#include <stdbool.h>
#include <stdint.h>

#define STRAGGLER_HISTORY 64
#define STRAGGLER_FACTOR 4

/* What a rank says of one barrier; numbers that travel as they are. */
struct straggler_told {
    double wait_ms;
    double starved_ms;       /* of that, it could run and was not let */
    double tell_ms;          /* how long the telling before this barrier took */
    double tell_starved_ms;  /* of that, it could run and was not let */
    double later_starved_ms; /* the same, from there to this barrier */
    double delayed_ms;       /* it was made to wait on purpose, by its own clock; 0: it was not */
};

enum straggler_verdict {
    STRAGGLER_IN_TIME,
    STRAGGLER_FOR_PROCESSOR, /* late, because its processor was busy */
    STRAGGLER_NAMED
};

/* What is found of a rank at a barrier. */
struct straggler_judged {
    double late_ms; /* negative: it waited longer than others */
    double kept_ms; /* of that, at most, it waited for a processor before */
    enum straggler_verdict verdict;
};

/* Owner: one thread. All zero but the threshold has seen no barrier. */
struct straggler_rule {
    double threshold_ms;
    double shortest_ms[STRAGGLER_HISTORY]; /* of the last barriers, in a ring */
    uint64_t barriers;
};

/* Median of the shortest waits of the last barriers; 0: there was none. */
double straggler_usual_ms(const struct straggler_rule *rule);

/* One more barrier, of at least two ranks; `judged` gets what is found of each. -ENOMEM. */
int straggler_look(struct straggler_rule *rule, const struct straggler_told *told, uint32_t ranks,
                   struct straggler_judged *judged);

#endif
