/* Messages on their way to device channels and back: lines, chunks, loans, and slots for what is sent again. */
#include "core_scene.h"

#include <stdlib.h>
#include <string.h>

#include "core/channel/ops.h"
#include "core/channel/payload.h"
#include "core/channel/state.h"
#include "core/device/transit.h"
#include "core/ground/holders.h"
#include "core/message/detach.h"
#include "core/message/outbound.h"
#include "core/message/outbound_parts.h"
#include "core/message/ready.h"
#include "core/message/stage.h"
#include "core/request/pieces.h"

#define CONNECTION 1u
#define LIMIT 100
#define PER_CLASS 2
#define DOMAIN 3
#define SLOTS 16
#define SLOT_BYTES SCENE_CHUNK
#define TOTAL (4u * SCENE_CHUNK)
#define BINDING 77u
#define OFFSET 8192u /* of the registration in its dma-buf */

static uint8_t bytes[TOTAL];
static uint8_t staging[SLOTS * SLOT_BYTES];

/* A GPU, a device channel of a strand towards the peer, and a message of registered memory that its card knows. */
static struct {
    struct scene *scene;
    struct weft_connection *connection;
    struct wf_device device;
    struct wf_payload payload;
    struct wf_channel *channel;
    struct wf_card_loan loan;
    struct weft_registration registration;
    struct weft_request request;
    struct wf_outbound *outbound;
    struct wf_frame frame;
} the;

static const struct wf_channel_ops channel_ops = {.loan = wf_detached_loan};

static void make_device(void)
{
    struct wf_device *device = &the.device;
    device->devices = &the.scene->devices;
    device->worker = the.scene->crew.workers[0];
    pthread_mutex_init(&device->lock, NULL);
    wf_list_init(&device->queued);
    assert_int_equal(wf_slot_pool_init(&device->pools[WF_COPY_OUT][WF_SLOT_LARGE], staging, SLOTS, SLOT_BYTES), 0);
}

static void join(void)
{
    struct wf_lines *lines = &the.scene->lines;
    uint32_t strand = wf_strand_of(DOMAIN, the.scene->terms.dialer);
    struct wf_join join = {.channel = (WF_CLASSES + strand) * PER_CLASS + 1,
                           .incarnation = 1,
                           .kind = WF_CHANNEL_DEVICE,
                           .domain = strand + 1};
    the.channel = calloc(1, sizeof *the.channel);
    assert_non_null(the.channel);
    assert_int_equal(wf_channel_init(the.channel, lines, &channel_ops, &join), 0);
    wf_channel_assign(the.channel, the.scene->crew.workers[0], the.scene->crew.workers[0]);
    wf_channel_set_payload(the.channel, &the.payload);
    wf_lines_use_strand(lines, (int)strand);
    wf_lines_enter(lines, the.channel, false);
    lines->rails[0].local = 0;
    the.channel->up = true;
    wf_lines_count_up(lines, the.channel, 1);
    wf_window_grant(&the.channel->tx.window, UINT32_MAX, UINT64_MAX / 2);
}

static int set_up(void **state)
{
    memset(&the, 0, sizeof the);
    int result = scene_set_up_locked(state);
    the.scene = *state;
    the.scene->terms.features |= WF_FEATURE_DEVICE;
    assert_int_equal(wf_lines_expect(&the.scene->lines, PER_CLASS), 0);
    make_device();
    join();
    the.connection = scene_connect(the.scene, CONNECTION, LIMIT);
    the.loan = (struct wf_card_loan){.handle = &the.loan, .binding = BINDING, .offset = OFFSET};
    the.registration.base = bytes;
    the.registration.length = TOTAL;
    the.registration.loans = &the.loan;
    the.registration.lent = 1;
    the.request.registration = &the.registration;
    return result;
}

static int tear_down(void **state)
{
    the.channel->payload = NULL;
    if (the.outbound) {
        the.outbound->request = NULL;
        wf_outbound_drop(the.outbound);
    }
    wf_shares_give_back(&the.scene->shares);
    wf_slot_pool_fini(&the.device.pools[WF_COPY_OUT][WF_SLOT_LARGE]);
    return scene_tear_down_locked(state);
}

/* A message that was offered, and that the peer has granted nothing of. */
static struct wf_outbound *offer(bool device)
{
    struct wf_outbound *outbound = the.outbound = wf_outbound_create(the.connection, WF_OUTBOUND_MESSAGE, TOTAL);
    assert_non_null(outbound);
    outbound->data = bytes;
    outbound->request = &the.request;
    outbound->device = device ? &the.device : NULL;
    wf_outbound_queue(outbound);
    wf_outbound_introduce(outbound);
    return outbound;
}

static uint64_t waiting(void)
{
    return the.scene->desk.waiting[0];
}

static int queued_copies(void)
{
    int count = 0;
    WF_LIST_EACH (link, following, &the.device.queued)
        count += 1;
    return count;
}

/* The copy that was queued first ends. */
static void end_copy(void)
{
    struct wf_link *link = wf_list_pop_front(&the.device.queued);
    assert_non_null(link);
    struct wf_transit *transit = WF_CONTAINER(link, struct wf_transit, link);
    transit->ops->ended(transit);
    wf_pool_give(&the.scene->shares.transits, transit);
    wf_guard_let_go(&the.scene->guard);
    wf_guard_unrefer(&the.scene->guard);
}

static void end_copies(void)
{
    while (queued_copies() > 0)
        end_copy();
}

/* The next chunk, as the device channel takes it, in an operation of its own. Returns its length. */
static uint32_t take(void)
{
    the.payload.iov_count = 0;
    struct wf_outbound *outbound = wf_detached_next(&the.scene->desk, the.channel, &the.frame);
    if (!outbound)
        return 0;
    assert_ptr_equal(outbound, the.outbound);
    outbound->in_engine -= 1; /* it is sent at once */
    return the.frame.length;
}

static void acknowledge(uint64_t offset, uint32_t length)
{
    wf_outbound_retire(the.outbound, offset, length);
}

static void lose_channel(void)
{
    the.channel->up = false;
    wf_lines_count_up(&the.scene->lines, the.channel, -1);
    wf_detached_review(&the.scene->desk, the.channel->strand);
}

/* --- there --- */

static void test_a_grant_with_a_domain_moves_it(void **state)
{
    (void)state;
    struct wf_outbound *outbound = offer(false);
    assert_int_equal(wf_outbound_grant(outbound, SCENE_CHUNK, 0), 0);
    assert_int_equal(waiting(), SCENE_CHUNK);
    assert_true(wf_link_in_list(&the.connection->ready_link));

    assert_int_equal(wf_outbound_grant(outbound, 2 * SCENE_CHUNK, DOMAIN + 1), 0);
    assert_int_equal(waiting(), 0); /* bulk channels have nothing to do for it, */
    assert_true(wf_list_empty(&the.connection->sending));
    assert_false(wf_link_in_list(&the.connection->ready_link)); /* and do not look for it */
    assert_int_equal(outbound->sendable, TOTAL);                /* all of it may go */
    assert_true(wf_detached_any(&the.scene->desk, the.channel));
}

static void test_what_stays(void **state)
{
    (void)state;
    struct wf_outbound *outbound = offer(false);
    assert_int_equal(wf_outbound_grant(outbound, SCENE_CHUNK, DOMAIN), 0); /* a domain without channels */
    assert_int_equal(outbound->detached, 0);
    wf_detach(outbound, WF_DOMAINS_MAX);
    wf_outbound_stop(outbound);
    assert_int_equal(wf_outbound_grant(outbound, SCENE_CHUNK, DOMAIN + 1), 0);
    assert_int_equal(outbound->detached, 0);
    assert_int_equal(waiting(), 0);
}

/* --- chunks --- */

static void test_chunks_from_a_loan(void **state)
{
    (void)state;
    struct wf_outbound *outbound = offer(true);
    struct iovec iov[4];
    uint64_t covered;
    assert_int_equal(wf_outbound_grant(outbound, SCENE_CHUNK, DOMAIN + 1), 0);
    assert_true(outbound->lent);
    assert_int_equal(queued_copies(), 0);
    assert_int_equal(take(), SCENE_CHUNK);
    assert_int_equal(take(), SCENE_CHUNK);
    assert_int_equal(the.frame.offset, SCENE_CHUNK);
    assert_int_equal(wf_detached_loan(the.channel, outbound)->binding, BINDING);
    assert_int_equal(wf_detached_places(the.channel, outbound, SCENE_CHUNK, 100, iov, 4, &covered), 1);
    assert_int_equal((uintptr_t)iov[0].iov_base, OFFSET + SCENE_CHUNK);
    assert_int_equal(covered, 100);

    the.payload.iov_count = 1; /* what is in the operation already is from other memory */
    the.payload.binding = BINDING + 1;
    assert_null(wf_detached_next(&the.scene->desk, the.channel, &the.frame));
}

static void test_a_loan_waits_for_its_stream(void **state)
{
    (void)state;
    struct wf_outbound *outbound = offer(true);
    outbound->waits = true; /* WEFT_ON_STREAM: the GPU has not written the bytes yet */
    assert_int_equal(wf_outbound_grant(outbound, SCENE_CHUNK, DOMAIN + 1), 0);
    assert_int_equal(take(), 0);
    outbound->waits = false;
    wf_outbound_requeue(outbound);
    assert_int_equal(take(), SCENE_CHUNK);
}

static void test_a_chunk_in_pieces_fits_again(void **state)
{
    (void)state;
    enum { PIECES = 8 * WF_TX_SEGMENTS };
    struct wf_outbound *outbound = offer(false);
    outbound->pieces = wf_pieces_create(PIECES, false);
    for (int i = 0; i < PIECES; i++)
        wf_pieces_add(outbound->pieces, bytes + i * (TOTAL / PIECES), TOTAL / PIECES);
    assert_int_equal(wf_outbound_grant(outbound, SCENE_CHUNK, DOMAIN + 1), 0);
    assert_true(take() > 0);
    struct wf_channel bulk = {.kind = WF_CHANNEL_BULK, .tx.iov_count = 1};
    assert_int_equal(wf_ready_fitting(&bulk, outbound, 0, the.frame.length), the.frame.length);
}

/* --- and back --- */

static void test_the_last_channel_gives_it_back(void **state)
{
    (void)state;
    struct wf_outbound *outbound = offer(false);
    assert_int_equal(wf_outbound_grant(outbound, SCENE_CHUNK / 2, DOMAIN + 1), 0);
    assert_int_equal(take(), SCENE_CHUNK);
    lose_channel();
    assert_int_equal(outbound->detached, 0);
    assert_int_equal(outbound->sendable, SCENE_CHUNK); /* more than was granted is under way */
    assert_int_equal(waiting(), 0);
    assert_int_equal(wf_outbound_grant(outbound, 2 * SCENE_CHUNK, DOMAIN + 1), 0);
    assert_int_equal(waiting(), SCENE_CHUNK);
    assert_false(wf_list_empty(&the.connection->sending));
}

static void test_a_stopped_one_waits_for_nothing(void **state)
{
    (void)state;
    struct wf_outbound *outbound = offer(false);
    assert_int_equal(wf_outbound_grant(outbound, 2 * SCENE_CHUNK, DOMAIN + 1), 0);
    wf_outbound_stop(outbound);
    lose_channel();
    assert_int_equal(waiting(), 0);
    assert_true(wf_list_empty(&the.connection->sending));
}

/* It is in no line when the channel is lost: it waits for a slot to be filled. */
static void test_one_that_waits_goes_back_later(void **state)
{
    (void)state;
    struct wf_outbound *outbound = offer(true);
    the.registration.lent = 0;
    assert_int_equal(wf_outbound_grant(outbound, SCENE_CHUNK, DOMAIN + 1), 0);
    assert_false(wf_link_in_list(&outbound->queue_link));
    lose_channel();
    end_copies();
    assert_int_equal(outbound->detached, 0);
    assert_false(wf_list_empty(&the.connection->sending));
}

/* --- slots and loans --- */

/* What a loan sent may be acknowledged while a copy to a slot, begun before, still runs. */
static void test_a_slot_stays_as_long_as_it_is_filled(void **state)
{
    (void)state;
    struct wf_outbound *outbound = offer(true);
    struct wf_slot_pool *pool = &the.device.pools[WF_COPY_OUT][WF_SLOT_LARGE];
    assert_int_equal(wf_outbound_grant(outbound, SCENE_CHUNK, 0), 0);
    assert_int_equal(queued_copies(), 1);
    assert_int_equal(wf_outbound_grant(outbound, SCENE_CHUNK, DOMAIN + 1), 0);
    assert_int_equal(take(), SCENE_CHUNK);
    assert_int_equal(take(), SCENE_CHUNK);
    acknowledge(0, SCENE_CHUNK);
    assert_int_equal(pool->free_count, SLOTS - 1);
    end_copies();
    assert_int_equal(pool->free_count, SLOTS);
}

/* The loan ends within bytes that a slot got before it: what the slot has is not missed. */
static void test_a_slot_across_the_end_of_a_loan(void **state)
{
    (void)state;
    struct wf_outbound *outbound = offer(true);
    assert_int_equal(wf_outbound_grant(outbound, 2 * SCENE_CHUNK, 0), 0);
    assert_int_equal(queued_copies(), 2);
    assert_int_equal(wf_outbound_grant(outbound, 2 * SCENE_CHUNK, DOMAIN + 1), 0);
    the.scene->terms.chunk = SCENE_CHUNK + SCENE_CHUNK / 2;
    assert_int_equal(take(), SCENE_CHUNK + SCENE_CHUNK / 2);
    the.scene->terms.chunk = SCENE_CHUNK;
    lose_channel();
    assert_false(outbound->lent);
    end_copies();
    assert_int_equal(outbound->staged, 2 * SCENE_CHUNK);
    assert_int_equal(wf_outbound_ready(outbound), 2 * SCENE_CHUNK);
}

static void test_what_a_loan_sent_is_staged_to_go_again(void **state)
{
    (void)state;
    struct wf_outbound *outbound = offer(true);
    struct iovec iov[8];
    uint64_t covered;
    assert_int_equal(wf_outbound_grant(outbound, SCENE_CHUNK, DOMAIN + 1), 0);
    assert_int_equal(take(), SCENE_CHUNK);
    assert_int_equal(take(), SCENE_CHUNK);
    lose_channel();
    assert_false(wf_detached_is_staged(outbound, SCENE_CHUNK, SCENE_CHUNK));
    assert_int_equal(queued_copies(), 1);
    assert_false(wf_detached_is_staged(outbound, SCENE_CHUNK, SCENE_CHUNK)); /* asked again: no second copy */
    assert_int_equal(queued_copies(), 1);
    end_copies();
    assert_true(wf_detached_is_staged(outbound, SCENE_CHUNK, SCENE_CHUNK));
    assert_int_equal(wf_outbound_places(outbound, SCENE_CHUNK, SCENE_CHUNK, iov, 8, &covered), 1);
    assert_int_equal(covered, SCENE_CHUNK);
    acknowledge(SCENE_CHUNK, SCENE_CHUNK);
    assert_int_equal(the.device.pools[WF_COPY_OUT][WF_SLOT_LARGE].free_count, SLOTS);
    assert_int_equal(outbound->staged, 2 * SCENE_CHUNK); /* the rest is staged from here on */
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_grant_with_a_domain_moves_it),
        TEST(test_what_stays),
        TEST(test_chunks_from_a_loan),
        TEST(test_a_loan_waits_for_its_stream),
        TEST(test_a_chunk_in_pieces_fits_again),
        TEST(test_the_last_channel_gives_it_back),
        TEST(test_a_stopped_one_waits_for_nothing),
        TEST(test_one_that_waits_goes_back_later),
        TEST(test_a_slot_stays_as_long_as_it_is_filled),
        TEST(test_a_slot_across_the_end_of_a_loan),
        TEST(test_what_a_loan_sent_is_staged_to_go_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
