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

/* --- memory, kept for the next operation --- */

static struct wf_coll_stage *take_spare(struct wf_coll_hub *hub, uint64_t room)
{
    struct wf_coll_stage **at = &hub->spares;
    while (*at && (*at)->room < room)
        at = &(*at)->next;
    struct wf_coll_stage *stage = *at;
    if (stage)
        *at = stage->next;
    return stage;
}

static void destroy(struct wf_coll_stage *stage)
{
    free(stage->memory);
    free(stage);
}

/* The smallest one that is large enough, or a new one; NULL: no memory. */
static struct wf_coll_stage *take(struct wf_coll_hub *hub, uint64_t room)
{
    struct wf_coll_stage *stage = take_spare(hub, room);
    if (stage)
        return stage;
    stage = calloc(1, sizeof *stage);
    if (!stage)
        return NULL;
    stage->room = room;
    stage->memory = malloc(room);
    if (stage->memory)
        return stage;
    free(stage);
    return NULL;
}

/* The list is in the order of their sizes; of too many the smallest is freed. */
void wf_coll_stage_end(struct wf_coll_hub *hub, struct wf_coll_stage *stage)
{
    if (!stage)
        return;
    struct wf_coll_stage **at = &hub->spares;
    while (*at && (*at)->room < stage->room)
        at = &(*at)->next;
    stage->next = *at;
    *at = stage;
    int count = 0;
    for (const struct wf_coll_stage *spare = hub->spares; spare; spare = spare->next)
        count++;
    if (count <= WF_COLL_SPARES)
        return;
    struct wf_coll_stage *smallest = hub->spares;
    hub->spares = smallest->next;
    destroy(smallest);
}

void wf_coll_stages_free(struct wf_coll_hub *hub)
{
    while (hub->spares) {
        struct wf_coll_stage *stage = hub->spares;
        hub->spares = stage->next;
        destroy(stage);
    }
}

/* --- an operation --- */

/* An all-reduce works in place: one copy of the memory is enough. */
static int make(struct wf_coll_hub *hub, struct wf_ask *ask, uint64_t in_bytes, uint64_t out_bytes,
                struct wf_coll_stage **out, struct weft_error *err)
{
    uint64_t before = ask->kind == WEFT_ALL_REDUCE ? 0 : in_bytes;
    struct wf_coll_stage *stage = take(hub, before + out_bytes);
    if (!stage)
        return wf_coll_refuse(err, -ENOMEM, "no memory for %llu bytes of a collective in GPU memory",
                              (unsigned long long)(before + out_bytes));
    stage->to = ask->out;
    stage->bytes = out_bytes;
    stage->out = stage->memory + before;
    int result = in_bytes > 0 ? weft_gpu_copy(hub->context, stage->memory, ask->in, in_bytes, err) : 0;
    if (result < 0) {
        wf_coll_stage_end(hub, stage);
        return result;
    }
    ask->in = stage->memory;
    ask->out = stage->out;
    *out = stage;
    return 0;
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
    return result <= 0 ? result : make(hub, ask, in_bytes, out_bytes, out, err);
}

int wf_coll_stage_out(struct wf_coll_hub *hub, const struct wf_coll_stage *stage, struct weft_error *err)
{
    return stage ? weft_gpu_copy(hub->context, stage->to, stage->out, stage->bytes, err) : 0;
}
