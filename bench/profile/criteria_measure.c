#include <errno.h>
#include <stdlib.h>

#include "base/histogram.h"

#include "criteria.h"

#define STEADY_CV 0.05
#define LARGE (1u << 20) /* bytes */
#define NEAR 0.9         /* of the best rate */
#define SMALL 1024       /* bytes */
#define EVEN 0.2         /* spread of their times */
#define CLEAR_R2 0.9

static double rate_of(const struct bench_model_point *point)
{
    return (double)point->size / point->time_ns;
}

static void measure_large(const struct bench_model_link *link, struct bench_criteria_input *input)
{
    const struct bench_model_point *points = link->points;
    size_t count = link->point_count;
    double best = 0;

    if (count < 2 || points[count - 1].size < LARGE)
        return;
    for (size_t i = 0; i < count; i++)
        best = rate_of(&points[i]) > best ? rate_of(&points[i]) : best;
    double last = rate_of(&points[count - 1]), before = rate_of(&points[count - 2]);
    double least = (last < before ? last : before) / best;
    input->near_least = input->large == 0 || least < input->near_least ? least : input->near_least;
    input->near += least >= NEAR;
    input->large++;
}

/* Sorts into `room`. */
static void measure_small(const struct bench_model_link *link, double *room, struct bench_criteria_input *input)
{
    size_t count = 0;

    for (size_t i = 0; i < link->point_count; i++)
        if (link->points[i].size <= SMALL)
            room[count++] = link->points[i].time_ns;
    if (count < 2)
        return;
    double median = wf_median(room, count), spread = (room[count - 1] - room[0]) / median;
    input->small_spread = spread > input->small_spread ? spread : input->small_spread;
    input->even += spread <= EVEN;
    input->small++;
}

static void measure_fit(const struct bench_model_link *link, struct bench_criteria_input *input)
{
    const struct bench_model_fit *fit = &link->fit;

    input->links++;
    if (!link->fitted)
        return;
    double crossover = fit->beta_ns > 0 ? fit->alpha_ns / fit->beta_ns : -1;
    input->crossed += crossover > (double)fit->from && crossover < (double)fit->to;
    input->clear += fit->r2 >= CLEAR_R2;
    input->r2_least = input->fitted == 0 || fit->r2 < input->r2_least ? fit->r2 : input->r2_least;
    input->fitted++;
}

static void measure_variance(const struct bench_model *model, double *room, struct bench_criteria_input *input)
{
    for (size_t i = 0; i < model->point_count; i++) {
        const struct bench_model_point *point = &model->points[i];
        if (point->repetitions < 2)
            continue;
        room[input->repeated++] = point->cv;
        input->steady += point->cv < STEADY_CV;
    }
    input->cv_median = wf_median(room, input->repeated);
}

int bench_criteria_measure(const struct bench_model *model, struct bench_criteria_input *input,
                           struct wf_status *status)
{
    double *room = calloc(model->point_count + 1, sizeof *room);

    if (!room)
        return wf_fail(status, -ENOMEM, "no memory for the criteria of %zu sizes", model->point_count);
    input->repeated = input->steady = input->large = input->near = input->small = input->even = 0;
    input->links = input->fitted = input->clear = input->crossed = 0;
    input->near_least = input->small_spread = input->r2_least = 0;
    measure_variance(model, room, input);
    for (size_t i = 0; i < model->link_count; i++) {
        measure_large(&model->links[i], input);
        measure_small(&model->links[i], room, input);
        measure_fit(&model->links[i], input);
    }
    input->residual = bench_model_residual(model);
    free(room);
    return 0;
}
