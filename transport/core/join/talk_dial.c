/* The dialling side of the set-up conversations. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/cards/cards.h"
#include "core/channel/state.h"
#include "core/ground/reached.h"
#include "core/join/redial.h"
#include "core/join/talk_parts.h"
#include "core/rail/address.h"
#include "core/rail/pairing.h"
#include "core/session/entry.h"
#include "core/session/loss.h"
#include "core/session/session.h"
#include "wire/seal.h"

/* Once a channel is up, an unanswered one has 1/SHARE of the time that was left to connect, from SHARE_MIN_NS to
 * SHARE_MAX_NS. */
#define SHARE 8
#define SHARE_MIN_NS WF_NS_PER_S
#define SHARE_MAX_NS (4 * WF_NS_PER_S) /* SYNs of 0, 1 and 3 s; the acceptor waits for longer, JOIN_LEAST_NS */

/* A conversation on a new socket; the caller posts CONNECT. NULL: `status` says why. */
static struct wf_talk *call(struct wf_door *door, enum wf_talk_role role, const struct wf_socket_options *options,
                            const struct sockaddr_storage *to, bool *bound, struct wf_status *status)
{
    struct wf_sessions *sessions = door->sessions;
    char text[80];
    wf_address_text(to, true, text, sizeof text);
    int fd = sessions->world->engine_ops->socket(sessions->world->engine_host, to->ss_family, options, bound);
    if (fd < 0) {
        wf_fail(status, fd, "no socket for %s: %s%s", text, wf_strerror(fd),
                fd == -EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
        return NULL;
    }
    struct wf_talk *talk = wf_talk_create(door, role, fd);
    if (!talk) {
        wf_fail(status, -ENOMEM, "no memory to dial %s", text);
        return NULL;
    }
    talk->peer = *to;
    snprintf(talk->peer_text, sizeof talk->peer_text, "%s", text);
    talk->state = WF_TALK_CONNECTING;
    return talk;
}

void wf_talk_control(struct wf_dial *dial, struct wf_door *door)
{
    struct wf_socket_options options = {.dscp = door->sessions->world->tuning.dscp[0]};
    const struct sockaddr_storage *to = &dial->addresses[dial->attempts++ % dial->address_count];
    struct wf_talk *talk = call(door, WF_TALK_CONTROL, &options, to, NULL, &dial->status);
    if (!talk && dial->status.code == -EAFNOSUPPORT && dial->attempts < dial->address_count)
        dial->status = (struct wf_status){0}; /* this host has no IPv6: the next address may be IPv4 */
    if (!talk)
        return;
    wf_talk_serve(talk, dial);
    dial->talking = true;
    wf_talk_post(talk, WF_OP_CONNECT);
}

void wf_talk_say_hello(struct wf_talk *talk)
{
    struct wf_setup setup = {.type = WF_SETUP_HELLO};
    wf_session_hello(talk->door->sessions, NULL, &setup.hello);
    wf_talk_say(talk, &setup, false);
}

static int fill_join(struct wf_talk *talk, const struct wf_channel *likeness)
{
    struct wf_join *join = &talk->join;
    wf_channel_credit(likeness, &join->granted_frames, &join->granted_bytes);
    return wf_world_random(talk->door->sessions->world, join->nonce, sizeof join->nonce);
}

void wf_talk_say_join(struct wf_talk *talk)
{
    struct wf_channel likeness = {.lines = &talk->session->lines, .kind = (enum wf_channel_kind)talk->join.kind};
    struct wf_setup setup = {.type = WF_SETUP_JOIN};
    int result = fill_join(talk, &likeness);
    setup.join = talk->join;
    if (result < 0)
        wf_talk_fail(talk, result, "no random numbers: %s", wf_strerror(result));
    else
        wf_talk_say(talk, &setup, false);
}

/* A network that changes ports on the way hides this one from the acceptor, which does not find the stream then: the
 * channel stays without. */
void wf_talk_join_mutely(struct wf_talk *talk)
{
    struct sockaddr_storage from;
    int result = wf_talk_ops_of(talk)->address(talk->door->sessions->world->engine_host, talk->fd, false, &from);
    talk->state = WF_TALK_MUTE;
    talk->join.payload_port = result == 0 ? (uint16_t)wf_address_port(&from) : 0;
    if (result < 0)
        wf_talk_fail(talk, result, "no address of a payload stream: %s", wf_strerror(result));
    else
        wf_talk_hand_over(talk, 0, 0);
}

static void use_pair(struct wf_session *session, int local, const struct sockaddr_storage *to)
{
    const struct wf_rail *ours = &session->sessions->rails->each[local];
    struct wf_session_rail *rail = wf_lines_rail(&session->lines, session->lines.rail_count);
    rail->local = local;
    rail->from = ours->address;
    rail->to = *to;
    /* A link-local address needs the number of an interface of this side: HELLO has none. */
    wf_address_set_scope(&rail->to, ours->index);
    snprintf(rail->name, sizeof rail->name, "%s", ours->name);
}

/* The rails of both sides that are to be paired. */
struct rail_lists {
    struct wf_pairing_rail ours[WF_RAILS_MAX], theirs[WF_RAILS_MAX];
    int indexes[WF_RAILS_MAX]; /* of `ours`, in wf_rails.each */
    int our_count, their_count;
};

/* Is the peer on another machine? No, if the number of either machine is unknown (0). */
static bool is_on_another_machine(const struct wf_sessions *sessions, const struct wf_hello *hello)
{
    uint64_t here = sessions->world->boot_nonce >> (64 - WF_MACHINE_BITS),
             there = hello->boot_nonce >> (64 - WF_MACHINE_BITS);
    return here != there && here != 0 && there != 0;
}

static bool lists(const struct wf_hello *hello, const struct sockaddr_storage *address)
{
    for (int i = 0; i < hello->rail_count; i++) {
        struct sockaddr_storage theirs;
        wf_address_from_wire(&hello->rails[i], &theirs);
        if (wf_address_same_host(&theirs, address))
            return true;
    }
    return false;
}

/* Lists the rails of both sides. `elsewhere`: the peer is on another machine; then an address that both machines have
 * leads each of them to itself, and is left out of both lists. */
static void list_rails(const struct wf_sessions *sessions, const struct wf_hello *hello, bool elsewhere,
                       struct rail_lists *out)
{
    out->our_count = out->their_count = 0;
    for (int i = 0; i < hello->rail_count; i++) {
        struct wf_pairing_rail *theirs = &out->theirs[out->their_count];
        *theirs = (struct wf_pairing_rail){.name = hello->rails[i].name};
        wf_address_from_wire(&hello->rails[i], &theirs->address);
        out->their_count += !elsewhere || !wf_address_is_local(&theirs->address);
    }
    for (int i = 0; i < sessions->rails->count; i++) {
        const struct wf_rail *rail = &sessions->rails->each[i];
        if (elsewhere && lists(hello, &rail->address))
            continue;
        out->indexes[out->our_count] = i;
        out->ours[out->our_count++] =
            (struct wf_pairing_rail){.address = rail->address, .prefix = rail->prefix, .name = rail->name};
    }
}

/* Pairs the rails and makes room for their channels. The number of channels; 0: no two rails can meet; or -ENOMEM. */
static int pair_rails(struct wf_session *session, const struct wf_hello *hello, const struct sockaddr_storage *dialled)
{
    struct rail_lists rails = {0};
    struct wf_rail_pair pairs[WF_RAILS_MAX];
    list_rails(session->sessions, hello, is_on_another_machine(session->sessions, hello), &rails);
    if (rails.our_count == 0 ||
        rails.their_count == 0) /* a container on this machine, with its own boot id but the same addresses */
        list_rails(session->sessions, hello, false, &rails);
    if (hello->rail_count == 0) /* the peer lists none: dials the address that has answered */
        rails.theirs[rails.their_count++] = (struct wf_pairing_rail){.address = *dialled, .name = ""};
    int most = wf_session_rails_taken(session->sessions, hello);
    int count = wf_pair_rails(rails.ours, rails.our_count, rails.theirs, rails.their_count, pairs, most);
    int channels = count * (int)(1 + session->guard.world->tuning.channels);
    if (count == 0)
        return 0;
    wf_session_lock(session); /* workers know it already */
    int result = wf_session_expect(session, channels);
    wf_session_unlock(session);
    if (result < 0)
        return result;
    for (int i = 0; i < count; i++)
        use_pair(session, rails.indexes[pairs[i].ours], &rails.theirs[pairs[i].theirs].address);
    return channels;
}

/* The port at which the acceptor takes this payload stream; 0: that of any other connection. */
static uint16_t payload_port(struct wf_session *session, const struct wf_join *join)
{
    wf_session_lock(session);
    uint16_t port = join->kind == WF_CHANNEL_PAYLOAD && wf_strand_to_acceptor(join->domain - 1)
                        ? session->lines.rails[join->rail].payload_ports[wf_strand_domain(join->domain - 1)]
                        : 0;
    wf_session_unlock(session);
    return port;
}

/* Does a rule for its port of this side lead this payload stream to a GPU? Then any other there would be led, too. */
static bool is_led_by_port(const struct wf_session *session, const struct wf_join *join)
{
    if (join->kind != WF_CHANNEL_PAYLOAD || wf_strand_to_acceptor(join->domain - 1))
        return false;
    const struct wf_inlet *inlet = wf_cards_inlet(session->sessions->cards, session->lines.rails[join->rail].local,
                                                  (int)wf_strand_domain(join->domain - 1));
    return inlet && inlet->by_port;
}

/* A conversation for one channel of a session, from the channel's rail. NULL: `status` says why. */
static struct wf_talk *call_channel(struct wf_door *door, enum wf_talk_role role, struct wf_session *session,
                                    const struct wf_join *join, struct wf_status *status)
{
    struct wf_sessions *sessions = session->sessions;
    struct wf_session_rail *rail = &session->lines.rails[join->rail];
    const struct wf_tuning *tuning = &sessions->world->tuning;
    struct wf_socket_options options = {.local = rail->from,
                                        .buffer_bytes = tuning->socket_buffer,
                                        .dscp = tuning->dscp[join->domain > 0 ? 0 : join->channel / join->channels]};
    struct sockaddr_storage to = rail->to;
    uint16_t port = payload_port(session, join);
    if (port > 0)
        wf_address_set_port(&to, port);
    options.own_port = is_led_by_port(session, join);
    bool on_this_machine = wf_address_is_local(&to);
    snprintf(options.congestion, sizeof options.congestion, "%s",
             wf_world_congestion(sessions->world, on_this_machine));
    wf_address_set_scope(&options.local,
                         sessions->rails->each[rail->local].index); /* the interface may have a new number */
    wf_address_set_scope(&to, sessions->rails->each[rail->local].index);
    bool bound = false;
    /* The kernel reaches a peer on this machine over loopback: a socket bound to the rail's interface would not. */
    if (!on_this_machine)
        snprintf(options.device, sizeof options.device, "%s", sessions->rails->each[rail->local].device);
    struct wf_talk *talk = call(door, role, &options, &to, &bound, status);
    if (!talk)
        return NULL;
    wf_session_lock(session);
    rail->device_bound = bound;
    wf_session_unlock(session);
    talk->session = session;
    talk->join = *join;
    talk->join.session = session->id;
    talk->mute = port > 0;
    return talk;
}

/* The dial's attempt at a channel has failed: it is missed. If all are missed and none came up, the dial fails. */
static void miss(struct wf_dial *dial, const struct wf_join *join, const struct wf_status *why)
{
    struct wf_session *session = dial->session;
    if (wf_session_miss(session, join, why->code) < 0) {
        wf_fail(&dial->status, -ENOMEM, "no memory for %d channels", session->lines.per_class);
        return;
    }
    if (dial->missed_count++ == 0)
        dial->missed = *why;
    wf_session_lock(session);
    bool came_up =
        session->guard.state != WF_SESSION_JOINING || session->lines.up_count > 0; /* a redial may have joined one */
    wf_session_unlock(session);
    if (dial->missed_count == session->lines.per_class && !came_up)
        dial->status = dial->missed;
}

void wf_talk_missed(struct wf_talk *talk, const struct wf_status *why)
{
    struct wf_status status = {0};
    wf_fail(&status, why->code, "%s: %s", talk->peer_text, why->text);
    miss(talk->dial, &talk->join, &status);
}

void wf_dial_tell_missed(const struct wf_dial *dial)
{
    struct wf_session *session = dial->session;
    for (int i = 0; i < session->lines.rail_count; i++) {
        const struct wf_session_rail *rail = &session->lines.rails[i];
        char from[80], to[80];
        wf_session_lock(session);
        bool met = rail->last_code == 0 || wf_rail_is_up(session, i);
        int code = rail->last_code;
        wf_session_unlock(session);
        wf_address_text(&rail->from, false, from, sizeof from);
        wf_address_text(&rail->to, true, to, sizeof to);
        if (!met)
            wf_world_fallback(session->guard.world,
                              "rails: %s (%s) is left out until it meets %s of %s: %s; see to the route, or name the "
                              "rails to use (setting rails)",
                              rail->name, from, to, session->peer.name, wf_strerror(code));
    }
}

/* Why a channel of the rail failed, if none of them is up; else 0. Then its other channels are not dialled either: they
 * would fail alike. */
static int missed_code(struct wf_session *session, int rail)
{
    wf_session_lock(session);
    int code = wf_rail_is_up(session, rail) ? 0 : session->lines.rails[rail].last_code;
    wf_session_unlock(session);
    return code;
}

/* Does the code mean that this process or machine lacks a resource? Then no rail is to blame. */
static bool is_short(int code)
{
    return code == -EMFILE || code == -ENFILE || code == -ENOMEM || code == -ENOBUFS;
}

void wf_dial_channel(struct wf_dial *dial, struct wf_door *door, struct wf_join join)
{
    int missed = missed_code(dial->session, join.rail);
    if (missed < 0) {
        miss(dial, &join, &(struct wf_status){.code = missed});
        return;
    }
    struct wf_status status = {0};
    struct wf_talk *talk = call_channel(door, WF_TALK_CHANNEL, dial->session, &join, &status);
    if (!talk && is_short(status.code))
        dial->status = status;
    else if (!talk) /* the rail's interface or address has gone */
        miss(dial, &join, &status);
    if (!talk)
        return;
    wf_talk_serve(talk, dial);
    dial->joining += 1;
    wf_talk_post(talk, WF_OP_CONNECT);
}

/* The time limit of a redial. No user waits for it, so it may fail soon and be tried again. */
static int64_t patience(const struct wf_sessions *sessions)
{
    int64_t most = sessions->world->tuning.connect_timeout_ns, enough = sessions->world->tuning.rail_timeout_ns;
    enough = enough > WF_NS_PER_S ? enough : WF_NS_PER_S;
    return enough < most ? enough : most;
}

void wf_talk_redial(struct wf_door *door, struct wf_session *session, const struct wf_join *join)
{
    struct wf_status status = {0};
    struct wf_talk *talk = call_channel(door, WF_TALK_REDIAL, session, join, &status);
    door->redials += 1;
    if (!talk) {
        struct wf_talk none = {.door = door, .session = session, .join = *join};
        wf_redial_failed(&none, status.code, 0, status.text);
        wf_redial_over(&none);
        return;
    }
    wf_talk_by(talk, wf_world_now(door->sessions->world) + patience(door->sessions));
    wf_talk_post(talk, WF_OP_CONNECT);
}

/* The first channel of each pair of rails is the express one. */
static struct wf_join join_of(const struct wf_session *session, int id)
{
    int per_rail = 1 + (int)session->guard.world->tuning.channels;
    return (struct wf_join){.channel = (uint32_t)id,
                            .incarnation = 1,
                            .channels = (uint16_t)session->lines.per_class,
                            .kind = id % per_rail == 0 ? WF_CHANNEL_EXPRESS : WF_CHANNEL_BULK,
                            .rail = (uint8_t)(id / per_rail)};
}

void wf_dial_channels(struct wf_dial *dial, struct wf_door *door)
{
    struct wf_session *session = dial->session;
    int per_rail = 1 + (int)session->guard.world->tuning.channels;
    while (dial->status.code == 0 && dial->joining < WF_DIALS_AT_ONCE &&
           dial->next_channel < session->lines.per_class) {
        int turn = dial->next_channel++;
        wf_dial_channel(
            dial, door,
            join_of(session, turn % session->lines.rail_count * per_rail + turn / session->lines.rail_count));
    }
}

void wf_dial_begin_channels(struct wf_dial *dial, struct wf_door *door)
{
    int64_t left = dial->deadline_ns - wf_world_now(dial->session->guard.world);
    dial->share_ns = left / SHARE > SHARE_MAX_NS   ? SHARE_MAX_NS
                     : left / SHARE > SHARE_MIN_NS ? left / SHARE
                                                   : SHARE_MIN_NS;
    wf_dial_channels(dial, door);
}

/* Has a dial to another address reached this very context? The key cannot tell: all sides have the same one. */
static bool is_oneself(const struct wf_talk *talk, const struct wf_hello *hello)
{
    const struct wf_door *door = talk->door;
    bool meant = wf_address_is_local(&talk->peer) && wf_address_port(&talk->peer) == door->port;
    return hello->boot_nonce == door->sessions->world->boot_nonce && !meant;
}

void wf_talk_take_hello_answer(struct wf_talk *talk, const struct wf_hello *hello)
{
    struct wf_dial *dial = talk->dial;
    if (hello->version_min > WF_PROTOCOL_VERSION || hello->version_max < WF_PROTOCOL_VERSION) {
        wf_talk_fail(talk, -EPROTONOSUPPORT,
                     "speaks protocol versions %u to %u, this side %u; install the same version", hello->version_min,
                     hello->version_max, WF_PROTOCOL_VERSION);
        return;
    }
    if (talk->tls && is_oneself(talk, hello)) {
        wf_talk_fail(talk, -EACCES, "leads back to this side: somebody on the way reflects connections");
        return;
    }
    if (!(hello->features & WF_FEATURE_ENCRYPT) != !talk->door->sessions->world->tuning.encrypt) {
        wf_talk_fail(talk, -EPROTO, "answers about encryption with what it was not asked");
        return;
    }
    uint8_t secret[WF_SECRET_BYTES];
    memcpy(secret, hello->secret, sizeof secret);
    if (talk->tls && wf_talk_secret(talk, hello->session, secret) < 0) {
        wf_talk_fail(talk, -EIO, "no secret for a session");
        return;
    }
    dial->session = wf_session_create(talk->door->sessions, true, hello, hello->session, secret);
    explicit_bzero(secret, sizeof secret);
    if (!dial->session) {
        wf_talk_fail(talk, -ENOMEM, "no memory for a session; lower the settings unexpected or small_pool");
        return;
    }
    dial->session->visited_too = &dial->visit;
    size_t used = strlen(dial->session->peer.name);
    snprintf(dial->session->peer.name + used, sizeof dial->session->peer.name - used, " (%.66s)", talk->peer_text);
    int channels = pair_rails(dial->session, hello, &talk->peer);
    if (channels < 0) {
        wf_talk_fail(talk, -ENOMEM, "no memory for the channels of a session");
    } else if (channels == 0) {
        wf_talk_fail(talk, -EHOSTUNREACH,
                     "no rail of this node can reach a rail there: one side has only IPv4, the other only IPv6; name "
                     "addresses of one family in the setting rails");
    } else if (dial->session->terms.greets) {
        talk->greets = dial->session->id;
        wf_talk_say_greeting(talk, false);
    } else {
        wf_dial_begin_channels(dial, talk->door);
        wf_talk_end(talk);
    }
}

static void say_proof(struct wf_talk *talk)
{
    struct wf_setup setup = {.type = WF_SETUP_PROOF};
    int result = wf_seal_prove(talk->session->secret, WF_ROLE_DIALER, &talk->join, &talk->challenge, setup.proof.proof);
    if (result < 0)
        wf_talk_fail(talk, result, "cannot compute a proof: %s", wf_strerror(result));
    else
        wf_talk_say(talk, &setup, true);
}

void wf_talk_take_challenge(struct wf_talk *talk, const struct wf_challenge *challenge)
{
    uint8_t expected[WF_PROOF_BYTES];
    talk->challenge = *challenge;
    int result = wf_seal_prove(talk->session->secret, WF_ROLE_ACCEPTOR, &talk->join, challenge, expected);
    bool good = result == 0 && wf_seal_equal(expected, challenge->proof);
    WF_REACHED_IF(!good, "channel PROVING: wrong proof");
    if (good)
        say_proof(talk);
    else
        wf_talk_fail(talk, -EACCES, "did not prove that it belongs to the session");
}
