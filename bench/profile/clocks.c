#include "clocks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/words/student.h"

#define ROOM_FIRST 64
#define PIECES_MAX 256
#define LATE 4             /* times the median of all */
#define SHIFT_MOST_NS 1e15 /* clocks that run apart by more than days in a run are none */

void bench_track_fini(struct bench_track *track)
{
    free(track->fixes);
    *track = (struct bench_track){0};
}

int bench_track_add(struct bench_track *track, const struct bench_fix *fix)
{
    if (track->count == track->room) {
        size_t room = track->room ? 2 * track->room : ROOM_FIRST;
        struct bench_fix *grown = realloc(track->fixes, room * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        track->fixes = grown;
        track->room = room;
    }
    track->fixes[track->count++] = *fix;
    return 0;
}

void bench_fix_of(const struct bench_clock_reading *reading, struct bench_fix *fix)
{
    int64_t round_trip = reading->back_ns - reading->asked_ns - (reading->answered_ns - reading->heard_ns);

    fix->here_ns = reading->asked_ns + (reading->back_ns - reading->asked_ns) / 2;
    fix->there_ns = reading->heard_ns + (reading->answered_ns - reading->heard_ns) / 2;
    fix->error_ns = (round_trip + 1) / 2;
}

/* The last fix that is not after `there_ns`, or the first. */
static size_t find_before(const struct bench_track *track, int64_t there_ns)
{
    size_t low = 0, high = track->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (track->fixes[middle].there_ns <= there_ns)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Two fixes on whose line `there_ns` lies; false: there is one alone. */
static bool find_line(const struct bench_track *track, int64_t there_ns, const struct bench_fix **from,
                      const struct bench_fix **to)
{
    size_t low = find_before(track, there_ns), high = low + 1;

    if (high >= track->count) { /* after the last */
        high = track->count - 1;
        for (low = high; low > 0 && track->fixes[high].there_ns - track->fixes[low].there_ns < WF_NS_PER_S; low--)
            ;
    }
    for (; high < track->count - 1 && there_ns < track->fixes[0].there_ns &&
           track->fixes[high].there_ns - track->fixes[low].there_ns < WF_NS_PER_S;
         high++) /* before the first */
        ;
    *from = &track->fixes[low];
    *to = &track->fixes[high];
    return track->fixes[high].there_ns > track->fixes[low].there_ns;
}

int64_t bench_track_here(const struct bench_track *track, int64_t there_ns)
{
    const struct bench_fix *from, *to;

    if (!find_line(track, there_ns, &from, &to))
        return from->here_ns + (there_ns - from->there_ns);
    /* The difference of the two rates is small: in doubles nothing is lost. */
    double behind = (double)((to->here_ns - from->here_ns) - (to->there_ns - from->there_ns));
    double share = (double)(there_ns - from->there_ns) / (double)(to->there_ns - from->there_ns);
    double shift = behind * share;
    return from->here_ns + (there_ns - from->there_ns) + (fabs(shift) < SHIFT_MOST_NS ? llround(shift) : 0);
}

int64_t bench_track_error(const struct bench_track *track, int64_t there_ns)
{
    const struct bench_fix *from, *to;

    find_line(track, there_ns, &from, &to);
    return from->error_ns > to->error_ns ? from->error_ns : to->error_ns;
}

/* --- a line --- */

static int64_t offset_of(const struct bench_fix *fix)
{
    return fix->there_ns - fix->here_ns;
}

/* The best fix of each piece; returns how many. */
static size_t pick_best(const struct bench_track *track, size_t pieces, const struct bench_fix **best)
{
    int64_t first = track->fixes[0].here_ns, span = track->fixes[track->count - 1].here_ns - first + 1;
    size_t count = 0, last = SIZE_MAX;

    for (size_t i = 0; i < track->count; i++) {
        const struct bench_fix *fix = &track->fixes[i];
        size_t piece = (size_t)((double)(fix->here_ns - first) / (double)span * (double)pieces);
        if (piece != last)
            best[count++] = fix;
        else if (fix->error_ns < best[count - 1]->error_ns)
            best[count - 1] = fix;
        last = piece;
    }
    return count;
}

/* Least squares, about the means: times and offsets are large numbers with small differences. */
static void draw_line(const struct bench_fix *const *best, size_t count, struct bench_drift *drift)
{
    const struct bench_fix *base = best[0];
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0, squares = 0;

    for (size_t i = 0; i < count; i++) {
        mean_x += (double)(best[i]->here_ns - base->here_ns) / (double)count;
        mean_y += (double)(offset_of(best[i]) - offset_of(base)) / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        double x = (double)(best[i]->here_ns - base->here_ns) - mean_x;
        xx += x * x;
        xy += x * ((double)(offset_of(best[i]) - offset_of(base)) - mean_y);
    }
    double slope = xy / xx;
    for (size_t i = 0; i < count; i++) {
        double x = (double)(best[i]->here_ns - base->here_ns) - mean_x;
        double off = (double)(offset_of(best[i]) - offset_of(base)) - mean_y - slope * x;
        squares += off * off;
    }
    double end = (double)(best[count - 1]->here_ns - base->here_ns);
    drift->residual_ns = sqrt(squares / (double)(count - 2));
    drift->ppm = slope * 1e6;
    double error = bench_student(count - 2) * drift->residual_ns;
    drift->ppm_error = error / sqrt(xx) * 1e6;
    drift->offset_ns = offset_of(base) + llround(mean_y + slope * (end - mean_x));
    drift->offset_error_ns = llround(hypot(error / sqrt((double)count), error / sqrt(xx) * (end - mean_x)));
    drift->at_ns = best[count - 1]->here_ns;
    drift->seconds = end / (double)WF_NS_PER_S;
}

static int by_error(const void *one, const void *other)
{
    int64_t a = (*(const struct bench_fix *const *)one)->error_ns,
            b = (*(const struct bench_fix *const *)other)->error_ns;

    return (a > b) - (a < b);
}

/* Leaves out exchanges that took far longer than most, as when a node stood still for a while. */
static size_t leave_late(const struct bench_fix **best, size_t count)
{
    const struct bench_fix *sorted[PIECES_MAX];
    size_t kept = 0;

    memcpy(sorted, best, count * sizeof best[0]);
    qsort(sorted, count, sizeof sorted[0], by_error);
    for (size_t i = 0; i < count; i++)
        if (best[i]->error_ns <= LATE * sorted[count / 2]->error_ns)
            best[kept++] = best[i];
    return kept;
}

void bench_drift_of(const struct bench_track *track, size_t pieces, struct bench_drift *drift)
{
    const struct bench_fix *best[PIECES_MAX];

    *drift = (struct bench_drift){0};
    if (track->count < 3)
        return;
    if (pieces > track->count / 3)
        pieces = track->count < 9 ? 3 : track->count / 3;
    size_t count = leave_late(best, pick_best(track, pieces < PIECES_MAX ? pieces : PIECES_MAX, best));
    if (count < 3)
        return;
    if (best[count - 1]->here_ns <= best[0]->here_ns)
        return;
    drift->fixes = count;
    draw_line(best, count, drift);
    drift->half_trip_ns = best[0]->error_ns;
    for (size_t i = 1; i < count; i++)
        if (best[i]->error_ns < drift->half_trip_ns)
            drift->half_trip_ns = best[i]->error_ns;
    drift->offset_error_ns += drift->half_trip_ns;
}

double bench_steered_ppm(const struct bench_clock_reading *first, const struct bench_clock_reading *last, int node)
{
    int64_t raw = last->raw_ns[node] - first->raw_ns[node], steered = last->at_ns[node] - first->at_ns[node];

    return raw > 0 ? (double)(steered - raw) / (double)raw * 1e6 : 0;
}
