#include "search.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/words/random.h"
#include "choose.h"

#define FEW_POINTS 9        /* a search needs room for as many, twice */
#define DISTURBED_BELOW 0.8 /* of the baseline's median: more than noise */
#define DISTURBED_MOST 0.3  /* of the runs: a machine that is never quiet has no quiet time to wait for */

/* --- the runs so far --- */

double bench_search_score(const struct bench_search *search, uint32_t point)
{
    size_t count = 0;

    for (size_t i = 0; i < search->trial_count; i++)
        if (search->trials[i].point == point && search->trials[i].score > 0 && !search->trials[i].doubtful &&
            search->trials[i].stage < BENCH_STAGE_CONFIRM)
            search->room[count++] = search->trials[i].score;
    /* A disturbance costs; nothing makes a run better than the point is but noise. */
    if (count == 2)
        return search->room[0] > search->room[1] ? search->room[0] : search->room[1];
    return bench_figures_median(search->room, count);
}

uint32_t bench_search_find_best(const struct bench_search *search, uint32_t *best, uint32_t most)
{
    double scores[BENCH_BEST_MOST];
    uint32_t count = 0;

    for (uint32_t point = 0; point < search->space->points; point++) {
        if (search->tallies[point].runs == 0 || search->tallies[point].failures >= BENCH_FAILURES_MOST ||
            search->tallies[point].hopeless)
            continue;
        double score = bench_search_score(search, point);
        uint32_t at = count;
        for (; at > 0 && scores[at - 1] < score; at--)
            if (at < most) {
                scores[at] = scores[at - 1];
                best[at] = best[at - 1];
            }
        if (score <= 0 || at >= most)
            continue;
        scores[at] = score;
        best[at] = point;
        count += count < most;
    }
    return count;
}

uint32_t bench_search_best(const struct bench_search *search)
{
    uint32_t best;

    if (search->settled)
        return search->best;
    return bench_search_find_best(search, &best, 1) ? best : search->space->baseline;
}

void bench_search_compare_two(const struct bench_search *search, uint32_t point, uint32_t other, bool confirmation,
                              struct bench_comparison *out)
{
    double *ours = search->room, *theirs = search->room + search->runs_most;
    size_t pairs = 0, ours_batch = SIZE_MAX, theirs_batch = SIZE_MAX;
    double ours_score = 0, theirs_score = 0;

    for (size_t i = 0; i < search->trial_count; i++) {
        const struct bench_trial *trial = &search->trials[i];
        if ((trial->stage == BENCH_STAGE_CONFIRM) != confirmation || trial->score <= 0 || trial->doubtful)
            continue;
        if (trial->point == point) {
            ours_score = trial->score;
            ours_batch = trial->batch;
        } else if (trial->point == other) {
            theirs_score = trial->score;
            theirs_batch = trial->batch;
        } else {
            continue;
        }
        if (ours_batch == theirs_batch) {
            ours[pairs] = ours_score;
            theirs[pairs++] = theirs_score;
            ours_batch = SIZE_MAX;
        }
    }
    bench_figures_compare(ours, theirs, pairs, out);
}

void bench_search_compare(const struct bench_search *search, uint32_t point, struct bench_comparison *out)
{
    bench_search_compare_two(search, point, search->space->baseline, false, out);
}

void bench_search_confirmed(const struct bench_search *search, struct bench_comparison *out)
{
    bench_search_compare_two(search, bench_search_best(search), search->space->baseline, true, out);
}

bool bench_search_wins(const struct bench_search *search)
{
    struct bench_comparison confirmed;

    bench_search_confirmed(search, &confirmed);
    return confirmed.pairs >= BENCH_PAIRS_LEAST && confirmed.low > 1;
}

/* --- batches --- */

void bench_search_shuffle(uint32_t *points, uint32_t count, uint64_t state)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = (uint32_t)(bench_random_next(&state) % i), point = points[i - 1];
        points[i - 1] = points[other];
        points[other] = point;
    }
}

/* In a search every batch is between two runs of the baseline. */
static bool has_ends(const struct bench_search *search)
{
    return search->automatic && search->stage < BENCH_STAGE_CONFIRM;
}

uint32_t bench_search_runs_of(uint32_t points)
{
    return points + points / BENCH_BETWEEN + 2;
}

uint32_t bench_search_runs_left(const struct bench_search *search)
{
    uint32_t most = search->runs_most > 2 * search->rounds ? search->runs_most - 2 * search->rounds : 0;

    return most > search->trial_count ? most - (uint32_t)search->trial_count : 0;
}

/* Makes a batch of points; of a search, with the baseline at both ends and between. */
static void arrange(struct bench_search *search, const uint32_t *points, uint32_t count)
{
    uint32_t baseline = search->space->baseline, kept = 0, *batch = search->batch;

    search->batch_number++;
    search->batch_at = 0;
    for (uint32_t i = 0; i < count; i++)
        if (points[i] != baseline || !has_ends(search))
            batch[kept++] = points[i];
    bench_search_shuffle(batch, kept, bench_random_mix(search->seed) + search->batch_number);
    search->batch_count = kept;
    if (!has_ends(search))
        return;
    search->batch_count += (kept + BENCH_BETWEEN - 1) / BENCH_BETWEEN + 1;
    for (uint32_t to = search->batch_count; to-- > 0;)
        batch[to] = to % (BENCH_BETWEEN + 1) == 0 || to == search->batch_count - 1 ? baseline : batch[--kept];
}

static bool is_slow(const struct bench_search *search, const struct bench_trial *trial, double usual)
{
    return trial->point == search->space->baseline && trial->score < DISTURBED_BELOW * usual;
}

/* Marks what was run in the last batch beside a slow baseline. */
static void mark_disturbed(struct bench_search *search)
{
    double usual = bench_search_score(search, search->space->baseline);
    size_t first = search->trial_count, begin;

    while (first > 0 && search->trials[first - 1].batch == search->batch_number)
        first--;
    begin = first;
    for (size_t i = first + 1; i < search->trial_count; i++) {
        if (search->trials[i].point != search->space->baseline)
            continue;
        bool slow = is_slow(search, &search->trials[begin], usual) || is_slow(search, &search->trials[i], usual);
        for (size_t between = begin; slow && between <= i; between++)
            search->trials[between].doubtful = search->trials[between].point != search->space->baseline ||
                                               is_slow(search, &search->trials[between], usual);
        begin = i;
    }
}

/* What was disturbed in the last batch does not count, and is run again. */
static bool repeat_disturbed(struct bench_search *search)
{
    if (!has_ends(search) || search->batch_number == 0 ||
        (double)search->disturbed > DISTURBED_MOST * search->runs_most)
        return false;
    mark_disturbed(search);
    uint32_t count = 0;
    for (size_t i = 0; i < search->trial_count; i++)
        if (search->trials[i].doubtful && search->trials[i].batch == search->batch_number)
            search->batch[count++] = search->trials[i].point;
    if (count == 0)
        return false;
    if (bench_search_runs_left(search) < bench_search_runs_of(count)) {
        /* A doubtful run is better than none. */
        for (size_t i = 0; i < search->trial_count; i++)
            search->trials[i].doubtful &= search->trials[i].batch != search->batch_number;
        return false;
    }
    search->disturbed += count;
    arrange(search, search->batch, count);
    return true;
}

static void begin_batch(struct bench_search *search)
{
    if (repeat_disturbed(search))
        return;
    while (search->stage < BENCH_STAGE_OVER) {
        if (bench_search_choose(search)) {
            search->batches++;
            arrange(search, search->chosen, search->chosen_count);
            return;
        }
        search->stage =
            search->automatic || search->stage != BENCH_STAGE_FIRST ? search->stage + 1 : BENCH_STAGE_CONFIRM;
        search->batches = 0;
    }
    search->batch_count = search->batch_at = 0;
}

bool bench_search_next(struct bench_search *search, uint32_t *point)
{
    while (search->stage < BENCH_STAGE_OVER) {
        if (search->trial_count == search->runs_most)
            search->stage = BENCH_STAGE_OVER;
        else if (search->batch_at == search->batch_count)
            begin_batch(search);
        else if (search->tallies[search->batch[search->batch_at]].failures >= BENCH_FAILURES_MOST)
            search->batch_at++;
        else
            break;
    }
    if (search->stage == BENCH_STAGE_OVER)
        return false;
    *point = search->batch[search->batch_at];
    return true;
}

void bench_search_take(struct bench_search *search, double score)
{
    uint32_t point = search->batch[search->batch_at++];

    search->trials[search->trial_count++] =
        (struct bench_trial){point, search->batch_number, search->stage, score > 0 ? score : 0, false};
    search->tallies[point].runs++;
    search->tallies[point].failures += score <= 0;
}

/* --- life --- */

int bench_search_init(struct bench_search *search, const struct bench_space *space, bool automatic, uint32_t rounds,
                      uint32_t runs_most, uint64_t seed, struct wf_status *status)
{
    uint32_t whole = space->points * rounds, needed = 2 * (FEW_POINTS + rounds);

    *search = (struct bench_search){.space = space, .rounds = rounds, .seed = seed, .automatic = automatic};
    bool given = runs_most > 0;
    if (automatic && !given)
        runs_most = whole / 3;
    if (automatic && given && space->grid < FEW_POINTS && runs_most < whole + 2 * rounds)
        return wf_fail(status, -EINVAL, "--runs %u: so few points are all run, which takes %u", runs_most,
                       whole + 2 * rounds);
    if (automatic && given && runs_most < needed)
        return wf_fail(status, -EINVAL, "--runs %u: a search with %u rounds takes at least %u", runs_most, rounds,
                       needed);
    if (!automatic || runs_most < needed || space->grid < FEW_POINTS) {
        search->automatic = false;
        runs_most = whole + 2 * rounds;
    }
    search->runs_most = runs_most;
    search->trials = calloc(runs_most, sizeof *search->trials);
    search->tallies = calloc(space->points, sizeof *search->tallies);
    search->chosen = calloc(space->points, sizeof *search->chosen);
    search->batch = calloc(bench_search_runs_of(space->points), sizeof *search->batch);
    search->room = calloc(2 * (size_t)runs_most, sizeof *search->room);
    if (search->trials && search->tallies && search->chosen && search->batch && search->room)
        return 0;
    return wf_fail(status, -ENOMEM, "no memory for a sweep of %u points", space->points);
}

void bench_search_fini(struct bench_search *search)
{
    free(search->trials);
    free(search->tallies);
    free(search->chosen);
    free(search->batch);
    free(search->room);
    memset(search, 0, sizeof *search);
}
