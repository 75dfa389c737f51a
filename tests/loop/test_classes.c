/*
 * test_classes.c: what has a traffic class goes on the channels of that class, as long as it has any; nothing waits for
 * them, and nothing is lost with them. Marks and rates reach the sockets of the class.
 */
#include "loop_support.h"

#include <errno.h>
#include <string.h>

#include "core/session/loss.h"
#include "core/session/session.h"
#include "core/session/totals_in.h"
#include "core/session/traffic.h"
#include "loop_world.h"
#include "sim.h"

#define CLASS 2
#define LARGE 3000000
#define SMALL 500
#define SOON_MS 5000
#define AWAY_MS 3000

static struct loop_pair pair;
static struct weft_connection *ends[2];

static struct wf_session *session_of(int side)
{
    return pair.node[side].peer->session;
}

#define UNTIL(condition, ...)                                                                                          \
    do {                                                                                                               \
        for (int64_t limit_ms = loop_now_ms() + SOON_MS; !(condition);) {                                              \
            LOOP_CHECK(loop_now_ms() < limit_ms, __VA_ARGS__);                                                         \
            loop_sleep_ms(1);                                                                                          \
        }                                                                                                              \
    } while (0)

static int up_of(int side, unsigned traffic)
{
    const struct wf_lines *lines = &session_of(side)->lines;
    return lines->up_of[wf_group(traffic, WF_CHANNEL_EXPRESS)] + lines->up_of[wf_group(traffic, WF_CHANNEL_BULK)];
}

/* Bytes of payload that this side has sent on channels of the class and kind. */
static uint64_t sent_on(int side, unsigned traffic, enum wf_channel_kind kind)
{
    const struct wf_lines *lines = &session_of(side)->lines;
    uint64_t sum = 0;
    WF_LINES_EACH (channel, lines) {
        if (channel->group == wf_group(traffic, kind))
            sum += channel->tx.window.spent_bytes;
    }
    return sum;
}

static void begin(const char *settings, const char *other, int rails, int opener, unsigned traffic)
{
    loop_pair_create(&pair, settings, other, rails);
    LOOP_CHECK(weft_endpoint_set_class(pair.node[opener].endpoint, traffic) == 0, "class %u", traffic);
    loop_connection(&pair, opener, ends);
    for (int end = 0; end < 2; end++)
        LOOP_CHECK(weft_connection_class(ends[end]) == traffic, "end %d has class %u", end,
                   weft_connection_class(ends[end]));
}

static void until_up(unsigned traffic, int channels)
{
    UNTIL(up_of(0, traffic) == channels && up_of(1, traffic) == channels, "%d and %d of %d channels of class %u are up",
          up_of(0, traffic), up_of(1, traffic), channels, traffic);
}

static void finish(void)
{
    loop_connection_end(ends);
    loop_pair_destroy(&pair);
}

/* From either side: only the one that dialled can dial. */
static void goes_on_its_own(int opener)
{
    begin("channels=2", NULL, 2, opener, CLASS);
    until_up(CLASS, 6);
    LOOP_CHECK(up_of(0, 1) == 0 && up_of(0, 3) == 0, "channels of classes that nobody uses");
    uint64_t bulk[2], express[2];
    for (int side = 0; side < 2; side++) {
        bulk[side] = sent_on(side, 0, WF_CHANNEL_BULK);
        express[side] = sent_on(side, 0, WF_CHANNEL_EXPRESS);
    }
    loop_exchange(ends[0], ends[1], LARGE, 1);
    loop_exchange(ends[0], ends[1], SMALL, 2);
    for (int side = 0; side < 2; side++) {
        LOOP_CHECK(sent_on(side, 0, WF_CHANNEL_BULK) == bulk[side], "class 0 has carried bulk");
        LOOP_CHECK(sent_on(side, 0, WF_CHANNEL_EXPRESS) == express[side], "class 0 has carried what is small");
        LOOP_CHECK(sent_on(side, CLASS, WF_CHANNEL_BULK) >= LARGE, "class %d has carried %llu", CLASS,
                   (unsigned long long)sent_on(side, CLASS, WF_CHANNEL_BULK));
        LOOP_CHECK(sent_on(side, CLASS, WF_CHANNEL_EXPRESS) >= SMALL, "class %d has carried nothing small", CLASS);
    }
    const struct wf_lines *lines = &session_of(0)->lines;
    WF_LINES_EACH (channel, lines) {
        LOOP_CHECK(channel->incarnation == (channel->traffic == 0 ? 1 : 2), "channel %u is the %uth", channel->id,
                   channel->incarnation);
    }
    loop_exchange(pair.node[0].connection, pair.node[1].connection, LARGE, 1); /* a connection of class 0 */
    for (int side = 0; side < 2; side++)
        LOOP_CHECK(sent_on(side, 0, WF_CHANNEL_BULK) >= LARGE, "class 0 does not carry what is its own");
    finish();
}

static void the_dialers_messages_have_channels_of_their_own(void)
{
    goes_on_its_own(0);
}

static void the_acceptors_messages_have_channels_of_their_own(void)
{
    goes_on_its_own(1);
}

static void one_class_costs_no_other(void)
{
    loop_pair_create(&pair, "channels=3", NULL, 2);
    loop_exchange(pair.node[0].connection, pair.node[1].connection, LARGE, 1);
    for (int side = 0; side < 2; side++) {
        const struct wf_session *session = session_of(side);
        LOOP_CHECK(session->lines.up_count == 8 && session->lines.channel_count == 8, "%d channels are up",
                   session->lines.up_count);
        LOOP_CHECK(!session->loss.spreads[1], "there is more than one class");
    }
    loop_pair_destroy(&pair);
}

/* Nothing arrives at this side any more on the channels of the class. */
static void freeze(int side, unsigned traffic)
{
    const struct wf_session *session = session_of(side);
    const struct wf_lines *lines = &session->lines;
    WF_LINES_EACH (channel, lines) {
        if (channel->traffic == traffic && channel->up)
            wf_sim_deafen(session->guard.world->engine_host, channel->fd, true);
    }
}

/* Frames of the dialer on the class's channels that the other side has not acknowledged. */
static uint64_t under_way(unsigned traffic)
{
    const struct wf_lines *lines = &session_of(0)->lines;
    uint64_t frames = 0;
    WF_LINES_EACH (channel, lines) {
        if (channel->traffic == traffic)
            frames += channel->tx.window.spent_frames - channel->tx.acknowledged;
    }
    return frames;
}

/* All channels of the class are lost, and nobody dials them for AWAY_MS. */
static void send_away(unsigned traffic)
{
    struct wf_session *session = session_of(0);
    const struct wf_lines *lines = &session->lines;
    wf_session_lock(session);
    WF_LINES_EACH (channel, lines) {
        if (channel->traffic != traffic || !channel->up)
            continue;
        wf_channel_lost(channel, -ECONNRESET, "the test");
        wf_route_of(channel)->redial.at_ns = wf_world_now(session->guard.world) + AWAY_MS * WF_NS_PER_MS;
    }
    wf_session_unlock(session);
    UNTIL(up_of(0, traffic) == 0 && up_of(1, traffic) == 0, "class %u has channels", traffic);
}

/* While this class has no channel, the other one carries all. */
static void carries_for(unsigned other, unsigned traffic)
{
    begin("channels=2 chunk=64K", NULL, 1, 0, CLASS);
    until_up(CLASS, 3);
    send_away(traffic);
    uint64_t before = sent_on(0, other, WF_CHANNEL_BULK);
    loop_exchange(ends[0], ends[1], LARGE, 1);
    loop_exchange(pair.node[0].connection, pair.node[1].connection, LARGE, 1);
    loop_exchange(ends[0], ends[1], SMALL, 1);
    loop_exchange(pair.node[0].connection, pair.node[1].connection, SMALL, 1);
    LOOP_CHECK(up_of(0, traffic) == 0, "the class came back too soon to tell");
    LOOP_CHECK(sent_on(0, other, WF_CHANNEL_BULK) >= before + 2 * LARGE, "class %u has not carried it", other);
    until_up(traffic, 3);
    before = sent_on(0, other, WF_CHANNEL_BULK);
    struct weft_connection **back =
        traffic == 0 ? (struct weft_connection *[]){pair.node[0].connection, pair.node[1].connection} : ends;
    loop_exchange(back[0], back[1], LARGE, 1);
    LOOP_CHECK(sent_on(0, other, WF_CHANNEL_BULK) == before, "class %u still carries it", other);
    finish();
}

static void class_0_carries_for_another(void)
{
    carries_for(0, CLASS);
}

static void another_carries_for_class_0(void)
{
    carries_for(CLASS, 0);
}

/* What was under way when a class lost its channels is sent again by another class, and does not wait for its own. */
static void what_was_under_way_goes_elsewhere(void)
{
    struct loop_message message;

    begin("channels=2 chunk=64K", NULL, 1, 0, CLASS);
    until_up(CLASS, 3);
    loop_message_create(&message, LARGE, 1);
    message.recv = loop_recv(ends[1], message.sink.data, LARGE, 7);
    message.send = loop_send(ends[0], message.source.data, LARGE, 7);
    for (int side = 0; side < 2; side++) /* what is sent from now on, in either direction, is under way */
        freeze(side, CLASS);
    UNTIL(under_way(CLASS) > 0, "nothing is under way");
    uint64_t before = loop_failures(pair.node[0].peer);
    send_away(CLASS);
    loop_done(message.recv, 0, LARGE);
    loop_done(message.send, 0, LARGE);
    LOOP_CHECK(up_of(0, CLASS) == 0, "the class came back too soon to tell");
    LOOP_CHECK(loop_failures(pair.node[0].peer) >= before + 3, "no channel was lost");
    loop_message_verify(&message);
    loop_message_destroy(&message);
    until_up(CLASS, 3);
    finish();
}

/* Before a channel of the class is up, while none is, and after all were lost with messages under way. */
static void nothing_waits_for_a_class(void)
{
    struct loop_message message;

    begin("channels=2 chunk=64K", NULL, 1, 0, CLASS);
    loop_exchange(ends[0], ends[1], LARGE, 1);
    until_up(CLASS, 3);
    for (int round = 0; round < 5; round++) {
        loop_message_create(&message, LARGE, (uint64_t)round);
        message.recv = loop_recv(ends[1], message.sink.data, LARGE, 7);
        message.send = loop_send(ends[0], message.source.data, LARGE, 7);
        uint64_t goal = sent_on(0, CLASS, WF_CHANNEL_BULK) + (uint64_t)round * 200000;
        UNTIL(sent_on(0, CLASS, WF_CHANNEL_BULK) >= goal, "the class carries nothing");
        const struct wf_lines *lines = &session_of(0)->lines;
        WF_LINES_EACH (channel, lines) {
            if (channel->traffic == CLASS && channel->up)
                wf_sim_cut(session_of(0)->guard.world->engine_host, channel->fd);
        }
        loop_done(message.recv, 0, LARGE);
        loop_done(message.send, 0, LARGE);
        loop_message_verify(&message);
        loop_message_destroy(&message);
        until_up(CLASS, 3);
    }
    finish();
}

/* DOWN may come before anything else of the class: its channel was lost just after it had proved itself. */
static void a_channel_may_be_lost_before_its_class_is_known(void)
{
    loop_pair_create(&pair, "channels=2", NULL, 1);
    struct wf_session *acceptor = session_of(1);
    uint32_t count = (uint32_t)acceptor->lines.per_class;
    struct wf_frame down = {.type = WF_DOWN, .key = wf_channel_key(3 * count, 2)};
    struct wf_frame beyond = {.type = WF_DOWN, .key = wf_channel_key(4 * count, 2)};
    wf_session_lock(acceptor);
    int known = wf_totals_take_down(acceptor, &down), unknown = wf_totals_take_down(acceptor, &beyond);
    wf_session_unlock(acceptor);
    LOOP_CHECK(known == 0 && unknown == -EPROTO, "%d and %d", known, unknown);
    LOOP_CHECK(weft_endpoint_set_class(pair.node[0].endpoint, 3) == 0, "class 3");
    loop_connection(&pair, 0, ends);
    until_up(3, 3);
    LOOP_CHECK(session_of(0)->lines.channels[3 * count]->incarnation > 2, "it is one that was lost");
    loop_exchange(ends[0], ends[1], LARGE, 1);
    finish();
}

static void an_old_peer_has_no_classes(void)
{
    struct weft_connection *connection = NULL;
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 1);
    session_of(0)->terms.features = 0;
    LOOP_CHECK(weft_endpoint_set_class(pair.node[0].endpoint, 1) == 0, "class 1");
    LOOP_CHECK(weft_connection_open(pair.node[0].endpoint, pair.node[0].peer, 0, SOON_MS, &connection, &err) ==
                   -ENOTSUP,
               "%s", err.text);
    LOOP_CHECK(strstr(err.text, "traffic class") && !connection, "%s", err.text);
    LOOP_CHECK(weft_peer_set_rate(pair.node[0].peer, 1, 0) == -ENOTSUP, "a rate");
    LOOP_CHECK(weft_peer_set_rate(pair.node[0].peer, 0, 0) == 0, "class 0 has a rate");
    LOOP_CHECK(weft_endpoint_set_class(pair.node[0].endpoint, 0) == 0, "class 0");
    loop_connection(&pair, 0, ends);
    loop_exchange(ends[0], ends[1], SMALL, 1);
    finish();
}

static void nonsense_is_no_class(void)
{
    begin(NULL, NULL, 1, 0, 3);
    LOOP_CHECK(weft_endpoint_set_class(pair.node[0].endpoint, 4) == -EINVAL, "class 4");
    LOOP_CHECK(weft_endpoint_set_class(NULL, 0) == -EINVAL, "no endpoint");
    LOOP_CHECK(weft_peer_set_rate(pair.node[0].peer, 4, 0) == -EINVAL, "class 4");
    LOOP_CHECK(weft_peer_set_rate(NULL, 0, 0) == -EINVAL, "no peer");
    LOOP_CHECK(weft_peer_set_rate(pair.node[0].peer, 0, 1) == -ERANGE, "a byte a second");
    LOOP_CHECK(weft_connection_class(NULL) == 0, "no connection");
    finish();
}

/* --- rates --- */

/* A channel that takes too long over one frame counts as dead: also an express channel, which has an eighth. */
static void rates_that_make_a_channel_look_dead(void)
{
    enum { FRAME = 16 * 1024, TIMEOUT_S = 10 };
    begin("chunk=16K eager=16K channels=1 timeout=10", "chunk=16K eager=0 channels=1", 1, 0, 1);
    LOOP_CHECK(weft_peer_set_rate(pair.node[0].peer, 0, 8 * FRAME * 4 / TIMEOUT_S) == -ERANGE,
               "a frame of the express channel takes a quarter of the timeout, and its header more");
    LOOP_CHECK(weft_peer_set_rate(pair.node[0].peer, 0, 8 * FRAME) == 0, "a second for it");
    finish();
}

static void check_paces(int side, unsigned traffic, uint64_t express, uint64_t bulk)
{
    const struct wf_session *session = session_of(side);
    const struct wf_lines *lines = &session->lines;
    WF_LINES_EACH (channel, lines) {
        if (!channel->up)
            continue;
        uint64_t pace = wf_sim_pace_of(session->guard.world->engine_host, channel->fd);
        uint64_t due = channel->traffic != traffic ? 0 : channel->kind == WF_CHANNEL_EXPRESS ? express : bulk;
        LOOP_CHECK(pace == due, "channel %u has %llu, not %llu", channel->id, (unsigned long long)pace,
                   (unsigned long long)due);
    }
}

static void a_rate_is_divided(void)
{
    const uint64_t rate = 80000000;

    begin("channels=4", NULL, 1, 0, CLASS);
    LOOP_CHECK(weft_peer_set_rate(pair.node[0].peer, CLASS, rate) == 0, "a rate");
    until_up(CLASS, 5);
    check_paces(0, CLASS, rate / 8, rate * 7 / 8 / 4);
    check_paces(1, CLASS, 0, 0); /* it bounds what this side sends */
    struct wf_session *session = session_of(0);
    struct wf_channel *lost = session->lines.channels[(int)CLASS * session->lines.per_class + 1];
    LOOP_CHECK(lost->kind == WF_CHANNEL_BULK, "it is not what it should be");
    wf_session_lock(session);
    wf_channel_lost(lost, -ECONNRESET, "the test");
    check_paces(0, CLASS, rate / 8, rate * 7 / 8 / 3);
    wf_session_unlock(session);
    loop_exchange(ends[0], ends[1], LARGE, 1);
    until_up(CLASS, 5);
    check_paces(0, CLASS, rate / 8, rate * 7 / 8 / 4);
    LOOP_CHECK(weft_peer_set_rate(pair.node[0].peer, CLASS, 0) == 0, "no rate");
    check_paces(0, CLASS, 0, 0);
    LOOP_CHECK(weft_peer_set_rate(pair.node[0].peer, 0, rate) == 0, "a rate for class 0");
    check_paces(0, 0, rate / 8, rate * 7 / 8 / 4);
    finish();
}

/* --- marks --- */

static void check_marks(int side, const int marks[WF_CLASSES])
{
    const struct wf_session *session = session_of(side);
    const struct wf_lines *lines = &session->lines;
    WF_LINES_EACH (channel, lines) {
        int mark = wf_sim_dscp_of(session->guard.world->engine_host, channel->fd);
        LOOP_CHECK(mark == marks[channel->traffic], "channel %u of class %u has the mark %d", channel->id,
                   (unsigned)channel->traffic, mark);
    }
}

static void each_side_marks_what_it_sends(void)
{
    static const int dialer[WF_CLASSES] = {8, 0, 46, 0}, acceptor[WF_CLASSES] = {0, 0, 26, 0};

    begin("dscp=8,0,46", "dscp=0,0,26,0", 2, 1, CLASS);
    until_up(CLASS, 4);
    check_marks(0, dialer);
    check_marks(1, acceptor);
    finish();
}

static void nonsense_is_no_mark(void)
{
    static const char *const values[] = {"64", "-1", "1,2,3,4,5", "a", "1,,2", "1 2", "99999999999999999999", "1;2"};
    struct weft_context *context = NULL;

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct weft_error err = {0};
        struct weft_config *config = loop_config(NULL, 1);
        LOOP_CALL(weft_config_set(config, "dscp", values[i], &err), &err);
        LOOP_CHECK(loop_world_context(config, &context, &err) == -EINVAL, "dscp = %s was taken", values[i]);
        LOOP_CHECK(strstr(err.text, "dscp = "), "%s", err.text);
        weft_config_destroy(config);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOOP_CASE(the_dialers_messages_have_channels_of_their_own, 20),
        LOOP_CASE(the_acceptors_messages_have_channels_of_their_own, 20),
        LOOP_CASE(one_class_costs_no_other, 20),
        LOOP_CASE(nothing_waits_for_a_class, 20),
        LOOP_CASE(class_0_carries_for_another, 20),
        LOOP_CASE(what_was_under_way_goes_elsewhere, 20),
        LOOP_CASE(another_carries_for_class_0, 20),
        LOOP_CASE(a_channel_may_be_lost_before_its_class_is_known, 20),
        LOOP_CASE(an_old_peer_has_no_classes, 20),
        LOOP_CASE(nonsense_is_no_class, 20),
        LOOP_CASE(rates_that_make_a_channel_look_dead, 20),
        LOOP_CASE(a_rate_is_divided, 20),
        LOOP_CASE(each_side_marks_what_it_sends, 20),
        LOOP_CASE(nonsense_is_no_mark, 20),
    };
    loop_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
