/* What of a connection's outgoing operations may go now: numbers, credit, bursts beside bulk work, lines and rings. */
#include "core_scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/message/inbound.h"
#include "core/message/outbound.h"
#include "core/message/outbound_parts.h"
#include "core/request/pieces.h"
#include "core/message/ready.h"
#include "wire/frame.h"
#include "wire/hello.h"

#define CONNECTION 1u
#define LIMIT 100 /* introductions, where a test does not say otherwise */
#define SMALL 100
#define LARGE (100u * 1024)  /* its burst is all of it, and more than BESIDE */
#define HUGE (1024u * 1024)  /* its burst is SCENE_FIRST_BURST */
#define BESIDE (64u * 1024)  /* the largest burst that may go beside bulk work */
#define BLOCK WF_BLOCK_BYTES /* that credit is counted in */

static uint8_t bytes[HUGE];

/* --- operations as their posts leave them --- */

static struct wf_outbound *make(struct weft_connection *connection, enum wf_outbound_kind kind, uint64_t total)
{
    struct wf_outbound *outbound = wf_outbound_create(connection, kind, total);
    assert_non_null(outbound);
    outbound->data = bytes;
    outbound->tag = 9;
    return outbound;
}

static struct wf_outbound *post(struct weft_connection *connection, enum wf_outbound_kind kind, uint64_t total)
{
    struct wf_outbound *outbound = make(connection, kind, total);
    wf_outbound_queue(outbound);
    return outbound;
}

static struct wf_outbound *post_message(struct weft_connection *connection, uint64_t total)
{
    return post(connection, WF_OUTBOUND_MESSAGE, total);
}

static struct wf_outbound *post_write(struct weft_connection *connection, uint64_t total)
{
    return post(connection, WF_OUTBOUND_WRITE, total);
}

/* A write with a notification that goes with it, or after it (`late`). */
static struct wf_outbound *post_noted(struct weft_connection *connection, uint64_t total, bool late)
{
    struct wf_outbound *write = make(connection, WF_OUTBOUND_WRITE, total);
    struct wf_outbound *note = make(connection, WF_OUTBOUND_NOTE, SMALL);
    write->note = note;
    note->subject = write;
    note->late = late;
    wf_outbound_queue(write);
    return write;
}

/* --- steps as a channel takes them --- */

/* A bulk channel introduces `outbound`, and takes `length` bytes of it. */
static void introduce(struct wf_outbound *outbound, uint64_t length)
{
    struct wf_frame frame;
    uint64_t burst = wf_ready_burst(outbound);
    wf_outbound_introduce(outbound);
    wf_ready_spend(outbound, burst);
    if (length > 0)
        wf_ready_take(outbound, length, &frame);
    wf_outbound_requeue(outbound);
}

/* An express channel takes what stands at the head of the line. */
static void send_express(struct weft_connection *connection, struct wf_frame *frame)
{
    struct wf_outbound *head = wf_outbound_first_of(&connection->pending);
    assert_non_null(head);
    if (wf_ready_whole(head))
        wf_ready_go_whole(head, frame);
    else
        wf_ready_bare(head, frame);
    wf_link_remove(&connection->express_link);
    wf_connection_ready(connection);
}

/* The peer says that it takes introductions up to `limit`. */
static void raise_limit(struct weft_connection *connection, uint64_t limit)
{
    connection->introduced_limit = limit;
    wf_connection_ready(connection);
}

static void set_credit(struct scene *scene, uint64_t credit)
{
    scene->desk.unsolicited_limit = scene->desk.unsolicited_spent + credit;
}

static void assert_rings(const struct weft_connection *connection, bool bulk, bool express)
{
    assert_int_equal(wf_link_in_list(&connection->ready_link), bulk);
    assert_int_equal(wf_link_in_list(&connection->express_link), express);
}

/* --- numbers --- */

static void test_only_while_it_is_open(void **state)
{
    static const struct {
        enum wf_connection_state state;
        bool may;
    } cases[] = {
        {WF_CONNECTION_OPENING, false}, {WF_CONNECTION_WAITING, false},
        {WF_CONNECTION_OPEN, true},     {WF_CONNECTION_CLOSING, true}, /* own sends are finished first */
        {WF_CONNECTION_DEAD, false},
    };
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    post_message(connection, SMALL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        connection->state = cases[i].state;
        wf_connection_ready(connection);
        assert_rings(connection, false, cases[i].may);
    }
    connection->state = WF_CONNECTION_OPEN;
}

static void test_opening_lets_go(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = wf_connection_create(&scene->desk, CONNECTION, true, 1, 2);
    struct wf_frame opened = {.type = WF_OPENED, .conn = CONNECTION, .offset = 1};
    post_message(connection, SMALL);
    post_write(connection, LARGE);
    assert_rings(connection, false, false);
    assert_int_equal(wf_connection_take_opened(&scene->desk, &opened), 0);
    assert_rings(connection, true, true);
}

static void test_numbers_run_out(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, 2);
    struct wf_frame frame;
    for (int i = 0; i < 3; i++)
        post_message(connection, SMALL);
    for (uint64_t number = 1; number <= 2; number++) {
        assert_rings(connection, false, true);
        send_express(connection, &frame);
        assert_int_equal(frame.msg, number);
    }
    assert_rings(connection, false, false);
    raise_limit(connection, 3);
    assert_rings(connection, false, true);
    send_express(connection, &frame);
    assert_int_equal(frame.msg, 3);
    assert_rings(connection, false, false); /* nothing is left */
}

/* A notification goes by the number after that of what it tells of: both, or none. */
static void test_a_note_needs_its_number(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, 1);
    struct wf_outbound *write = post_noted(connection, LARGE, false);
    struct wf_outbound *note = write->note;
    struct wf_frame frame;
    assert_null(wf_ready_candidate(connection));
    assert_rings(connection, false, false);
    raise_limit(connection, 2);
    assert_ptr_equal(wf_ready_candidate(connection), write);
    assert_rings(connection, true, false);

    post_message(connection, SMALL);
    introduce(write, 0);
    assert_int_equal(write->number, 1);
    assert_int_equal(note->number, 2);
    assert_int_equal(note->base, 1);
    assert_ptr_equal(wf_outbound_first_of(&connection->pending), note); /* before what was posted earlier */
    assert_rings(connection, true, true);                               /* it has its number, though none is left */
    send_express(connection, &frame);
    assert_int_equal(frame.msg, 2);
    assert_int_equal(frame.base, 1);
    assert_int_equal(frame.flags, WF_FLAG_NOTIFY);
    assert_rings(connection, true, false);
}

static void test_a_late_note_needs_none_yet(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, 1);
    struct wf_outbound *write = post_noted(connection, LARGE, true);
    assert_ptr_equal(wf_ready_candidate(connection), write);
    introduce(write, 0);
    assert_int_equal(write->note->number, 0);
    assert_true(wf_list_empty(&connection->pending));
}

/* --- bursts and credit --- */

static void test_bursts(void **state)
{
    static const struct {
        enum wf_outbound_kind kind;
        uint64_t total;
        bool device;
        uint64_t burst, charge;
    } cases[] = {
        {WF_OUTBOUND_MESSAGE, 0, false, 0, 0},
        {WF_OUTBOUND_MESSAGE, 1, false, 1, BLOCK},
        {WF_OUTBOUND_MESSAGE, SCENE_EAGER, true, SCENE_EAGER, BLOCK},
        {WF_OUTBOUND_MESSAGE, SCENE_EAGER + 1, false, SCENE_EAGER + 1, 2 * BLOCK},
        {WF_OUTBOUND_MESSAGE, SCENE_EAGER + 1, true, 0, 0}, /* a slot is for bytes that are wanted */
        {WF_OUTBOUND_MESSAGE, SCENE_FIRST_BURST, false, SCENE_FIRST_BURST, SCENE_FIRST_BURST},
        {WF_OUTBOUND_MESSAGE, HUGE, false, SCENE_FIRST_BURST, SCENE_FIRST_BURST},
        {WF_OUTBOUND_NOTE, SMALL, false, SMALL, BLOCK},
        {WF_OUTBOUND_WRITE, HUGE, false, HUGE, 0}, /* it goes past the peer's pool, to where it belongs */
    };
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wf_outbound *outbound = make(connection, cases[i].kind, cases[i].total);
        uint64_t spent = scene->desk.unsolicited_spent, waiting = scene->desk.waiting[0];
        print_message("case %zu\n", i);
        outbound->device = cases[i].device ? (struct wf_device *)bytes : NULL;
        assert_int_equal(wf_ready_burst(outbound), cases[i].burst);
        if (cases[i].device) /* without slots of its device it goes no further */
            continue;
        wf_ready_spend(outbound, cases[i].burst);
        assert_int_equal(scene->desk.unsolicited_spent - spent, cases[i].charge);
        assert_int_equal(outbound->charge, cases[i].charge);
        assert_int_equal(outbound->burst, cases[i].burst);
        assert_int_equal(outbound->sendable, cases[i].burst);
        assert_int_equal(scene->desk.waiting[0] - waiting, cases[i].burst);
    }
}

/* A small message goes whole where there is credit for it, and is offered where there is none. */
static void test_small_messages_and_credit(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    struct wf_outbound *outbounds[4];
    struct wf_frame frame;
    set_credit(scene, BLOCK);
    for (int i = 0; i < 3; i++)
        outbounds[i] = post_message(connection, SMALL);
    outbounds[3] = post_message(connection, 0);
    assert_true(wf_ready_whole(outbounds[0]));
    send_express(connection, &frame);
    assert_int_equal(frame.type, WF_DATA);
    assert_int_equal(frame.length, SMALL);

    assert_false(wf_ready_whole(outbounds[1]));
    assert_rings(connection, false, true);
    send_express(connection, &frame);
    assert_int_equal(frame.type, WF_OFFER);
    assert_int_equal(frame.msg, 2);
    assert_int_equal(frame.total, SMALL);
    assert_int_equal(frame.key, 9);
    assert_int_equal(frame.length, 0);
    assert_ptr_equal(wf_outbound_find(connection, 2, false), outbounds[1]);
    assert_int_equal(outbounds[1]->sendable, 0);
    assert_int_equal(scene->desk.unsolicited_spent, BLOCK);

    assert_true(wf_ready_whole(outbounds[3])); /* nothing needs no credit */
    wf_desk_credit(&scene->desk, 2 * BLOCK);
    assert_true(wf_ready_whole(outbounds[2]));
    wf_desk_credit(&scene->desk, BLOCK); /* an older total */
    assert_true(wf_ready_whole(outbounds[2]));
    send_express(connection, &frame);
    assert_int_equal(frame.type, WF_DATA);
    assert_int_equal(frame.msg, 3);
    assert_int_equal(scene->desk.unsolicited_spent, 2 * BLOCK);
}

static void test_bursts_beside_bulk_work(void **state)
{
    static const struct {
        uint64_t total, credit;
        uint64_t waiting;     /* bytes that no channel has taken, */
        uint32_t bulk_frames; /* and frames that the peer has not acknowledged */
        bool may, announced;  /* at all; if the peer takes announcements: it may, and gets one */
    } cases[] = {
        {SCENE_EAGER + 1, 2 * BLOCK, 0, 0, true, false},
        {SCENE_EAGER + 1, 2 * BLOCK - 1, 0, 0, false, false},
        {SCENE_EAGER + 1, 2 * BLOCK, HUGE, 9, true, false}, /* it stands before little, and holds nothing up */
        {BESIDE, BESIDE, HUGE, 9, true, false},
        {BESIDE, BESIDE - 1, 0, 0, false, false},
        {BESIDE + 1, HUGE, 1, 0, false, true}, /* a larger one does, and would stand behind what is there */
        {BESIDE + 1, HUGE, 0, 1, false, true},
        {BESIDE + 1, HUGE, 0, 0, true, false},
        {BESIDE + 1, 2 * (BESIDE + BLOCK), 0, 0, true, false}, /* it leaves others as much credit as it takes */
        {BESIDE + 1, 2 * (BESIDE + BLOCK), HUGE, 9, false, true},
        {BESIDE + 1, 2 * (BESIDE + BLOCK) - 1, 0, 0, false, false},
        {BESIDE + 1, 2 * (BESIDE + BLOCK) - 1, HUGE, 9, false, false},
        {HUGE, HUGE, 1, 0, false, false}, /* a part of one does not go behind others */
        {HUGE, 2 * SCENE_FIRST_BURST, 0, 0, true, false},
        {HUGE, 2 * SCENE_FIRST_BURST - 1, 0, 0, false, false},
    };
    struct scene *scene = *state;
    const size_t count = sizeof cases / sizeof cases[0];
    for (size_t number = 0; number < 2 * count; number++) {
        struct weft_connection *connection = scene_connect(scene, CONNECTION + 2 * (uint32_t)number, LIMIT);
        struct wf_frame frame;
        size_t i = number % count;
        bool takes = number >= count, may = cases[i].may || (takes && cases[i].announced);
        print_message("case %zu%s\n", i, takes ? ", announced" : "");
        scene->terms.features = takes ? WF_FEATURE_ANNOUNCE : 0;
        struct wf_outbound *outbound = post_message(connection, cases[i].total);
        set_credit(scene, cases[i].credit);
        scene->desk.waiting[0] = cases[i].waiting;
        scene->desk.bulk_frames[0] = cases[i].bulk_frames;
        wf_connection_ready(connection);
        assert_ptr_equal(wf_ready_head(connection), may ? outbound : NULL);
        assert_ptr_equal(wf_ready_candidate(connection), may ? outbound : NULL);
        assert_rings(connection, may, !may); /* what may not go at once is offered */
        if (may)
            introduce(outbound, 0);
        assert_int_equal(wf_ready_announce(connection, &frame), takes && cases[i].announced);
        if (takes && cases[i].announced) {
            assert_int_equal(frame.type, WF_OFFER);
            assert_int_equal(frame.msg, outbound->number);
            assert_int_equal(frame.total, cases[i].total);
            assert_int_equal(frame.offset, cases[i].total);
            assert_int_equal(frame.key, 9);
            assert_false(wf_ready_announce(connection, &frame)); /* once */
        }
        scene->desk.waiting[0] = scene->desk.bulk_frames[0] = 0;
    }
}

/* What goes whole in a chunk is introduced though something larger is being sent; what does not is offered. */
static void test_beside_what_is_sent(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    scene->terms.features = WF_FEATURE_ANNOUNCE;
    set_credit(scene, 4 * HUGE);
    struct wf_outbound *first = post_message(connection, HUGE);
    introduce(first, 0);
    assert_ptr_equal(wf_outbound_first_of(&connection->sending), first);
    struct wf_outbound *head = post_message(connection, LARGE);
    scene->terms.chunk = LARGE;
    wf_connection_ready(connection);
    assert_true(wf_ready_goes_before(head, first));
    assert_false(wf_ready_goes_before(first, head));
    assert_ptr_equal(wf_ready_head(connection), head);
    assert_rings(connection, true, false);
    scene->terms.chunk = LARGE - 1;
    wf_connection_ready(connection);
    assert_null(wf_ready_head(connection));
    assert_rings(connection, true, true);
    wf_outbound_stop(first); /* nothing is in its way any more */
    assert_ptr_equal(wf_ready_head(connection), head);
    assert_rings(connection, true, false);
}

/* What was to be offered may go at once now: all connections are looked at again. */
static void test_credit_comes(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connections[2];
    set_credit(scene, BLOCK);
    for (int i = 0; i < 2; i++) {
        connections[i] = scene_connect(scene, CONNECTION + 2 * (uint32_t)i, LIMIT);
        post_message(connections[i], 2 * SCENE_EAGER);
        assert_rings(connections[i], false, true);
    }
    wf_desk_credit(&scene->desk, 2 * BLOCK);
    assert_rings(connections[0], true, false);
    assert_rings(connections[1], true, false);
}

/* --- lines and rings --- */

static void test_rings(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT),
                           *other = scene_connect(scene, CONNECTION + 2, LIMIT);
    struct wf_frame frame;
    wf_connection_ready(connection);
    assert_rings(connection, false, false);
    post_message(other, SMALL);
    struct wf_outbound *large = post_message(connection, LARGE);
    assert_rings(connection, true, false); /* no need to offer what goes at once, */
    post_message(connection, SMALL);
    assert_rings(connection, true, true); /* unless something small waits behind it */
    wf_connection_ready(connection);
    wf_connection_ready(other);
    assert_ptr_equal(wf_list_first(&scene->desk.bulk_ready[0]), &scene->desk.any_ring[0].ready_link);
    assert_ptr_equal(wf_list_first(&scene->desk.any_ring[0].connections), &connection->ready_link);
    assert_ptr_equal(connection->ready_link.next, &scene->desk.any_ring[0].connections.head); /* once */
    assert_ptr_equal(wf_list_first(&scene->desk.express_ready[0]), &other->express_link);
    assert_ptr_equal(other->express_link.next, &connection->express_link); /* in the order in which they came */

    introduce(large, BESIDE);
    assert_rings(connection, true, true); /* the rest of it, and the small one, which is the head now */
    send_express(connection, &frame);
    assert_int_equal(frame.msg, 2);
    assert_rings(connection, true, false);
    wf_ready_take(large, LARGE - BESIDE, &frame);
    wf_outbound_requeue(large);
    assert_rings(connection, false, false);
}

static void test_small_writes_keep_their_place(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    struct wf_outbound *write = post_write(connection, SCENE_EAGER);
    assert_ptr_equal(wf_outbound_first_of(&connection->pending), write);
    assert_true(wf_list_empty(&connection->writes));
    assert_rings(connection, false, true);
    struct wf_outbound *large = post_write(connection, SCENE_EAGER + 1);
    assert_ptr_equal(wf_outbound_first_of(&connection->writes), large);
    assert_rings(connection, true, true);
}

static void test_writes_and_the_head_by_posting(void **state)
{
    static const struct {
        bool write_first; /* posted before the message */
        uint64_t limit;
        bool noted;         /* the write needs a number more */
        uint64_t credit;    /* for the message, which takes half of it */
        int write, message; /* which one may go: 1; and next to that: 2; neither: 0 */
    } cases[] = {
        {true, LIMIT, false, HUGE, 1, 2},   {false, LIMIT, false, HUGE, 2, 1},
        {true, LIMIT, true, HUGE, 1, 0}, /* the notification is the head then, and goes by express */
        {false, LIMIT, false, BLOCK, 1, 0}, {true, 1, true, HUGE, 0, 1},
        {true, 0, false, HUGE, 0, 0},
    };
    struct scene *scene = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weft_connection *connection = scene_connect(scene, CONNECTION + 2 * (uint32_t)i, cases[i].limit);
        struct wf_outbound *write = NULL, *message = NULL;
        print_message("case %zu\n", i);
        for (int step = 0; step < 2; step++)
            if (cases[i].write_first == (step == 0))
                write = cases[i].noted ? post_noted(connection, HUGE, false) : post_write(connection, HUGE);
            else
                message = post_message(connection, LARGE);
        set_credit(scene, cases[i].credit);
        for (int turn = 1; turn <= 2; turn++) {
            struct wf_outbound *expected = cases[i].write == turn ? write : cases[i].message == turn ? message : NULL;
            struct wf_outbound *candidate = wf_ready_candidate(connection);
            assert_ptr_equal(candidate, expected);
            if (candidate) /* what the burst takes must not matter to the other one here */
                wf_outbound_introduce(candidate);
        }
    }
}

/* A write whose device has filled no slot yet holds up none of the others. */
static void test_a_slow_device_holds_nobody_up(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    struct wf_outbound *slow = post_write(connection, HUGE), *other = post_write(connection, HUGE);
    assert_ptr_equal(wf_ready_candidate(connection), slow);
    slow->device = (struct wf_device *)bytes;
    assert_ptr_equal(wf_ready_candidate(connection), other);
    slow->staged = 1;
    assert_ptr_equal(wf_ready_candidate(connection), slow);
    slow->staged = 0;
    other->device = slow->device;
    assert_null(wf_ready_candidate(connection));
    slow->device = other->device = NULL;
}

/* Nothing of a large message goes to a slot before the peer wants it: it has no burst, and is offered. */
static void test_large_messages_of_a_device_are_offered(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    struct wf_outbound *message = post_message(connection, LARGE);
    assert_rings(connection, true, false);
    message->device = (struct wf_device *)bytes;
    wf_connection_ready(connection);
    assert_null(wf_ready_candidate(connection));
    assert_rings(connection, false, true);
    message->device = NULL;
}

/* Cancelled while a copy to its slot is under way, a message leaves the line at once and ends after the copy: meanwhile
 * its connection has nothing to send. */
static void test_a_doomed_message_is_not_to_be_sent(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    struct wf_outbound *message = post_message(connection, SMALL);
    assert_rings(connection, false, true);
    message->in_engine = 1;
    wf_outbound_refuse_unheard(message, -ECANCELED);
    assert_rings(connection, false, false);
    assert_int_equal(message->doomed, -ECANCELED);
    message->in_engine = message->doomed = 0;
    wf_outbound_refuse_unheard(message, -ECANCELED);
    assert_rings(connection, false, false);
    assert_null(wf_outbound_first_of(&connection->pending));
}

/* --- frames --- */

static void test_take(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    struct wf_outbound *large = post_message(connection, LARGE), *small = post_message(connection, SMALL);
    struct wf_frame frame;
    introduce(large, 0);
    assert_int_equal(scene->desk.waiting[0], LARGE);
    assert_ptr_equal(wf_ready_take(large, BESIDE, &frame), large);
    assert_int_equal(frame.type, WF_DATA);
    assert_int_equal(frame.flags, WF_FLAG_TAGGED);
    assert_int_equal(frame.conn, CONNECTION);
    assert_int_equal(frame.msg, 1);
    assert_int_equal(frame.key, 9);
    assert_int_equal(frame.total, LARGE);
    assert_int_equal(frame.offset, 0);
    assert_int_equal(frame.length, BESIDE);
    assert_int_equal(scene->desk.waiting[0], LARGE - BESIDE);
    assert_int_equal(scene->desk.bulk_frames[0], 1);
    assert_int_equal(large->unacknowledged, 1);
    assert_int_equal(large->in_engine, 1); /* its memory is the kernel's now */
    wf_ready_take(large, LARGE - BESIDE, &frame);
    assert_int_equal(frame.offset, BESIDE);
    assert_int_equal(scene->desk.waiting[0], 0);
    assert_int_equal(scene->desk.bulk_frames[0], 2);
    assert_int_equal(large->in_engine, 2);

    introduce(small, SMALL);
    assert_int_equal(small->unacknowledged, 1);
    assert_int_equal(scene->desk.bulk_frames[0], 2); /* what is small is no work of bulk channels */
    wf_outbound_retire(large, 0, BESIDE);
    assert_int_equal(scene->desk.bulk_frames[0], 1);
}

static void test_reads_are_asked_for(void **state)
{
    static const uint64_t totals[] = {HUGE, SMALL};
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    struct wf_frame frame;
    for (uint64_t i = 0; i < 2; i++) {
        struct wf_outbound *read = make(connection, WF_OUTBOUND_READ, totals[i]);
        read->counterpart = wf_inbound_create_reading(connection, totals[i]);
        read->key = 77;
        read->base = 88;
        wf_outbound_queue(read);
        assert_false(wf_ready_whole(read)); /* its bytes are the peer's */
        assert_rings(connection, false, true);
        send_express(connection, &frame);
        assert_int_equal(frame.type, WF_READ);
        assert_int_equal(frame.msg, i + 1);
        assert_int_equal(frame.key, 77);
        assert_int_equal(frame.base, 88);
        assert_int_equal(frame.total, totals[i]);
        assert_ptr_equal(wf_inbound_find_reading(connection, i + 1), read->counterpart); /* where the reply lands */
        assert_rings(connection, false, false);
    }
}

/* The peer has been told of its number: that has to be taken back, in its turn. */
static void test_what_was_announced_is_taken_back(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, 2);
    struct wf_outbound *write = post_noted(connection, LARGE, false);
    struct wf_outbound *note = write->note;
    struct wf_frame frame;
    introduce(write, 0);
    wf_outbound_refuse(note, -ECANCELED);
    assert_false(wf_ready_whole(note));
    assert_rings(connection, true, true);
    send_express(connection, &frame);
    assert_int_equal(frame.type, WF_REFUSE);
    assert_int_equal(frame.msg, 2);
    assert_int_equal(frame.flags, 0);
    assert_int_equal(frame.offset, 0); /* it has spent no credit */
    assert_int_equal((int64_t)frame.key, -ECANCELED);
    assert_rings(connection, true, false);
}

/* The peer keeps the list of an operation that will not come, until it hears so. */
static void test_a_list_is_taken_back(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    struct wf_outbound *write = post_write(connection, LARGE);
    struct wf_frame frame;
    write->listed = true;
    write->key = 55;
    wf_outbound_refuse(write, -ECANCELED);
    assert_true(wf_list_empty(&connection->writes));
    assert_rings(connection, false, true); /* by express, for it has no payload any more */
    send_express(connection, &frame);
    assert_int_equal(frame.type, WF_REFUSE);
    assert_int_equal(frame.base, 55);
    assert_rings(connection, false, false);
}

/* A copied message that needs no queue, where nothing stands in its way. */
static void test_copied_messages_pass_at_once(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, 0);
    struct wf_outbound *copied = make(connection, WF_OUTBOUND_MESSAGE, SMALL);
    struct wf_frame frame = {0};
    assert_false(wf_ready_pull_fresh(copied, &frame)); /* no number */
    raise_limit(connection, LIMIT);
    set_credit(scene, BLOCK - 1);
    assert_false(wf_ready_pull_fresh(copied, &frame));
    set_credit(scene, BLOCK);
    struct wf_outbound *before = post_message(connection, SMALL);
    assert_false(wf_ready_pull_fresh(copied, &frame));
    assert_int_equal(frame.type, 0);
    assert_int_equal(connection->next_number, 1);
    assert_int_equal(scene->desk.unsolicited_spent, 0);
    assert_int_equal(scene->desk.waiting[0], 0);
    wf_outbound_drop(before);

    assert_true(wf_ready_pull_fresh(copied, &frame));
    assert_int_equal(frame.type, WF_DATA);
    assert_int_equal(frame.msg, 1);
    assert_int_equal(frame.length, SMALL);
    assert_int_equal(scene->desk.unsolicited_spent, BLOCK);
    assert_int_equal(scene->desk.waiting[0], 0);
    assert_int_equal(copied->in_engine, 1);
    assert_ptr_equal(wf_outbound_find(connection, 1, false), copied);
}

#define BRIEF (128u * 1024)

static void test_which_messages_are_brief(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    struct wf_outbound *small = make(connection, WF_OUTBOUND_MESSAGE, SMALL),
                       *large = make(connection, WF_OUTBOUND_MESSAGE, LARGE),
                       *larger = make(connection, WF_OUTBOUND_MESSAGE, BRIEF + 1),
                       *write = make(connection, WF_OUTBOUND_WRITE, LARGE);
    struct wf_world shared = scene->world;
    struct wf_hello peer = {.limits = scene->terms.limits};
    struct wf_terms terms;
    shared.shared = true; /* one worker drives everything: express channels are no better than others */
    wf_terms_init(&terms, &shared, true, &peer);
    assert_int_equal(terms.brief, 0);
    scene->terms.brief = 0;
    assert_false(wf_ready_is_brief(large));
    scene->terms.brief = BRIEF;
    assert_true(wf_ready_is_brief(large));
    assert_false(wf_ready_is_brief(small));
    assert_false(wf_ready_is_brief(larger));
    assert_false(wf_ready_is_brief(write));
    large->confirms = true;
    assert_false(wf_ready_is_brief(large));
    large->confirms = false;
    large->waits = true;
    assert_false(wf_ready_is_brief(large));
    large->waits = false;
    scene->terms.first_burst = LARGE - 1; /* the peer would take it for the start of a burst */
    assert_false(wf_ready_is_brief(large));
    scene->terms.first_burst = SCENE_FIRST_BURST;
}

/* A brief message costs credit as a burst of its size does. */
static void test_brief_messages_pass_at_once(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    scene->terms.brief = BRIEF;
    uint64_t charge = wf_burst_charge(LARGE);
    struct wf_outbound *brief = make(connection, WF_OUTBOUND_MESSAGE, LARGE);
    struct wf_frame frame = {0};
    set_credit(scene, 2 * charge - 1); /* as much must be left */
    assert_false(wf_ready_pull_fresh(brief, &frame));
    assert_int_equal(connection->next_number, 1);
    assert_int_equal(scene->desk.unsolicited_spent, 0);

    set_credit(scene, 3 * charge);
    assert_true(wf_ready_pull_fresh(brief, &frame));
    assert_int_equal(frame.type, WF_DATA);
    assert_int_equal(frame.msg, 1);
    assert_int_equal(frame.offset, 0);
    assert_int_equal(frame.length, LARGE);
    assert_int_equal(scene->desk.unsolicited_spent, charge);
    assert_int_equal(scene->desk.waiting[0], 0);
    assert_rings(connection, false, false);
    struct wf_outbound *other = make(connection, WF_OUTBOUND_MESSAGE, LARGE);
    assert_true(wf_ready_pull_fresh(other, &frame)); /* behind one that is not acknowledged */
    assert_int_equal(frame.msg, 2);
    assert_false(wf_ready_pull_fresh(make(connection, WF_OUTBOUND_MESSAGE, LARGE), &frame));
}

/* --- what is being sent --- */

static void test_the_line_of_what_is_sent(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    struct wf_outbound *huge = post_message(connection, HUGE), *large = post_message(connection, LARGE);
    struct wf_frame frame;
    set_credit(scene, 0);
    wf_connection_ready(connection);
    send_express(connection, &frame);
    assert_int_equal(frame.type, WF_OFFER);
    send_express(connection, &frame);
    assert_rings(connection, false, false); /* both wait for the peer */
    assert_int_equal(wf_outbound_grant(huge, HUGE + 1, 0), -EPROTO);
    assert_int_equal(wf_outbound_grant(huge, HUGE, 0), 0);
    assert_rings(connection, true, false);
    assert_int_equal(wf_outbound_grant(large, LARGE, 0), 0);
    assert_ptr_equal(wf_outbound_first_of(&connection->sending), large); /* a chunk does not wait behind many */
    assert_int_equal(scene->desk.waiting[0], HUGE + LARGE);
    wf_ready_take(large, LARGE, &frame);
    wf_outbound_requeue(large);
    assert_ptr_equal(wf_outbound_first_of(&connection->sending), huge);
    wf_outbound_refuse(huge, -ECANCELED);
    assert_rings(connection, false, false);
    assert_int_equal(scene->desk.waiting[0], 0);
}

static void test_so_many_chunks_under_way(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    struct wf_outbound *write = post_write(connection, HUGE);
    struct wf_frame frame;
    introduce(write, 0);
    for (int i = 0; i < WF_CHUNKS_UNACKNOWLEDGED; i++) {
        assert_rings(connection, true, false);
        wf_ready_take(write, 1, &frame);
        wf_outbound_requeue(write);
    }
    assert_rings(connection, false, false); /* the peer may have no room to note one hole more */
    wf_outbound_retire(write, 0, 1);
    assert_rings(connection, true, false);
}

static void test_as_many_pieces_as_fit(void **state)
{
    struct scene *scene = *state;
    struct weft_connection *connection = scene_connect(scene, CONNECTION, LIMIT);
    struct wf_channel *channel = calloc(1, sizeof *channel);
    struct wf_pieces *pieces = wf_pieces_create(500, false);
    assert_non_null(channel);
    assert_non_null(pieces);
    for (int i = 0; i < 500; i++)
        wf_pieces_add(pieces, bytes + 200 * i, 100);
    struct wf_outbound *outbound = make(connection, WF_OUTBOUND_MESSAGE, pieces->total);
    assert_int_equal(wf_ready_fitting(channel, outbound, 0, 50000), 50000); /* in one place */
    outbound->pieces = pieces;
    uint64_t most = (WF_TX_SEGMENTS - WF_TX_SEGMENTS_LEFT) * 100;
    assert_int_equal(wf_ready_fitting(channel, outbound, 0, 50000), most);
    assert_int_equal(wf_ready_fitting(channel, outbound, 0, 150), 150);
    channel->tx.iov_count = WF_TX_SEGMENTS - 5; /* its header and four pieces, of which the first has 50 bytes left */
    assert_int_equal(wf_ready_fitting(channel, outbound, 50, 50000 - 50), 350);
    static struct wf_slot slots[WF_TX_SEGMENTS]; /* the first is full, and of the others each has one byte */
    outbound->device = (struct wf_device *)bytes;
    for (int i = 0; i < WF_TX_SEGMENTS; i++) {
        slots[i].start = i == 0 ? 0 : 50000 + (uint64_t)i - 1;
        slots[i].length = i == 0 ? 50000 : 1;
        wf_list_push_back(&outbound->slots, &slots[i].link);
    }
    assert_int_equal(wf_ready_fitting(channel, outbound, 0, 50000), 50000);
    assert_int_equal(wf_ready_fitting(channel, outbound, 0, 50100), 50003);
    channel->tx.iov_count = 0;
    assert_int_equal(wf_ready_fitting(channel, outbound, 50000, 500), WF_TX_SEGMENTS - WF_TX_SEGMENTS_LEFT);
    while (wf_list_pop_front(&outbound->slots))
        continue;
    outbound->device = NULL;
    wf_outbound_drop(outbound);
    free(channel);
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, scene_set_up_locked, scene_tear_down_locked)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(test_only_while_it_is_open),
        IN_SCENE(test_opening_lets_go),
        IN_SCENE(test_numbers_run_out),
        IN_SCENE(test_a_note_needs_its_number),
        IN_SCENE(test_a_late_note_needs_none_yet),
        IN_SCENE(test_bursts),
        IN_SCENE(test_small_messages_and_credit),
        IN_SCENE(test_bursts_beside_bulk_work),
        IN_SCENE(test_beside_what_is_sent),
        IN_SCENE(test_credit_comes),
        IN_SCENE(test_rings),
        IN_SCENE(test_small_writes_keep_their_place),
        IN_SCENE(test_writes_and_the_head_by_posting),
        IN_SCENE(test_a_slow_device_holds_nobody_up),
        IN_SCENE(test_large_messages_of_a_device_are_offered),
        IN_SCENE(test_a_doomed_message_is_not_to_be_sent),
        IN_SCENE(test_take),
        IN_SCENE(test_reads_are_asked_for),
        IN_SCENE(test_what_was_announced_is_taken_back),
        IN_SCENE(test_a_list_is_taken_back),
        IN_SCENE(test_copied_messages_pass_at_once),
        IN_SCENE(test_which_messages_are_brief),
        IN_SCENE(test_brief_messages_pass_at_once),
        IN_SCENE(test_the_line_of_what_is_sent),
        IN_SCENE(test_so_many_chunks_under_way),
        IN_SCENE(test_as_many_pieces_as_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
