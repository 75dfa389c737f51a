/* A peer that lies about device channels: JOINs of streams that do not belong together, streams that are parked for
 * nobody, payload that was never asked for, and domains that do not exist. */
#include <errno.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/calls/peer.h"
#include "stranger.h"
#include "wire/pattern.h"

#define STRAND 0u /* towards domain 0 of the host, which accepts */
#define CHANNEL (WF_CLASSES + STRAND)
#define CAPACITY 4096
#define LARGE (1 << 20)

/* A host whose device 0 has an inlet, and a session of one express channel with it, of a peer without some features. */
struct house {
    struct scene scene;
    struct wf_hello hello;
    struct weft_endpoint *endpoint;
    struct weft_peer *peer;
    int fd;
};

static void open_house_of(struct house *house, bool cards, uint32_t host_percent, uint64_t features)
{
    struct weft_registration *registration;
    struct wf_setup proof;
    struct scene *scene = &house->scene;
    if (cards)
        open_scene_with_cards(scene, host_percent);
    else
        open_scene_with(scene, NULL, true, NULL);
    void *memory = wf_sim_memory_take(scene->memory, 0, CAPACITY);
    assert_int_equal(weft_register(scene->host, memory, CAPACITY, &registration, NULL), 0);
    weft_deregister(registration);
    wf_sim_memory_give(scene->memory, memory);
    assert_int_equal(weft_endpoint_create(scene->host, 0, &house->endpoint, NULL), 0);
    introduce_without(scene, features, &house->hello);
    house->fd = join(scene, &house->hello, 1, &proof);
    say(scene, house->fd, &proof);
    pass(scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_accept(scene->host, 0, &house->peer, NULL), 0);
}

static void open_house(struct house *house, bool cards)
{
    open_house_of(house, cards, 0, 0);
}

static void close_house(struct house *house)
{
    hang_up(&house->scene, house->fd);
    weft_peer_close(house->peer, 0, NULL);
    close_scene(&house->scene);
}

static struct wf_join join_of(uint8_t kind, uint32_t incarnation)
{
    return (struct wf_join){.channel = CHANNEL,
                            .incarnation = incarnation,
                            .channels = 1,
                            .kind = kind,
                            .domain = STRAND + 1,
                            .granted_frames = 64,
                            .granted_bytes = 1 << 20};
}

/* The host's answer to the JOIN; false: it hangs up. */
static bool ask(struct house *house, int fd, struct wf_join *join, struct wf_setup *answer)
{
    struct wf_setup setup = {.type = WF_SETUP_JOIN, .join = *join};
    uint8_t bytes[WF_SETUP_MAX];
    setup.join.session = join->session = house->hello.session;
    say(&house->scene, fd, &setup);
    size_t got = receive_bytes(&house->scene, fd, bytes, sizeof bytes);
    if (got > 0)
        assert_int_equal(wf_setup_decode(bytes, got, answer), 0);
    return got > 0;
}

/* Joins, and proves it. The descriptor. */
static int come(struct house *house, struct wf_join join)
{
    struct wf_setup answer, proof = {.type = WF_SETUP_PROOF};
    int fd = call(&house->scene);
    assert_true(ask(house, fd, &join, &answer));
    assert_int_equal(answer.type, WF_SETUP_CHALLENGE);
    assert_int_equal(wf_seal_prove(house->hello.secret, WF_ROLE_DIALER, &join, &answer.challenge, proof.proof.proof),
                     0);
    say(&house->scene, fd, &proof);
    pass(&house->scene, WF_NS_PER_S / 10);
    return fd;
}

/* --- JOINs --- */

#define HANGS_UP 0

static const struct bad_join {
    const char *what;
    struct wf_join join;
    int reason;
} bad_joins[] = {
    {"a channel whose payload stream has not come",
     {.channel = CHANNEL, .incarnation = 2, .channels = 1, .kind = WF_CHANNEL_DEVICE, .domain = STRAND + 1},
     WF_DENY_BUSY},
    {"a domain without an inlet",
     {.channel = CHANNEL + 2, .incarnation = 2, .channels = 1, .kind = WF_CHANNEL_PAYLOAD, .domain = STRAND + 3},
     WF_DENY_LIMIT},
    {"the channel of another strand",
     {.channel = CHANNEL + 1, .incarnation = 2, .channels = 1, .kind = WF_CHANNEL_PAYLOAD, .domain = STRAND + 1},
     WF_DENY_LIMIT},
    {"a channel of a traffic class",
     {.channel = 1, .incarnation = 2, .channels = 1, .kind = WF_CHANNEL_PAYLOAD, .domain = STRAND + 1},
     WF_DENY_LIMIT},
    {"the last number there is",
     {.channel = UINT32_MAX, .incarnation = 2, .channels = 1, .kind = WF_CHANNEL_PAYLOAD, .domain = WF_STRANDS_MAX},
     WF_DENY_LIMIT},
    {"another number of channels",
     {.channel = 2 * CHANNEL, .incarnation = 2, .channels = 2, .kind = WF_CHANNEL_PAYLOAD, .domain = STRAND + 1},
     WF_DENY_LIMIT},
    {"a pair of rails that does not exist",
     {.channel = CHANNEL, .incarnation = 2, .channels = 1, .kind = WF_CHANNEL_PAYLOAD, .rail = 63, .domain = 1},
     WF_DENY_LIMIT},
    {"no incarnation",
     {.channel = CHANNEL, .channels = 1, .kind = WF_CHANNEL_PAYLOAD, .domain = STRAND + 1},
     WF_DENY_LIMIT},
    {"a bulk channel with the number of a device channel",
     {.channel = CHANNEL, .incarnation = 2, .channels = 1, .kind = WF_CHANNEL_BULK},
     WF_DENY_LIMIT},
    {"a strand beyond the last",
     {.channel = CHANNEL, .incarnation = 2, .channels = 1, .kind = WF_CHANNEL_PAYLOAD, .domain = WF_STRANDS_MAX + 1},
     HANGS_UP},
    {"a payload stream of no strand",
     {.channel = CHANNEL, .incarnation = 2, .channels = 1, .kind = WF_CHANNEL_PAYLOAD},
     HANGS_UP},
    {"a bulk channel of a strand",
     {.channel = 0, .incarnation = 2, .channels = 1, .kind = WF_CHANNEL_BULK, .domain = STRAND + 1},
     HANGS_UP},
    {"a kind that does not exist",
     {.channel = CHANNEL, .incarnation = 2, .channels = 1, .kind = WF_CHANNEL_PAYLOAD + 1, .domain = STRAND + 1},
     HANGS_UP},
};

static void joins_that_do_not_fit(void **state)
{
    (void)state;
    struct house house;
    open_house(&house, true);
    for (size_t i = 0; i < sizeof bad_joins / sizeof bad_joins[0]; i++) {
        struct wf_join join = bad_joins[i].join;
        struct wf_setup answer;
        print_message("%s\n", bad_joins[i].what);
        int fd = call(&house.scene);
        bool answered = ask(&house, fd, &join, &answer);
        assert_int_equal(answered, bad_joins[i].reason != HANGS_UP);
        if (answered) {
            assert_int_equal(answer.type, WF_SETUP_DENY);
            assert_int_equal(answer.deny.reason, bad_joins[i].reason);
            const char *words = bad_joins[i].join.domain > 0 ? "device channel " : "channel ";
            if (strncmp(answer.deny.text, words, strlen(words)) != 0)
                fail_msg("%s: %s", bad_joins[i].what, answer.deny.text);
        }
        hang_up(&house.scene, fd);
    }
    assert_int_equal(weft_peer_status(house.peer, NULL), 0);
    assert_int_equal(wf_sim_cards_counts(house.scene.cards).streams, 0);
    close_house(&house);
}

static void a_host_without_cards(void **state)
{
    (void)state;
    struct house house;
    struct wf_setup answer;
    struct wf_join join = join_of(WF_CHANNEL_PAYLOAD, 2);
    open_house(&house, false);
    int fd = call(&house.scene);
    assert_true(ask(&house, fd, &join, &answer));
    assert_int_equal(answer.deny.reason, WF_DENY_LIMIT);
    hang_up(&house.scene, fd);
    close_house(&house);
}

/* Streams that are parked, and whose channels never come, take the place of one. */
static void parked_for_nobody(void **state)
{
    (void)state;
    enum { STREAMS = 40 };
    struct house house;
    int fds[STREAMS];
    open_house(&house, true);
    for (uint32_t i = 0; i < STREAMS; i++) {
        fds[i] = come(&house, join_of(WF_CHANNEL_PAYLOAD, i + 2));
        assert_int_equal(wf_sim_cards_counts(house.scene.cards).streams, 1);
    }
    assert_int_equal(weft_peer_status(house.peer, NULL), 0);
    for (int i = 0; i < STREAMS; i++)
        hang_up(&house.scene, fds[i]);
    close_house(&house);
}

/* One that is parked when its session ends is closed then, not when the user gives up the peer. */
static void parked_at_the_end(void **state)
{
    (void)state;
    struct house house;
    open_house(&house, true);
    int fd = come(&house, join_of(WF_CHANNEL_PAYLOAD, 2));
    assert_int_equal(wf_sim_cards_counts(house.scene.cards).streams, 1);
    hang_up(&house.scene, house.fd);
    pass(&house.scene, JOIN_DEADLINE);
    assert_int_equal(weft_peer_status(house.peer, NULL), -ECONNRESET);
    assert_int_equal(wf_sim_cards_counts(house.scene.cards).streams, 0);
    hang_up(&house.scene, fd);
    weft_peer_close(house.peer, 0, NULL);
    close_scene(&house.scene);
}

/* --- payload --- */

static void say_detached(struct house *house, int fd, struct wf_frame frame, uint64_t position)
{
    uint8_t bytes[WF_DETACHED_BYTES];
    frame.data_off = WF_DETACHED_BYTES;
    wf_frame_encode(&frame, bytes);
    wf_frame_encode_position(position, bytes + WF_FRAME_BYTES);
    send_bytes(&house->scene, fd, bytes, sizeof bytes);
}

/* The pattern of a payload stream, `wrong` or not. */
static void say_pattern(struct house *house, uint32_t incarnation, bool wrong, int payload, int headers)
{
    static uint8_t pattern[WF_PATTERN_BYTES];
    say_frame(&house->scene, headers, (struct wf_frame){.type = WF_TRIAL}, 0);
    wf_pattern_fill(house->hello.session, CHANNEL, incarnation, pattern);
    pattern[WF_PATTERN_BYTES - 1] ^= wrong;
    for (size_t at = 0; at < sizeof pattern; at += 1024)
        send_bytes(&house->scene, payload, pattern + at, 1024);
    pass(&house->scene, WF_NS_PER_S / 10);
}

/* A device channel, and its pattern. */
static void open_channel(struct house *house, uint32_t incarnation, bool wrong, int *payload, int *headers)
{
    *payload = come(house, join_of(WF_CHANNEL_PAYLOAD, incarnation));
    *headers = come(house, join_of(WF_CHANNEL_DEVICE, incarnation));
    say_pattern(house, incarnation, wrong, *payload, *headers);
}

/* The trial ends badly: with these words among the fallbacks. */
static void fails_its_trial(struct house *house, bool wrong, const char *words)
{
    struct wf_setup answer;
    struct wf_join again = join_of(WF_CHANNEL_PAYLOAD, 3);
    uint8_t byte;
    int payload, headers;
    open_channel(house, 2, wrong, &payload, &headers);
    assert_int_equal(receive_bytes(&house->scene, payload, &byte, 1), 0); /* the channel is lost, */
    assert_int_equal(weft_peer_status(house->peer, NULL), 0);             /* not the peer */
    assert_non_null(strstr(weft_context_fallbacks(house->scene.host), "devmem: GPU 0 is staged on "));
    assert_non_null(strstr(weft_context_fallbacks(house->scene.host), words));
    int fd = call(&house->scene);
    assert_true(ask(house, fd, &again, &answer)); /* and comes no more */
    assert_int_equal(answer.type, WF_SETUP_DENY);
    assert_int_equal(answer.deny.reason, WF_DENY_LIMIT);
    hang_up(&house->scene, fd);
    hang_up(&house->scene, payload);
    hang_up(&house->scene, headers);
    close_house(house);
}

static void a_pattern_that_is_another_one(void **state)
{
    (void)state;
    struct house house;
    open_house(&house, true);
    fails_its_trial(&house, true, ": of a trial the card has brought wrong bytes");
}

static void a_pattern_that_stays_in_host_memory(void **state)
{
    (void)state;
    struct house house;
    open_house_of(&house, true, 100, 0);
    fails_its_trial(&house, false, ": of a trial the card has put nothing into its memory");
}

static void a_pattern_that_cannot_be_read_back(void **state)
{
    (void)state;
    struct house house;
    open_house(&house, true);
    wf_sim_memory_fail_percent(house.scene.memory, 0, 100);
    fails_its_trial(&house, false, ": what the card has put into its memory could not be read back");
}

/* What is parked for an inlet is closed when the inlet is left: no channel comes to it any more. */
static void parked_for_an_inlet_that_is_left(void **state)
{
    (void)state;
    struct house house;
    open_house(&house, true);
    int payload = come(&house, join_of(WF_CHANNEL_PAYLOAD, 2)), headers = come(&house, join_of(WF_CHANNEL_DEVICE, 2));
    int next = come(&house, join_of(WF_CHANNEL_PAYLOAD, 3));
    assert_int_equal(wf_sim_cards_counts(house.scene.cards).streams, 2);
    say_pattern(&house, 2, true, payload, headers);
    assert_int_equal(weft_peer_status(house.peer, NULL), 0);
    assert_int_equal(wf_sim_cards_counts(house.scene.cards).streams, 0);
    hang_up(&house.scene, next);
    hang_up(&house.scene, payload);
    hang_up(&house.scene, headers);
    close_house(&house);
}

/* The first bytes of a message come on a device channel; its receive is for host memory. */
static void payload_for_host_memory(void **state)
{
    (void)state;
    struct house house;
    struct weft_connection *connection;
    struct weft_request *request;
    uint8_t memory[64] = {0}, bytes[64];
    int payload, headers;
    memset(bytes, 0xEE, sizeof bytes);
    open_house(&house, true);
    open_channel(&house, 2, false, &payload, &headers);
    say_frame(&house.scene, house.fd, (struct wf_frame){.type = WF_OPEN, .conn = 1, .offset = 1024}, 0);
    pass(&house.scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_connection_accept(house.endpoint, house.peer, WEFT_ANY_ENDPOINT, 0, &connection, NULL), 0);
    assert_int_equal(weft_recv(connection, memory, sizeof memory, 1, NULL, &request), 0);
    struct wf_frame frame = {
        .type = WF_DATA, .flags = WF_FLAG_TAGGED, .conn = 1, .msg = 1, .key = 1, .total = 64, .length = 64};
    say_detached(&house, headers, frame, WF_PATTERN_BYTES);
    send_bytes(&house.scene, payload, bytes, sizeof bytes);
    pass(&house.scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_peer_status(house.peer, NULL), -EPROTO);
    for (size_t i = 0; i < sizeof memory; i++)
        assert_int_equal(memory[i], 0);
    struct weft_completion completion;
    assert_int_equal(weft_wait(request, 0, &completion), 0); /* 0: it has ended */
    assert_int_not_equal(completion.status, 0);
    hang_up(&house.scene, payload);
    hang_up(&house.scene, headers);
    close_house(&house);
}

/* Stale bytes are drained, but no more of them than a chunk. The peer is an older one, which sends no pattern. */
static void payload_without_end(void **state)
{
    (void)state;
    struct house house;
    static uint8_t bytes[65536];
    open_house_of(&house, true, 0, WF_FEATURE_TRIAL);
    int payload = come(&house, join_of(WF_CHANNEL_PAYLOAD, 2)), headers = come(&house, join_of(WF_CHANNEL_DEVICE, 2));
    say_frame(&house.scene, house.fd, (struct wf_frame){.type = WF_OPEN, .conn = 1, .offset = 1024}, 0);
    say_frame(&house.scene, house.fd, (struct wf_frame){.type = WF_CLOSE, .conn = 1, .msg = 1}, 0);
    say_frame(&house.scene, house.fd, (struct wf_frame){.type = WF_CLOSED, .conn = 1}, 0);
    pass(&house.scene, WF_NS_PER_S / 10);
    struct wf_frame frame = {
        .type = WF_DATA, .flags = WF_FLAG_TAGGED, .conn = 1, .msg = 1, .total = 1u << 31, .length = 1u << 31};
    say_detached(&house, headers, frame, 0);
    send_bytes(&house.scene, payload, bytes, 4096);
    pass(&house.scene, WF_NS_PER_S / 10);
    assert_int_equal(receive_bytes(&house.scene, payload, bytes, 1), 0); /* the channel is lost */
    hang_up(&house.scene, payload);
    hang_up(&house.scene, headers);
    close_house(&house);
}

/* --- GRANTs --- */

static void a_grant_with(struct house *house, uint64_t key, int status)
{
    struct weft_connection *connection;
    struct weft_request *request;
    struct weft_registration *registration;
    struct wf_frame grant = {.type = WF_GRANT, .flags = WF_FLAG_PEER, .conn = 1, .msg = 1, .offset = LARGE, .key = key};
    void *memory = wf_sim_memory_take(house->scene.memory, 0, LARGE); /* nothing of it goes unasked */
    assert_int_equal(weft_register(house->scene.host, memory, LARGE, &registration, NULL), 0);
    say_frame(&house->scene, house->fd, (struct wf_frame){.type = WF_OPEN, .conn = 1, .offset = 1024}, 0);
    pass(&house->scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_connection_accept(house->endpoint, house->peer, WEFT_ANY_ENDPOINT, 0, &connection, NULL), 0);
    assert_int_equal(weft_send(connection, memory, LARGE, 1, NULL, &request), 0);
    pass(&house->scene, WF_NS_PER_S / 10);
    say_frame(&house->scene, house->fd, grant, 0);
    pass(&house->scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_peer_status(house->peer, NULL), status);
    hang_up(&house->scene, house->fd);
    weft_peer_close(house->peer, 0, NULL);
    assert_int_equal(weft_wait(request, 0, NULL), 0);
    weft_deregister(registration);
    wf_sim_memory_give(house->scene.memory, memory);
    close_scene(&house->scene);
}

static void grants_with_domains(void **state)
{
    (void)state;
    struct house house;
    open_house(&house, true);
    a_grant_with(&house, 5, 0); /* a domain without a channel: as without */
    open_house(&house, true);
    a_grant_with(&house, WF_DOMAINS_MAX + 1, -EPROTO);
    open_house(&house, true);
    a_grant_with(&house, UINT64_MAX, -EPROTO);
    open_house(&house, false);
    a_grant_with(&house, 1, -EPROTO); /* never agreed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_that_do_not_fit),
        cmocka_unit_test(a_host_without_cards),
        cmocka_unit_test(parked_for_nobody),
        cmocka_unit_test(parked_at_the_end),
        cmocka_unit_test(parked_for_an_inlet_that_is_left),
        cmocka_unit_test(payload_for_host_memory),
        cmocka_unit_test(payload_without_end),
        cmocka_unit_test(grants_with_domains),
        cmocka_unit_test(a_pattern_that_is_another_one),
        cmocka_unit_test(a_pattern_that_stays_in_host_memory),
        cmocka_unit_test(a_pattern_that_cannot_be_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
