/* How the two nodes meet: a session, then connections, in every order that the library allows. */
#include <errno.h>
#include <stdio.h>

#include "core/calls/context.h"
#include "core/calls/endpoint.h"
#include "core/calls/peer.h"
#include "core/request/request.h"
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

/* The other half of the dialer's session, once it is up. False: the dialer's has ended before. */
static bool accept_session(struct model_world *world)
{
    struct wf_session *mine = world->nodes[1].session;
    struct model_patience patience = {0};
    struct weft_peer *peer;
    while (!world->nodes[0].session) {
        if (mine->guard.state == WF_SESSION_FAILED || mine->guard.state == WF_SESSION_DEAD)
            return false;
        model_bear(world, &patience);
        model_drive(world);
        if (weft_accept(world->nodes[0].context, 0, &peer, NULL) < 0)
            continue;
        if (peer->session->id == mine->id)
            world->nodes[0].session = peer->session;
        else
            discard(world, peer->session);
    }
    return true;
}

/* Where faults are under way a dial may fail: nothing was promised yet. */
static bool dial_session(struct model_world *world, bool excused)
{
    struct model_patience patience = {0};
    struct wf_status status;
    struct wf_dial dial;
    int result = wf_dial_init(&dial, &world->nodes[1].context->world, "127.0.0.1:5000", MODEL_CONNECT_S * 1000, &status);
    MODEL_CHECK(result == 0, result);
    wf_door_dial(world->nodes[1].context->door, &dial);
    while (!dial.done) {
        model_bear(world, &patience);
        model_drive(world);
    }
    if (dial.status.code < 0 && !excused)
        fprintf(stderr, "%s\n", dial.status.text);
    MODEL_CHECK(dial.status.code == 0 || excused, dial.status.code);
    if (dial.status.code < 0)
        return false;
    world->nodes[1].session = dial.session;
    if (accept_session(world))
        return true;
    MODEL_CHECK(excused, dial.session->guard.error.code);
    world->nodes[1].session = NULL;
    discard(world, dial.session);
    return false;
}

/* --- connections --- */

/* The other side takes the connection, perhaps before the opener has heard that it may. */
static bool accept_connection(struct model_world *world, int index, int other, struct weft_endpoint *endpoint)
{
    struct model_patience patience = {0};
    struct weft_connection **place = &world->connections[index][other];
    int result;
    while ((result = weft_connection_accept(endpoint, &world->nodes[other].session->peer, WEFT_ANY_ENDPOINT, 0, place,
                                            NULL)) == -ETIMEDOUT) {
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

/* Both ends have the class that the opener chose. In some schedules its rate is set, too: that changes nothing here, but
 * the channels must be there or not be there in an orderly way. */
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
    int result = wf_connection_open_start(world->nodes[opener].endpoint, &world->nodes[opener].session->peer, id,
                                          &world->connections[index][opener], &request, NULL);
    MODEL_CHECK(result == 0 || model_excused(world, opener, result), result);
    if (result < 0)
        return false;
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

bool model_join(struct model_world *world)
{
    struct model_faults *faults = &world->faults;
    bool joined = false;
    for (int tries = 0; tries < FAULTY_TRIES && faults->active && !joined; tries++)
        joined = dial_session(world, true);
    if (!joined) {
        model_faults_stop(world, true);
        joined = dial_session(world, false);
    }
    faults->active = faults->regime != MODEL_CALM;
    for (int i = 0; i < world->connection_count; i++)
        if (!open_connection(world, i))
            return false;
    return true;
}
