#include "parts.h"

#include <string.h>

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static void put_case(FILE *out, const json_t *one)
{
    const json_t *wall = json_object_get(one, "wall_s"), *hidden = json_object_get(one, "hidden");

    if (!wall)
        return;
    fprintf(out, "%-8s %5.0f %-10s %9.0f %7.0f %9.1f %9.1f %9.1f %9.1f %6.0f %% %3.0f..%-3.0f %5.0f %% %6.2f\n",
            text(one, "backend"), number(one, "ranks"), text(one, "style"), number(one, "bucket_bytes") / (1 << 20),
            number(one, "buckets"), 1e3 * number(wall, "compute"), 1e3 * number(wall, "communicate"),
            1e3 * number(wall, "serial"), 1e3 * number(wall, "overlapped"), 100 * number(hidden, "median"),
            100 * number(hidden, "min"), 100 * number(hidden, "max"), 100 * number(one, "hidden_at_most"),
            number(one, "cores_to_communicate"));
}

static void put_head(FILE *out, const json_t *first)
{
    fprintf(out, "# %.0f layers of %.0f MiB of gradients, batch %.0f, computed by %s\n", number(first, "layers"),
            number(first, "layer_bytes") / (1 << 20), number(first, "batch"), text(first, "computed_by"));
    fprintf(out, "# Wall clock in ms, medians; hidden: (serial - overlapped) / communicate; cores: processor time of a "
                 "rank over communicate\n");
    fprintf(out, "#%-7s %5s %-10s %9s %7s %9s %11s %7s %11s %7s %9s %7s %6s\n", "backend", "ranks", "style",
            "bucket/MB", "buckets", "compute", "communicate", "serial", "overlapped", "hidden", "range", "at most",
            "cores");
}

void overlap_put_table(FILE *out, const struct overlap_found *found)
{
    size_t index;
    json_t *one;

    if (json_array_size(found->cases))
        put_head(out, json_array_get(found->cases, 0));
    json_array_foreach(found->cases, index, one) put_case(out, one);
    fputc('\n', out);
    coll_reasons_put(out, found->absent, "n/a");
    double checked = 0;
    json_array_foreach(found->cases, index, one) checked += number(one, "verified_elements");
    if (checked > 0)
        fprintf(out, "# Gradients verified: %.0f elements, %llu wrong: %s\n", checked, (unsigned long long)found->wrong,
                found->wrong ? "FAILED" : "OK");
}
