#include "parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Takes the word of the command line, or what stands for it. */
static int take(struct rank_asked *asked, const char *option, const char *said, const char *fallback,
                struct wf_status *status)
{
    return rank_overlap_take(asked, option, said ? said : fallback, status);
}

static int larger(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

int overlap_asked(struct rank_asked *asked, const struct bench_options *options, struct wf_status *status)
{
    const struct bench_collective_words *words = &options->collective;
    const struct wf_config *config = options->config;

    *asked = (struct rank_asked){.type = RANK_FLOAT32, .redop = RANK_SUM, .in_place = true};
    int result = coll_own_default(options, WF_SET_ITERS, "5", status);
    if (result == 0)
        result = coll_own_default(options, WF_SET_WARMUP, "1", status);
    if (result == 0)
        result = take(asked, "layers", words->layers, "48", status);
    if (result == 0)
        result = take(asked, "layer-mb", words->layer_mb, "5", status);
    if (result == 0)
        result = take(asked, "bucket-mb", words->bucket_mb, "25", status);
    qsort(asked->sizes, (size_t)asked->size_count, sizeof asked->sizes[0], larger); /* curves go over them */
    if (result == 0)
        result = take(asked, "style", words->style, "all_reduce", status);
    if (result == 0 && words->batch)
        result = take(asked, "batch", words->batch, NULL, status);
    if (result == 0 && strcmp(wf_config_text(config, WF_SET_CHECK), "all") == 0)
        result = wf_fail(status, -EINVAL, "--check all: each iteration is verified anyway: use 0 or 1");
    asked->check = strcmp(wf_config_text(config, WF_SET_CHECK), "0") != 0;
    asked->iters = (uint64_t)wf_config_number(config, WF_SET_ITERS);
    asked->warmup = (uint64_t)wf_config_number(config, WF_SET_WARMUP);
    asked->timeout_s = coll_timeout_s(config);
    return result;
}
