/*
 * The reference for matching: which receive of a lane gets which message. The order of the sends and the order of the
 * receives decide it, whatever the network does (docs/protocol.md, Matching). A receive takes the first message that it
 * fits and that no receive before it has taken. If the message is too large, the receive ends, and the message stays.
 *
 * What was cancelled may have taken part or not. So the reference knows nothing of the messages and the receives behind
 * the first that was, and all about those before.
 */
#include <errno.h>

#include "model.h"

#define NONE (-1)

bool model_fits(const struct model_receive *receive, uint64_t tag)
{
    return ((receive->tag ^ tag) & receive->mask) == 0;
}

/* The index of the first send that may not have taken part. */
static int known_sends(const struct model_lane *lane)
{
    for (int i = 0; i < lane->send_count; i++)
        if (lane->sends[i].status == -EIO || (lane->sends[i].cancelled && lane->sends[i].status != 0))
            return i;
    return lane->send_count;
}

static bool took_part(const struct model_receive *receive)
{
    return !receive->cancelled || receive->status == 0 || receive->status == -EMSGSIZE;
}

/* How many messages like each, by the first of them, went to receives from any connection: for the receives of the lane
 * they are as if not sent. When they went, the two orders do not say. So nobody knows of a receive that was too small
 * whether it was so for one of them. */
static void count_gone(const struct model_lane *lane, int *gone)
{
    for (int i = 0; i < lane->send_count; i++)
        gone[model_first_alike(lane, i)] += lane->sends[i].taken_by >= MODEL_TAKEN_BY_ANY;
}

static bool got_it(const struct model_lane *lane, const struct model_receive *receive, int index)
{
    return receive->got >= 0 && model_alike(&lane->sends[receive->got], &lane->sends[index]);
}

/* The send that the receive meets: the first that it fits, of those that are left. Before the one that it has got may
 * be such as went to receives from any connection: of some that are alike, it is as good to say these as others. */
static int partner_of(const struct model_lane *lane, int sends, const struct model_receive *receive, bool *taken,
                      int *gone)
{
    for (int i = 0; i < sends; i++) {
        if (taken[i] || !lane->sends[i].posted || !model_fits(receive, lane->sends[i].tag))
            continue;
        int *went = &gone[model_first_alike(lane, i)];
        if (got_it(lane, receive, i) || *went == 0)
            return i;
        *went -= 1;
        taken[i] = true;
    }
    return NONE;
}

static void judge_receive(const struct model_lane *lane, const struct model_receive *receive, int index, int sends)
{
    bool ended = receive->status == 0 || receive->status == -EMSGSIZE;
    if (ended && index == NONE) { /* its message is one of which nothing is known */
        MODEL_CHECK(sends < lane->send_count, receive->bytes);
    } else if (ended) {
        const struct model_send *send = &lane->sends[index];
        MODEL_CHECK((receive->status == 0) == (send->size <= receive->capacity), index);
        MODEL_CHECK(receive->bytes == send->size, receive->bytes);
        MODEL_CHECK(receive->status != 0 || got_it(lane, receive, index), index);
    }
}

void model_match_judge(const struct model_lane *lane, const struct model_anys *anys)
{
    bool taken[MODEL_MESSAGES + 1] = {false};
    int sends = known_sends(lane), gone[MODEL_MESSAGES + 1] = {0};
    if (anys->uncertain)
        return;
    count_gone(lane, gone);
    for (int i = 0; i < lane->receive_count && took_part(&lane->receives[i]); i++) {
        const struct model_receive *receive = &lane->receives[i];
        if (!receive->posted || (receive->status == -EMSGSIZE && anys->count > 0))
            continue;
        int index = partner_of(lane, sends, receive, taken, gone);
        judge_receive(lane, receive, index, sends);
        if (index != NONE && lane->sends[index].size <= receive->capacity)
            taken[index] = true;
    }
}

/* Of two receives that are both for two messages of the lane, the first gets the first. */
void model_match_judge_anys(const struct model_lane *lane, const struct model_anys *anys, int connection)
{
    for (int i = 0; i < anys->count; i++)
        for (int j = i + 1; j < anys->count; j++) {
            const struct model_receive *first = &anys->receives[i], *second = &anys->receives[j];
            if (first->got < 0 || second->got < 0 || first->lane != connection || second->lane != connection)
                continue;
            const struct model_send *one = &lane->sends[first->got], *other = &lane->sends[second->got];
            bool both = model_fits(first, other->tag) && model_fits(second, one->tag);
            if (both && one->size >= 8 && other->size >= 8 && other->size <= first->capacity)
                MODEL_CHECK(first->got < second->got, first->got);
        }
}
