#include "model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/histogram.h"
#include "bench/words/student.h"

#define DOUBTFUL (BENCH_STAMP_VARIANCE | BENCH_STAMP_ALIGNMENT)

#define GOOD_ENOUGH 1e-3 /* root of the mean squared residual, from which on one line needs no second */

/* --- one line --- */

/* Sums over points, each weighted by 1 / time^2: then its residual counts relative to its time. */
struct sums {
    double weight, size, time;   /* the last two are weighted means */
    double size_size, size_time; /* about these means */
};

static double weight_of(const struct bench_model_point *point)
{
    return 1 / (point->time_ns * point->time_ns);
}

static void sum_up(const struct bench_model_point *points, size_t count, struct sums *sums)
{
    *sums = (struct sums){0};
    for (size_t i = 0; i < count; i++) {
        double weight = weight_of(&points[i]);
        sums->weight += weight;
        sums->size += weight * (double)points[i].size;
        sums->time += weight * points[i].time_ns;
    }
    sums->size /= sums->weight;
    sums->time /= sums->weight;
    for (size_t i = 0; i < count; i++) {
        double weight = weight_of(&points[i]), size = (double)points[i].size - sums->size;
        sums->size_size += weight * size * size;
        sums->size_time += weight * size * (points[i].time_ns - sums->time);
    }
}

double bench_model_time(const struct bench_model_fit *fit, uint64_t size)
{
    return fit->alpha_ns + (double)size * fit->beta_ns;
}

static double squared(double value)
{
    return value * value;
}

bool bench_model_line(const struct bench_model_point *points, size_t count, struct bench_model_fit *fit)
{
    struct sums sums;
    double constant = 0;

    if (count < BENCH_MODEL_LEAST)
        return false;
    sum_up(points, count, &sums);
    *fit = (struct bench_model_fit){
        .from = points[0].size, .to = points[count - 1].size, .beta_ns = sums.size_time / sums.size_size};
    fit->alpha_ns = sums.time - fit->beta_ns * sums.size;
    for (size_t i = 0; i < count; i++) {
        fit->squares += squared(bench_model_time(fit, points[i].size) / points[i].time_ns - 1);
        constant += squared(sums.time / points[i].time_ns - 1); /* the mean is the best constant time */
    }
    double wide = bench_student(count - 2) * sqrt(fit->squares / (double)(count - 2));
    fit->beta_half_ns = wide / sqrt(sums.size_size);
    fit->alpha_half_ns = wide * sqrt(1 / sums.weight + squared(sums.size) / sums.size_size);
    fit->r2 = constant > 0 ? 1 - fit->squares / constant : 0;
    return true;
}

/* --- two --- */

static void find_pieces(struct bench_model_link *link)
{
    const struct bench_model_point *points = link->points;
    double least = link->fit.squares / 2;
    size_t count = link->point_count;

    if (link->fit.squares < squared(GOOD_ENOUGH) * (double)count)
        return;
    for (size_t at = BENCH_MODEL_PIECE; at + BENCH_MODEL_PIECE <= count; at++) {
        struct bench_model_fit below, above;
        if (!bench_model_line(points, at, &below) || !bench_model_line(points + at, count - at, &above) ||
            below.squares + above.squares >= least)
            continue;
        least = below.squares + above.squares;
        link->broken = true;
        link->pieces[0] = below;
        link->pieces[1] = above;
    }
}

/* --- messages to points --- */

static int compare(uint64_t one, uint64_t other)
{
    return (one > other) - (one < other);
}

static int by_link(const struct bench_profile_row *one, const struct bench_profile_row *other)
{
    int order = compare(one->backend, other->backend);

    order = order ? order : compare(one->src, other->src);
    return order ? order : compare(one->dst, other->dst);
}

static int by_size(const void *a, const void *b)
{
    const struct bench_profile_row *one = *(const struct bench_profile_row *const *)a,
                                   *other = *(const struct bench_profile_row *const *)b;
    int order = by_link(one, other);

    return order ? order : compare(one->size, other->size);
}

/* Adds the point of rows of the same link and size, and its link if it is another than the last. */
static void add_point(struct bench_model *model, const struct bench_profile_row **rows, size_t count, double *room)
{
    struct bench_model_link *last = model->link_count ? &model->links[model->link_count - 1] : NULL;
    const struct bench_profile_row *row = rows[0];
    struct bench_model_point point = {.size = row->size, .repetitions = (uint32_t)count};
    struct wf_times times;

    for (size_t i = 0; i < count; i++) {
        room[i] = (double)(rows[i]->end_ns - rows[i]->start_ns);
        point.stamps |= rows[i]->stamps;
    }
    wf_times_of(room, count, &times);
    point.time_ns = times.p50 * 1e3;
    point.cv = times.cv;
    struct bench_model_point *place = &model->points[model->point_count++];
    *place = point;
    if (!last || last->backend != row->backend || last->src != row->src || last->dst != row->dst) {
        last = &model->links[model->link_count++];
        *last = (struct bench_model_link){.backend = row->backend, .src = row->src, .dst = row->dst, .points = place};
    }
    last->point_count++;
    last->doubtful += (point.stamps & DOUBTFUL) != 0;
}

/* Those that took some time, by link and size. */
static size_t choose(const struct bench_profile_row *rows, size_t count, const struct bench_profile_row **chosen)
{
    size_t left = 0;

    for (size_t i = 0; i < count; i++)
        if (rows[i].end_ns - rows[i].start_ns > BENCH_PROFILE_NO_TIME)
            chosen[left++] = &rows[i];
    qsort(chosen, left, sizeof *chosen, by_size);
    return left;
}

static void fit_all(struct bench_model *model)
{
    for (size_t i = 0; i < model->link_count; i++) {
        struct bench_model_link *link = &model->links[i];
        link->fitted = bench_model_line(link->points, link->point_count, &link->fit);
        if (link->fitted)
            find_pieces(link);
    }
}

int bench_model_init(struct bench_model *model, const struct bench_profile_row *rows, size_t count,
                     struct wf_status *status)
{
    const struct bench_profile_row **chosen = calloc(count + 1, sizeof *chosen);
    double *room = calloc(count + 1, sizeof *room);

    *model = (struct bench_model){.points = calloc(count + 1, sizeof *model->points),
                                  .links = calloc(count + 1, sizeof *model->links)};
    bool there = chosen && room && model->points && model->links;
    if (there) {
        size_t left = choose(rows, count, chosen), next;
        for (size_t i = 0; i < left; i = next) {
            for (next = i + 1; next < left && by_size(&chosen[i], &chosen[next]) == 0; next++)
                continue;
            add_point(model, &chosen[i], next - i, room);
        }
        fit_all(model);
    }
    free(chosen);
    free(room);
    return there ? 0 : wf_fail(status, -ENOMEM, "no memory for the model of %zu messages", count);
}

void bench_model_fini(struct bench_model *model)
{
    free(model->points);
    free(model->links);
    *model = (struct bench_model){0};
}

double bench_model_residual(const struct bench_model *model)
{
    double *residuals = calloc(model->point_count + 1, sizeof *residuals);
    size_t count = 0;

    for (size_t i = 0; residuals && i < model->link_count; i++) {
        const struct bench_model_link *link = &model->links[i];
        for (size_t k = 0; link->fitted && k < link->point_count; k++)
            residuals[count++] = fabs(link->points[k].time_ns / bench_model_time(&link->fit, link->points[k].size) - 1);
    }
    double median = count ? wf_median(residuals, count) : -1;
    free(residuals);
    return median;
}
