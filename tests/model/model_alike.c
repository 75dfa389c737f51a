/*
 * Messages of a lane that nobody can tell from each other: of the same tag and size, and too small for bytes of their
 * own. Which of them a receive has got is not known, only how many of them receives have got. So what is asked of one
 * is asked of all that look like it. A message of 8 bytes or more looks like no other.
 */
#include <errno.h>

#include "model.h"

bool model_alike(const struct model_send *one, const struct model_send *other)
{
    return one->tag == other->tag && one->size == other->size && one->look == other->look;
}

int model_first_alike(const struct model_lane *lane, int index)
{
    int first = 0;
    while (!model_alike(&lane->sends[first], &lane->sends[index]))
        first++;
    return first;
}

static bool is_got(const struct model_send *send)
{
    return send->taken_by >= 0;
}

static bool has_ended_well(const struct model_send *send)
{
    return send->posted && !send->request && send->status == 0;
}

static bool is_surely_got(const struct model_send *send)
{
    return send->sync && has_ended_well(send);
}

static int count(const struct model_lane *lane, const struct model_send *like, bool (*what)(const struct model_send *))
{
    int found = 0;
    for (int i = 0; i < lane->send_count; i++)
        found += model_alike(&lane->sends[i], like) && what(&lane->sends[i]);
    return found;
}

bool model_is_got(const struct model_lane *lane, const struct model_send *send)
{
    return count(lane, send, is_got) > count(lane, send, is_surely_got);
}

/* A send that waits for its receive has ended well: the receive has its bytes. */
static void judge_sync(const struct model_lane *lane)
{
    for (int i = 0; i < lane->send_count; i++)
        MODEL_CHECK(count(lane, &lane->sends[i], is_got) >= count(lane, &lane->sends[i], is_surely_got), i);
}

/* A message that nobody got was cancelled, or its receive was. One that was too small for it loses nothing. */
static void judge_lost(const struct model_lane *lane, const struct model_anys *anys)
{
    int lost = 0, excused = 0;
    for (int i = 0; i < anys->count; i++)
        excused += anys->receives[i].status != 0 && anys->receives[i].status != -EMSGSIZE;
    for (int i = 0; i < lane->receive_count; i++)
        excused += lane->receives[i].status != 0 && lane->receives[i].status != -EMSGSIZE;
    for (int i = 0; i < lane->send_count; i++) {
        const struct model_send *send = &lane->sends[i];
        int missed = count(lane, send, has_ended_well) - count(lane, send, is_got);
        if (model_first_alike(lane, i) == i && missed > 0)
            lost += missed;
    }
    MODEL_CHECK(lost <= excused, lost);
}

void model_alike_judge(const struct model_world *world, const struct model_lane *lane, const struct model_anys *anys)
{
    if (world->lost)
        return;
    if (!world->abrupt)
        judge_lost(lane, anys);
    judge_sync(lane);
}
