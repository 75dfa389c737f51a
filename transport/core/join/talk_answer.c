/* The accepting side of the set-up conversations: answers HELLO, JOIN and PROOF. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/cards/cards.h"
#include "core/channel/payload.h"
#include "core/channel/state.h"
#include "core/ground/reached.h"
#include "core/join/talk_parts.h"
#include "core/rail/address.h"
#include "core/session/entry.h"
#include "core/session/loss.h"
#include "core/session/session.h"
#include "core/session/traffic.h"
#include "core/session/user.h"
#include "wire/seal.h"

/* A visitor has this time to say who it is before it is shown out for others. */
#define GRACE_NS (100 * WF_NS_PER_MS)
/* And one that belongs to a session this time for the rest: a busy machine needs it for a crowd of peers. */
#define MEMBER_GRACE_NS (3 * WF_NS_PER_S)

static bool too_many(struct wf_sessions *sessions, char *names, size_t room)
{
    uint32_t alive = 0;
    names[0] = '\0';
    pthread_mutex_lock(&sessions->world->lock);
    WF_LIST_EACH (link, following, &sessions->all) {
        struct wf_session *session = WF_CONTAINER(link, struct wf_session, link);
        wf_session_lock(session);
        bool counts = session->guard.state == WF_SESSION_JOINING ||
                      session->lines.up_count > 0; /* with no channel up, the peer may have ended */
        wf_session_unlock(session);
        counts |= wf_user_is_awaited(&session->user); /* it waits for weft_accept(), maybe with no channel up */
        if (counts && alive++ == 0)
            snprintf(names, room, "%s", session->peer.name);
    }
    pthread_mutex_unlock(&sessions->world->lock);
    return alive >= sessions->world->tuning.peers;
}

/* Fills number and secret of a new session. With a key the secret does not travel: both sides derive it from TLS. */
static int choose_session(struct wf_talk *talk, struct wf_hello *hello, uint8_t secret[WF_SECRET_BYTES])
{
    struct wf_sessions *sessions = talk->door->sessions;
    if (wf_world_random(sessions->world, &hello->session, sizeof hello->session) < 0)
        return -EIO;
    hello->session |= 1; /* 0 means no session */
    if (talk->tls)
        return wf_talk_secret(talk, hello->session, secret);
    if (wf_world_random(sessions->world, hello->secret, sizeof hello->secret) < 0)
        return -EIO;
    memcpy(secret, hello->secret, WF_SECRET_BYTES);
    return 0;
}

static void answer_hello(struct wf_talk *talk, const struct wf_hello *theirs)
{
    struct wf_sessions *sessions = talk->door->sessions;
    struct wf_setup setup = {.type = WF_SETUP_HELLO};
    wf_session_hello(sessions, theirs, &setup.hello);
    uint8_t secret[WF_SECRET_BYTES];
    if (choose_session(talk, &setup.hello, secret) < 0) {
        wf_talk_fail(talk, -EIO, "no random numbers for a session");
        return;
    }
    struct wf_session *session = wf_session_create(sessions, false, theirs, setup.hello.session, secret);
    explicit_bzero(secret, sizeof secret);
    if (!session) {
        wf_talk_deny(talk, WF_DENY_LIMIT, "no memory for one more session");
        return;
    }
    size_t used = strlen(session->peer.name);
    snprintf(session->peer.name + used, sizeof session->peer.name - used, " (%.66s)", talk->peer_text);
    for (int i = 0; i < setup.hello.rail_count; i++)
        setup.hello.rails[i].port = (uint16_t)talk->door->port;
    if (session->terms.greets) {
        talk->greets = session->id;
        talk->proved_member = true;
    }
    wf_talk_say(talk, &setup, !session->terms.greets);
}

void wf_talk_take_hello(struct wf_talk *talk, const struct wf_hello *hello)
{
    char other[160];
    if (hello->version_min > WF_PROTOCOL_VERSION || hello->version_max < WF_PROTOCOL_VERSION)
        wf_talk_deny(talk, WF_DENY_VERSION, "protocol version %u is needed here, you speak %u to %u",
                     WF_PROTOCOL_VERSION, hello->version_min, hello->version_max);
    else if (!(hello->features & WF_FEATURE_ENCRYPT) != !talk->door->sessions->world->tuning.encrypt)
        wf_talk_deny(talk, WF_DENY_ENCRYPT,
                     "encrypt is %s on the listening side and %s on the dialling side: set it "
                     "alike on both",
                     talk->door->sessions->world->tuning.encrypt ? "on" : "off",
                     talk->door->sessions->world->tuning.encrypt ? "off" : "on");
    else if (atomic_load(&talk->door->sessions->ending) && talk->tls)
        wf_talk_deny(talk, WF_DENY_CLOSING, "its context is being destroyed");
    else if (atomic_load(&talk->door->sessions->ending))
        wf_talk_end(talk); /* it has heard no word, so it tries again, until another context listens here */
    else if (too_many(talk->door->sessions, other, sizeof other))
        wf_talk_deny(talk, WF_DENY_BUSY, "busy with %.60s (setting peers: %u); try again when that is over", other,
                     talk->door->sessions->world->tuning.peers);
    else
        answer_hello(talk, hello);
}

struct wf_session *wf_talk_find_session(struct wf_sessions *sessions, uint64_t id)
{
    struct wf_session *found = NULL;
    pthread_mutex_lock(&sessions->world->lock);
    WF_LIST_EACH (link, following, &sessions->all) {
        struct wf_session *session = WF_CONTAINER(link, struct wf_session, link);
        if (session->id == id && !session->terms.dialer)
            found = session;
    }
    pthread_mutex_unlock(&sessions->world->lock);
    return found; /* stays valid without the lock: only the door's thread frees sessions, and it runs here */
}

void wf_talk_note_rail(struct wf_talk *talk, int fd)
{
    struct wf_session *session = talk->session;
    struct wf_sessions *sessions = session->sessions;
    struct sockaddr_storage from = {0};
    wf_talk_ops_of(talk)->address(sessions->world->engine_host, fd, false, &from);
    int local = -1;
    for (int i = 0; i < sessions->rails->count; i++)
        if (wf_address_same_host(&from, &sessions->rails->each[i].address))
            local = i;
    bool bound =
        local >= 0 && !wf_address_is_local(&talk->peer) &&
        wf_talk_ops_of(talk)->bind_device(sessions->world->engine_host, fd, sessions->rails->each[local].device) == 0;
    wf_session_lock(session);
    struct wf_session_rail *rail = wf_lines_rail(&session->lines, talk->join.rail);
    rail->to = talk->peer;
    rail->from = from;
    rail->local = local;
    rail->device_bound = bound;
    if (local >= 0)
        snprintf(rail->name, sizeof rail->name, "%s", sessions->rails->each[local].name);
    else
        wf_address_text(&from, false, rail->name, sizeof rail->name);
    wf_session_unlock(session);
}

/* The inlet of this side that payload of a strand comes to; NULL: it goes to the dialer, or there is none. */
static const struct wf_inlet *inlet_of(const struct wf_session *session, const struct wf_join *join)
{
    uint32_t strand = join->domain - 1;
    return wf_strand_to_acceptor(strand)
               ? wf_cards_inlet(session->sessions->cards, session->lines.rails[join->rail].local,
                                (int)wf_strand_domain(strand))
               : NULL;
}

/* Does payload of a strand come to a port for it? */
static bool by_port(const struct wf_session *session, const struct wf_join *join)
{
    const struct wf_inlet *inlet = inlet_of(session, join);
    return inlet && inlet->by_port;
}

/* The payload stream that JOIN of its channel claims, at the port for it; NULL: it has not come. Once or twice for each
 * device channel that joins, among the conversations of at most WF_VISITORS_MAX strangers and those with peers. */
static struct wf_talk *find_mute(const struct wf_talk *talk)
{
    int rail = talk->session->lines.rails[talk->join.rail].local;
    int device = (int)wf_strand_domain(talk->join.domain - 1);
    WF_LIST_EACH (link, following, &talk->door->talks) {
        struct wf_talk *mute = WF_CONTAINER(link, struct wf_talk, link);
        if (mute->state == WF_TALK_MUTE && mute->to_rail == rail && mute->to_device == device &&
            wf_address_port(&mute->peer) == talk->join.payload_port && wf_address_same_host(&mute->peer, &talk->peer))
            return mute;
    }
    return NULL;
}

/* Has the payload stream of the channel come? */
static bool payload_is_there(const struct wf_talk *talk)
{
    if (by_port(talk->session, &talk->join))
        return find_mute(talk);
    return wf_payload_is_parked(&talk->session->lines, talk->join.channel, talk->join.incarnation);
}

/* The same for a channel of a strand, or for its payload stream. */
static int device_fits(const struct wf_talk *talk)
{
    const struct wf_session *session = talk->session;
    const struct wf_join *join = &talk->join;
    const struct wf_lines *lines = &session->lines;
    uint32_t strand = join->domain - 1, count = (uint32_t)lines->per_class;
    if (!(session->terms.features & WF_FEATURE_DEVICE) || count == 0 || join->channels != count ||
        join->channel / count != WF_CLASSES + strand || join->rail >= count || join->incarnation == 0)
        return WF_DENY_LIMIT;
    if ((int)join->rail >= lines->rail_count || lines->rails[join->rail].to.ss_family == AF_UNSPEC)
        return WF_DENY_BUSY; /* no channel has met on these rails yet */
    if (lines->rails[join->rail].retired && lines->up_count > 0)
        return WF_DENY_RETIRED;
    if (wf_strand_to_acceptor(strand) && !inlet_of(session, join))
        return WF_DENY_LIMIT;
    if (join->kind == WF_CHANNEL_DEVICE && (join->payload_port > 0) != by_port(session, join))
        return WF_DENY_LIMIT;
    const struct wf_channel *channel = lines->channels[join->channel];
    if (channel && (channel->rail != join->rail || channel->incarnation >= join->incarnation))
        return WF_DENY_LIMIT;
    return join->kind == WF_CHANNEL_PAYLOAD || payload_is_there(talk) ? 0
                                                                      : WF_DENY_BUSY; /* it may be on its way still */
}

/* May this channel join the session? 0, or the reason for DENY. Session lock held. */
static int join_fits(const struct wf_talk *talk)
{
    const struct wf_session *session = talk->session;
    const struct wf_join *join = &talk->join;
    if (session->guard.state == WF_SESSION_CLOSING)
        return WF_DENY_CLOSING;
    if (session->guard.state != WF_SESSION_JOINING && session->guard.state != WF_SESSION_UP)
        return WF_DENY_SESSION;
    if (join->domain > 0)
        return device_fits(talk);
    bool first = session->lines.per_class == 0;
    uint32_t classes = session->terms.features & WF_FEATURE_CLASSES ? WF_CLASSES : 1;
    if (join->channels > WF_CHANNELS_MAX || join->channel >= classes * join->channels || join->rail >= join->channels ||
        (!first && join->channels != session->lines.per_class))
        return WF_DENY_LIMIT;
    if (!first && session->lines.rails[join->rail].retired && session->lines.up_count > 0)
        return WF_DENY_RETIRED;
    const struct wf_channel *channel = first ? NULL : session->lines.channels[join->channel];
    bool alike = !channel || (channel->kind == (enum wf_channel_kind)join->kind && channel->rail == join->rail &&
                              channel->incarnation < join->incarnation);
    return !alike || join->incarnation == 0 ? WF_DENY_LIMIT : 0;
}

/* Marks what goes out on the socket as the setting dscp says for the class. A kernel that refuses sends without. */
static void mark(const struct wf_talk *talk, uint32_t traffic)
{
    const struct wf_world *world = talk->door->sessions->world;
    if (traffic < WF_CLASSES && world->tuning.dscp[traffic] != world->tuning.dscp[0])
        (void)world->engine_ops->mark(world->engine_host, talk->fd, world->tuning.dscp[traffic]);
}

#define WHICH_TEXT 80

/* The channel in the words of a user. Returns `text`. */
static const char *which_channel(const struct wf_join *join, char text[WHICH_TEXT])
{
    uint32_t index = join->channel % join->channels;
    if (join->domain > 0)
        snprintf(text, WHICH_TEXT, "device channel %u of %u to GPU %u of the %s", index, join->channels,
                 wf_strand_domain(join->domain - 1u),
                 wf_strand_to_acceptor(join->domain - 1u) ? "listening side" : "dialling side");
    else
        snprintf(text, WHICH_TEXT, "channel %u of %u of class %u", index, join->channels,
                 join->channel / join->channels);
    return text;
}

/* A payload stream for an inlet that is reached by its port must come to that port, and before its first byte. This
 * refusal is in the course of things: no line in the log. */
static bool sends_on(struct wf_talk *talk)
{
    if (talk->join.kind != WF_CHANNEL_PAYLOAD || !by_port(talk->session, &talk->join))
        return false;
    struct wf_status status = {0};
    int port = wf_door_payload_port(talk->door, talk->session->lines.rails[talk->join.rail].local,
                                    (int)wf_strand_domain(talk->join.domain - 1), &status);
    if (port < 0) {
        wf_talk_deny(talk, WF_DENY_LIMIT, "%s", status.text);
        return true;
    }
    struct wf_setup setup = {.type = WF_SETUP_DENY, .deny = {.reason = WF_DENY_PORT, .port = (uint16_t)port}};
    snprintf(setup.deny.text, sizeof setup.deny.text, "payload for this GPU is taken at port %d", port);
    (void)wf_seal_prove_refusal(talk->session->secret, &talk->join, WF_DENY_PORT, setup.deny.proof);
    wf_talk_say(talk, &setup, true);
    return true;
}

void wf_talk_take_join(struct wf_talk *talk, const struct wf_join *join)
{
    struct wf_setup setup = {.type = WF_SETUP_CHALLENGE};
    talk->session = wf_talk_find_session(talk->door->sessions, join->session);
    talk->join = *join;
    if (!talk->session) {
        wf_talk_deny(talk, WF_DENY_SESSION, "no such session here: this process has restarted, or ended it");
        return;
    }
    talk->proved_member = true;
    if (wf_session_awaits_greeting(talk->session)) {
        wf_talk_deny(talk, WF_DENY_LIMIT, "channel %u comes before the greeting of its session", join->channel);
        return;
    }
    /* JOIN is checked below, so only a class that exists counts. Accepted sockets have the mark of the listener. */
    mark(talk, join->channel / join->channels);
    wf_session_lock(talk->session);
    int reason = join_fits(talk);
    wf_session_unlock(talk->session);
    if (reason == 0 && sends_on(talk))
        return;
    if (reason != 0) {
        char which[WHICH_TEXT];
        wf_talk_deny(talk, (enum wf_deny_reason)reason, "%s, attempt %u, does not fit the session (%s)",
                     which_channel(join, which), join->incarnation, wf_deny_name((uint16_t)reason));
        return;
    }
    struct wf_channel likeness = {.lines = &talk->session->lines, .kind = (enum wf_channel_kind)join->kind};
    wf_channel_credit(&likeness, &setup.challenge.granted_frames, &setup.challenge.granted_bytes);
    if (wf_world_random(talk->door->sessions->world, setup.challenge.nonce, sizeof setup.challenge.nonce) < 0 ||
        wf_seal_prove(talk->session->secret, WF_ROLE_ACCEPTOR, join, &setup.challenge, setup.challenge.proof) < 0) {
        wf_talk_fail(talk, -EIO, "cannot compute a challenge");
        return;
    }
    talk->challenge = setup.challenge;
    wf_talk_say(talk, &setup, false);
}

/* Ends conversations about older incarnations of the channel: the dialer has given them up. */
static void end_older(const struct wf_talk *talk)
{
    WF_LIST_EACH (link, following, &talk->door->talks) {
        struct wf_talk *other = WF_CONTAINER(link, struct wf_talk, link);
        if (other != talk && other->session == talk->session && other->role == WF_TALK_VISITOR &&
            other->join.channel == talk->join.channel && other->join.incarnation < talk->join.incarnation)
            wf_talk_end(other);
    }
}

/* The dialer has proved itself, so its JOIN counts. Other channels may have joined since JOIN came: looks again whether
 * this one fits. 0, -EALREADY or -ENOMEM. */
static int believe(struct wf_talk *talk)
{
    struct wf_session *session = talk->session;
    wf_session_lock(session);
    wf_session_called(session);
    int result = join_fits(talk) == 0 ? 0 : -EALREADY;
    if (result == 0 && session->lines.per_class == 0)
        result = wf_session_expect(session, talk->join.channels);
    if (result == 0 && talk->join.domain > 0)
        wf_session_use_strand(session, talk->join.domain - 1);
    else if (result == 0)
        result = wf_session_use_class(session, talk->join.channel / talk->join.channels);
    wf_session_unlock(session);
    return result;
}

/* The payload stream that the dialer has claimed is the channel's: it is led to the inlet before its first byte. */
static int claim(struct wf_talk *talk, struct wf_status *status)
{
    struct wf_talk *mute = find_mute(talk);
    struct wf_join join = talk->join;
    int fd = mute->fd;
    join.kind = WF_CHANNEL_PAYLOAD;
    mute->handed_over = true;
    wf_talk_end(mute);
    talk->door->engine->ops->detach(talk->door->engine, fd);
    int result = wf_session_park(talk->session, &join, fd, status);
    if (result < 0)
        wf_talk_ops_of(talk)->close_fd(talk->door->sessions->world->engine_host, fd);
    return result;
}

void wf_talk_take_proof(struct wf_talk *talk, const struct wf_proof *proof)
{
    uint8_t expected[WF_PROOF_BYTES];
    int result = wf_seal_prove(talk->session->secret, WF_ROLE_DIALER, &talk->join, &talk->challenge, expected);
    if (result < 0 || !wf_seal_equal(expected, proof->proof)) {
        WF_REACHED("channel PROVING: wrong proof");
        wf_talk_deny(talk, WF_DENY_PROOF, "the proof for channel %u is wrong", talk->join.channel);
        return;
    }
    result = believe(talk);
    if (result < 0) { /* no DENY: after PROOF the dialer reads frames, and would take DENY for a damaged one */
        char which[WHICH_TEXT];
        wf_talk_fail(talk, result, "%s does not fit the session any more: %s", which_channel(&talk->join, which),
                     wf_strerror(result));
        return;
    }
    struct wf_status status = {0};
    result = talk->join.payload_port > 0 ? claim(talk, &status) : 0;
    if (result < 0) {
        wf_talk_fail(talk, result, "no payload stream: %s", status.text);
        return;
    }
    end_older(talk);
    wf_talk_hand_over(talk, talk->join.granted_frames, talk->join.granted_bytes);
}

static struct wf_talk *oldest_visitor(struct wf_door *door, bool member)
{
    WF_LIST_EACH (link, following, &door->talks) {
        struct wf_talk *talk = WF_CONTAINER(link, struct wf_talk, link);
        bool stays = talk->state == WF_TALK_OVER || talk->state == WF_TALK_WAITING;
        if (talk->role == WF_TALK_VISITOR && !stays && talk->proved_member == member)
            return talk;
    }
    return NULL;
}

/* The oldest visitor without `proved_member`, or if all have it, the oldest, once it has had MEMBER_GRACE_NS: neither a
 * crowd of strangers nor one of peers keeps out a peer, nor shows one out that goes on. NULL: nobody. A visitor in
 * WF_TALK_WAITING stays: it has proved that it belongs to a session. */
static struct wf_talk *to_show_out(struct wf_door *door, int64_t now_ns, int64_t grace_ns)
{
    struct wf_talk *oldest = oldest_visitor(door, false);
    if (!oldest) {
        oldest = oldest_visitor(door, true);
        grace_ns = MEMBER_GRACE_NS;
    }
    return oldest && now_ns - oldest->begun_ns >= grace_ns ? oldest : NULL;
}

bool wf_talk_has_room(struct wf_door *door, int64_t now_ns)
{
    return door->visitors < WF_VISITORS_MAX || to_show_out(door, now_ns, GRACE_NS);
}

static struct wf_talk *take_in(struct wf_door *door, int fd)
{
    struct wf_talk *leaves =
        door->visitors < WF_VISITORS_MAX ? NULL : to_show_out(door, wf_world_now(door->sessions->world), 0);
    if (leaves)
        wf_talk_fail(leaves, -ETIMEDOUT, "too many unfinished connections");
    struct wf_talk *talk = wf_talk_create(door, WF_TALK_VISITOR, fd);
    if (!talk)
        return NULL;
    door->visitors += 1;
    if (wf_talk_ops_of(talk)->address(door->sessions->world->engine_host, fd, true, &talk->peer) == 0)
        wf_address_text(&talk->peer, true, talk->peer_text, sizeof talk->peer_text);
    else /* the caller, such as a port scan, has reset the connection, and the kernel has dropped its address */
        snprintf(talk->peer_text, sizeof talk->peer_text, "a caller who has left");
    return talk;
}

void wf_talk_visit(struct wf_door *door, int fd)
{
    struct wf_talk *talk = take_in(door, fd);
    if (talk)
        wf_talk_read_message(talk);
}

void wf_talk_visit_mute(struct wf_door *door, int fd, int rail, int device)
{
    struct wf_talk *talk = take_in(door, fd);
    if (!talk)
        return;
    talk->state = WF_TALK_MUTE;
    talk->to_rail = rail;
    talk->to_device = device;
}
