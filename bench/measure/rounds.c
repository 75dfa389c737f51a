#include "rounds.h"

#include "base/clock.h"

#define DEARER 4  /* than a timed iteration: memory is written, received into, and read twice */
#define GUESSED 4 /* so much dearer still it may be before the first round takes more than its share */
#define LONGEST_NS (INT64_MAX / 8)

/* The other node may say anything. */
static int64_t plausible(uint64_t elapsed_ns)
{
    return elapsed_ns < LONGEST_NS ? (int64_t)elapsed_ns : LONGEST_NS;
}

static int64_t each_of(uint64_t elapsed_ns, uint32_t count)
{
    return elapsed_ns > count ? plausible(elapsed_ns) / count : 1;
}

void bench_rounds_init(struct bench_rounds *rounds, const struct bench_budget *budget, uint32_t iters, uint32_t window,
                       uint64_t timed_ns)
{
    *rounds = (struct bench_rounds){
        .iters = iters,
        .window = window,
        .share_ns = budget->phases ? budget->left_ns / budget->phases : budget->left_ns,
        .each_ns = DEARER * each_of(timed_ns, iters),
    };
}

uint32_t bench_rounds_next(const struct bench_rounds *rounds)
{
    uint32_t left = rounds->iters - rounds->done;
    int64_t time = rounds->share_ns - rounds->spent_ns;
    int64_t count = time > 0 ? time / rounds->each_ns : 0;

    if (rounds->done == 0)
        count = count / GUESSED > rounds->window ? count / GUESSED : rounds->window;
    return count < left ? (uint32_t)count : left;
}

void bench_rounds_took(struct bench_rounds *rounds, uint32_t count, uint64_t elapsed_ns)
{
    rounds->done += count;
    rounds->spent_ns += plausible(elapsed_ns);
    rounds->each_ns = each_of(elapsed_ns, count);
}

void bench_budget_spend(struct bench_budget *budget, int64_t spent_ns)
{
    budget->left_ns = budget->left_ns > spent_ns ? budget->left_ns - spent_ns : 0;
    if (budget->phases)
        budget->phases--;
}

int bench_rounds_run(struct bench_rounds *rounds, struct bench_budget *budget, struct bench_control *control,
                     bench_round *round, void *context, struct wf_status *status)
{
    uint32_t count;

    while ((count = bench_rounds_next(rounds)) > 0) {
        int64_t start = wf_clock_now(&wf_clock_monotonic);
        struct bench_news mine = {0}, theirs;
        int result = round(context, rounds->done, count, status);
        mine.elapsed_ns = (uint64_t)(wf_clock_now(&wf_clock_monotonic) - start);
        if (result == 0)
            result = bench_control_swap(control, &mine, &theirs, status);
        if (result)
            return result;
        bench_rounds_took(rounds, count, mine.elapsed_ns > theirs.elapsed_ns ? mine.elapsed_ns : theirs.elapsed_ns);
    }
    bench_budget_spend(budget, rounds->spent_ns);
    return 0;
}
