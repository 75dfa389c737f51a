/* How a schedule ends: in order; or with a session that is lost, which must leave as little behind. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/calls/peer.h"
#include "core/request/book.h"
#include "core/request/request.h"
#include "model_remote.h"

/* --- a session that ends by itself --- */

bool model_is_lost(struct model_world *world)
{
    if (world->lost)
        return true;
    for (int i = 0; i < 2; i++) {
        const struct wf_session *session = world->nodes[i].session;
        if (!session || (session->guard.state != WF_SESSION_FAILED && session->guard.state != WF_SESSION_DEAD))
            continue;
        world->lost = true;
        if (!world->faults.may_fail)
            fprintf(stderr, "model: node %d: %s\n", i, session->guard.error.text);
        MODEL_CHECK(world->faults.may_fail, session->guard.error.code);
    }
    return world->lost;
}

static bool is_fair(const struct model_world *world, int code)
{
    if (code == -ETIMEDOUT || code == -ECONNRESET)
        return true;
    bool lied = world->faults.injected[MODEL_LIE] > 0 && (code == -EPROTO || code == -EACCES || code == -ECONNREFUSED);
    return lied;
}

bool model_excused(const struct model_world *world, int node, int status)
{
    const struct wf_session *session = world->nodes[node].session;
    if (!world->faults.may_fail || !session)
        return false;
    bool over = session->guard.state == WF_SESSION_FAILED || session->guard.state == WF_SESSION_DEAD;
    return over && status == session->guard.error.code && is_fair(world, status);
}

/* It closes nothing and tells nobody. What it leaves is looked at by model_judge(). */
bool model_kill(struct model_world *world, int index)
{
    struct model_node *node = &world->nodes[index];
    if (!world->mortal || !node->context)
        return false;
    weft_context_destroy(node->context);
    model_forget(world, index);
    model_remote_forget(world, index);
    memset(node, 0, sizeof *node);
    world->faults.stopped_until_ns[index] = 0;
    world->lost = true;
    world->mortal = false;
    if (model_pick(world, 2)) /* it starts again at once: a new incarnation */
        model_node_open(world, index);
    return true;
}

/* --- connections --- */

/* What must be back where it came from once every connection is closed. */
static void check_nothing_left(struct wf_session *session)
{
    MODEL_CHECK(session->desk.inbound_pool.taken == 0, session->desk.inbound_pool.taken);
    MODEL_CHECK(session->desk.outbound_pool.taken == 0, session->desk.outbound_pool.taken);
    MODEL_CHECK(session->desk.slot_pool.taken == 0, session->desk.slot_pool.taken);
    MODEL_CHECK(session->desk.range_pool.taken == 0, session->desk.range_pool.taken);
    MODEL_CHECK(session->desk.blocks.free == session->desk.blocks.count, session->desk.blocks.free);
    MODEL_CHECK(session->desk.connection_count == 0, session->desk.connection_count);
    MODEL_CHECK(wf_list_empty(&session->book.requests), 0);
}

static void check_credit(const struct wf_session *sender, const struct wf_session *receiver)
{
    MODEL_CHECK(sender->desk.unsolicited_spent == receiver->desk.unsolicited_settled,
                sender->desk.unsolicited_spent - receiver->desk.unsolicited_settled);
}

/* Where nothing was wrong no rail may have been blamed, unless bytes may take as long as rail_timeout_ms on their way;
 * and for damage only those that have done some. */
static void check_blame(const struct model_world *world, int node)
{
    const struct wf_session *session = world->nodes[node].session;
    bool blameless =
        world->faults.regime == MODEL_CALM && world->rail_timeout_ns > MODEL_DELAY_MAX_NS &&
        !model_may_leave_cards(world) &&
        world->card_rules == 0; /* a channel may be up at its dialer before its card has refused the rule */
    for (int i = 0; i < session->lines.rail_count; i++) {
        const struct wf_session_rail *rail = &session->lines.rails[i];
        int rails[2];
        if (rail->to.ss_family == AF_UNSPEC) /* the acceptor has not met it */
            continue;
        rails[node] = model_rail_of(&rail->from);
        rails[1 - node] = model_rail_of(&rail->to);
        bool damaged = world->faults.damaged[rails[0]][rails[1]] || world->faults.injected[MODEL_LIE] > 0;
        MODEL_CHECK(atomic_load(&rail->failures) == 0 || !blameless, i);
        MODEL_CHECK(atomic_load(&rail->damaged) == 0 || damaged, i);
        MODEL_CHECK(!rail->retired || damaged, i);
    }
}

static bool is_any_damaged(const struct model_world *world)
{
    for (int i = 0; i < MODEL_RAILS; i++)
        for (int k = 0; k < MODEL_RAILS; k++)
            if (world->faults.damaged[i][k])
                return true;
    return world->faults.injected[MODEL_LIE] > 0;
}

/* Where cards do what they are to do, no inlet was left. */
static void check_inlets(const struct model_world *world, int node)
{
    const struct weft_context *context = world->nodes[node].context;
    if (!world->cards || model_may_leave_cards(world) || is_any_damaged(world))
        return;
    for (int device = 0; device < 2; device++)
        MODEL_CHECK(wf_cards_counts(&context->cards, device).left == 0, device);
}

/* A device channel whose card has no inlet is dialled once; one whose card may have no more rules, in vain. */
static bool is_given_up(const struct model_world *world, const struct wf_channel *channel)
{
    return channel && channel->strand >= 0 && (wf_route_of(channel)->redial.at_ns == WF_NEVER || world->card_rules > 0);
}

/* Is every channel up, or out of use because its rail is retired? The dialer tells nobody that it has retired one. */
static bool all_channels_up(const struct model_world *world)
{
    const struct wf_session *a = world->nodes[0].session, *b = world->nodes[1].session;
    for (int i = 0; i < a->lines.channel_count; i++) {
        const struct wf_channel *ours = a->lines.channels[i], *theirs = b->lines.channels[i];
        if (!ours && !theirs) /* of a class that nobody uses */
            continue;
        int rail = ours ? ours->rail : theirs->rail; /* the acceptor has none that was missed, until it is joined */
        bool up = (ours && theirs && ours->up && theirs->up) || is_given_up(world, ours) || is_given_up(world, theirs);
        if (!up && !a->lines.rails[rail].retired && !b->lines.rails[rail].retired)
            return false;
    }
    return true;
}

/* With every rail as it was, every channel comes back. */
static void await_all_channels(struct model_world *world)
{
    struct model_patience patience = {0};
    model_faults_stop(world, true);
    while (!model_is_lost(world) && !all_channels_up(world)) {
        model_bear(world, &patience);
        model_drive(world);
    }
}

/* NULL: no memory for the request. */
static struct weft_request *start_close(struct weft_connection *connection)
{
    struct weft_request *request = NULL;
    int result = weft_connection_close_start(connection, NULL, &request, NULL);
    MODEL_CHECK(result == 0 || result == -ENOMEM, result);
    return request;
}

/* Ends a close; the handle is gone afterwards, whatever the result. */
static void finish_close(struct model_world *world, struct weft_request *request, int index, int side)
{
    int result = request ? model_finish(world, request) : 0;
    MODEL_CHECK(result == 0 || model_excused(world, side, result), result);
    world->connections[index][side] = NULL;
}

/* An open that nobody answers, given up after a while: the peer must not be left with half a connection. */
static void open_in_vain(struct model_world *world)
{
    int opener = (int)model_pick(world, 2);
    struct weft_request *request;
    int result = weft_connection_open_start(world->nodes[opener].endpoint, &world->nodes[opener].session->peer, 4, NULL,
                                            &request, NULL);
    MODEL_CHECK(result == 0 || model_excused(world, opener, result), result);
    if (result < 0)
        return;
    for (uint64_t turns = model_pick(world, 300); turns > 0; turns--)
        model_drive(world);
    weft_cancel(request);
    result = model_finish(world, request);
    MODEL_CHECK(result == -ECANCELED || model_excused(world, opener, result), result);
}

/* One side closes and is done before the other begins. */
static void close_in_turn(struct model_world *world, int index)
{
    int first = (int)model_pick(world, 2);
    for (int i = 0; i < 2; i++)
        finish_close(world, start_close(world->connections[index][i ^ first]), index, i ^ first);
}

static void close_at_once(struct model_world *world, int count)
{
    struct weft_request *requests[MODEL_CONNECTIONS][2];
    for (int i = 0; i < count; i++)
        for (int side = 0; side < 2; side++) {
            if (model_pick(world, 3) == 0)
                for (int turn = 0; turn < 200; turn++)
                    model_drive(world);
            requests[i][side] = start_close(world->connections[i][side]);
        }
    for (int i = 0; i < count; i++)
        for (int side = 0; side < 2; side++)
            finish_close(world, requests[i][side], i, side);
}

/* With messages under way neither side can wait for the other. */
static void close_connections(struct model_world *world)
{
    struct model_patience patience = {0};
    int at_once = (int)model_pick(world, (uint64_t)world->connection_count + 1);
    if (world->abrupt)
        at_once = world->connection_count;
    for (int i = at_once; i < world->connection_count; i++)
        close_in_turn(world, i);
    close_at_once(world, at_once);
    while (model_standing_still(world))
        model_drive(world);
    for (int node = 0; node < 2; node++)
        model_any_stop(world, node);
    while (!model_is_lost(world) &&
           (world->nodes[0].session->desk.connection_count + world->nodes[1].session->desk.connection_count > 0 ||
            !model_all_ended(world))) {
        model_bear(world, &patience);
        model_drive(world);
        model_collect(world);
    }
}

/* --- sessions --- */

/* With every connection cut at the last word, one side cannot know how the other took it. */
static bool is_parting(const struct model_world *world, int status)
{
    return world->faults.regime == MODEL_CUTS && world->faults.at_closing &&
           (status == -ECONNRESET || status == -ETIMEDOUT);
}

static void close_sessions(struct model_world *world)
{
    int first = (int)model_pick(world, 2);
    struct weft_request *requests[2];
    model_faults_part(world);
    for (int i = 0; i < 2; i++) {
        struct wf_session *session = world->nodes[i ^ first].session;
        requests[i] = session ? wf_session_ask_to_close(session) : NULL;
        MODEL_CHECK(requests[i] || model_is_lost(world), i);
    }
    for (int i = 0; i < 2; i++) {
        int node = i ^ first, result = requests[i] ? model_finish(world, requests[i]) : 0;
        MODEL_CHECK(result == 0 || model_excused(world, node, result) || is_parting(world, result), result);
        if (world->nodes[node].session)
            wf_session_release(world->nodes[node].session);
        world->nodes[node].session = NULL;
    }
}

/* Also those of which nobody was ever told. */
static void await_no_sessions(struct model_world *world)
{
    struct model_patience patience = {0};
    for (int i = 0; i < 2; i++)
        while (world->nodes[i].context && world->nodes[i].context->sessions.count > 0) {
            model_bear(world, &patience);
            model_drive(world);
        }
}

/* Everything has ended, with an error where it had not before. */
static void await_the_end(struct model_world *world)
{
    struct model_patience patience = {0};
    for (int i = 0; i < 2; i++)
        while (world->nodes[i].session && world->nodes[i].session->guard.state != WF_SESSION_DEAD) {
            model_bear(world, &patience);
            model_drive(world);
            if (!model_standing_still(world))
                model_collect(world);
        }
    while (model_standing_still(world))
        model_drive(world);
    for (int node = 0; node < 2; node++)
        model_any_stop(world, node);
    model_collect(world);
    MODEL_CHECK(model_all_ended(world), 0);
    for (int i = 0; i < world->connection_count; i++)
        for (int side = 0; side < 2; side++)
            if (world->nodes[side].session && world->connections[i][side])
                finish_close(world, start_close(world->connections[i][side]), i, side);
}

static void end_in_order(struct model_world *world)
{
    if (!world->faults.at_closing && !world->abrupt)
        await_all_channels(world);
    if (model_pick(world, 3) == 0)
        open_in_vain(world);
    close_connections(world);
    if (model_is_lost(world))
        return;
    check_nothing_left(world->nodes[0].session);
    check_nothing_left(world->nodes[1].session);
    check_credit(world->nodes[0].session, world->nodes[1].session);
    check_credit(world->nodes[1].session, world->nodes[0].session);
    check_inlets(world, 0);
    check_inlets(world, 1);
    check_blame(world, 0);
    check_blame(world, 1);
}

/* From the end of what users have posted to that of the sessions. */
static void end_session(struct model_world *world)
{
    if (!model_is_lost(world))
        end_in_order(world);
    if (model_is_lost(world))
        await_the_end(world);
    model_queues_close(world);
    model_remote_close(world);
    close_sessions(world);
    model_faults_stop(world, true);
    await_no_sessions(world);
}

/* After a session was lost the same contexts, or the one that came after a killed one, get along with each other, and
 * nothing of the old session is taken for the new one's. */
static void live_again(struct model_world *world)
{
    static struct model_world again; /* large */
    memset(&again, 0, sizeof again);
    again.seed = world->seed + (1ull << 40);
    again.sim = world->sim;
    again.devices = world->devices;
    again.cards = world->cards;
    again.card_rules = world->card_rules;
    again.leaves_cards = world->leaves_cards;
    again.failing = world->failing;
    again.lives = world->lives + 1;
    again.quiet = world->quiet;
    again.timeout_ns = world->timeout_ns;
    again.rail_timeout_ns = world->rail_timeout_ns;
    again.connect_timeout_ns = world->connect_timeout_ns;
    again.largest = world->largest;
    again.connection_count = 1;
    again.pressure = 50;
    memcpy(again.faults.rail_count, world->faults.rail_count, sizeof again.faults.rail_count);
    for (int i = 0; i < 2; i++) {
        again.nodes[i] = world->nodes[i];
        if (!again.nodes[i].context)
            model_node_open(&again, i);
    }
    model_remote_open(&again);
    model_live(&again);
    end_session(&again);
    model_judge(&again);
    model_free(&again);
    memcpy(world->nodes, again.nodes, sizeof again.nodes);
}

void model_world_close(struct model_world *world)
{
    if (!world->faults.at_closing)
        model_faults_stop(world, false);
    end_session(world);
    if (world->lost && model_pick(world, 2))
        live_again(world);
    for (int i = 0; i < 2; i++) {
        weft_context_destroy(world->nodes[i].context);
        world->nodes[i].context = NULL;
    }
    model_faults_close(world);
    if (world->devices)
        wf_sim_memory_join(world->devices, NULL);
    wf_sim_destroy(world->sim);
}
