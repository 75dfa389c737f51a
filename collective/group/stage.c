/*
 * GPU memory of a collective: a copy of `in` in host memory before it begins, and from there to `out` when it has
 * ended. No call of weft.h tells whose memory an address is, but a registration does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collective/group/group.h"

/* 1: memory of a GPU; 0: of the host; or why that is not known. */
static int is_on_gpu(struct wf_coll_hub *hub, const void *memory, uint64_t bytes, struct weft_error *err)
{
    struct weft_registration *registration;
    int result = weft_register_for(hub->context, (void *)(uintptr_t)memory, bytes, 0, &registration, err);
    if (result < 0)
        return result;
    result = weft_registration_kind(registration) == WEFT_MEMORY_CUDA;
    weft_deregister(registration);
    return result;
}

static int make(struct wf_coll_hub *hub, struct wf_ask *ask, struct wf_coll_stage *stage, uint64_t in_bytes,
                struct weft_error *err)
{
    stage->in = malloc(in_bytes > 0 ? in_bytes : 1);
    stage->out = malloc(stage->bytes);
    if (!stage->in || !stage->out)
        return wf_coll_refuse(err, -ENOMEM, "no memory for copies of a collective in GPU memory");
    int result = in_bytes > 0 ? weft_gpu_copy(hub->context, stage->in, ask->in, in_bytes, err) : 0;
    ask->in = stage->in;
    ask->out = stage->out;
    return result;
}

int wf_coll_stage_create(struct wf_coll_hub *hub, struct wf_ask *ask, uint64_t in_bytes, uint64_t out_bytes,
                         struct wf_coll_stage **out, struct weft_error *err)
{
    *out = NULL;
    if (out_bytes == 0 || strcmp(weft_context_memory(hub->context), "host") == 0)
        return 0;
    int result = in_bytes > 0 ? is_on_gpu(hub, ask->in, in_bytes, err) : 0;
    if (result == 0)
        result = is_on_gpu(hub, ask->out, out_bytes, err);
    if (result <= 0)
        return result;
    struct wf_coll_stage *stage = calloc(1, sizeof *stage);
    if (!stage)
        return wf_coll_refuse(err, -ENOMEM, "no memory for a collective in GPU memory");
    stage->to = ask->out;
    stage->bytes = out_bytes;
    result = make(hub, ask, stage, in_bytes, err);
    if (result < 0)
        wf_coll_stage_destroy(stage);
    else
        *out = stage;
    return result;
}

int wf_coll_stage_out(struct wf_coll_hub *hub, const struct wf_coll_stage *stage, struct weft_error *err)
{
    return stage ? weft_gpu_copy(hub->context, stage->to, stage->out, stage->bytes, err) : 0;
}

void wf_coll_stage_destroy(struct wf_coll_stage *stage)
{
    if (!stage)
        return;
    free(stage->in);
    free(stage->out);
    free(stage);
}
