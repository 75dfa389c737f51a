/* Faults, one by one. */
#include <string.h>

#include "model_faults_parts.h"

#define DEVICE_CUTS 8

static const int moments[] = {WF_DATA,
                              WF_DATA,
                              WF_OFFER,
                              WF_GRANT,
                              WF_READ,
                              WF_REFUSE,
                              WF_OPEN,
                              WF_OPENED,
                              WF_CLOSE,
                              WF_CLOSED,
                              WF_DOWN,
                              WF_DOWN,
                              WF_STATE,
                              WF_CREDIT,
                              WF_PING,
                              WF_PONG,
                              WF_BYE,
                              WF_TRIAL,
                              MODEL_ON_SETUP + WF_SETUP_HELLO,
                              MODEL_ON_SETUP + WF_SETUP_JOIN,
                              MODEL_ON_SETUP + WF_SETUP_CHALLENGE,
                              MODEL_ON_SETUP + WF_SETUP_PROOF,
                              MODEL_ON_SETUP + WF_SETUP_GREETING,
                              MODEL_ON_REJOIN + WF_SETUP_JOIN,
                              MODEL_ON_REJOIN + WF_SETUP_JOIN,
                              MODEL_ON_REJOIN + WF_SETUP_CHALLENGE,
                              MODEL_ON_REJOIN + WF_SETUP_PROOF,
                              MODEL_ON_REJOIN + WF_SETUP_PROOF,
                              MODEL_ON_RESENT,
                              MODEL_ON_RESENT,
                              MODEL_ON_HALF_PAYLOAD,
                              MODEL_ON_HALF_PAYLOAD};

/* How long something lasts: 0 for ever. */
static int64_t draw_duration(struct model_world *world)
{
    int64_t base = world->rail_timeout_ns;
    if (world->faults.regime == MODEL_FATAL)
        return (int64_t)MODEL_ONE_OF(world, (uint64_t)base / 8, (uint64_t)base, (uint64_t)base * 3,
                                     (uint64_t)world->timeout_ns * 2, 0);
    return (int64_t)MODEL_ONE_OF(world, (uint64_t)base / 8, (uint64_t)base, (uint64_t)base * 3, 0);
}

/* Only where silence is allowed the other end may be left without news. */
static void reset(struct model_world *world, int fd)
{
    int fds[MODEL_ENDS], rails[2], count = model_list_ends(world, fds);
    uint64_t stream = wf_sim_stream_of(world->sim, fd);
    model_wire_ends(world, fd, rails);
    bool deaf = model_faults_may(world, MODEL_DEAFEN, rails) && model_pick(world, 2);
    for (int i = 0; i < count && deaf; i++)
        if (fds[i] != fd && wf_sim_reverse_of(world->sim, fds[i]) == stream)
            wf_sim_deafen(world->sim, fds[i], true);
    wf_sim_reset(world->sim, fd);
}

void model_inject_one(struct model_world *world, int fd, enum model_action action)
{
    uint64_t stream = wf_sim_stream_of(world->sim, fd);
    int64_t lasts = draw_duration(world);
    switch (action) {
    case MODEL_CUT:
        wf_sim_cut(world->sim, fd);
        return;
    case MODEL_RESET:
        reset(world, fd);
        return;
    case MODEL_END:
        wf_sim_end(world->sim, fd);
        return;
    case MODEL_DEAFEN:
        wf_sim_deafen(world->sim, fd, true);
        break;
    case MODEL_FREEZE:
        wf_sim_freeze(world->sim, fd, true);
        break;
    default:
        model_wire_damage(world, fd, action);
        return;
    }
    if (lasts)
        model_mend_later(world, (struct model_mend){.fd = fd, .stream = stream}, lasts);
}

/* A connection that this may be done to; -1: none. */
static int pick_connection(struct model_world *world, enum model_action action)
{
    int fds[MODEL_ENDS], rails[2], allowed = 0;
    int count = model_list_ends(world, fds);
    for (int i = 0; i < count; i++) {
        model_wire_ends(world, fds[i], rails);
        if (model_faults_may(world, action, rails))
            fds[allowed++] = fds[i];
    }
    return allowed ? fds[model_pick(world, (uint64_t)allowed)] : -1;
}

/* Cuts what is like one that the seed chooses: between the same addresses, of its kind, or all. */
static bool cut_many(struct model_world *world, enum model_action action)
{
    int fds[MODEL_ENDS], rails[2], chosen = pick_connection(world, action), like[2];
    if (chosen < 0)
        return false;
    model_wire_ends(world, chosen, like);
    bool express = model_wire_is_express(world, chosen);
    int count = model_list_ends(world, fds);
    for (int i = 0; i < count; i++) {
        model_wire_ends(world, fds[i], rails);
        bool alike = action == MODEL_CUT_ALL || (action == MODEL_CUT_PAIR && memcmp(rails, like, sizeof like) == 0) ||
                     (action == MODEL_CUT_KIND && model_wire_is_express(world, fds[i]) == express);
        if (alike && model_faults_may(world, action, rails))
            wf_sim_cut(world->sim, fds[i]);
    }
    return true;
}

static bool is_on_devices(const struct model_world *world)
{
    for (int node = 0; node < 2; node++) {
        const struct wf_session *session = world->nodes[node].context ? world->nodes[node].session : NULL;
        for (int device = 0; device < 2 && session; device++)
            if (!wf_list_empty(&session->desk.detached[device]))
                return true;
    }
    return false;
}

/* Not drawn as the other actions are: schedules without cards stay as they were. */
void model_cut_devices(struct model_world *world)
{
    struct model_faults *faults = &world->faults;
    int fds[MODEL_ENDS], rails[2];
    if (!world->cards || !faults->active || faults->device_cuts == DEVICE_CUTS || !is_on_devices(world) ||
        model_bits(world, 800000 + faults->device_looks++) % 16 != 0)
        return;
    int count = model_list_ends(world, fds);
    faults->device_cuts += 1;
    for (int i = 0; i < count; i++) {
        model_wire_ends(world, fds[i], rails);
        if (model_wire_is_device(world, fds[i]) && model_faults_may(world, MODEL_CUT, rails))
            wf_sim_cut(world->sim, fds[i]);
    }
}

static bool tear(struct model_world *world)
{
    int fds[MODEL_ENDS], rails[2], count = model_list_ends(world, fds);
    int node = (int)model_pick(world, 2);
    for (int i = 0; i < count; i++) {
        if (model_wire_ends(world, fds[i], rails) == node)
            wf_sim_reset(world->sim, fds[i]);
        else
            wf_sim_deafen(world->sim, fds[i], true);
    }
    return true;
}

static bool break_rail(struct model_world *world, enum model_action action)
{
    struct model_faults *faults = &world->faults;
    int node = (int)model_pick(world, 2);
    int rail = (int)model_pick(world, (uint64_t)faults->rail_count[node]);
    bool may = faults->regime == MODEL_FATAL || faults->spared[node] != rail;
    if (faults->regime == MODEL_CUTS)
        may = model_is_silence(action) ? !faults->broad && may : faults->broad || may;
    if (!may)
        return false;
    struct wf_sim_rail *settings = &faults->rails[node][rail];
    if (action == MODEL_RAIL_ROTS) {
        faults->rots[node][rail] =
            (uint32_t)(faults->regime == MODEL_CUTS ? MODEL_ONE_OF(world, 1, 4) : MODEL_ONE_OF(world, 1, 10, 40));
        return true;
    }
    settings->down |= action == MODEL_RAIL_DOWN || action == MODEL_RAIL_SHUT;
    settings->mute |= action == MODEL_RAIL_MUTE;
    model_apply_rail(world, node, rail);
    if (action == MODEL_RAIL_SHUT)
        model_tell_rail(world, node, rail, model_pick(world, 2) ? WF_RAIL_SHUT : WF_RAIL_GONE);
    int64_t lasts = draw_duration(world);
    if (lasts)
        model_mend_later(world, (struct model_mend){.node = node, .rail = rail}, lasts);
    return true;
}

/* How long all of a node may stand still: what the session has to bear, or anything. 0: not now. */
static int64_t draw_outage(struct model_world *world)
{
    struct model_faults *faults = &world->faults;
    int64_t now = wf_sim_now(world->sim), lasts;
    if (faults->regime == MODEL_FATAL)
        return (int64_t)MODEL_ONE_OF(world, (uint64_t)world->rail_timeout_ns, (uint64_t)world->timeout_ns / 3,
                                     (uint64_t)world->timeout_ns * 2, (uint64_t)world->timeout_ns * 4);
    if (now < faults->outage_over_ns + world->timeout_ns * 6 / 10)
        return 0;
    lasts = (int64_t)model_pick(world, (uint64_t)world->timeout_ns * 4 / 10) + 1;
    faults->outage_over_ns = now + lasts;
    return lasts;
}

static bool stop_node(struct model_world *world)
{
    struct model_faults *faults = &world->faults;
    int node = (int)model_pick(world, 2);
    int64_t lasts = world->nodes[node].context ? draw_outage(world) : 0;
    if (lasts == 0)
        return false;
    model_stop_until(world, node, wf_sim_now(world->sim) + lasts);
    if (faults->stopped_until_ns[node] > faults->calm_ns)
        faults->calm_ns = faults->stopped_until_ns[node];
    return true;
}

static bool black_out(struct model_world *world)
{
    struct model_faults *faults = &world->faults;
    int node = (int)model_pick(world, 2);
    int64_t lasts = draw_outage(world);
    for (int rail = 0; rail < faults->rail_count[node] && lasts; rail++) {
        faults->rails[node][rail].down = true;
        model_apply_rail(world, node, rail);
        model_mend_later(world, (struct model_mend){.node = node, .rail = rail}, lasts);
    }
    return lasts != 0;
}

static bool wait_for_moment(struct model_world *world)
{
    struct model_faults *faults = &world->faults;
    for (int i = 0; i < MODEL_TRIGGERS; i++) {
        struct model_trigger *trigger = &faults->triggers[i];
        if (trigger->armed || faults->due[i].turns > 0)
            continue;
        trigger->armed = true;
        trigger->moment = moments[model_pick(world, sizeof moments / sizeof moments[0])];
        trigger->action = (enum model_action)model_pick(world, MODEL_FLIP_SETUP);
        if (faults->regime == MODEL_FATAL && model_pick(world, 3) == 0)
            trigger->action =
                (enum model_action)MODEL_ONE_OF(world, MODEL_CUT_ALL, MODEL_STOP, MODEL_BLACKOUT, MODEL_LIE);
        return true;
    }
    return false;
}

void model_faults_part(struct model_world *world)
{
    struct model_faults *faults = &world->faults;
    bool may = faults->active && (faults->regime == MODEL_FATAL || faults->regime == MODEL_CUTS);
    if (!may || model_pick(world, 2))
        return;
    enum model_action action = (enum model_action)MODEL_ONE_OF(world, MODEL_RESET, MODEL_CUT, MODEL_CUT_ALL);
    if (faults->regime == MODEL_FATAL && model_pick(world, 2))
        action = (enum model_action)MODEL_ONE_OF(world, MODEL_TEAR, MODEL_STOP, MODEL_BLACKOUT);
    for (int i = 0; i < MODEL_TRIGGERS; i++)
        faults->triggers[i] = (struct model_trigger){.armed = true, .moment = WF_BYE, .action = action};
}

bool model_inject(struct model_world *world, enum model_action action)
{
    int fd;
    switch (action) {
    case MODEL_CUT_PAIR:
    case MODEL_CUT_KIND:
    case MODEL_CUT_ALL:
        return cut_many(world, action);
    case MODEL_TEAR:
        return tear(world);
    case MODEL_RAIL_DOWN:
    case MODEL_RAIL_MUTE:
    case MODEL_RAIL_SHUT:
    case MODEL_RAIL_ROTS:
        return break_rail(world, action);
    case MODEL_STOP:
        return stop_node(world);
    case MODEL_BLACKOUT:
        return black_out(world);
    case MODEL_KILL:
        return model_kill(world, (int)model_pick(world, 2));
    case MODEL_WAIT:
        return wait_for_moment(world);
    default:
        if (action == MODEL_LIE && !world->nodes[1].session) { /* they know each other before one could choose */
            world->faults.lie_about = WF_SETUP_HELLO + (int)model_pick(world, 4);
            return true;
        }
        fd = pick_connection(world, action);
        if (fd >= 0)
            model_inject_one(world, fd, action);
        return fd >= 0;
    }
}
