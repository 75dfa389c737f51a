/* How the two nodes meet: a session, then connections, in every order that the library allows. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/calls/peer.h"
#include "core/request/request.h"
#include "core/session/traffic.h"
#include "model.h"

#define LATE_ENDPOINT 5
#define FAULTY_TRIES 3

/* Sessions that came up here and were given up by the dialer. */
static void discard(struct model_world *world, struct wf_session *session)
{
    struct weft_request *request = wf_session_ask_to_close(session);
    if (request)
        model_finish(world, request);
    wf_session_release(session);
}

/* The next event of the node, and what holds for every event. False: there is none. */
static bool next_event(struct model_world *world, int node, struct weft_event *event)
{
    if (weft_event_poll(world->nodes[node].context, event, 1) == 0)
        return false;
    const struct wf_session *session = event->peer->session;
    MODEL_CHECK(session->user.handed_over && !session->user.offered, event->kind);
    MODEL_CHECK((event->kind == WEFT_EVENT_LOST) == (event->status < 0), event->status);
    MODEL_CHECK((event->kind == WEFT_EVENT_CONNECTION) == (event->connection != NULL), event->kind);
    MODEL_CHECK(event->kind == WEFT_EVENT_PEER || !session->life.dismissed, event->kind);
    return true;
}

/* Takes a peer that has connected, by an event or by a call. */
static struct weft_peer *take_peer(struct model_world *world, int node, bool by_event)
{
    struct weft_event event;
    struct weft_peer *peer;
    if (!by_event)
        return weft_accept(world->nodes[node].context, 0, &peer, NULL) < 0 ? NULL : peer;
    if (!next_event(world, node, &event) || event.kind == WEFT_EVENT_LOST)
        return NULL;
    MODEL_CHECK(event.kind == WEFT_EVENT_PEER, event.kind);
    return event.peer;
}

/* The other half of the dialer's session, once it is up. False: the dialer's has ended before. */
static bool accept_session(struct model_world *world)
{
    struct wf_session *mine = world->nodes[1].session;
    struct model_patience patience = {0};
    struct weft_peer *peer;
    bool by_event = model_pick(world, 2) == 0;
    while (!world->nodes[0].session) {
        if (mine->guard.state == WF_SESSION_FAILED || mine->guard.state == WF_SESSION_DEAD)
            return false;
        model_bear(world, &patience);
        model_drive(world);
        peer = take_peer(world, 0, by_event);
        if (!peer)
            continue;
        if (peer->session->id == mine->id)
            world->nodes[0].session = peer->session;
        else
            discard(world, peer->session);
    }
    return true;
}

/* Where faults are under way a dial may fail: nothing was promised yet. It may also be given up. */
static bool dial_session(struct model_world *world, bool excused)
{
    struct model_patience patience = {0};
    struct weft_options options = {.timeout_ms = (int)(world->connect_timeout_ns / WF_NS_PER_MS)};
    struct weft_request *request;
    struct weft_completion completion;
    struct weft_error err = {0};
    uint64_t turns = excused && model_pick(world, 6) == 0 ? model_pick(world, 400) : UINT64_MAX;
    int result = weft_connect_start(world->nodes[1].context, "127.0.0.1:5000", &options, &request, &err);
    MODEL_CHECK(result == 0, result);
    while (!weft_test(request, &completion)) {
        model_bear(world, &patience);
        model_drive(world);
        if (turns-- == 0)
            weft_cancel(request);
    }
    if (completion.status < 0 && !excused)
        fprintf(stderr, "%s\n", completion.text);
    MODEL_CHECK(completion.status == 0 || excused, completion.status);
    MODEL_CHECK((completion.peer == NULL) == (completion.status < 0), completion.status);
    if (completion.status < 0)
        return false;
    struct wf_session *session = world->nodes[1].session = completion.peer->session;
    MODEL_CHECK(session->user.handed_over, 0);
    if (accept_session(world))
        return true;
    MODEL_CHECK(excused, session->guard.error.code);
    world->nodes[1].session = NULL;
    discard(world, session);
    return false;
}

/* --- connections --- */

/* Takes a connection that has come to the session of this node, by an event or by a call. */
static int take_connection(struct model_world *world, int node, struct weft_endpoint *endpoint, bool by_event,
                           struct weft_connection **out)
{
    struct wf_session *session = world->nodes[node].session;
    struct weft_event event;
    if (!by_event)
        return weft_connection_accept(endpoint, &session->peer, WEFT_ANY_ENDPOINT, 0, out, NULL);
    if (!next_event(world, node, &event))
        return wf_session_usable(session) < 0 ? wf_session_usable(session) : -ETIMEDOUT;
    if (event.kind == WEFT_EVENT_PEER) /* one whose dialer has given it up */
        discard(world, event.peer->session);
    if (event.kind != WEFT_EVENT_CONNECTION)
        return -ETIMEDOUT;
    MODEL_CHECK(event.peer == &session->peer && event.endpoint == endpoint, node);
    *out = event.connection;
    return 0;
}

/* The other side takes the connection, perhaps before the opener has heard that it may. */
static bool accept_connection(struct model_world *world, int index, int other, struct weft_endpoint *endpoint)
{
    struct model_patience patience = {0};
    struct weft_connection **place = &world->connections[index][other];
    bool by_event = model_pick(world, 2) == 0;
    int result;
    while ((result = take_connection(world, other, endpoint, by_event, place)) == -ETIMEDOUT) {
        if (model_is_lost(world))
            return false;
        model_bear(world, &patience);
        for (int turn = 0; turn < 10; turn++)
            model_drive(world);
    }
    MODEL_CHECK(result == 0 || model_excused(world, other, result), result);
    return result == 0;
}

static void make_lanes(struct model_world *world, int index)
{
    struct weft_connection **pair = world->connections[index];
    for (int side = 0; side < 2; side++) {
        world->lanes[index][side].sender = pair[side];
        world->lanes[index][side].receiver = pair[1 - side];
    }
}

/* An endpoint that is created after the connection was asked for. */
static struct weft_endpoint *late_endpoint(struct model_world *world, int other, uint32_t id)
{
    struct weft_endpoint *endpoint;
    for (uint64_t turns = model_pick(world, 300); turns > 0; turns--)
        model_drive(world);
    MODEL_CHECK(weft_endpoint_create(world->nodes[other].context, id, &endpoint, NULL) == 0, id);
    return endpoint;
}

/* Both ends have the class that the opener chose. In some schedules its rate is set, too: that changes nothing here,
 * but the channels must be there or not be there in an orderly way. */
static void check_class(struct model_world *world, int index, int opener)
{
    uint32_t traffic = model_traffic_class(world, opener, index);
    for (int side = 0; side < 2; side++) {
        MODEL_CHECK(weft_connection_class(world->connections[index][side]) == traffic, traffic);
        uint64_t rate = model_bits(world, 7100 + (uint64_t)side) % 2 ? UINT64_C(1) << 40 : 0;
        int result = weft_peer_set_rate(&world->nodes[side].session->peer, traffic, rate);
        MODEL_CHECK(result == 0 || model_excused(world, side, result), result);
    }
}

static bool open_connection(struct model_world *world, int index)
{
    int opener = (int)model_pick(world, 2), other = 1 - opener;
    bool late = model_pick(world, 6) == 0, at_once = model_pick(world, 3) == 0;
    uint32_t id = late ? LATE_ENDPOINT + (uint32_t)(index + world->lives * MODEL_CONNECTIONS) : (uint32_t)other;
    struct weft_request *request;
    model_place_endpoint(world, opener, index);
    model_place_endpoint(world, other, index);
    int result = weft_connection_open_start(world->nodes[opener].endpoint, &world->nodes[opener].session->peer, id,
                                            NULL, &request, NULL);
    MODEL_CHECK(result == 0 || model_excused(world, opener, result), result);
    if (result < 0)
        return false;
    world->connections[index][opener] = request->connection;
    struct weft_endpoint *endpoint = late ? late_endpoint(world, other, id) : world->nodes[other].endpoint;
    bool taken = at_once && accept_connection(world, index, other, endpoint);
    if (taken) { /* its first message may be here before OPENED is */
        make_lanes(world, index);
        model_send_one(world, index, other);
    }
    result = model_finish(world, request);
    MODEL_CHECK(result == 0 || model_excused(world, opener, result), result);
    taken = taken || (result == 0 && accept_connection(world, index, other, endpoint));
    make_lanes(world, index);
    if (taken && result == 0)
        check_class(world, index, opener);
    return taken && result == 0;
}

/* What both tell each other: nothing, a little, or as much as fits. */
static void choose_greetings(struct model_world *world, uint32_t lengths[2])
{
    uint8_t bytes[WEFT_GREETING_MAX];
    for (int node = 0; node < 2; node++) {
        lengths[node] = (uint32_t)MODEL_ONE_OF(world, 0, 1, 37, 37, WEFT_GREETING_MAX);
        memset(bytes, 'a' + node, sizeof bytes);
        MODEL_CHECK(weft_greeting_set(world->nodes[node].context, bytes, lengths[node], NULL) == 0, node);
    }
}

/* Each has the other's from the moment on in which it has the other. */
static void check_greetings(struct model_world *world, const uint32_t lengths[2])
{
    for (int node = 0; node < 2; node++) {
        uint32_t length;
        const char *bytes = weft_peer_greeting(&world->nodes[1 - node].session->peer, &length);
        MODEL_CHECK(length == lengths[node] && strlen(bytes) == length, length);
        MODEL_CHECK(strspn(bytes, node ? "b" : "a") == length, node);
    }
}

/* In most schedules with cards their channels join before the first message for a device, instead of with it. */
static void reach_devices(struct model_world *world)
{
    for (int node = 0; node < 2 && world->cards && model_bits(world, 7300) % 4 > 0; node++) {
        struct wf_session *session = world->nodes[node].session;
        for (int device = 0; device < 2; device++) {
            struct weft_registration *registration;
            uint8_t *view;
            void *memory = model_memory_of(world, device, 64, &view);
            MODEL_CHECK(weft_register(world->nodes[node].context, memory, 64, &registration, NULL) == 0, device);
            weft_deregister(registration);
            model_memory_give(world, memory);
            wf_session_lock(session);
            wf_session_reach(session, device);
            wf_session_unlock(session);
        }
    }
}

/* Gives their channels time to join, in some schedules. */
static void await_devices(struct model_world *world)
{
    const struct wf_lines *lines = &world->nodes[0].session->lines;
    int turns = world->cards && model_bits(world, 7301) % 4 > 0 ? 20000 : 0;
    while (turns-- > 0 && !model_is_lost(world)) {
        bool up = false;
        for (int strand = 0; strand < 4; strand++)
            up |= lines->strands[strand].up > 0;
        turns = up && turns > 1000 ? 1000 : turns;
        model_drive(world);
    }
}

bool model_join(struct model_world *world)
{
    struct model_faults *faults = &world->faults;
    uint32_t greetings[2];
    bool joined = false;
    choose_greetings(world, greetings);
    for (int tries = 0; tries < FAULTY_TRIES && faults->active && !joined; tries++)
        joined = dial_session(world, true);
    if (!joined) {
        model_faults_stop(world, true);
        joined = dial_session(world, false);
    }
    check_greetings(world, greetings);
    reach_devices(world);
    faults->active = faults->regime != MODEL_CALM;
    for (int i = 0; i < world->connection_count; i++)
        if (!open_connection(world, i))
            return false;
    await_devices(world);
    return true;
}
