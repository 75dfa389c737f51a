/* test_crc.c: payload checksums (setting crc). Damage never ends as success with wrong bytes; and what no wire has
 * damaged is never taken for damage, whatever the memory does meanwhile. In the simulated world only: it has wires that
 * can be damaged, and a test that can act between any two steps. */
#include "loop_support.h"
#include "loop_world.h"

#include <stdio.h>
#include <string.h>

static struct loop_pair pair;
#define LEFT (pair.node[0].connection)
#define RIGHT (pair.node[1].connection)

/* splitmix64, public domain, Sebastiano Vigna. */
static uint64_t draw(uint64_t below)
{
    static uint64_t state = 20261121;
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

static uint64_t damage_seen(void)
{
    return loop_damaged(pair.node[0].peer) + loop_damaged(pair.node[1].peer);
}

/* --- damage --- */

static const size_t sizes[] = {1, 900, 7000, 8193, 40000, 65537, 300001};
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))
#define WRITTEN 150001
#define PIECE 700

static int failed; /* requests that did not end well */

/* It may not even have been posted: its session may be lost already. */
static bool succeeds(struct weft_request *request)
{
    bool well = request && loop_end(request).status == 0;
    failed += !well;
    return well;
}

/* Messages in both directions, half of them unexpected. Returns how many were delivered with wrong bytes. */
static int exchange_messages(void)
{
    static struct loop_message message[2][SIZE_COUNT];
    int wrong = 0;

    for (int late = 0; late < 2; late++) {
        for (size_t i = 0; i < SIZE_COUNT; i++) {
            for (int side = 0; side < 2; side++) {
                struct loop_message *one = &message[side][i];
                if (late == 0) {
                    loop_message_create(one, sizes[i], i * 2 + (uint64_t)side);
                    weft_send(pair.node[side].connection, one->source.data, sizes[i], i, NULL, &one->send);
                }
                if (late == (int)i % 2)
                    weft_recv(pair.node[!side].connection, one->sink.data, sizes[i], i, NULL, &one->recv);
            }
        }
        loop_sleep_ms(1);
    }
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        for (int side = 0; side < 2; side++) {
            struct loop_message *one = &message[side][i];
            if (succeeds(one->recv))
                wrong += loop_wrong(one->sink.data, sizes[i], one->seed) >= 0;
            (void)succeeds(one->send);
            loop_message_destroy(one);
        }
    }
    return wrong;
}

/* A write, the same in pieces, and a read back, each to memory of its own. Returns how many ended well and are wrong.
 */
static int ask(uint64_t key, struct loop_buffer *region, struct loop_buffer *source, struct loop_buffer *sink)
{
    static struct weft_piece pieces[WRITTEN / PIECE];
    const uint64_t count = sizeof(pieces) / sizeof(pieces[0]);
    struct weft_request *write = NULL, *list = NULL, *read = NULL;
    int wrong = 0;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = i * 101 % count * PIECE;
        pieces[i] = (struct weft_piece){.local = at, .remote = WRITTEN + at, .length = PIECE};
    }
    weft_write(LEFT, source->data, WRITTEN, key, 0, NULL, &write);
    weft_write_list(LEFT, source->data, pieces, count, key, NULL, &list);
    weft_read(LEFT, sink->data, WRITTEN, key, 2 * WRITTEN, NULL, &read);
    if (succeeds(write))
        wrong += !loop_same(region->data, source->data, WRITTEN);
    if (succeeds(list))
        wrong += !loop_same(region->data + WRITTEN, source->data, count * PIECE);
    if (succeeds(read))
        wrong += !loop_same(region->data + 2 * WRITTEN, sink->data, WRITTEN);
    return wrong;
}

static int exchange_one_sided(void)
{
    struct loop_buffer region, source, sink;
    struct weft_registration *registration = NULL;
    struct weft_error err;

    loop_buffer_create(&region, LOOP_FAR, 3 * WRITTEN);
    loop_buffer_create(&source, LOOP_NEAR, WRITTEN);
    loop_buffer_create(&sink, LOOP_NEAR, WRITTEN);
    loop_fill(region.data, region.size, 7);
    loop_fill(source.data, source.size, 8);
    LOOP_CALL(weft_register(pair.node[1].context, region.data, region.size, &registration, &err), &err);
    int wrong = ask(weft_registration_key(registration), &region, &source, &sink);
    loop_world_deregister(registration);
    loop_buffer_unmap(&region);
    loop_buffer_unmap(&source);
    loop_buffer_unmap(&sink);
    return wrong;
}

/* Near ones as often as far ones: little goes over some streams. */
static void flip_some(void)
{
    for (int i = 0; i < 3; i++)
        loop_world_flip(draw(UINT64_C(1024) << draw(9)));
}

/* Rounds of all of it with bits flipped on the way. Returns the deliveries that were wrong, and the damage told. */
static int rounds_with_flips(const char *crc, uint64_t *damaged)
{
    static const char *const shapes[] = {"chunk=64K", "channels=2 chunk=4K header_pad=64 eager=2000",
                                         "chunk=512K window=2 call=16K first_burst=0"};
    int wrong = 0;

    failed = 0;
    *damaged = 0;
    for (int round = 0; round < 60; round++) {
        char settings[128];
        snprintf(settings, sizeof(settings), "crc=%s %s", crc, shapes[round % 3]);
        loop_note("round %d, %s", round, settings);
        loop_pair_create(&pair, settings, NULL, 1 + round % 2);
        flip_some();
        wrong += round % 4 == 3 ? exchange_one_sided() : exchange_messages();
        *damaged += damage_seen();
        loop_pair_destroy(&pair);
    }
    return wrong;
}

static void damage_is_sent_again(void)
{
    uint64_t damaged;
    int wrong = rounds_with_flips("on", &damaged);

    LOOP_CHECK(wrong == 0, "%d deliveries were wrong", wrong);
    LOOP_CHECK(failed == 0, "%d requests failed", failed);
    LOOP_CHECK(damaged >= 30, "only %llu chunks and headers were damaged", (unsigned long long)damaged);
}

/* The flips of the test before do hit payload. */
static void without_checksums_it_is_delivered(void)
{
    uint64_t damaged;
    int wrong = rounds_with_flips("off", &damaged);

    LOOP_CHECK(wrong >= 30, "only %d deliveries were wrong", wrong);
}

/* Retired are the rails that have damaged something, and no others. Returns how many. Each side counts what it got, and
 * the one that has had enough tells the other. */
static int check_retired(void)
{
    struct weft_rail_stats stats[2][2];
    int count = 0;

    for (int side = 0; side < 2; side++)
        LOOP_CHECK(weft_peer_rails(pair.node[side].peer, stats[side], 2) == 2, "there are two rails");
    for (int rail = 0; rail < 2; rail++) {
        bool damages = stats[0][rail].damaged + stats[1][rail].damaged > 0;
        bool retired = stats[0][rail].retired || stats[1][rail].retired;
        LOOP_CHECK(damages == retired, "rail %d is retired: %d; it damages: %d", rail, retired, damages);
        count += retired;
    }
    return count;
}

static void who_damages_is_retired(void)
{
    int retired = 0;

    failed = 0;
    for (int round = 0; round < 30; round++) {
        loop_note("round %d", round);
        loop_pair_create(&pair, "crc=on crc_limit=1 chunk=64K", NULL, 2);
        loop_world_flip(draw(65536));
        for (int again = 0; again < 2; again++)
            LOOP_CHECK(exchange_messages() == 0 && failed == 0, "%d requests failed", failed);
        retired += check_retired();
        loop_pair_destroy(&pair);
    }
    LOOP_CHECK(retired >= 10, "only %d rails were retired", retired);
}

/* --- no damage --- */

/* Each side decides for what it sends. */
static void one_side_only(void)
{
    for (int side = 0; side < 2; side++) {
        loop_pair_create(&pair, side ? "crc=off" : "crc=on", side ? "crc=on" : "crc=off", 2);
        LOOP_CHECK(exchange_messages() + exchange_one_sided() == 0, "wrong without any damage");
        LOOP_CHECK(damage_seen() == 0, "damage that nobody did");
        LOOP_CHECK(loop_failures(pair.node[side].peer) == 0, "a channel was lost");
        loop_pair_destroy(&pair);
    }
}

/* Pieces may overlap where they land: any of their bytes stay there. */
static void overlapping_pieces(void)
{
    enum { COUNT = 500, STEP = 100, LENGTH = 700, EACH = COUNT * LENGTH };
    static struct weft_piece pieces[COUNT];
    struct weft_registration *registration = NULL;
    struct loop_buffer remote, local;
    struct weft_request *request = NULL;
    struct weft_error err;

    loop_pair_create(&pair, "crc=on chunk=64K", NULL, 2);
    loop_buffer_create(&remote, LOOP_FAR, EACH);
    loop_buffer_create(&local, LOOP_NEAR, EACH);
    LOOP_CALL(weft_register(pair.node[1].context, remote.data, EACH, &registration, &err), &err);
    for (int writes = 0; writes < 2; writes++) {
        for (uint64_t i = 0; i < COUNT; i++) {
            uint64_t apart = i * LENGTH, close = i * 7 % COUNT * STEP;
            pieces[i] = (struct weft_piece){
                .local = writes ? apart : close, .remote = writes ? close : apart, .length = LENGTH};
        }
        loop_fill(writes ? local.data : remote.data, EACH, 3);
        LOOP_CALL((writes ? weft_write_list(LEFT, local.data, pieces, COUNT, weft_registration_key(registration), NULL,
                                            &request)
                          : weft_read_list(LEFT, local.data, pieces, COUNT, weft_registration_key(registration), NULL,
                                           &request)),
                  NULL);
        loop_done(request, 0, EACH);
        LOOP_CHECK(damage_seen() == 0, "pieces that overlap were taken for damage");
    }
    loop_world_deregister(registration);
    loop_buffer_unmap(&remote);
    loop_buffer_unmap(&local);
    loop_pair_destroy(&pair);
}

/* A peer looks at a counter that its owner goes on counting. */
static void counter_that_is_read(void)
{
    struct weft_registration *registration = NULL;
    struct weft_error err;
    uint64_t counter = 0, seen = 0, last = 0;

    loop_pair_create(&pair, "crc=on", NULL, 1);
    LOOP_CALL(weft_register(pair.node[1].context, &counter, sizeof(counter), &registration, &err), &err);
    for (int i = 0; i < 300; i++) {
        struct weft_request *request = NULL;
        struct weft_completion completion;
        int rc = weft_read(LEFT, &seen, sizeof(seen), weft_registration_key(registration), 0, NULL, &request);
        LOOP_CHECK(rc == 0, "weft_read: %d", rc);
        while (!weft_test(request, &completion)) {
            counter += 1;
            (void)loop_now_ms(); /* the world goes on */
        }
        LOOP_CHECK(completion.status == 0, "%s", completion.text);
        LOOP_CHECK(seen >= last && seen <= counter, "a value that the counter never had");
        last = seen;
    }
    LOOP_CHECK(damage_seen() == 0, "a change was taken for damage");
    loop_world_deregister(registration);
    loop_pair_destroy(&pair);
}

/* A message has arrived, and its memory changes before its sender knows that. What a lost channel has not acknowledged
 * is sent again all the same, with other bytes and, since they are summed as they go, another sum or a wrong one. */
static void changed_once_received(void)
{
    enum { ROUNDS = 60, SIZE = 1000000 };
    char settings[96];
    uint64_t resent = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct loop_message message;
        snprintf(settings, sizeof(settings), "crc=on channels=2 chunk=64K fault=seed=%d,reset_every=256K", round);
        loop_pair_create(&pair, settings, NULL, 2);
        loop_message_create(&message, SIZE, (uint64_t)round);
        message.recv = loop_recv(RIGHT, message.sink.data, SIZE, 1);
        message.send = loop_send(LEFT, message.source.data, SIZE, 1);
        loop_done(message.recv, 0, SIZE);
        loop_set(message.source.data, SIZE, 0x77);
        loop_done(message.send, 0, SIZE);
        loop_message_verify(&message);
        loop_message_destroy(&message);
        LOOP_CHECK(damage_seen() == 0, "what was changed after it had arrived was taken for damage, round %d", round);
        resent += loop_resent(pair.node[0].peer);
        loop_pair_destroy(&pair);
    }
    LOOP_CHECK(resent > 0, "nothing was sent again");
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(damage_is_sent_again, 60),   LOOP_CASE(without_checksums_it_is_delivered, 60),
        LOOP_CASE(who_damages_is_retired, 60), LOOP_CASE(one_side_only, 20),
        LOOP_CASE(overlapping_pieces, 20),     LOOP_CASE(counter_that_is_read, 20),
        LOOP_CASE(changed_once_received, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
