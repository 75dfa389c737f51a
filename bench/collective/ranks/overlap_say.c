/* What rank 0 writes of `weft overlap`: a JSON object a line. */
#include "overlap.h"

static const char *const names[OVERLAP_MODES] = {"compute", "communicate", "serial", "overlapped"};

const char *overlap_mode_name(enum overlap_mode mode)
{
    return names[mode];
}

static void put_case(const struct overlap *overlap)
{
    printf("\"style\": \"%s\", \"bucket_bytes\": %llu", rank_style_name(overlap->style),
           (unsigned long long)overlap->bucket_bytes);
}

void overlap_say_start(const struct overlap *overlap)
{
    const struct layers *layers = &overlap->layers;
    uint64_t layer_bytes = layers_elements(layers) * sizeof(float);
    uint32_t last = overlap->buckets[overlap->bucket_count - 1].count;

    printf("{\"event\": \"start\", ");
    put_case(overlap);
    printf(", \"layers\": %u, \"layer_bytes\": %llu, \"batch\": %u, \"buckets\": %u, \"last_bucket_bytes\": %llu, "
           "\"computed_by\": \"%s\"}\n",
           layers->count, (unsigned long long)layer_bytes, layers->batch, overlap->bucket_count,
           (unsigned long long)(last * layer_bytes), layers->how);
    fflush(stdout);
}

void overlap_say_lack(const struct overlap *overlap, const char *why)
{
    printf("{\"event\": \"lack\", ");
    put_case(overlap);
    printf(", \"why\": \"%s\"}\n", why);
    fflush(stdout);
}

void overlap_say_iteration(const struct overlap *overlap, const struct overlap_figures *figures)
{
    printf("{\"event\": \"iteration\", ");
    put_case(overlap);
    for (int mode = 0; mode < OVERLAP_MODES; mode++)
        printf(", \"%s_s\": %.6f, \"%s_cpu_s\": %.6f", names[mode], figures->wall_s[mode], names[mode],
               figures->cpu_s[mode]);
    printf("}\n");
    fflush(stdout);
}

static void put_timeline(const struct overlap *overlap, enum overlap_mode mode)
{
    const struct overlap_times *times = &overlap->times[mode];

    printf("\"%s\": {\"layers\": [", names[mode]);
    for (uint32_t i = 0; i < overlap->layers.count; i++)
        printf("%s[%.6f, %.6f]", i ? ", " : "", times->begun[i], times->ended[i]);
    printf("], \"buckets\": [");
    for (uint32_t i = 0; i < overlap->bucket_count; i++)
        printf("%s[%.6f, %.6f, %.6f]", i ? ", " : "", times->buckets[i].ready, times->buckets[i].begun,
               times->buckets[i].ended);
    printf("]}");
}

/* With when what happened here in the last iteration. */
void overlap_say_end(const struct overlap *overlap)
{
    printf("{\"event\": \"end\", ");
    put_case(overlap);
    printf(", \"wrong\": %llu, \"checked\": %llu, \"timeline\": {", (unsigned long long)overlap->wrong,
           (unsigned long long)overlap->checked);
    put_timeline(overlap, OVERLAP_SERIAL);
    printf(", ");
    put_timeline(overlap, OVERLAP_BOTH);
    printf("}}\n");
    fflush(stdout);
}
