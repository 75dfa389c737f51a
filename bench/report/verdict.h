/*
 * verdict.h: what a run came to, in sentences. The first ones matter most.
 */
#ifndef WF_REPORT_VERDICT_H
#define WF_REPORT_VERDICT_H

#include "grid.h"
#include "oddities.h"

enum report_level {
    REPORT_GOOD,
    REPORT_PLAIN, /* a figure, without praise or blame */
    REPORT_DOUBT, /* something is odd */
    REPORT_BAD    /* something failed */
};

struct report_sentence {
    enum report_level level;
    char *text;
};

/* Owner: who has it; all zero is an empty one. */
struct report_verdict {
    struct report_sentence *list;
    size_t count, room;
    bool failed; /* memory ran out */
};

void report_say(struct report_verdict *verdict, enum report_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void report_verdict_fini(struct report_verdict *verdict);

/* "good", "plain", "doubt", "bad" */
const char *report_level_name(enum report_level level);

/* On a run of weft mesh, pair or profile. */
void report_judge_run(struct report_verdict *verdict, const struct report_grid *grid,
                      const struct report_oddities *odd);

/* The part of it that tells what is odd: pairs, rails, stamped samples. judge_odd.c */
void report_judge_odd(struct report_verdict *verdict, const struct report_grid *grid,
                      const struct report_oddities *odd);

/* On the GPUs of all files of one run. */
void report_judge_gpus(struct report_verdict *verdict, const struct report_gpus *gpus);

/* Parts of the next one. straggler.c, setup.c, overlap.c */
void report_judge_straggler(struct report_verdict *verdict, const struct report_run *run);
void report_judge_setup(struct report_verdict *verdict, const struct report_run *run);
void report_judge_overlap(struct report_verdict *verdict, const struct report_run *run);

/* On files of other commands. */
void report_judge_other(struct report_verdict *verdict, const struct report_run *run);

#endif
