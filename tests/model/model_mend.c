/* What goes wrong for a while, and what is as it was afterwards. */
#include <string.h>

#include "core/calls/context.h"
#include "core/drive/worker.h"
#include "model_faults_parts.h"

bool model_stopped(const struct model_world *world, int node)
{
    return world->faults.stopped_until_ns[node] != 0;
}

void model_stop_until(struct model_world *world, int node, int64_t until_ns)
{
    const struct weft_context *context = world->nodes[node].context;
    world->faults.stopped_until_ns[node] = context ? until_ns : 0;
    if (!context)
        return;
    wf_sim_stop(wf_seal_within(context->door->engine), until_ns != 0);
    for (int i = 0; i < context->crew.count; i++)
        wf_sim_stop(wf_seal_within(context->crew.workers[i]->engine), until_ns != 0);
}

bool model_standing_still(const struct model_world *world)
{
    return model_stopped(world, 0) || model_stopped(world, 1);
}

/* --- mending --- */

void model_mend_later(struct model_world *world, struct model_mend mend, int64_t after_ns)
{
    struct model_faults *faults = &world->faults;
    mend.at_ns = wf_sim_now(world->sim) + after_ns;
    for (int i = 0; i < MODEL_MENDS; i++) {
        if (faults->mends[i].at_ns != 0)
            continue;
        faults->mends[i] = mend;
        if (mend.at_ns > faults->calm_ns)
            faults->calm_ns = mend.at_ns;
        return;
    }
    MODEL_CHECK(!"room for what is to be mended", MODEL_MENDS);
}

int model_list_ends(struct model_world *world, int fds[MODEL_ENDS])
{
    int count = wf_sim_list_connections(world->sim, fds, MODEL_ENDS);
    MODEL_CHECK(count <= MODEL_ENDS, count);
    return count;
}

bool model_is_there(struct model_world *world, int fd, uint64_t stream)
{
    int fds[MODEL_ENDS], count = model_list_ends(world, fds);
    for (int i = 0; i < count; i++)
        if (fds[i] == fd)
            return wf_sim_stream_of(world->sim, fd) == stream;
    return false;
}

static void mend(struct model_world *world, const struct model_mend *what)
{
    struct model_faults *faults = &world->faults;
    if (what->fd && model_is_there(world, what->fd, what->stream)) {
        wf_sim_freeze(world->sim, what->fd, false);
    } else if (!what->fd) {
        struct wf_sim_rail *rail = &faults->rails[what->node][what->rail];
        rail->down = rail->mute = false;
        model_apply_rail(world, what->node, what->rail);
        model_tell_rail(world, what->node, what->rail, WF_RAIL_FINE);
    }
}

int64_t model_faults_next(const struct model_world *world)
{
    const struct model_faults *faults = &world->faults;
    int64_t next = WF_NEVER;
    for (int i = 0; i < MODEL_MENDS; i++)
        if (faults->mends[i].at_ns != 0 && faults->mends[i].at_ns < next)
            next = faults->mends[i].at_ns;
    for (int node = 0; node < 2; node++)
        if (model_stopped(world, node) && faults->stopped_until_ns[node] < next)
            next = faults->stopped_until_ns[node];
    return next;
}

void model_mend_due(struct model_world *world, int64_t now)
{
    struct model_faults *faults = &world->faults;
    for (int i = 0; i < MODEL_MENDS; i++) {
        struct model_mend what = faults->mends[i];
        if (what.at_ns == 0 || what.at_ns > now)
            continue;
        faults->mends[i].at_ns = 0;
        mend(world, &what);
    }
    for (int node = 0; node < 2; node++)
        if (model_stopped(world, node) && faults->stopped_until_ns[node] <= now)
            model_stop_until(world, node, 0);
}

void model_faults_stop(struct model_world *world, bool and_mend)
{
    struct model_faults *faults = &world->faults;
    faults->active = false;
    faults->lie_about = 0;
    memset(faults->triggers, 0, sizeof faults->triggers);
    memset(faults->due, 0, sizeof faults->due);
    memset(faults->rots, 0, sizeof faults->rots);
    if (!and_mend)
        return;
    model_mend_due(world, WF_NEVER);
    for (int node = 0; node < 2; node++)
        for (int rail = 0; rail < faults->rail_count[node]; rail++)
            mend(world, &(struct model_mend){.node = node, .rail = rail});
    for (int node = 0; node < 2; node++)
        model_stop_until(world, node, 0);
}
