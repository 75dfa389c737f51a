#include "background.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORTH = 0, BACK = 1 };

int bench_background_init(struct bench_background *background, struct wf_status *status)
{
    const struct bench_plan *plan = background->bed->plan;

    /* Where nothing moves, no empty message would ever come. */
    if (plan->background == 0 || !background->bed->ops->moves_data)
        return 0;
    background->size = plan->background;
    background->inflight = plan->background_inflight;
    background->pending = calloc(background->inflight, sizeof *background->pending);
    background->ended = calloc(background->inflight, sizeof *background->ended);
    if (!background->pending || !background->ended)
        return wf_fail(status, -ENOMEM, "no memory for %u messages in the background", background->inflight);
    return 0;
}

void bench_background_fini(struct bench_background *background)
{
    free(background->pending);
    free(background->ended);
}

/* Either way carries different data. */
static const uint8_t *background_data(const struct bench_background *background, uint64_t number, int way)
{
    const struct bench_bed *bed = background->bed;

    return bench_arena_background_data(bed->arena, bed->plan, background->pair, 2 * number + (unsigned)way);
}

static uint8_t *background_landing(const struct bench_background *background, uint32_t slot)
{
    return bench_arena_background(background->bed->arena, background->place, background->size, slot);
}

static int background_failed(struct bench_background *background, int code, const char *text, struct wf_status *status)
{
    char where[WF_STATUS_TEXT];

    snprintf(where, sizeof where, "background: %s", text);
    return bench_control_failed(background->bed->control, code, where, status);
}

static int post_background_recv(struct bench_background *background, uint32_t slot, struct wf_status *status)
{
    const struct bench_bed *bed = background->bed;
    uint8_t *landing = background_landing(background, slot);
    int result = background->verified ? bench_poison(bed, background->place, landing, background->size, status) : 0;

    if (result)
        return result;
    result = bed->ops->recv(bed->backend, background->pair, landing, background->size, background->tag,
                            &background->requests[slot]);
    if (result)
        return background_failed(background, result, wf_strerror(result), status);
    background->pending[slot] = background->expected++;
    background->live++;
    return 0;
}

/* The next full message, or, once it is over, the empty one. */
static int post_background_send(struct bench_background *background, uint32_t slot, struct wf_status *status)
{
    const struct bench_bed *bed = background->bed;
    const uint8_t *data = background_data(background, background->sent, background->source ? FORTH : BACK);
    int result = bed->ops->send(bed->backend, background->pair, bench_arena_source(bed->arena, background->place, data),
                                background->sending ? background->size : 0, background->tag,
                                &background->requests[background->inflight + slot]);

    if (result)
        return background_failed(background, result, wf_strerror(result), status);
    background->sent += background->sending;
    background->ended[slot] = !background->sending;
    background->live++;
    return 0;
}

int bench_background_listen(struct bench_background *background, struct wf_status *status)
{
    int result = 0;

    for (uint32_t slot = 0; result == 0 && slot < background->inflight; slot++)
        result = post_background_recv(background, slot, status);
    return result;
}

int bench_background_start(struct bench_background *background, struct wf_status *status)
{
    int result = 0;

    background->sending = true;
    for (uint32_t slot = 0; result == 0 && slot < background->inflight; slot++)
        result = post_background_send(background, slot, status);
    return result;
}

void bench_background_stop(struct bench_background *background)
{
    background->sending = false;
}

static int check_background(struct bench_background *background, uint32_t slot, struct wf_status *status)
{
    uint64_t number = background->pending[slot];

    return bench_check(background->bed, background->place, background_landing(background, slot),
                       background_data(background, number, background->source ? BACK : FORTH), background->size, number,
                       &background->wrong, status);
}

static int take_received(struct bench_background *background, uint32_t slot, const struct weft_completion *completion,
                         struct wf_status *status)
{
    char text[96];

    if (completion->bytes == 0) {
        /* No message had the number that this receive waited for; the next run's first one will. */
        background->expected--;
        return 0;
    }
    if (completion->bytes != background->size) {
        snprintf(text, sizeof text, "%" PRIu64 " bytes came instead of %" PRIu64, completion->bytes, background->size);
        return background_failed(background, -EPROTO, text, status);
    }
    int result = background->verified ? check_background(background, slot, status) : 0;
    background->flux.messages++;
    if (completion->completed_ns > background->last_ns)
        background->last_ns = completion->completed_ns;
    return result ? result : post_background_recv(background, slot, status);
}

int bench_background_take(struct bench_background *background, uint32_t index, const struct weft_completion *completion,
                          struct wf_status *status)
{
    background->requests[index] = NULL;
    background->live--;
    if (completion->status)
        return background_failed(background, completion->status, completion->text, status);
    if (index < background->inflight)
        return take_received(background, index, completion, status);
    index -= background->inflight;
    return background->ended[index] ? 0 : post_background_send(background, index, status);
}

void bench_background_count(struct bench_background *background, int64_t start_ns)
{
    if (background->last_ns > start_ns)
        background->flux.elapsed_ns += (uint64_t)(background->last_ns - start_ns);
}

void bench_background_forget(struct bench_background *background)
{
    memset(&background->flux, 0, sizeof background->flux);
}
