#include "known.h"

#include <errno.h>
#include <stdlib.h>

#include "bench/buffers/arena.h"

static int make_one_known(struct weft_context *context, void *base, uint64_t bytes, struct weft_registration **out,
                          struct wf_status *status)
{
    struct weft_error err = {0};

    if (!base || bytes == 0)
        return 0;
    return weft_register_for(context, base, bytes, 0, out, &err) ? bench_weft_failed(status, &err, "GPU memory") : 0;
}

int bench_known_make(const struct bench_link *link, struct weft_context *context, struct bench_known **out,
                     struct wf_status *status)
{
    const struct bench_arena *arena = link->arena;
    int result = 0;

    if (!link->gpus.count)
        return 0;
    *out = calloc(arena->place_count, sizeof **out);
    if (!*out)
        return wf_fail(status, -ENOMEM, "no memory for %u registrations", arena->place_count);
    for (uint32_t i = 0; result == 0 && i < arena->place_count; i++) {
        const struct bench_buffers *place = &arena->places[i];
        result = make_one_known(context, place->stream, arena->stream_bytes, &(*out)[i].stream, status);
        if (result == 0)
            result = make_one_known(context, place->landings, place->landing_bytes, &(*out)[i].landings, status);
    }
    return result;
}

void bench_known_forget(const struct bench_known *known, const struct bench_arena *arena)
{
    for (uint32_t i = 0; known && i < arena->place_count; i++) {
        if (known[i].stream)
            weft_deregister(known[i].stream);
        if (known[i].landings)
            weft_deregister(known[i].landings);
    }
}
