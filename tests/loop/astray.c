/* astray.c: see astray.h. */
#include "astray.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/message/connection.h"
#include "core/message/inbound.h"
#include "core/request/book.h"

struct loop_pair astray_pair;

struct wf_session *astray_session(int side)
{
    return astray_pair.node[side].peer->session;
}

struct weft_connection *astray_connection(int side)
{
    return astray_pair.node[side].connection;
}

struct wf_sim *astray_sim(void)
{
    return astray_pair.node[0].context->world.engine_host;
}

uint32_t astray_frames(int side)
{
    const struct wf_session *session = astray_session(side);
    uint32_t count = 0;
    for (int group = 0; group < WF_GROUPS; group++)
        count += session->loss.strays[group].count;
    return count;
}

const struct wf_inbound *astray_inbound(int side, uint64_t number)
{
    return wf_inbound_find(astray_connection(side), number);
}

/* --- breaking --- */

void astray_freeze(enum wf_channel_kind kind)
{
    const struct wf_session *session = astray_session(0);
    for (int i = 0; i < session->lines.channel_count; i++)
        if (session->lines.channels[i]->up && session->lines.channels[i]->kind == kind)
            wf_sim_freeze(astray_sim(), session->lines.channels[i]->fd, true);
}

void astray_set_rail(int number, const struct wf_sim_rail *rail)
{
    struct sockaddr_storage local = {0};
    struct sockaddr_in *address = (void *)&local;
    char text[INET_ADDRSTRLEN];
    snprintf(text, sizeof text, "127.0.%d.1", number);
    address->sin_family = AF_INET;
    inet_pton(AF_INET, text, &address->sin_addr);
    wf_sim_set_rail(astray_sim(), &local, rail);
}

static bool is_up_on(const struct wf_channel *channel, int number)
{
    return channel->up && channel->rail == number - 1;
}

void astray_cut_rail(int number)
{
    const struct wf_session *session = astray_session(0);
    for (int i = 0; i < session->lines.channel_count; i++)
        if (is_up_on(session->lines.channels[i], number))
            wf_sim_cut(astray_sim(), session->lines.channels[i]->fd);
}

void astray_freeze_rail(int number, bool frozen)
{
    const struct wf_session *session = astray_session(0);
    for (int i = 0; i < session->lines.channel_count; i++)
        if (is_up_on(session->lines.channels[i], number))
            wf_sim_freeze(astray_sim(), session->lines.channels[i]->fd, frozen);
}

void astray_cut_all(void)
{
    const struct wf_session *session = astray_session(0);
    for (int i = 0; i < session->lines.channel_count; i++)
        if (session->lines.channels[i]->up)
            wf_sim_cut(astray_sim(), session->lines.channels[i]->fd);
    ASTRAY_UNTIL(session->lines.up_count == 0, "a channel that was reset is not lost");
}

static bool is_whole(const struct wf_session *session)
{
    return session->lines.up_count == session->lines.channel_count;
}

void astray_until_back(void)
{
    ASTRAY_UNTIL(is_whole(astray_session(0)) && is_whole(astray_session(1)), "%d and %d of %d channels are up",
                 astray_session(0)->lines.up_count, astray_session(1)->lines.up_count,
                 astray_session(0)->lines.channel_count);
}

int astray_status(struct weft_request *request)
{
    struct weft_completion completion;
    int result = weft_wait(request, ASTRAY_SOON_MS, &completion);
    LOOP_CHECK(result == 0, "a request does not end: %s", strerror(-result));
    return completion.status;
}

/* --- what is left over --- */

static uint64_t retained(const struct wf_session *session)
{
    uint64_t frames = 0;
    for (int i = 0; i < session->lines.channel_count; i++) {
        const struct wf_tx *tx = &session->lines.channels[i]->tx;
        frames += session->lines.channels[i]->up ? tx->window.spent_frames - tx->acknowledged : 0;
    }
    return frames;
}

const char *astray_left_over(int side)
{
    static char text[128];
    const struct wf_session *own = astray_session(side), *other = astray_session(!side);
    const struct weft_connection *connection = astray_connection(side), *far = astray_connection(!side);
    const struct {
        const char *what;
        uint64_t count;
    } kept[] = {
        {"requests", !wf_list_empty(&own->book.requests)},
        {"outgoing messages", connection->outbounds},
        {"incoming messages", connection->inbounds},
        {"frames astray", astray_frames(side)},
        {"frames retained", retained(own)},
        {"bytes that wait for a channel", own->desk.waiting[0]},
        {"unsolicited bytes not given back", own->desk.unsolicited_spent - other->desk.unsolicited_settled},
        {"unsolicited bytes not told of", other->desk.unsolicited_told - own->desk.unsolicited_limit},
        {"introductions not told of", far->limit_sent - connection->introduced_limit},
        {"blocks of the pool", own->desk.blocks.count - own->desk.blocks.free},
        {"lists of the peer", connection->upload_count},
        {"operations with a list", connection->lists},
        {"registrations in use", !wf_list_empty(&own->desk.regions_used)},
        {"intervals of finished numbers", connection->finished.count},
        {"unfinished numbers", far->next_number - connection->finished.floor},
    };
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (kept[i].count == 0)
            continue;
        snprintf(text, sizeof text, "side %d: %s: %llu", side, kept[i].what, (unsigned long long)kept[i].count);
        return text;
    }
    return NULL;
}

bool astray_is_clean(void)
{
    return is_whole(astray_session(0)) && is_whole(astray_session(1)) && !astray_left_over(0) && !astray_left_over(1);
}

void astray_check_clean(void)
{
    astray_until_back();
    for (int side = 0; side < 2; side++)
        ASTRAY_UNTIL(!astray_left_over(side), "left over: %s", astray_left_over(side));
    LOOP_CHECK(astray_is_clean(), "what was clean is not");
}
