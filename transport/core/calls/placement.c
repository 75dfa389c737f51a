#include "core/calls/placement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinity/discover.h"
#include "affinity/pin.h"
#include "core/calls/context.h"
#include "core/drive/worker.h"
#include "core/ground/refusal.h"
#include "core/message/ring.h"

#define WHY_BYTES 320

_Static_assert(WF_RAILS_MAX <= WF_PLAN_RAILS, "a plan has room for the rails of a context");
_Static_assert(WF_RAILS_MAX <= 64, "rails are bits of 64");

/* --- the plan --- */

/* The number of the setting's word in `words`, which is in the order of an enum. */
static int choice(const struct wf_config *config, enum wf_setting_id id, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(wf_config_text(config, id), words[i]) == 0)
            return i;
    return 0;
}

static void ask(const struct weft_context *context, const struct wf_config *config, struct wf_plan_request *request)
{
    static const char *const pins[] = {[WF_PIN_OFF] = "off", [WF_PIN_AUTO] = "auto", [WF_PIN_REQUIRE] = "require"};
    static const char *const policies[] = {
        [WF_POLICY_AUTO] = "auto", [WF_POLICY_NEAR] = "near", [WF_POLICY_NODE] = "node", [WF_POLICY_ALL] = "all"};
    static const char *const irqs[] = {[WF_IRQ_AVOID] = "avoid", [WF_IRQ_USE] = "use", [WF_IRQ_ANY] = "any"};
    *request = (struct wf_plan_request){
        .pin = (enum wf_pin)choice(config, WF_SET_PIN, pins, 3),
        .rail_policy = (enum wf_rail_policy)choice(config, WF_SET_RAIL_POLICY, policies, 4),
        .irq_policy = (enum wf_irq_policy)choice(config, WF_SET_IRQ_POLICY, irqs, 3),
        .tx_bindings = wf_config_text(config, WF_SET_TX_BINDINGS),
        .rx_bindings = wf_config_text(config, WF_SET_RX_BINDINGS),
        .tx_lenient = wf_config_is_alias(config, WF_SET_TX_BINDINGS),
        .rx_lenient = wf_config_is_alias(config, WF_SET_RX_BINDINGS),
        .is_here = wf_address_is_here,
        .host_endpoints = 1,
        .rail_count = context->rails.count,
    };
    for (int i = 0; i < context->rails.count; i++) {
        snprintf(request->rails[i].name, sizeof request->rails[i].name, "%s", context->rails.each[i].name);
        snprintf(request->rails[i].device, sizeof request->rails[i].device, "%s", context->rails.each[i].device);
        snprintf(request->rails[i].address, sizeof request->rails[i].address, "%s", context->rails.each[i].text);
    }
}

static void note_lines(struct weft_context *context, const char *notes)
{
    while (*notes) {
        int length = (int)strcspn(notes, "\n");
        wf_world_fallback(&context->world, "pin: %.*s", length, notes);
        notes += length + (notes[length] == '\n');
    }
}

/* Keeps the nodes of rails and the CPUs of workers. A shared worker may run on the CPUs of every planned thread. */
static int keep(struct weft_context *context, const struct wf_plan *plan, struct wf_status *status)
{
    struct wf_placement *placement = &context->crew.placement;
    for (int i = 0; i < plan->rail_count; i++)
        placement->rail_nodes[i] = (int16_t)plan->rails[i].node;
    note_lines(context, plan->notes);
    if (plan->pin == WF_PIN_OFF)
        return 0;
    placement->cpus = calloc((size_t)context->crew.count, sizeof *placement->cpus);
    if (!placement->cpus)
        return wf_fail(status, -ENOMEM, "no memory for the plan of threads");
    for (int i = 0; i < 2 * plan->rail_count; i++) {
        const struct wf_plan_rail *rail = &plan->rails[i / 2];
        const struct wf_cpus *cpus = i % 2 ? &rail->rx : &rail->tx;
        wf_cpus_unite(&placement->cpus[context->world.shared ? 0 : i], cpus);
        if (context->crew.express > 0)
            wf_cpus_unite(&placement->cpus[context->crew.express], cpus);
    }
    return 0;
}

int wf_placement_plan(struct weft_context *context, const struct wf_config *config, struct wf_status *status)
{
    struct wf_placement *placement = &context->crew.placement;
    struct wf_plan_request request;
    char why[WHY_BYTES] = "";
    for (int i = 0; i < WF_PLAN_RAILS; i++)
        placement->rail_nodes[i] = WF_NO_NODE;
    if (context->world.simulated)
        return 0;
    ask(context, config, &request);
    placement->pin = request.pin;
    placement->rail_policy = request.rail_policy;
    struct wf_plan *plan = malloc(sizeof *plan);
    if (!plan)
        return wf_fail(status, -ENOMEM, "no memory for the plan of threads");
    int result = wf_plan_here(&request, plan, why, sizeof why);
    bool asked = request.pin == WF_PIN_REQUIRE || request.tx_bindings[0] || request.rx_bindings[0];
    if (result == 0)
        result = keep(context, plan, status);
    else if (asked && request.pin != WF_PIN_OFF)
        wf_fail(status, result, "%s", why);
    else
        result = 0;
    if (why[0] && result == 0)
        wf_world_fallback(&context->world, "pin: threads are where the system puts them, %s", why);
    free(plan);
    return result;
}

void wf_placement_free(struct wf_placement *placement)
{
    free(placement->cpus);
    placement->cpus = NULL;
}

/* --- threads --- */

static void describe(const struct weft_context *context, int index, struct weft_thread_info *out)
{
    const struct wf_worker *worker = context->crew.workers[index];
    const struct wf_cpus *planned = context->crew.placement.cpus ? &context->crew.placement.cpus[index] : NULL;
    struct wf_thread_place place;
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", worker->name);
    snprintf(out->role, sizeof out->role, "%s", worker->shared ? "shared" : index % 2 ? "rx" : "tx");
    if (!worker->shared)
        snprintf(out->rail, sizeof out->rail, "%s", context->rails.each[index / 2].name);
    out->tid = worker->tid;
    out->last_cpu = out->numa_node = -1;
    if (planned && wf_cpus_count(planned) > 0)
        wf_cpus_text(planned, out->planned, sizeof out->planned);
    if (worker->tid == 0 || wf_pin_read(worker->tid, &place) != 0)
        return;
    wf_cpus_text(&place.allowed, out->allowed, sizeof out->allowed);
    out->last_cpu = place.last_cpu;
    out->numa_node = place.node;
}

int weft_context_threads(const struct weft_context *context, struct weft_thread_info *threads, int max)
{
    if (WF_IS_NULL(wf_refusal(), context) || (max > 0 && WF_IS_NULL(wf_refusal(), threads)))
        return -EINVAL;
    for (int i = 0; i < context->crew.count && i < max; i++)
        describe(context, i, &threads[i]);
    return context->crew.count;
}

/* --- rails --- */

uint64_t wf_placement_rails(const struct weft_context *context, int node)
{
    const struct wf_placement *placement = &context->crew.placement;
    bool by_place = placement->rail_policy == WF_POLICY_NEAR || placement->rail_policy == WF_POLICY_NODE;
    uint64_t near = 0;
    for (int i = 0; i < context->rails.count && by_place && node != WF_NO_NODE; i++)
        near |= placement->rail_nodes[i] == node ? UINT64_C(1) << i : 0;
    bool all = near == 0 || near == UINT64_MAX >> (64 - context->rails.count);
    return all ? WF_RAILS_ANY : near;
}
