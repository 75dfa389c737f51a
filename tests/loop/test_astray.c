/*
 * test_astray.c: channels are lost at the moments that matter. Frames are on their way, or have arrived and their
 * acknowledgements have not, while the operation they belong to is given up, or the session ends. Every operation ends,
 * what comes after it arrives, and nothing is left over.
 */
#include "astray.h"

#include <errno.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/calls/peer.h"
#include "core/drive/worker.h"
#include "core/message/connection.h"
#include "core/message/inbound.h"
#include "core/session/loss.h"

enum { ATTEMPTS = 20, SMALL = 8000, CROWD = 200 };

/* Memory of [0], and memory of [1] that is registered. */
static struct loop_buffer near, far;
static struct weft_registration *registration;

static void begin_from(enum loop_side side, const char *settings, int rails, size_t bytes)
{
    struct weft_error err = {0};
    loop_pair_create(&astray_pair, settings, NULL, rails);
    loop_buffer_create(&near, side, bytes);
    loop_buffer_create(&far, LOOP_FAR, bytes);
    loop_fill(near.data, bytes, bytes);
    LOOP_CALL(weft_register(astray_pair.node[1].context, far.data, bytes, &registration, &err), &err);
    astray_check_clean();
}

static void begin(const char *settings, int rails, size_t bytes)
{
    begin_from(LOOP_NEAR, settings, rails, bytes);
}

static void finish(void)
{
    loop_world_deregister(registration);
    loop_pair_destroy(&astray_pair);
    loop_buffer_unmap(&near);
    loop_buffer_unmap(&far);
}

/* The same, in an orderly way. */
static void end(void)
{
    struct weft_error err = {0};
    for (int side = 0; side < 2; side++) {
        struct loop_node *node = &astray_pair.node[side];
        LOOP_CALL(weft_connection_close(node->connection, ASTRAY_SOON_MS, &err), &err);
        node->connection = NULL;
    }
    LOOP_CALL(weft_peer_close(astray_pair.node[0].peer, ASTRAY_SOON_MS, &err), &err);
    astray_pair.node[0].peer = NULL;
    finish();
}

/* So many channels were lost, and none by what was done about it. */
static void carry_on_and_end(uint64_t losses)
{
    astray_check_clean();
    for (int side = 0; side < 2; side++) {
        uint64_t lost = loop_failures(astray_pair.node[side].peer);
        LOOP_CHECK(lost == losses, "side %d lost %llu channels", side, (unsigned long long)lost);
    }
    loop_exchange(astray_connection(0), astray_connection(1), 100, 3);
    loop_exchange(astray_connection(0), astray_connection(1), 300000, 4);
    astray_check_clean();
    end();
}

/* Says whether what it is about came to pass: acknowledgements may win. */
static void attempt_until_met(bool (*attempt)(void))
{
    int count = 0;
    while (!attempt())
        LOOP_CHECK(++count < ATTEMPTS, "the acknowledgement won %d times", count);
}

static struct weft_request *write_all(size_t bytes, const struct weft_options *options)
{
    struct weft_request *request = NULL;
    int rc =
        weft_write(astray_connection(0), near.data, bytes, weft_registration_key(registration), 0, options, &request);
    LOOP_CHECK(rc == 0 && request, "weft_write: %s", strerror(-rc));
    return request;
}

static void cancel(struct weft_request *request, int expected)
{
    weft_cancel(request);
    int status = astray_status(request);
    LOOP_CHECK(status == expected, "status %d, expected %d", status, expected);
}

static bool is_here(uint64_t number)
{
    const struct wf_inbound *inbound = astray_inbound(1, number);
    return inbound && inbound->arrived.covered == inbound->total;
}

/* --- given up while its frames are astray --- */

/* Gives up a write whose frames, those of `numbers` operations, have left and will not arrive. */
static void give_up_astray(size_t bytes, const struct weft_options *options, uint64_t numbers)
{
    begin("channels=1 log=error", 1, 100000);
    astray_freeze(WF_CHANNEL_EXPRESS);
    astray_freeze(WF_CHANNEL_BULK);
    struct weft_request *request = write_all(bytes, options);
    ASTRAY_UNTIL(astray_connection(0)->next_number == 1 + numbers, "the write is not sent");
    astray_cut_all();
    LOOP_CHECK(astray_frames(0) > 0, "nothing is astray");
    cancel(request, -ECANCELED);
    carry_on_and_end(2);
}

/* All 0 of its bytes have been acknowledged, one might think. */
static void empty_write_is_given_up(void)
{
    give_up_astray(0, NULL, 1);
}

static void empty_notification_is_given_up(void)
{
    give_up_astray(50000, &(struct weft_options){.flags = WEFT_NOTIFY}, 2);
}

/* Nothing is given up here: it goes on over the channels that come after, which are not lost for that. */
static void frames_go_on_the_next_channels(void)
{
    begin("channels=1 timeout=1 rail_timeout_ms=500 log=error", 1, 3000000);
    struct weft_request *request = write_all(near.size, NULL);
    ASTRAY_UNTIL(astray_inbound(1, 1) && astray_inbound(1, 1)->arrived.covered > 0, "the write does not arrive");
    astray_cut_all();
    LOOP_CHECK(astray_frames(0) > 0, "nothing is astray");
    loop_done(request, 0, near.size);
    LOOP_CHECK(loop_wrong(far.data, far.size, near.size) < 0, "wrong bytes");
    carry_on_and_end(2);
}

/* --- given up when all of it is at the peer, and its sender has not heard --- */

/* From host memory: out of a device's nothing goes before the peer wants it. */
static bool message_that_is_here(void)
{
    begin_from(LOOP_HOST, "channels=1 log=error", 1, 40000);
    struct weft_request *request = loop_send(astray_connection(0), near.data, near.size, 7);
    ASTRAY_UNTIL(is_here(1), "the message does not arrive");
    astray_cut_all();
    bool met = astray_frames(0) > 0;
    cancel(request, met ? -ECANCELED : 0);
    if (!met) /* it is somebody's, then */
        loop_done(loop_recv(astray_connection(1), far.data, far.size, 7), 0, near.size);
    carry_on_and_end(2);
    return met;
}

static void message_is_given_up_after_it_arrived(void)
{
    attempt_until_met(message_that_is_here);
}

/* The write is still under way when its notification is there. */
static bool notification_that_is_here(void)
{
    begin("channels=1 log=error chunk=16K window=1", 1, 3000000);
    struct weft_options options = {.flags = WEFT_NOTIFY, .notify_data = "hello", .notify_length = 5};
    struct weft_request *request = write_all(near.size, &options);
    ASTRAY_UNTIL(is_here(2), "the notification does not arrive");
    LOOP_CHECK(!is_here(1), "the write has arrived before its notification");
    astray_cut_all();
    bool met = astray_session(0)->loss.strays[wf_group(0, WF_CHANNEL_EXPRESS)].count > 0;
    cancel(request, -ECANCELED);
    carry_on_and_end(2);
    return met;
}

static void write_is_given_up_after_its_notification_arrived(void)
{
    attempt_until_met(notification_that_is_here);
}

/* The peer would say that the write has landed, and has no room to. */
static void write_is_given_up_after_it_landed(void)
{
    static unsigned char crowd[CROWD][SMALL];
    struct weft_request *sent[CROWD], *received[CROWD];
    struct loop_buffer source;
    begin("channels=1 log=error", 1, 50000);
    loop_buffer_create(&source, LOOP_NEAR, SMALL);
    loop_fill(source.data, SMALL, 1);
    for (int i = 0; i < CROWD; i++)
        received[i] = loop_recv(astray_connection(0), crowd[i], SMALL, 1);
    astray_freeze(WF_CHANNEL_EXPRESS);
    for (int i = 0; i < CROWD; i++)
        sent[i] = loop_send(astray_connection(1), source.data, SMALL, 1);
    ASTRAY_UNTIL(wf_sim_next_event(astray_sim()) == WF_NEVER, "messages pass a frozen channel");
    LOOP_CHECK(astray_connection(1)->small_pending > 0, "all of them have room");
    struct weft_request *request = write_all(near.size, NULL);
    ASTRAY_UNTIL(astray_inbound(1, 1) && astray_inbound(1, 1)->state == WF_INBOUND_CONFIRMING, "it does not land");
    astray_cut_all();
    cancel(request, -ECANCELED);
    for (int i = 0; i < CROWD; i++) {
        loop_done(sent[i], 0, SMALL);
        loop_done(received[i], 0, SMALL);
        LOOP_CHECK(loop_wrong(crowd[i], SMALL, 1) < 0, "message %d is wrong", i);
    }
    loop_buffer_unmap(&source);
    carry_on_and_end(2);
}

/* --- given up ahead of its frames --- */

/* The express channel of [0] that carries what is not acknowledged. */
static struct wf_channel *express_under_way(void)
{
    const struct wf_session *session = astray_session(0);
    for (int i = 0; i < session->lines.channel_count; i++) {
        struct wf_channel *channel = session->lines.channels[i];
        if (channel->kind == WF_CHANNEL_EXPRESS && channel->tx.window.spent_frames > channel->tx.acknowledged)
            return channel;
    }
    loop_fail(__FILE__, __LINE__, "a channel", "nothing is under way");
}

/* The READ of a list is on a channel that stands still; its REFUSE goes on another, and is all that the peer hears. */
static bool read_that_is_late(void)
{
    struct weft_piece pieces[] = {{0, 0, 1000}, {1000, 2000, 1000}};
    struct weft_request *request = NULL, *sent[CROWD], *received[CROWD];
    static unsigned char crowd[SMALL];
    begin("channels=1 log=error", 2, 10000);
    int rc =
        weft_read_list(astray_connection(0), near.data, pieces, 2, weft_registration_key(registration), NULL, &request);
    LOOP_CHECK(rc == 0, "weft_read_list: %s", strerror(-rc));
    ASTRAY_UNTIL(astray_connection(0)->next_number == 3, "the READ is not sent");
    struct wf_channel *channel = express_under_way();
    wf_sim_freeze(astray_sim(), channel->fd, true);
    for (int i = 0; i < CROWD; i++) {
        received[i] = loop_recv(astray_connection(1), crowd, SMALL, 1);
        sent[i] = loop_send(astray_connection(0), near.data, SMALL, 1);
    }
    ASTRAY_UNTIL(wf_sim_next_event(astray_sim()) == WF_NEVER, "messages pass a frozen channel");
    bool met = !channel->tx.idle && !astray_inbound(1, 2) && astray_connection(1)->finished.floor == 2;
    weft_cancel(request);
    int status = astray_status(request);
    LOOP_CHECK(status == -ECANCELED || (status == 0 && !met), "status %d", status);
    wf_sim_cut(astray_sim(), channel->fd);
    for (int i = 0; i < CROWD; i++) {
        loop_done(sent[i], 0, SMALL);
        loop_done(received[i], 0, SMALL);
    }
    carry_on_and_end(1);
    return met;
}

static void read_is_given_up_ahead_of_itself(void)
{
    attempt_until_met(read_that_is_late);
}

/* --- channels that come and go --- */

/* The door has handed a channel over, its worker has not seen it yet. */
static void channel_is_lost_before_it_started(void)
{
    begin("channels=1 log=error", 1, 1);
    struct wf_session *session = astray_session(1);
    struct wf_worker *worker = astray_pair.node[1].context->crew.workers[0];
    uint64_t before = loop_failures(astray_pair.node[1].peer);
    astray_cut_all();
    ASTRAY_UNTIL(session->lines.channels[0]->gone && session->lines.channels[1]->gone, "the channels are not let go");
    LOOP_CHECK(wf_worker_try(worker), "the worker is busy");
    ASTRAY_UNTIL(session->lines.up_count == 2, "the channels do not come back");
    wf_session_lock(session);
    for (int i = 0; i < 2; i++) {
        struct wf_channel *channel = session->lines.channels[i];
        LOOP_CHECK(!channel->tx.started && !channel->rx.started, "it was started");
        wf_channel_lost(channel, -ECONNRESET, "the test");
    }
    wf_session_unlock(session);
    wf_worker_leave(worker);
    astray_check_clean();
    LOOP_CHECK(loop_failures(astray_pair.node[1].peer) == before + 4, "other channels were lost");
    loop_exchange(astray_connection(0), astray_connection(1), 300000, 4);
    astray_check_clean();
    end();
}

/* --- the end of a session --- */

/* Its connection is gone with it. */
static void close_peer(int side)
{
    struct loop_node *node = &astray_pair.node[side];
    struct weft_error err = {0};
    int64_t start = loop_now_ms();
    LOOP_CALL(weft_peer_close(node->peer, LOOP_WAIT_MS, &err), &err);
    LOOP_CHECK(loop_now_ms() - start < ASTRAY_SOON_MS, "it took %lld ms", (long long)(loop_now_ms() - start));
    node->peer = NULL;
    node->connection = NULL;
}

/* A message that the other side has taken in, and that its user has not asked for yet. */
static void send_one(int from)
{
    static const char byte = 42;
    loop_done(loop_send(astray_connection(from), &byte, 1, 9), 0, 1);
    ASTRAY_UNTIL(astray_connection(from)->outbounds == 0, "the message is not acknowledged");
}

static void receive_one(int at)
{
    char byte = 0;
    loop_done(loop_recv(astray_connection(at), &byte, 1, 9), 0, 1);
    LOOP_CHECK(byte == 42, "%d", byte);
}

/* The patience is that for one rail, not that for the peer: `timeout` would be 10 s. */
static void rail_is_silent_at_the_end(void)
{
    begin("channels=1 timeout=10 rail_timeout_ms=1000 log=error", 2, 1);
    loop_exchange(astray_connection(0), astray_connection(1), 3000000, 5);
    send_one(0);
    astray_set_rail(2, &(struct wf_sim_rail){.down = true});
    close_peer(0);
    receive_one(1);
    finish();
}

static bool was_denied(const struct wf_session *session)
{
    for (int i = 0; i < session->lines.channel_count; i++) {
        const struct wf_channel *channel = session->lines.channels[i];
        if (wf_route_of(channel)->redial.incarnation > channel->incarnation && !wf_route_of(channel)->redial.talking)
            return true;
    }
    return false;
}

/* The peer takes no channels any more; the goodbye that explains it comes later, on those that there are. */
static void channel_is_denied_at_the_end(void)
{
    begin("channels=1 log=error", 2, 1);
    struct wf_session *session = astray_session(0), *other = astray_session(1);
    send_one(1);
    astray_cut_rail(2);
    astray_set_rail(2, &(struct wf_sim_rail){.down = true});
    astray_set_rail(1, &(struct wf_sim_rail){.delay_ns = 10 * WF_NS_PER_MS});
    struct weft_request *closing = wf_session_ask_to_close(other);
    ASTRAY_UNTIL(other->guard.state == WF_SESSION_CLOSING, "the peer does not close");
    astray_freeze_rail(1, true);
    LOOP_CHECK(!session->guard.peer_closing, "the goodbye has arrived");
    astray_set_rail(2, &(struct wf_sim_rail){.down = false});
    ASTRAY_UNTIL(was_denied(session), "it does not try to join");
    LOOP_CHECK(session->guard.state == WF_SESSION_UP, "%s", session->guard.error.text);
    astray_freeze_rail(1, false);
    int status = astray_status(closing);
    LOOP_CHECK(status == 0, "status %d of the peer's close", status);
    close_peer(1);
    LOOP_CHECK(session->guard.state != WF_SESSION_FAILED, "%s", session->guard.error.text);
    receive_one(0);
    finish();
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(frames_go_on_the_next_channels, 10),
        LOOP_CASE(empty_write_is_given_up, 10),
        LOOP_CASE(empty_notification_is_given_up, 10),
        LOOP_CASE(message_is_given_up_after_it_arrived, 10),
        LOOP_CASE(write_is_given_up_after_its_notification_arrived, 10),
        LOOP_CASE(write_is_given_up_after_it_landed, 10),
        LOOP_CASE(read_is_given_up_ahead_of_itself, 10),
        LOOP_CASE(channel_is_lost_before_it_started, 10),
        LOOP_CASE(rail_is_silent_at_the_end, 10),
        LOOP_CASE(channel_is_denied_at_the_end, 10),
        LOOP_CASE(storm_in_large_chunks, 30),
        LOOP_CASE(storm_in_small_chunks, 30),
        LOOP_CASE(storm_in_tiny_windows, 30),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
