/* astray_storm.c: operations of every kind, deadlines, cancels and lost channels at random. After each round nothing is
 * left over, and what has ended well has the right bytes. */
#include "astray.h"

#include <errno.h>
#include <string.h>

#include "core/message/connection.h"
#include "core/session/loss.h"

enum { SLOTS = 40, SLOT = 200000, PIECES = 20, PIECE = 600, LOCAL_STEP = 700, REMOTE_STEP = 900, NOTE_ROOM = 64 };
enum { ROUNDS = 30, STEPS = 400, NO_KEY = 77, TAG = 5 };

enum kind { SEND, RECEIVE, WRITE, READ, WRITE_LIST, READ_LIST, HEAR };

struct operation {
    enum kind kind;
    int side, slot;
    size_t size;
    unsigned char value; /* of every byte of it */
    bool keyless;        /* names no registration */
    struct weft_request *request;
};

/* Of either side: what it sends from and reads into, what it has registered, what it receives into. */
static unsigned char near[2][SLOTS][SLOT], far[2][SLOTS][SLOT], sink[2][SLOTS][SLOT], notes[2][SLOTS][NOTE_ROOM];
static struct weft_registration *registrations[2];
static struct operation operations[2 * SLOTS];
static int operation_count;
static uint64_t ended_well;

static uint64_t draw(uint64_t below)
{
    return wf_sim_random(astray_sim()) % below;
}

static bool chance(uint64_t one_in)
{
    return draw(one_in) == 0;
}

/* --- what is lost --- */

/* Nothing arrives on it, and its side has noticed. */
static void lose_silent(int side, struct wf_channel *channel)
{
    struct wf_session *session = astray_session(side);
    wf_sim_freeze(astray_sim(), channel->fd, true);
    wf_session_lock(session);
    wf_channel_lost(channel, -ETIMEDOUT, "the test");
    wf_session_unlock(session);
}

/* The network passes what it held back: where the other side has closed, the reset. It has to on express channels, or
 * neither side might have one left to say on which it has lost. Bulk channels need no more than that word. */
static void end_silence(void)
{
    for (int side = 0; side < 2; side++) {
        const struct wf_session *session = astray_session(side);
        for (int i = 0; i < session->lines.channel_count; i++) {
            const struct wf_channel *channel = session->lines.channels[i];
            if (channel->up && channel->kind == WF_CHANNEL_EXPRESS)
                wf_sim_freeze(astray_sim(), channel->fd, false);
        }
    }
}

static void lose_some(void)
{
    int side = (int)draw(2);
    struct wf_session *session = astray_session(side);
    struct wf_channel *channel = session->lines.channels[draw((uint64_t)session->lines.channel_count)];
    uint64_t way = draw(4);
    if (way == 0 && session->lines.rail_count > 1 && channel->up) {
        lose_silent(side, channel);
    } else if (way == 1) {
        for (int i = 0; i < session->lines.channel_count; i++)
            if (session->lines.channels[i]->up && chance(2))
                wf_sim_cut(astray_sim(), session->lines.channels[i]->fd);
    } else if (channel->up) {
        wf_sim_cut(astray_sim(), channel->fd);
    }
}

/* --- what is under way --- */

static size_t some_size(void)
{
    static const size_t most[] = {1, 2, 300, 5000, 40000, 64000, SLOT};
    return draw(most[draw(sizeof most / sizeof most[0])]);
}

/* With a deadline sometimes, and if it is one-sided with a notification. */
static struct weft_options some_options(bool one_sided)
{
    struct weft_options options = {.timeout_ms = chance(3) ? 1 + (int)draw(3) : 0};
    if (one_sided && chance(2)) {
        options.flags = WEFT_NOTIFY;
        options.notify_data = "notification";
        options.notify_length = draw(10);
    }
    return options;
}

/* The pieces of operation `slot`. */
static void cut_into_pieces(struct weft_piece *pieces, int slot)
{
    for (uint64_t i = 0; i < PIECES; i++)
        pieces[i] = (struct weft_piece){
            .local = i * LOCAL_STEP, .remote = (uint64_t)slot * SLOT + i * REMOTE_STEP, .length = PIECE};
}

static int post(struct operation *operation, const struct weft_options *options)
{
    int side = operation->side, slot = operation->slot;
    struct weft_connection *connection = astray_connection(side);
    struct weft_request **out = &operation->request;
    uint64_t key = operation->keyless ? NO_KEY : weft_registration_key(registrations[!side]);
    uint64_t offset = (uint64_t)slot * SLOT;
    struct weft_piece pieces[PIECES];
    cut_into_pieces(pieces, slot);
    switch (operation->kind) {
    case SEND:
        return weft_send(connection, near[side][slot], operation->size, TAG, options, out);
    case RECEIVE:
        return weft_recv(connection, sink[side][slot], SLOT, TAG, options, out);
    case WRITE:
        return weft_write(connection, near[side][slot], operation->size, key, offset, options, out);
    case READ:
        return weft_read(connection, near[side][slot], operation->size, key, offset, options, out);
    case WRITE_LIST:
        return weft_write_list(connection, near[side][slot], pieces, PIECES, key, options, out);
    case READ_LIST:
        return weft_read_list(connection, near[side][slot], pieces, PIECES, key, options, out);
    default:
        return weft_recv_notification(connection, notes[side][slot], NOTE_ROOM, options, out);
    }
}

static void start(struct operation operation, const struct weft_options *options)
{
    int rc = post(&operation, options);
    LOOP_CHECK(rc == 0, "operation of kind %d: %s", (int)operation.kind, strerror(-rc));
    operations[operation_count++] = operation;
}

/* One operation, and often what the other side needs for it. */
static void start_some(int slot, unsigned char value)
{
    static const enum kind kinds[] = {SEND, SEND, SEND, WRITE, READ, WRITE_LIST, READ_LIST};
    enum kind kind = kinds[draw(sizeof kinds / sizeof kinds[0])];
    bool listed = kind == WRITE_LIST || kind == READ_LIST, reads = kind == READ || kind == READ_LIST;
    struct operation operation = {
        .kind = kind, .side = (int)draw(2), .slot = slot, .size = some_size(), .value = value};
    struct operation answer = {.kind = kind == SEND ? RECEIVE : HEAR, .side = !operation.side, .slot = slot};
    size_t touched = listed ? PIECES * REMOTE_STEP : operation.size;
    struct weft_options options = some_options(kind != SEND), plain = some_options(false);
    operation.keyless = kind != SEND && chance(16);
    memset(near[operation.side][slot], reads ? 0 : value, touched);
    memset(far[!operation.side][slot], reads ? value : 0, touched);
    start(operation, &options);
    if ((kind == SEND || (options.flags & WEFT_NOTIFY)) && !chance(4))
        start(answer, &plain);
}

/* --- how it ends --- */

static void check_bytes(const struct operation *operation, uint64_t bytes)
{
    bool writes = operation->kind == WRITE || operation->kind == WRITE_LIST;
    bool listed = operation->kind == WRITE_LIST || operation->kind == READ_LIST;
    size_t step = writes ? REMOTE_STEP : LOCAL_STEP;
    const unsigned char *at = writes ? far[!operation->side][operation->slot] : near[operation->side][operation->slot];
    int64_t wrong = -1;
    if (operation->kind == RECEIVE) /* whose message it was is not known, but that it is one */
        wrong = loop_differs(sink[operation->side][operation->slot], bytes, sink[operation->side][operation->slot][0]);
    else if (operation->kind == WRITE || operation->kind == READ)
        wrong = loop_differs(at, operation->size, operation->value);
    for (size_t i = 0; listed && wrong < 0 && i < PIECES; i++)
        wrong = loop_differs(at + i * step, PIECE, operation->value);
    LOOP_CHECK(wrong < 0, "operation of kind %d: byte %lld is wrong", (int)operation->kind, (long long)wrong);
}

static void check_end(const struct operation *operation)
{
    struct weft_completion end;
    LOOP_CHECK(weft_wait(operation->request, 0, &end) == 0, "a request has not ended");
    bool refused = end.status == -EACCES && operation->keyless;
    bool given_up = end.status == -ECANCELED || end.status == -ETIMEDOUT;
    bool well = end.status == 0 && !operation->keyless;
    LOOP_CHECK(well || refused || given_up, "operation of kind %d: %d, %s", (int)operation->kind, end.status, end.text);
    if (!well)
        return;
    ended_well += 1;
    check_bytes(operation, end.bytes);
}

static void take(struct weft_request *request)
{
    if (weft_wait(request, 30, NULL) == 0)
        return;
    weft_cancel(request); /* it was withdrawn meanwhile */
    astray_status(request);
}

/* Takes what nobody has asked for and would stay otherwise. */
static void take_unexpected(int side)
{
    static unsigned char message[SLOT], note[NOTE_ROOM];
    struct weft_connection *connection = astray_connection(side);
    if (!wf_list_empty(&connection->unexpected))
        take(loop_recv_any(connection, message, sizeof message));
    if (wf_list_empty(&connection->notes))
        return;
    struct weft_request *request;
    int rc = weft_recv_notification(connection, note, sizeof note, NULL, &request);
    LOOP_CHECK(rc == 0, "weft_recv_notification: %s", strerror(-rc));
    take(request);
}

static const char *left_over(void)
{
    const char *own = astray_left_over(0);
    return own ? own : astray_left_over(1);
}

static void settle(void)
{
    end_silence();
    for (int i = 0; i < operation_count; i++)
        if (operations[i].kind == RECEIVE || operations[i].kind == HEAR)
            weft_cancel(operations[i].request);
    for (int64_t limit_ms = loop_now_ms() + LOOP_WAIT_MS; !astray_is_clean();) {
        LOOP_CHECK(loop_now_ms() < limit_ms, "left over: %s", left_over() ? left_over() : "a channel that is not up");
        for (int side = 0; side < 2; side++) {
            LOOP_CHECK(astray_session(side)->guard.state == WF_SESSION_UP, "%s", astray_session(side)->guard.error.text);
            take_unexpected(side);
        }
    }
    for (int i = 0; i < operation_count; i++)
        check_end(&operations[i]);
}

/* --- storms --- */

static void play_round(int round)
{
    operation_count = 0;
    for (int slot = 0; slot < SLOTS; slot++)
        start_some(slot, (unsigned char)(1 + (round * SLOTS + slot) % 250));
    for (uint64_t steps = draw(STEPS); steps > 0; steps--) {
        loop_now_ms(); /* a turn of the world */
        if (chance(25))
            lose_some();
        if (chance(20))
            weft_cancel(operations[draw((uint64_t)operation_count)].request);
    }
    settle();
}

/* Also now channels may be lost. */
static void end(void)
{
    struct weft_error err = {0};
    for (int side = 0; side < 2; side++)
        loop_world_deregister(registrations[side]);
    if (chance(2))
        lose_some();
    for (int side = 0; side < 2; side++) {
        struct loop_node *node = &astray_pair.node[side];
        LOOP_CALL(weft_connection_close(node->connection, ASTRAY_SOON_MS, &err), &err);
        node->connection = NULL;
    }
    if (chance(2))
        lose_some();
    LOOP_CALL(weft_peer_close(astray_pair.node[0].peer, LOOP_WAIT_MS, &err), &err);
    astray_pair.node[0].peer = NULL;
    loop_pair_destroy(&astray_pair);
}

static void storm(const char *settings)
{
    for (int rails = 1; rails <= 3; rails++) {
        struct weft_error err = {0};
        loop_pair_create(&astray_pair, settings, NULL, rails);
        for (int i = 0; i < 2; i++)
            LOOP_CALL(weft_register(astray_pair.node[i].context, far[i], sizeof far[i], &registrations[i], &err), &err);
        ended_well = 0;
        for (int round = 0; round < LOOP_COUNT(ROUNDS, 6); round++) {
            loop_note("%d rails, round %d", rails, round);
            play_round(round);
        }
        LOOP_CHECK(loop_failures(astray_pair.node[0].peer) > 0 && ended_well > 0, "nothing was tested");
        end();
    }
}

void storm_in_large_chunks(void)
{
    storm("channels=1 chunk=64K timeout=10 log=error");
}

void storm_in_small_chunks(void)
{
    storm("channels=2 chunk=16K timeout=10 log=error");
}

void storm_in_tiny_windows(void)
{
    storm("channels=2 chunk=4K window=2 eager=500 introductions=6 unexpected=128K timeout=10 log=error");
}
