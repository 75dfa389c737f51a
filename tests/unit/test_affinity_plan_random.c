/* What every plan promises, on some thousand machines that nobody built. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "affinity_machines.h"

#define ROUNDS 4000

static uint64_t seed = 1;

/* 0 .. below-1 */
static int random_below(int below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((seed >> 33) % (uint64_t)below);
}

static struct wf_cpus random_part(const struct wf_cpus *set, int of_ten)
{
    struct wf_cpus part = {0};
    for (int cpu = wf_cpus_next(set, 0); cpu >= 0; cpu = wf_cpus_next(set, cpu + 1))
        if (random_below(10) < of_ten)
            wf_cpus_add(&part, cpu);
    return part;
}

static int random_node(const struct wf_machine *machine)
{
    return random_below(5) ? machine->nodes[random_below(machine->node_count)].id : WF_NO_NODE;
}

static void random_machine(struct wf_machine *machine)
{
    static const int nodes[] = {1, 2, 4, 8};
    static const char *const bridges[] = {"", "a", "b", "c", "d"};
    int ids[WF_NODES_MAX], id = 0;
    shape(machine, nodes[random_below(4)], 1 + random_below(10), 1 + random_below(3));
    for (int i = 0; i < machine->node_count; i++, id++)
        ids[i] = id += random_below(4);
    renumber(machine, ids);
    for (int i = random_below(4); i > 0 && machine->cpu_count > 1; i--)
        offline(machine, machine->cpus[random_below(machine->cpu_count)].id);
    if (random_below(4) == 0)
        machine->nodes[machine->node_count++] = (struct wf_node){.id = id + 1};
    if (random_below(2))
        machine->allowed = random_part(&machine->online, 1 + random_below(9));
    if (wf_cpus_next(&machine->allowed, 0) < 0)
        wf_cpus_add(&machine->allowed, wf_cpus_next(&machine->online, 0));
    for (int i = random_below(13); i > 0; i--)
        gpu(machine, random_node(machine), bridges[random_below(5)]);
    for (int i = random_below(21); i > 0; i--) {
        nic(machine, "eth", random_node(machine), bridges[random_below(5)]);
        struct wf_nic *one = &machine->nics[machine->nic_count - 1];
        one->up = random_below(8) > 0;
        one->irq = random_part(&machine->online, random_below(11));
        if (random_below(5) == 0)
            one->pci[0] = '\0';
    }
}

/* Bindings of some of the first rails; false: none. */
static bool random_bindings(const struct wf_machine *machine, const struct wf_plan_request *request, char *text,
                            size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < request->rail_count; i++) {
        char list[4096];
        struct wf_cpus part = random_part(&machine->allowed, 3);
        if (random_below(3) || wf_cpus_next(&part, 0) < 0)
            continue;
        used += (size_t)snprintf(text + used, room - used, "%s:%s;", request->rails[i].name,
                                 wf_cpus_text(&part, list, sizeof(list)));
        assert_true(used < room);
    }
    return used > 0;
}

static void random_request(const struct wf_machine *machine, struct wf_plan_request *request)
{
    static char tx[65536], rx[65536];
    memset(request, 0, sizeof(*request));
    request->pin = (enum wf_pin)random_below(3);
    request->rail_policy = (enum wf_rail_policy)random_below(4);
    request->irq_policy = (enum wf_irq_policy)random_below(3);
    request->host_endpoints = random_below(2) * random_below(WF_PLAN_ENDPOINTS + 1);
    request->rail_count = random_below(2) * random_below(WF_PLAN_RAILS + 1);
    for (int i = 0; i < request->rail_count; i++) {
        int nic_index = random_below(machine->nic_count + 1);
        snprintf(request->rails[i].name, sizeof(request->rails[i].name), "10.0.0.%d", i);
        snprintf(request->rails[i].device, sizeof(request->rails[i].device), "%s",
                 nic_index < machine->nic_count ? machine->nics[nic_index].name : "lo");
    }
    if (random_below(3) == 0 && random_bindings(machine, request, tx, sizeof(tx)))
        request->tx_bindings = tx;
    if (random_below(3) == 0 && random_bindings(machine, request, rx, sizeof(rx)))
        request->rx_bindings = rx;
}

/* --- promises --- */

static bool empty(const struct wf_cpus *set)
{
    return wf_cpus_next(set, 0) < 0;
}

static bool overlap(struct wf_cpus a, const struct wf_cpus *b)
{
    wf_cpus_intersect(&a, b);
    return !empty(&a);
}

static void check_place(const struct wf_machine *machine, int node, const struct wf_cpus *set)
{
    int index = node == WF_NO_NODE ? -1 : wf_machine_node(machine, node);
    assert_true(!empty(set));
    assert_true(wf_cpus_within(set, &machine->allowed));
    if (index >= 0 && overlap(machine->nodes[index].cpus, &machine->allowed))
        assert_true(wf_cpus_within(set, &machine->nodes[index].cpus));
}

/* No physical core is of both roles, unless it is the only one. */
static void check_siblings(const struct wf_machine *machine, const struct wf_plan_rail *rail)
{
    bool tx[WF_CPUS_MAX] = {false}, rx[WF_CPUS_MAX] = {false};
    int cores = 0, both = 0;
    for (int i = 0; i < machine->cpu_count; i++) {
        tx[machine->cpus[i].core] |= wf_cpus_has(&rail->tx, machine->cpus[i].id);
        rx[machine->cpus[i].core] |= wf_cpus_has(&rail->rx, machine->cpus[i].id);
    }
    for (int core = 0; core < WF_CPUS_MAX; core++) {
        cores += tx[core] || rx[core];
        both += tx[core] && rx[core];
    }
    assert_true(both == 0 || cores == 1);
}

static void check_rail(const struct wf_machine *machine, const struct wf_plan *plan, int index)
{
    const struct wf_plan_rail *rail = &plan->rails[index];
    bool others = false;
    if (plan->pin == WF_PIN_OFF) {
        assert_true(empty(&rail->tx) && empty(&rail->rx));
        return;
    }
    check_place(machine, rail->tx_given ? WF_NO_NODE : rail->node, &rail->tx);
    check_place(machine, rail->rx_given ? WF_NO_NODE : rail->node, &rail->rx);
    assert_int_equal(rail->shares, overlap(rail->tx, &rail->rx));
    if (!rail->tx_given && !rail->rx_given) {
        assert_true(!rail->shares || (wf_cpus_count(&rail->tx) == 1 && wf_cpus_equal(&rail->tx, &rail->rx)));
        check_siblings(machine, rail);
    }
    for (int i = 0; i < plan->rail_count; i++) {
        const struct wf_plan_rail *other = &plan->rails[i];
        others |= i != index && (overlap(rail->tx, &other->tx) || overlap(rail->tx, &other->rx) ||
                                 overlap(rail->rx, &other->tx) || overlap(rail->rx, &other->rx));
    }
    assert_int_equal(rail->others, others);
}

static void check_endpoint(const struct wf_machine *machine, const struct wf_plan *plan, int index)
{
    const struct wf_plan_endpoint *endpoint = &plan->endpoints[index];
    uint64_t seen = 0;
    assert_in_range(endpoint->rail_count, plan->rail_count ? 1 : 0, plan->rail_count);
    assert_true(endpoint->node == WF_NO_NODE || wf_machine_node(machine, endpoint->node) >= 0);
    assert_true(endpoint->gpu < machine->gpu_count);
    for (int i = 0; i < plan->rail_count; i++) {
        assert_in_range(endpoint->rails[i], 0, plan->rail_count - 1);
        seen |= UINT64_C(1) << endpoint->rails[i];
        assert_true(i == 0 || endpoint->steps[i] >= endpoint->steps[i - 1]);
    }
    assert_true(seen == (plan->rail_count ? UINT64_MAX >> (64 - plan->rail_count) : 0));
    if (plan->rail_policy == WF_POLICY_ALL)
        assert_int_equal(endpoint->rail_count, plan->rail_count);
    /* Never a part of those that are equally far. */
    if (endpoint->rail_count < plan->rail_count)
        assert_true(endpoint->steps[endpoint->rail_count] > endpoint->steps[endpoint->rail_count - 1]);
}

/* Where all endpoints have the same choice, no rail is the first of two more than another. */
static void check_fairness(const struct wf_plan *plan)
{
    int starts[WF_PLAN_RAILS] = {0}, equal = 0;
    for (int i = 0; i < plan->endpoint_count; i++) {
        for (int k = 0; k < plan->rail_count; k++)
            if (plan->endpoints[i].steps[k] != plan->endpoints[i].steps[0])
                return;
        starts[plan->endpoints[i].rails[0]] += 1;
    }
    for (int k = 0; k < plan->rail_count; k++)
        equal += starts[k] == plan->endpoint_count / plan->rail_count ||
                 starts[k] == plan->endpoint_count / plan->rail_count + 1;
    assert_int_equal(equal, plan->rail_count);
}

static void every_plan_keeps_its_promises(void **state)
{
    static struct wf_machine machine;
    static struct wf_plan plan, again;
    static struct wf_plan_request request;
    int given = 0;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        char why[512] = "";
        random_machine(&machine);
        random_request(&machine, &request);
        if (wf_plan_make(&machine, &request, &plan, why, sizeof(why)) != 0)
            fail_msg("round %d: %s", round, why);
        assert_int_equal(wf_plan_make(&machine, &request, &again, why, sizeof(why)), 0);
        assert_memory_equal(&plan, &again, sizeof(plan));
        for (int i = 0; i < plan.rail_count; i++) {
            check_rail(&machine, &plan, i);
            given += plan.rails[i].tx_given;
        }
        for (int i = 0; i < plan.endpoint_count; i++)
            check_endpoint(&machine, &plan, i);
        check_fairness(&plan);
        assert_true(strlen(plan.notes) < sizeof(plan.notes));
        assert_true(plan.notes[0] == '\0' || plan.notes[strlen(plan.notes) - 1] == '\n');
    }
    assert_true(given > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_plan_keeps_its_promises)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
