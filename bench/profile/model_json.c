#include "model.h"

#include <math.h>

#include "bench/words/json.h"

/* null: what is no number. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* A quotient that means something for positive numbers only. */
static double quotient(double over, double under)
{
    return over > 0 && under > 0 ? over / under : NAN;
}

/* A byte in a nanosecond is a GB/s. */
static void put_bandwidth(json_t *object, const struct bench_model_fit *fit)
{
    json_object_set_new(object, "bandwidth_gb_per_s", number(quotient(1, fit->beta_ns)));
    json_object_set_new(object, "bandwidth_gb_per_s_low", number(quotient(1, fit->beta_ns + fit->beta_half_ns)));
    json_object_set_new(object, "bandwidth_gb_per_s_high", number(quotient(1, fit->beta_ns - fit->beta_half_ns)));
}

static void put_fit(json_t *object, const struct bench_model_fit *fit)
{
    json_object_set_new(object, "alpha_us", number(fit->alpha_ns / 1e3));
    json_object_set_new(object, "alpha_us_low", number((fit->alpha_ns - fit->alpha_half_ns) / 1e3));
    json_object_set_new(object, "alpha_us_high", number((fit->alpha_ns + fit->alpha_half_ns) / 1e3));
    json_object_set_new(object, "beta_ns_per_byte", number(fit->beta_ns));
    json_object_set_new(object, "beta_ns_per_byte_low", number(fit->beta_ns - fit->beta_half_ns));
    json_object_set_new(object, "beta_ns_per_byte_high", number(fit->beta_ns + fit->beta_half_ns));
    put_bandwidth(object, fit);
    json_object_set_new(object, "crossover_bytes", number(quotient(fit->alpha_ns, fit->beta_ns)));
    json_object_set_new(object, "r2", number(fit->r2));
}

static json_t *piece_to_json(const struct bench_model_fit *fit)
{
    json_t *object = json_pack("{s:I, s:I}", "from_bytes", (json_int_t)fit->from, "to_bytes", (json_int_t)fit->to);

    put_fit(object, fit);
    return object;
}

static json_t *point_to_json(const struct bench_model_link *link, const struct bench_model_point *point)
{
    double residual = link->fitted ? point->time_ns / bench_model_time(&link->fit, point->size) - 1 : NAN;

    return json_pack("{s:I, s:f, s:f, s:I, s:o, s:o}", "size_bytes", (json_int_t)point->size, "time_us",
                     point->time_ns / 1e3, "cv", point->cv, "repetitions", (json_int_t)point->repetitions, "residual",
                     number(residual), "stamps", bench_stamps_to_json(point->stamps));
}

static json_t *points_to_json(const struct bench_model_link *link)
{
    json_t *points = json_array();

    for (size_t i = 0; i < link->point_count; i++)
        json_array_append_new(points, point_to_json(link, &link->points[i]));
    return points;
}

static json_t *pieces_to_json(const struct bench_model_link *link)
{
    return link->broken ? json_pack("[o, o]", piece_to_json(&link->pieces[0]), piece_to_json(&link->pieces[1]))
                        : json_null();
}

static json_t *link_to_json(const struct bench_model_link *link, const char *const *backends)
{
    const struct bench_model_fit none = {.alpha_ns = NAN, .beta_ns = NAN, .r2 = NAN};
    json_t *object = json_pack("{s:s, s:I, s:I, s:I, s:I}", "backend", backends[link->backend], "src",
                               (json_int_t)link->src, "dst", (json_int_t)link->dst, "sizes",
                               (json_int_t)link->point_count, "doubtful_sizes", (json_int_t)link->doubtful);

    put_fit(object, link->fitted ? &link->fit : &none);
    json_object_set_new(object, "pieces", pieces_to_json(link));
    json_object_set_new(object, "points", points_to_json(link));
    json_object_set_new(object, "reason",
                        link->fitted ? json_null()
                                     : json_sprintf("%zu sizes have a time, and a line needs %d", link->point_count,
                                                    BENCH_MODEL_LEAST));
    return object;
}

json_t *bench_model_to_json(const struct bench_model *model, const char *const *backends)
{
    json_t *links = json_array();

    for (size_t i = 0; i < model->link_count; i++)
        json_array_append_new(links, link_to_json(&model->links[i], backends));
    return json_pack("{s:s, s:s, s:o, s:o}", "schema", BENCH_MODEL_SCHEMA, "formula",
                     "time_us = alpha_us + size_bytes * beta_ns_per_byte / 1000; residual = measured / formula - 1",
                     "residual_median", bench_number_or_null(bench_model_residual(model)), "links", links);
}
