/* A device channel's receive half over played streams: headers on one, fragments and host bytes on the other, what a
 * peer may not say, when fragments go back to the card, and when the stream is closed. */
#include "core_scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/channel/half_state.h"
#include "core/channel/ops.h"
#include "core/channel/payload.h"
#include "core/channel/state.h"
#include "core/channel/work.h"
#include "wire/pattern.h"

#define PER_CLASS 2
#define STRAND 1u /* towards the dialer, which the scene is */
#define HEADERS_FD 70
#define PAYLOAD_FD 71
#define BUFFER 4096u
#define BUFFERS 64u
#define BINDING 5u

static uint8_t memory[BUFFERS * BUFFER]; /* of the inlet */

/* The channel, its streams, and what rooms above and below it were asked. */
static struct {
    struct scene *scene;
    struct wf_engine_ops engine_ops;
    struct wf_cards cards;
    struct wf_inlet inlet;
    struct wf_channel *channel;
    struct wf_payload *payload;
    uint64_t sent; /* bytes of the payload stream */
    uint32_t next_token;
    bool unwanted;
    int finished, lost, code, unsteered, closed;
    int patterns, parts; /* taken: to their ends, and before */
    bool judging;        /* a pattern is not known to be right at once */
    uint32_t given;      /* tokens */
    struct wf_landing *landing;
} the;

static struct wf_inbound *const inbound = (struct wf_inbound *)&the.scene; /* a claim; nobody looks into it */

/* --- above --- */

static int take_frame(struct wf_channel *channel, const struct wf_frame *frame)
{
    if (frame->type == WF_TRIAL)
        return wf_payload_await_pattern(channel);
    if (!the.unwanted)
        wf_rx_claim(&channel->rx, inbound);
    return 0;
}

static void finish_payload(struct wf_channel *channel)
{
    int result = 0;
    the.finished += 1;
    if (channel->rx.claim)
        the.landing = wf_payload_land(channel->payload, &result);
    assert_int_equal(result, 0);
    wf_rx_unclaim(&channel->rx);
}

static int land_part(struct wf_channel *channel)
{
    (void)channel;
    return 0;
}

static int take_pattern(struct wf_channel *channel, bool all)
{
    int result = 0;
    the.patterns += all;
    the.parts += !all;
    the.landing = wf_payload_land(channel->payload, &result);
    if (the.judging)
        wf_channel_hold(channel, true);
    else if (all)
        wf_payload_passed(channel->payload);
    return result;
}

static void worked_through(struct wf_channel *channel)
{
    (void)channel;
}

static void lost(struct wf_channel *channel, int code, const char *doing)
{
    (void)doing;
    the.lost += 1;
    the.code = code;
    channel->kill = true;
}

static const struct wf_channel_ops channel_ops = {.take_frame = take_frame,
                                                  .finish_payload = finish_payload,
                                                  .land_part = land_part,
                                                  .take_pattern = take_pattern,
                                                  .worked_through = worked_through,
                                                  .lost = lost};

/* --- below --- */

static int give_back(void *host, int fd, const struct wf_tokens *ranges, int count)
{
    (void)host;
    assert_int_equal(fd, PAYLOAD_FD);
    assert_int_equal(the.closed, 0);
    for (int i = 0; i < count; i++)
        the.given += ranges[i].count;
    return 0;
}

static void close_fd(void *host, int fd)
{
    (void)host;
    assert_int_equal(fd, PAYLOAD_FD);
    assert_int_equal(the.unsteered, 1); /* before */
    the.closed += 1;
}

static void unsteer(void *host, struct wf_inlet *inlet, void *rule)
{
    (void)host, (void)rule;
    assert_ptr_equal(inlet, &the.inlet);
    the.unsteered += 1;
}

static const struct wf_card_ops card_ops = {.unsteer = unsteer};

/* --- the scene --- */

static uint32_t channel_id(void)
{
    return (WF_CLASSES + STRAND) * PER_CLASS + 1;
}

static struct wf_payload *make(uint32_t incarnation, struct wf_inlet *inlet)
{
    struct wf_join join = {.channel = channel_id(), .incarnation = incarnation, .domain = STRAND + 1};
    struct wf_payload *payload =
        wf_payload_create(&the.scene->lines, &the.cards, &join, PAYLOAD_FD, inlet, inlet ? &the.inlet : NULL);
    assert_non_null(payload);
    if (inlet)
        inlet->streams += 1;
    return payload;
}

static int set_up(void **state)
{
    memset(&the, 0, sizeof the);
    int result = scene_set_up(state);
    struct scene *scene = the.scene = *state;
    the.engine_ops = *scene->world.engine_ops;
    the.engine_ops.give_back = give_back;
    the.engine_ops.close_fd = close_fd;
    scene->world.engine_ops = &the.engine_ops;
    wf_cards_init(&the.cards, &scene->world, &card_ops, NULL);
    the.inlet = (struct wf_inlet){
        .handle = &the.inlet, .base = memory, .bytes = sizeof memory, .binding = BINDING, .buffer_bytes = BUFFER};
    scene->terms.features |= WF_FEATURE_DEVICE;
    assert_int_equal(wf_lines_expect(&scene->lines, PER_CLASS), 0);
    struct wf_join join = {.channel = channel_id(), .incarnation = 1, .kind = WF_CHANNEL_DEVICE, .domain = STRAND + 1};
    the.channel = calloc(1, sizeof *the.channel);
    assert_non_null(the.channel);
    assert_int_equal(wf_channel_init(the.channel, &scene->lines, &channel_ops, &join), 0);
    wf_channel_assign(the.channel, scene->crew.workers[0], scene->crew.workers[0]);
    wf_lines_use_strand(&scene->lines, (int)STRAND);
    wf_lines_enter(&scene->lines, the.channel, false);
    the.channel->fd = HEADERS_FD;
    return result;
}

/* The channel receives from now on; `inlet` NULL: its payload goes out. */
static void begin(struct wf_inlet *inlet)
{
    the.payload = make(1, inlet);
    wf_channel_set_payload(the.channel, the.payload);
    wf_channel_start_rx(the.channel);
}

/* The channel lets go of its payload stream. */
static void let_go(void)
{
    wf_guard_lock(&the.scene->guard);
    wf_payload_release(the.channel->payload);
    wf_channel_set_payload(the.channel, NULL);
    wf_guard_unlock(&the.scene->guard);
}

static void reap(void)
{
    struct wf_list spent;
    wf_list_init(&spent);
    wf_payloads_take_spent(&the.scene->lines, &spent);
    wf_payloads_close(&spent);
}

static int tear_down(void **state)
{
    wf_rx_unclaim(&the.channel->rx);
    wf_link_remove(&the.channel->rx.untold_link);
    if (the.channel->payload)
        let_go();
    reap();
    int result = scene_tear_down(state);
    wf_cards_fini(&the.cards);
    return result;
}

/* The operation that waits. */
static struct wf_op *posted(void)
{
    struct scene_engine *engine = the.scene->engines[0];
    assert_true(engine->posted_count > 0);
    return engine->posted[engine->posted_count - 1];
}

static void end(struct wf_op *op, int64_t result)
{
    op->result = result;
    ((struct wf_task *)op->context)->ended(op->context);
}

static struct wf_frame data_frame(uint64_t offset, uint32_t length)
{
    return (struct wf_frame){.type = WF_DATA,
                             .data_off = WF_DETACHED_BYTES,
                             .conn = 1,
                             .msg = 1,
                             .total = 1 << 20,
                             .offset = offset,
                             .length = length};
}

static void bring_header(const struct wf_frame *frame, uint64_t position)
{
    struct wf_op *op = posted();
    uint8_t *at = op->iov[0].iov_base;
    assert_int_equal(op->fd, HEADERS_FD);
    assert_null(op->control);
    wf_frame_encode(frame, at);
    wf_frame_encode_position(position, at + WF_FRAME_BYTES);
    end(op, WF_DETACHED_BYTES);
}

static void bring_trial(void)
{
    struct wf_op *op = posted();
    struct wf_frame frame = {.type = WF_TRIAL, .data_off = WF_FRAME_BYTES};
    assert_int_equal(op->fd, HEADERS_FD);
    wf_frame_encode(&frame, op->iov[0].iov_base);
    end(op, WF_FRAME_BYTES);
}

/* Bytes of the payload stream: in so many buffers of the inlet, or in host memory. */
static void bring(uint32_t bytes, bool in_host)
{
    struct wf_op *op = posted();
    assert_int_equal(op->fd, PAYLOAD_FD);
    assert_non_null(op->control);
    op->control->length = 0;
    op->control->flags = 0;
    for (uint32_t left = bytes; left > 0;) {
        uint32_t some = left < BUFFER ? left : BUFFER;
        struct wf_devmem_cmsg one = {.bytes = some};
        if (!in_host)
            one = (struct wf_devmem_cmsg){.offset = the.next_token % BUFFERS * (uint64_t)BUFFER,
                                          .bytes = some,
                                          .token = the.next_token,
                                          .dmabuf = the.inlet.binding};
        the.next_token += !in_host;
        struct cmsghdr *message = (struct cmsghdr *)(void *)((uint8_t *)op->control->bytes + op->control->length);
        *message = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                    .cmsg_type = in_host ? SO_DEVMEM_LINEAR : SO_DEVMEM_DMABUF,
                                    .cmsg_len = CMSG_LEN(sizeof one)};
        memcpy(CMSG_DATA(message), &one, sizeof one);
        op->control->length += CMSG_SPACE(sizeof one);
        left -= some;
    }
    if (in_host)
        memset(op->iov[0].iov_base, 0x5a, bytes);
    the.sent += bytes;
    end(op, bytes);
}

static void drop(struct wf_landing *landing)
{
    wf_guard_lock(&the.scene->guard);
    wf_landing_drop(landing);
    wf_guard_unlock(&the.scene->guard);
}

/* --- what comes --- */

static void test_headers_and_payload_in_turn(void **state)
{
    (void)state;
    begin(&the.inlet);
    struct wf_frame frame = data_frame(3 * BUFFER, 2 * BUFFER + 100);
    bring_header(&frame, 0);
    bring(BUFFER, false);
    bring(100, true);
    assert_int_equal(the.finished, 0);
    bring(BUFFER, false);
    assert_int_equal(the.finished, 1);
    assert_non_null(the.landing);
    assert_int_equal(the.landing->batch.gather_count, 2);
    assert_int_equal(the.landing->gathers[0].to, 3 * BUFFER + 1);
    assert_int_equal(the.landing->gathers[1].to, 4 * BUFFER + 100 + 1);
    assert_int_equal(the.landing->gathers[1].from, BUFFER);
    assert_int_equal(the.landing->batch.copy_count, 1);
    assert_int_equal(the.landing->hosts[0].to, 4 * BUFFER + 1);
    assert_int_equal(*(const uint8_t *)the.landing->hosts[0].from, 0x5a);
    assert_int_equal(posted()->fd, HEADERS_FD);

    frame = data_frame(0, BUFFER); /* the scratch is used again: what is on its way has a place of its own */
    bring_header(&frame, 2 * BUFFER + 100);
    memset(posted()->iov[0].iov_base, 0, BUFFER);
    assert_int_equal(*(const uint8_t *)the.landing->hosts[0].from, 0x5a);
    drop(the.landing);
    assert_int_equal(the.lost, 0);
}

static void test_what_nobody_wants_goes_back_at_once(void **state)
{
    (void)state;
    begin(&the.inlet);
    the.unwanted = true;
    struct wf_frame frame = data_frame(0, 2 * BUFFER);
    bring_header(&frame, 0);
    bring(BUFFER, false);
    assert_int_equal(the.given, 1);
    bring(BUFFER, false);
    assert_int_equal(the.given, 2);
    assert_int_equal(the.finished, 1);
}

/* --- the pattern before all --- */

static void test_a_pattern_before_the_first_header(void **state)
{
    (void)state;
    the.scene->terms.features |= WF_FEATURE_TRIAL;
    begin(&the.inlet);
    bring_trial();
    bring(WF_PATTERN_BYTES - BUFFER, false);
    assert_int_equal(the.patterns, 0);
    bring(BUFFER, false);
    assert_int_equal(the.patterns, 1);
    assert_int_equal(the.finished, 0); /* it is nobody's payload, */
    assert_int_equal(the.inlet.device_bytes, 0);
    assert_int_equal(the.channel->rx.disposed, 0);
    assert_int_equal(the.payload->trial.device_bytes, WF_PATTERN_BYTES);
    drop(the.landing);
    struct wf_frame frame = data_frame(0, BUFFER);
    bring_header(&frame, WF_PATTERN_BYTES); /* but its bytes count */
    bring(BUFFER, false);
    assert_int_equal(the.finished, 1);
    drop(the.landing);
    assert_int_equal(the.lost, 0);
}

static void test_what_a_pattern_takes_of_a_small_inlet(void **state)
{
    (void)state;
    the.scene->terms.features |= WF_FEATURE_TRIAL;
    the.inlet.streams = BUFFERS / WF_PAYLOAD_POOL_PART; /* each has a buffer */
    begin(&the.inlet);
    bring_trial();
    bring(BUFFER, false);
    assert_int_equal(the.parts, 1);
    drop(the.landing);
    assert_int_equal(the.given, 1); /* before it has all come */
    assert_int_equal(the.patterns, 0);
}

static void test_nothing_is_read_before_the_pattern_is_found_right(void **state)
{
    (void)state;
    the.scene->terms.features |= WF_FEATURE_TRIAL;
    the.judging = true;
    begin(&the.inlet);
    bring_trial();
    int posted_before = the.scene->engines[0]->posted_count;
    bring(WF_PATTERN_BYTES, false);
    wf_channel_resume(the.channel); /* something else has happened */
    assert_true(the.channel->rx.held);
    assert_int_equal(the.scene->engines[0]->posted_count, posted_before);
    drop(the.landing);
    wf_payload_passed(the.payload);
    wf_channel_resume(the.channel);
    assert_false(the.channel->rx.held);
    assert_int_equal(posted()->fd, HEADERS_FD);
    assert_int_equal(the.lost, 0);
}

static void test_payload_before_the_pattern(void **state)
{
    (void)state;
    the.scene->terms.features |= WF_FEATURE_TRIAL;
    begin(&the.inlet);
    struct wf_frame frame = data_frame(0, BUFFER);
    bring_header(&frame, 0);
    assert_int_equal(the.lost, 1);
    assert_int_equal(the.code, -EPROTO);
}

static void test_a_pattern_that_was_not_agreed(void **state)
{
    (void)state;
    begin(&the.inlet);
    bring_trial();
    assert_int_equal(the.lost, 1);
    assert_int_equal(the.code, -EPROTO);
}

static void test_no_two_incarnations_have_the_same_pattern(void **state)
{
    static uint8_t a[WF_PATTERN_BYTES], b[WF_PATTERN_BYTES];
    (void)state;
    wf_pattern_fill(9, 3, 1, a);
    wf_pattern_fill(9, 3, 1, b);
    assert_memory_equal(a, b, sizeof a);
    for (int i = 0; i < 3; i++) {
        wf_pattern_fill(9 + (i == 0), 3 + (i == 1), 1 + (i == 2), b);
        for (uint32_t at = 0; at < WF_PATTERN_BYTES; at += 512)
            assert_memory_not_equal(a + at, b + at, 512);
    }
    for (uint32_t at = 512; at < WF_PATTERN_BYTES; at += 512) /* nor are two parts alike */
        assert_memory_not_equal(a, a + at, 512);
    the.unsteered = 1; /* there was no rule */
}

/* --- what a peer may not say --- */

static void refused(const struct wf_frame *frame, uint64_t position, int code)
{
    bring_header(frame, position);
    assert_int_equal(the.lost, 1);
    assert_int_equal(the.code, code);
    assert_int_equal(the.channel->rx.left, 0);
}

static void test_a_payload_elsewhere(void **state)
{
    (void)state;
    begin(&the.inlet);
    struct wf_frame frame = data_frame(0, BUFFER);
    refused(&frame, 1, -EBADMSG);
}

static void test_more_than_a_chunk(void **state)
{
    (void)state;
    begin(&the.inlet);
    the.unwanted = true; /* it would be drained: into what has room for a chunk */
    struct wf_frame frame = data_frame(0, SCENE_CHUNK + 1);
    refused(&frame, 0, -EPROTO);
}

static void test_a_sum_of_what_is_not_here(void **state)
{
    (void)state;
    begin(&the.inlet);
    struct wf_frame frame = data_frame(0, BUFFER);
    frame.flags = WF_FLAG_CRC;
    refused(&frame, 0, -EPROTO);
}

static void test_nothing(void **state)
{
    (void)state;
    begin(&the.inlet);
    struct wf_frame frame = data_frame(0, 0);
    refused(&frame, 0, -EPROTO);
}

static void test_the_wrong_way(void **state)
{
    (void)state;
    begin(NULL);
    struct wf_frame frame = data_frame(0, BUFFER);
    refused(&frame, 0, -EPROTO);
    the.unsteered = 1; /* there was no rule */
}

static void test_fragments_of_other_memory(void **state)
{
    (void)state;
    begin(&the.inlet);
    struct wf_frame frame = data_frame(0, BUFFER);
    bring_header(&frame, 0);
    the.inlet.binding += 1;
    bring(BUFFER, false);
    assert_int_equal(the.lost, 1);
    assert_int_equal(the.code, -EBADMSG);
}

/* --- when fragments go back --- */

static struct wf_landing *land(uint32_t buffers)
{
    struct wf_frame frame = data_frame(0, buffers * BUFFER);
    bring_header(&frame, the.sent);
    bring(buffers * BUFFER, false);
    assert_non_null(the.landing);
    return the.landing;
}

static void test_after_the_last_copy(void **state)
{
    (void)state;
    begin(&the.inlet);
    struct wf_landing *landing = land(3);
    landing->copies += 2;
    drop(landing); /* the half has started both */
    assert_int_equal(the.given, 0);
    wf_landing_copied(landing);
    assert_int_equal(the.given, 0);
    wf_landing_copied(landing);
    assert_int_equal(the.given, 3);
}

static void test_in_the_order_of_their_batches(void **state)
{
    (void)state;
    begin(&the.inlet);
    struct wf_landing *first = land(2), *second = land(3);
    drop(second);
    assert_int_equal(the.given, 0); /* a fragment may be in both */
    drop(first);
    assert_int_equal(the.given, 5);
}

static void test_the_stream_outlives_its_channel(void **state)
{
    (void)state;
    begin(&the.inlet);
    struct wf_landing *landing = land(2);
    let_go();
    reap();
    assert_int_equal(the.closed, 0); /* a closed one gives its buffers to the card, and a copy reads them */
    wf_landing_copied(landing);
    assert_int_equal(the.given, 2);
    reap();
    assert_int_equal(the.closed, 1);
}

/* --- parked --- */

static void test_one_is_parked_for_each_channel(void **state)
{
    struct wf_lines *lines = &((struct scene *)*state)->lines;
    wf_guard_lock(&the.scene->guard);
    wf_payload_park(make(2, &the.inlet));
    assert_true(wf_payload_is_parked(lines, channel_id(), 2));
    wf_payload_park(make(3, &the.inlet));
    assert_false(wf_payload_is_parked(lines, channel_id(), 2));
    assert_null(wf_payload_unpark(lines, channel_id(), 2));
    assert_null(wf_payload_unpark(lines, channel_id() + 1, 3));
    struct wf_payload *payload = wf_payload_unpark(lines, channel_id(), 3);
    assert_non_null(payload);
    assert_int_equal(payload->holds, 1);
    wf_guard_unlock(&the.scene->guard);
    reap();
    assert_int_equal(the.closed, 1);
    the.unsteered = 0;
    wf_channel_set_payload(the.channel, payload);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_headers_and_payload_in_turn),
        TEST(test_what_nobody_wants_goes_back_at_once),
        TEST(test_a_pattern_before_the_first_header),
        TEST(test_what_a_pattern_takes_of_a_small_inlet),
        TEST(test_nothing_is_read_before_the_pattern_is_found_right),
        TEST(test_payload_before_the_pattern),
        TEST(test_a_pattern_that_was_not_agreed),
        TEST(test_no_two_incarnations_have_the_same_pattern),
        TEST(test_a_payload_elsewhere),
        TEST(test_more_than_a_chunk),
        TEST(test_a_sum_of_what_is_not_here),
        TEST(test_nothing),
        TEST(test_the_wrong_way),
        TEST(test_fragments_of_other_memory),
        TEST(test_after_the_last_copy),
        TEST(test_in_the_order_of_their_batches),
        TEST(test_the_stream_outlives_its_channel),
        TEST(test_one_is_parked_for_each_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
