/* Tokens on their way back: runs of them, in the order in which fragments were placed. */
#include <errno.h>

#include "intake.h"
#include "intake_parts.h"

void wf_devmem_hold(struct wf_devmem_intake *intake, uint32_t token, uint64_t batch)
{
    struct wf_devmem_run *last = &intake->run[(intake->runs.end - 1) & intake->runs.mask];

    if (wf_devmem_in_use(&intake->runs) && last->batch == batch && last->tokens.start + last->tokens.count == token &&
        token != 0)
        last->tokens.count++;
    else
        intake->run[intake->runs.end++ & intake->runs.mask] =
            (struct wf_devmem_run){.tokens = {.start = token, .count = 1}, .batch = batch};
}

int wf_devmem_intake_done(struct wf_devmem_intake *intake, uint64_t number)
{
    if (number == 0 || number > intake->batches)
        return -EINVAL;
    if (number > intake->done)
        intake->done = number;
    return 0;
}

/* Moves up to `most` tokens from the front of a run to the ranges. False: there is no range left for them. */
static bool move(struct wf_devmem_tokens *run, uint32_t most, struct wf_devmem_tokens *ranges, uint32_t *count,
                 uint32_t *fragments)
{
    struct wf_devmem_tokens *last = *count > 0 ? &ranges[*count - 1] : NULL;
    uint32_t moved = run->count < most ? run->count : most;

    if (last && last->start + last->count == run->start && run->start != 0)
        last->count += moved;
    else if (*count < WF_DEVMEM_RANGES_MAX)
        ranges[(*count)++] = (struct wf_devmem_tokens){.start = run->start, .count = moved};
    else
        return false;
    run->start += moved;
    run->count -= moved;
    *fragments += moved;
    return true;
}

uint32_t wf_devmem_intake_give_back(struct wf_devmem_intake *intake,
                                    struct wf_devmem_tokens ranges[WF_DEVMEM_RANGES_MAX], uint32_t *fragments)
{
    uint32_t count = 0;

    *fragments = 0;
    while (wf_devmem_in_use(&intake->runs) && *fragments < WF_DEVMEM_GIVEN_MAX) {
        struct wf_devmem_run *run = &intake->run[intake->runs.first & intake->runs.mask];
        if (run->batch > intake->done ||
            !move(&run->tokens, WF_DEVMEM_GIVEN_MAX - *fragments, ranges, &count, fragments))
            break;
        intake->runs.first += run->tokens.count == 0;
    }
    intake->held -= *fragments;
    intake->used -= *fragments;
    return count;
}

uint32_t wf_devmem_intake_held(const struct wf_devmem_intake *intake)
{
    return intake->held;
}
