/* Notifications of no operation: each is told once, and after those that were posted before it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_remote.h"

#define RUINED 0x11
#define FIRST_TAG 100000 /* above the tags of operations */

static uint8_t content(const struct model_world *world, const struct model_notice *notice, uint32_t at)
{
    uint64_t mixed = (world->seed * 131 + notice->tag + at / 4) * 0x9E3779B97F4A7C15ull;
    return (uint8_t)(mixed >> (32 + at % 4 * 8));
}

static void post(struct model_world *world, int connection, int from, uint64_t bits)
{
    struct model_side *side = &world->sides[connection][from];
    if (side->notice_count == MODEL_NOTICES)
        return;
    struct model_notice *notice = &side->notices[side->notice_count];
    *notice = (struct model_notice){.tag = (uint64_t)(FIRST_TAG + (connection * 2 + from) * 100 + side->notice_count),
                                    .size = (uint32_t)(bits % 5 == 0 ? bits / 5 % 9000 : bits / 5 % 200)};
    side->notice_count += 1;
    notice->data = malloc(notice->size + 1);
    for (uint32_t at = 0; at < notice->size; at++)
        notice->data[at] = content(world, notice, at);
    int result = weft_notify(world->connections[connection][from], notice->data, notice->size, notice->tag, NULL,
                             &notice->request);
    MODEL_CHECK(result == 0 || model_excused(world, from, result), result);
    notice->posted = result == 0;
    notice->status = result;
    if (result < 0)
        notice->request = NULL;
}

static void cancel(struct model_side *side, uint64_t bits)
{
    if (side->notice_count == 0)
        return;
    struct model_notice *notice = &side->notices[bits % (uint64_t)side->notice_count];
    if (!notice->request)
        return;
    notice->cancelled = true;
    weft_cancel(notice->request);
}

void model_notices_act(struct model_world *world, uint64_t bits)
{
    int connection = (int)(bits % (uint64_t)world->connection_count), from = (int)(bits / 8 % 2);
    bits /= 16;
    if (bits % 8 == 0)
        cancel(&world->sides[connection][from], bits / 8);
    else
        post(world, connection, from, bits / 8);
}

static void check_end(const struct model_world *world, int from, const struct model_notice *notice)
{
    bool expected = notice->status == 0 || (notice->status == -ECANCELED && (notice->cancelled || world->abrupt)) ||
                    (notice->status == -ESHUTDOWN && world->abrupt) || (notice->status == -EIO && world->failing) ||
                    model_excused(world, from, notice->status);
    MODEL_CHECK(expected, notice->status);
}

void model_notices_collect(struct model_world *world, int connection, int from)
{
    struct model_side *side = &world->sides[connection][from];
    struct weft_completion completion;
    for (int i = 0; i < side->notice_count; i++) {
        struct model_notice *notice = &side->notices[i];
        if (!notice->request || !weft_test(notice->request, &completion))
            continue;
        notice->request = NULL;
        notice->status = completion.status;
        world->ended += 1;
        check_end(world, from, notice);
        memset(notice->data, RUINED, notice->size); /* from here on nobody may read there */
    }
}

struct model_notice *model_notice_of(struct model_side *side, uint64_t tag)
{
    for (int i = 0; i < side->notice_count; i++)
        if (side->notices[i].tag == tag)
            return &side->notices[i];
    return NULL;
}

/* Those that were posted before it went to receives that were posted before this one. */
static void check_order(const struct model_side *side, const struct model_notice *notice,
                        const struct model_note_receive *receive)
{
    int index = (int)(receive - side->receives);
    for (int i = 0; i < side->notice_count; i++) {
        const struct model_notice *other = &side->notices[i];
        if (other->told && other != notice)
            MODEL_CHECK((other < notice) == (other->told_by < index), index);
    }
}

void model_notice_told(const struct model_world *world, struct model_side *side, struct model_notice *notice,
                       const struct model_note_receive *receive, const struct weft_completion *completion)
{
    MODEL_CHECK(notice->posted && !notice->told, (long long)notice->tag);
    check_order(side, notice, receive);
    if (completion->status == -EMSGSIZE) { /* it waits for the next receive */
        MODEL_CHECK(notice->size > receive->capacity && completion->bytes == notice->size, notice->size);
        return;
    }
    notice->told = true;
    notice->told_by = (int)(receive - side->receives);
    if (completion->status == -EIO && world->failing)
        return;
    MODEL_CHECK(completion->status == 0 && completion->bytes == notice->size, completion->status);
    for (uint32_t at = 0; at < notice->size; at++)
        MODEL_CHECK(receive->data[at] == content(world, notice, at), at);
}

bool model_notices_ended(const struct model_side *side)
{
    for (int i = 0; i < side->notice_count; i++)
        if (side->notices[i].request)
            return false;
    return true;
}

bool model_notices_owed(const struct model_side *side)
{
    for (int i = 0; i < side->notice_count; i++)
        if (side->notices[i].posted && !side->notices[i].cancelled && !side->notices[i].told)
            return true;
    return false;
}

void model_notices_forget(struct model_side *side)
{
    for (int i = 0; i < side->notice_count; i++)
        side->notices[i].request = NULL;
}

void model_notices_free(struct model_side *side)
{
    for (int i = 0; i < side->notice_count; i++)
        free(side->notices[i].data);
}
