/* A peer that was let in, and what it can make the host hold. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/message/connection.h"
#include "core/message/inbound.h"
#include "core/request/pieces.h"
#include "core/message/served.h"
#include "stranger.h"

#define FAR (3 * 65536)

/* A host with an endpoint, and a peer that was let in. */
struct house {
    struct scene scene;
    struct weft_peer *peer;
    struct wf_session *session;
    struct weft_endpoint *endpoint;
    int fd;
};

static void settle_in(struct house *house)
{
    assert_int_equal(weft_endpoint_create(house->scene.host, 0, &house->endpoint, NULL), 0);
    house->fd = come_in(&house->scene, &house->peer);
    house->session = house->peer->session;
}

static void open_house(struct house *house, const char *setting)
{
    open_scene_with(&house->scene, NULL, false, setting);
    settle_in(house);
}

static void close_house(struct house *house)
{
    hang_up(&house->scene, house->fd);
    weft_peer_close(house->peer, 0, NULL);
    close_scene(&house->scene);
}

static void tell(struct house *house, struct wf_frame frame, size_t payload)
{
    say_frame(&house->scene, house->fd, frame, payload);
    pass(&house->scene, WF_NS_PER_MS);
}

static struct weft_connection *open_connection(struct house *house, uint32_t number)
{
    tell(house, (struct wf_frame){.type = WF_OPEN, .conn = number, .offset = 1024}, 0);
    return wf_connection_find(&house->session->desk, number);
}

/* A sender may give up what has just landed: it does not know yet. How much the host is reading of it meanwhile has
 * nothing to do with that. */
static void given_up_beside_reads(void **state)
{
    (void)state;
    enum { READS = 200 };
    static uint8_t memory[READS];
    struct house house;
    struct weft_request *request;
    struct weft_connection *connection;
    struct weft_completion completion;
    open_house(&house, "introductions=16");
    open_connection(&house, 1);
    assert_int_equal(weft_connection_accept(house.endpoint, house.peer, WEFT_ANY_ENDPOINT, 0, &connection, NULL), 0);
    for (int i = 0; i < READS; i++)
        assert_int_equal(weft_read(connection, memory + i, 1, 1, 0, NULL, &request), 0);
    assert_int_equal(weft_recv(connection, memory, 64, 0, NULL, &request), 0);
    struct wf_frame message = {
        .type = WF_DATA, .flags = WF_FLAG_TAGGED, .conn = 1, .msg = 1, .length = 64, .total = 64};
    tell(&house, message, 64);
    assert_true(weft_test(request, &completion));
    assert_int_equal(completion.status, 0);
    tell(&house, (struct wf_frame){.type = WF_REFUSE, .conn = 1, .msg = 1, .key = (uint64_t)-ECANCELED}, 0);
    assert_true(house.session->lines.channels[0]->up);
    assert_int_equal(weft_peer_status(house.peer, NULL), 0);
    close_house(&house);
}

/* Refusals of what has ended, which the peer lets nobody answer: they end, whatever number of connections they are of.
 */
static void refusals_without_end(void **state)
{
    (void)state;
    enum { CONNECTIONS = 2, NUMBERS = WF_ANSWERS_MAX / 2 + 500, AT_ONCE = 100 };
    struct house house;
    open_house(&house, NULL);
    house.session->lines.channels[0]->tx.window.granted_frames =
        0; /* as it would be, had it granted none from the start */
    for (uint32_t number = 1; number <= 2 * CONNECTIONS; number += 2) {
        struct weft_connection *connection = open_connection(&house, number);
        for (uint64_t ended = 1; ended <= NUMBERS; ended++)
            assert_int_equal(wf_finished_add(&connection->finished, ended), 0);
    }
    uint8_t bytes[AT_ONCE * WF_FRAME_BYTES];
    for (uint64_t said = 0; said < CONNECTIONS * NUMBERS && house.session->lines.channels[0]->up; said += AT_ONCE) {
        for (uint64_t i = 0; i < AT_ONCE; i++) {
            struct wf_frame frame = {.type = WF_REFUSE,
                                     .data_off = WF_FRAME_BYTES,
                                     .conn = (uint32_t)((said + i) / NUMBERS * 2 + 1),
                                     .msg = (said + i) % NUMBERS + 1,
                                     .key = (uint64_t)-ECANCELED};
            wf_frame_encode(&frame, bytes + i * WF_FRAME_BYTES);
        }
        struct wf_rx *rx = &house.session->lines.channels[0]->rx;
        rx->granted_frames = rx->disposed + WF_EXPRESS_WINDOW; /* as told to a peer that listens */
        send_bytes(&house.scene, house.fd, bytes, sizeof bytes);
        pass(&house.scene, WF_NS_PER_MS);
        assert_in_range(house.session->desk.inbound_pool.taken, 0, WF_ANSWERS_MAX);
    }
    assert_int_equal(house.session->desk.inbound_pool.taken, WF_ANSWERS_MAX);
    assert_false(house.session->lines.channels[0]->up);
    close_house(&house);
}

/* Writes to lists of pieces that never end: the lists go on being counted with those that wait for their operation. */
static void lists_without_end(void **state)
{
    (void)state;
    static uint8_t memory[4096];
    struct house house;
    struct weft_registration *registration;
    open_house(&house, NULL);
    assert_int_equal(weft_register(house.scene.host, memory, sizeof memory, &registration, NULL), 0);
    struct weft_connection *connection = open_connection(&house, 1);
    /* As it would be with some gigabytes of them in use. */
    house.session->desk.list_bytes = WF_LIST_BYTES_MAX - 2 * WF_ENTRY_BYTES;
    for (uint64_t number = 1; number <= 3; number += 2) {
        uint8_t bytes[WF_FRAME_BYTES + WF_ENTRY_BYTES];
        struct wf_frame list = {.type = WF_DATA,
                                .flags = WF_FLAG_LIST,
                                .data_off = WF_FRAME_BYTES,
                                .conn = 1,
                                .msg = number,
                                .length = WF_ENTRY_BYTES,
                                .total = WF_ENTRY_BYTES};
        wf_frame_encode(&list, bytes);
        wf_entry_encode(&(struct wf_entry){weft_registration_key(registration), 0, 2}, bytes + WF_FRAME_BYTES);
        send_bytes(&house.scene, house.fd, bytes, sizeof bytes);
        pass(&house.scene, WF_NS_PER_MS);
        tell(&house,
             (struct wf_frame){.type = WF_DATA,
                               .flags = WF_FLAG_WRITE | WF_FLAG_LIST,
                               .conn = 1,
                               .msg = number + 1,
                               .length = 1,
                               .total = 2,
                               .key = number},
             1);
        assert_int_equal(wf_inbound_find(connection, number + 1)->state, WF_INBOUND_MATCHED);
    }
    tell(&house,
         (struct wf_frame){.type = WF_OFFER, .flags = WF_FLAG_LIST, .conn = 1, .msg = 5, .total = WF_ENTRY_BYTES}, 0);
    assert_int_equal(wf_inbound_find(connection, 5)->refuse_status, -ENOBUFS);
    assert_int_equal(house.session->desk.list_bytes, WF_LIST_BYTES_MAX);
    /* The end of an operation makes room. */
    tell(&house,
         (struct wf_frame){.type = WF_DATA,
                           .flags = WF_FLAG_WRITE | WF_FLAG_LIST,
                           .conn = 1,
                           .msg = 2,
                           .offset = 1,
                           .length = 1,
                           .total = 2,
                           .key = 1},
         1);
    assert_int_equal(house.session->desk.list_bytes, WF_LIST_BYTES_MAX - WF_ENTRY_BYTES);
    assert_int_equal(weft_peer_status(house.peer, NULL), 0);
    hang_up(&house.scene, house.fd);
    weft_deregister(registration);
    weft_peer_close(house.peer, 0, NULL);
    close_scene(&house.scene);
}

/* What the host says of introductions on a connection next. */
static uint64_t promise(struct house *house, enum wf_frame_type type, uint32_t number)
{
    for (;;) {
        uint8_t bytes[WF_FRAME_BYTES];
        struct wf_frame frame;
        for (size_t have = 0; have < sizeof bytes;) {
            size_t got = receive_bytes(&house->scene, house->fd, bytes + have, sizeof bytes - have);
            assert_true(got > 0);
            have += got;
        }
        assert_int_equal(wf_frame_decode(bytes, &frame), 0);
        if (frame.type == type && frame.conn == number)
            return frame.offset;
    }
}

/* Offers that nobody receives. The first connections get what the setting says; once the session has promised all that
 * it holds, each of the others gets a few, and more when one of the first has ended. */
static void offers_on_many_connections(void **state)
{
    (void)state;
    enum { EACH = 65536, RICH = WF_INTRODUCTIONS_SHARED / (EACH - WF_INTRODUCTIONS_FEW), LAST = 2 * RICH + 3 };
    const uint32_t rest = WF_INTRODUCTIONS_SHARED % (EACH - WF_INTRODUCTIONS_FEW) + WF_INTRODUCTIONS_FEW;
    struct house house;
    open_house(&house, "introductions=65536");
    for (uint32_t i = 0; i < RICH + 2; i++) {
        open_connection(&house, 2 * i + 1);
        uint32_t expected = i < RICH ? EACH : i == RICH ? rest : WF_INTRODUCTIONS_FEW;
        assert_int_equal(promise(&house, WF_OPENED, 2 * i + 1), expected);
    }
    tell(&house, (struct wf_frame){.type = WF_CLOSE, .conn = 1, .msg = 1}, 0);
    tell(&house, (struct wf_frame){.type = WF_CLOSED, .conn = 1}, 0);
    assert_null(wf_connection_find(&house.session->desk, 1));
    /* A message that its sender gives up before it comes: its end is the next occasion to promise more. */
    tell(&house, (struct wf_frame){.type = WF_REFUSE, .conn = LAST, .msg = 1, .key = (uint64_t)-ECANCELED}, 0);
    assert_int_equal(promise(&house, WF_CREDIT, LAST), EACH + 1);
    struct wf_frame offer = {.type = WF_OFFER, .flags = WF_FLAG_TAGGED, .conn = LAST - 2, .total = FAR};
    offer.msg = rest;
    tell(&house, offer, 0);
    assert_int_equal(weft_peer_status(house.peer, NULL), 0);
    offer.msg = rest + 1;
    tell(&house, offer, 0);
    assert_int_equal(weft_peer_status(house.peer, NULL), -EPROTO);
    close_house(&house);
}

/* Writes with holes, which none of their bytes ever fills: where the holes are takes memory, too. A hole is a chunk
 * that is still to come, so that there cannot be more than the windows of the channels have places. */
static void writes_full_of_holes(void **state)
{
    (void)state;
    enum { WRITES = WF_EXPRESS_WINDOW + 10, CHUNKS = WF_RANGE_INLINE + 1, CHUNK = WF_FRAME_BYTES + 1 };
    static uint8_t memory[4096];
    struct house house;
    struct weft_registration *registration;
    open_house(&house, "introductions=4096");
    assert_int_equal(weft_register(house.scene.host, memory, sizeof memory, &registration, NULL), 0);
    open_connection(&house, 1);
    struct wf_rx *rx = &house.session->lines.channels[0]->rx;
    for (uint64_t number = 1; number <= WRITES && weft_peer_status(house.peer, NULL) == 0; number++) {
        uint8_t bytes[CHUNKS * CHUNK] = {0};
        for (uint64_t i = 0; i < CHUNKS; i++) {
            struct wf_frame frame = {.type = WF_DATA,
                                     .flags = WF_FLAG_WRITE,
                                     .data_off = WF_FRAME_BYTES,
                                     .conn = 1,
                                     .msg = number,
                                     .offset = 2 * i,
                                     .length = 1,
                                     .total = sizeof memory,
                                     .key = weft_registration_key(registration)};
            wf_frame_encode(&frame, bytes + i * CHUNK);
        }
        rx->granted_frames = rx->disposed + WF_EXPRESS_WINDOW; /* as told to a peer that listens */
        send_bytes(&house.scene, house.fd, bytes, sizeof bytes);
        pass(&house.scene, WF_NS_PER_MS);
        assert_in_range(house.session->desk.range_pool.taken, 0, WF_EXPRESS_WINDOW);
    }
    assert_int_equal(house.session->desk.range_pool.taken, WF_EXPRESS_WINDOW);
    assert_int_equal(weft_peer_status(house.peer, NULL), -EPROTO);
    hang_up(&house.scene, house.fd);
    weft_deregister(registration);
    weft_peer_close(house.peer, 0, NULL);
    close_scene(&house.scene);
}

/* A burst byte by byte, for a device that copies nothing: there is no slot for most of it, and a copy of its own for no
 * more of it than the pool has blocks. */
static void copies_of_a_byte(void **state)
{
    (void)state;
    enum { TOTAL = 60000, FRAME = WF_FRAME_BYTES + 1, AT_ONCE = 100, MOST = 1000 };
    struct house house;
    struct weft_registration *registration;
    struct weft_request *request;
    struct weft_connection *connection;
    struct weft_completion completion;
    open_scene_with(&house.scene, NULL, true, "staging=64K");
    settle_in(&house);
    open_connection(&house, 1);
    assert_int_equal(weft_connection_accept(house.endpoint, house.peer, WEFT_ANY_ENDPOINT, 0, &connection, NULL), 0);
    void *memory = wf_sim_memory_take(house.scene.memory, 0, TOTAL);
    assert_int_equal(weft_register(house.scene.host, memory, TOTAL, &registration, NULL), 0);
    assert_int_equal(weft_recv(connection, memory, TOTAL, 0, NULL, &request), 0);
    wf_sim_memory_freeze(house.scene.memory, 0, true);
    struct wf_rx *rx = &house.session->lines.channels[0]->rx;
    for (uint64_t said = 0; said < 3 * MOST; said += AT_ONCE) {
        uint8_t bytes[AT_ONCE * FRAME] = {0};
        for (uint64_t i = 0; i < AT_ONCE; i++) {
            struct wf_frame frame = {.type = WF_DATA,
                                     .flags = WF_FLAG_TAGGED,
                                     .data_off = WF_FRAME_BYTES,
                                     .conn = 1,
                                     .msg = 1,
                                     .offset = said + i,
                                     .length = 1,
                                     .total = TOTAL};
            wf_frame_encode(&frame, bytes + i * FRAME);
        }
        rx->granted_frames = rx->disposed + WF_EXPRESS_WINDOW; /* as told to a peer that listens */
        struct iovec iov = {bytes, sizeof bytes};
        struct wf_op op = {.kind = WF_OP_SEND, .fd = house.fd, .iov = &iov, .iov_count = 1};
        wf_link_init(&op.link);
        house.scene.engine->ops->post(house.scene.engine, &op);
        struct wf_op *done[1];
        bool sent = false;
        for (int turn = 0; turn < 1000 && !sent && !rx->held; turn++) {
            pass(&house.scene, WF_NS_PER_MS);
            sent = house.scene.engine->ops->poll(house.scene.engine, done, 1, 0) == 1;
        }
        if (!sent) { /* the host reads no more */
            house.scene.engine->ops->cancel(house.scene.engine, &op);
            while (house.scene.engine->ops->poll(house.scene.engine, done, 1, 0) != 1)
                pass(&house.scene, WF_NS_PER_MS);
            break;
        }
    }
    assert_true(rx->held);
    assert_in_range(house.session->shares.transits.taken, 1, MOST);
    wf_sim_memory_freeze(house.scene.memory, 0, false);
    hang_up(&house.scene, house.fd);
    while (!weft_test(request, &completion))
        pass(&house.scene, WF_NS_PER_MS);
    weft_deregister(registration);
    weft_peer_close(house.peer, 0, NULL);
    pass(&house.scene, WF_NS_PER_MS);
    wf_sim_memory_give(house.scene.memory, memory);
    close_scene(&house.scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_up_beside_reads), cmocka_unit_test(refusals_without_end),
        cmocka_unit_test(lists_without_end),     cmocka_unit_test(offers_on_many_connections),
        cmocka_unit_test(writes_full_of_holes),  cmocka_unit_test(copies_of_a_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
