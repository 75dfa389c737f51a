/* The plan, on machines made by hand: which rails serve whom. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "affinity/discover.h"
#include "affinity_planned.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void each_gpu_of_the_a3_has_the_nic_of_its_bridge(void **state)
{
    static const char *const rails[] = {"eth1 | eth2 eth3 eth4", "eth1 | eth2 eth4 eth3", "eth2 | eth1 eth3 eth4",
                                        "eth2 | eth1 eth4 eth3", "eth3 | eth4 eth1 eth2", "eth3 | eth4 eth2 eth1",
                                        "eth4 | eth3 eth1 eth2", "eth4 | eth3 eth2 eth1"};
    (void)state;
    a3(&machine);
    make((struct wf_plan_request){.pin = WF_PIN_AUTO});
    assert_int_equal(plan.rail_count, 4);
    assert_int_equal(plan.endpoint_count, 8);
    for (int i = 0; i < 8; i++) {
        expect_rails(i, rails[i]);
        assert_int_equal(plan.endpoints[i].gpu, i);
        assert_int_equal(plan.endpoints[i].node, i / 4);
        assert_int_equal(plan.endpoints[i].steps[0], WF_STEP_BRIDGE);
        assert_int_equal(plan.endpoints[i].steps[1], WF_STEP_NODE);
        assert_int_equal(plan.endpoints[i].steps[3], WF_STEP_OTHER);
    }
    assert_string_equal(plan.endpoints[3].name, "gpu3");
    assert_string_equal(plan.notes, "");
}

/* As lstopo would describe it: with its fifth NIC, that of the host. */
static void the_a3_from_its_description_is_planned_alike(void **state)
{
    static const char *const rails[] = {"eth1", "eth2", "eth3", "eth4"};
    struct wf_plan_request request = {.pin = WF_PIN_AUTO, .rail_count = 4};
    (void)state;
    for (int i = 0; i < 4; i++) {
        snprintf(request.rails[i].name, sizeof(request.rails[i].name), "%s", rails[i]);
        snprintf(request.rails[i].device, sizeof(request.rails[i].device), "%s", rails[i]);
    }
    assert_int_equal(wf_machine_discover(TOPOLOGIES "/a3-highgpu-8g.xml", &machine, why, sizeof(why)), 0);
    make(request);
    assert_int_equal(plan.endpoint_count, 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(plan.endpoints[i].rail_count, 1);
        assert_int_equal(plan.endpoints[i].rails[0], i / 2);
        assert_int_equal(plan.endpoints[i].node, i / 4);
    }
    expect_set(&plan.rails[1].tx, "0-25,104-129");
    expect_set(&plan.rails[2].rx, "78-103,182-207");
}

static void policies_admit_more_rails(void **state)
{
    (void)state;
    a3(&machine);
    make((struct wf_plan_request){.rail_policy = WF_POLICY_NODE});
    expect_rails(0, "eth1 eth2 | eth3 eth4");
    expect_rails(7, "eth4 eth3 | eth2 eth1");
    make((struct wf_plan_request){.rail_policy = WF_POLICY_ALL});
    expect_rails(2, "eth2 eth1 eth3 eth4");
    make((struct wf_plan_request){.rail_policy = WF_POLICY_NEAR, .host_endpoints = 2});
    expect_rails(0, "eth1 eth2 | eth3 eth4");
    expect_rails(1, "eth3 eth4 | eth1 eth2");
}

static void gpus_that_are_equally_near_share_fairly(void **state)
{
    int starts[4] = {0};
    (void)state;
    /* No path and no node is known of anything. */
    shape(&machine, 2, 4, 2);
    for (int i = 0; i < 8; i++)
        gpu(&machine, WF_NO_NODE, "");
    for (int i = 0; i < 4; i++)
        nic(&machine, "eth", WF_NO_NODE, "");
    make((struct wf_plan_request){.pin = WF_PIN_AUTO});
    for (int i = 0; i < 8; i++) {
        assert_int_equal(plan.endpoints[i].rail_count, 4);
        starts[plan.endpoints[i].rails[0]] += 1;
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(starts[i], 2);
    expect_rails(5, "eth1 eth2 eth3 eth0");
    expect_note("No rail is known to be near gpu0, gpu1");
    expect_note("NUMA node of eth0, eth1, eth2, eth3 is not known");
    expect_cores(0, "0-3,8-11", "4-7,12-15");
}

static void more_nics_than_gpus(void **state)
{
    (void)state;
    /* Two GPUs below a bridge with four NICs each, in turn. */
    shape(&machine, 2, 4, 1);
    for (int i = 0; i < 4; i++)
        gpu(&machine, i % 2, i % 2 ? "b" : "a");
    for (int i = 0; i < 8; i++)
        nic(&machine, "eth", i / 4, i / 4 ? "b" : "a");
    make((struct wf_plan_request){.pin = WF_PIN_AUTO, .gpus = "0,1,2,3"});
    expect_rails(0, "eth0 eth1 eth2 eth3 | eth4 eth5 eth6 eth7");
    expect_rails(1, "eth4 eth5 eth6 eth7 | eth0 eth1 eth2 eth3");
    expect_rails(2, "eth1 eth2 eth3 eth0 | eth5 eth6 eth7 eth4");
    expect_rails(3, "eth5 eth6 eth7 eth4 | eth1 eth2 eth3 eth0");
}

static void host_memory_takes_turns_over_nodes_with_rails(void **state)
{
    static const int nodes[] = {1, 6, 1, 6, 1};
    (void)state;
    shape(&machine, 4, 2, 1);
    renumber(&machine, (int[]){0, 1, 4, 6});
    nic(&machine, "eth", 6, "a");
    nic(&machine, "eth", 1, "b");
    make((struct wf_plan_request){.pin = WF_PIN_AUTO, .host_endpoints = 5});
    for (int i = 0; i < 5; i++) {
        assert_int_equal(plan.endpoints[i].node, nodes[i]);
        assert_int_equal(plan.endpoints[i].gpu, -1);
        assert_int_equal(plan.endpoints[i].rail_count, 2);
    }
    expect_rails(0, "eth1 eth0");
    expect_rails(1, "eth0 eth1");
    assert_string_equal(plan.endpoints[4].name, "host4");
    assert_int_equal(plan.rails[0].node, 6);
    expect_cores(0, "6", "7");
    expect_cores(1, "2", "3");
}

static void one_node_is_no_matter(void **state)
{
    (void)state;
    shape(&machine, 1, 4, 2);
    nic(&machine, "eth", WF_NO_NODE, "");
    gpu(&machine, 0, "a");
    make((struct wf_plan_request){.pin = WF_PIN_AUTO, .host_endpoints = 2});
    assert_int_equal(plan.endpoints[1].node, WF_NO_NODE);
    assert_int_equal(plan.rails[0].node, WF_NO_NODE);
    assert_int_equal(plan.endpoints[0].steps[0], WF_STEP_NODE);
    expect_cores(0, "0-1,4-5", "2-3,6-7");
    assert_false(plan.rails[0].shares);
    assert_false(plan.rails[0].others);
    assert_string_equal(plan.notes, "");
}

static void a_rail_that_is_no_nic_has_no_node(void **state)
{
    struct wf_plan_request request = {.pin = WF_PIN_AUTO, .rail_count = 2, .host_endpoints = 1};
    (void)state;
    a3(&machine);
    snprintf(request.rails[0].name, 64, "127.0.0.1");
    snprintf(request.rails[0].device, 32, "lo");
    snprintf(request.rails[1].name, 64, "10.0.3.1");
    snprintf(request.rails[1].device, 32, "eth3");
    make(request);
    assert_int_equal(plan.rails[0].node, WF_NO_NODE);
    assert_int_equal(plan.rails[1].node, 1);
    assert_int_equal(plan.endpoints[0].node, 1);
    expect_rails(0, "10.0.3.1 127.0.0.1");
    assert_int_equal(plan.endpoints[0].steps[1], WF_STEP_UNKNOWN);
    expect_cores(0, "0-51,104-155", "52-103,156-207");
    assert_true(plan.rails[0].others);
    expect_note("NUMA node of 127.0.0.1 is not known");
    /* By name and by device. */
    request.tx_bindings = "lo:3;10.0.3.1:4";
    make(request);
    expect_set(&plan.rails[0].tx, "3");
    expect_set(&plan.rails[1].tx, "4");
    request.tx_bindings = "eth3:3;10.0.3.1:4";
    refused(request, "'10.0.3.1' (eth3) is given processors twice");
    request.tx_bindings = "eth9:3";
    refused(request, "no rail 'eth9'; the rails are: 127.0.0.1 (lo), 10.0.3.1 (eth3)");
    /* A card of the machine whose rail is not in use. */
    request.tx_bindings = "eth1:3;10.0.3.1:4";
    make(request);
    expect_set(&plan.rails[1].tx, "4");
    expect_note("eth1 is not among the rails in use");
}

static bool is_of_the_a3(const char *address)
{
    return strncmp(address, "10.0.", 5) == 0;
}

/* A rail has the name of its interface, and its bindings are by address. */
static void bindings_by_address(void **state)
{
    struct wf_plan_request request = {.pin = WF_PIN_AUTO, .rail_count = 2, .host_endpoints = 1};
    static const char *const devices[] = {"eth1", "eth3"}, *const addresses[] = {"10.0.1.1", "fe80::3%eth3"};
    (void)state;
    a3(&machine);
    for (int i = 0; i < 2; i++) {
        snprintf(request.rails[i].name, 64, "%s", devices[i]);
        snprintf(request.rails[i].device, 32, "%s", devices[i]);
        snprintf(request.rails[i].address, 64, "%s", addresses[i]);
    }
    request.tx_bindings = "10.0.1.1:3;fe80::3:4";
    request.rx_bindings = "eth1:5;fe80::3%eth3:6";
    make(request);
    expect_set(&plan.rails[0].tx, "3");
    expect_set(&plan.rails[0].rx, "5");
    expect_set(&plan.rails[1].tx, "4");
    expect_set(&plan.rails[1].rx, "6");
    request.tx_bindings = "10.0.1.1:3;eth1:4";
    refused(request, "'eth1' (eth1) is given processors twice");
    /* Of another rail of this machine, and of none. */
    request.tx_bindings = "10.0.1.1:3;10.0.2.1:7";
    refused(request, "no rail '10.0.2.1'");
    request.is_here = is_of_the_a3;
    make(request);
    expect_set(&plan.rails[0].tx, "3");
    expect_note("10.0.2.1 is not among the rails in use");
    request.tx_bindings = "10.1.1.1:3";
    refused(request, "no rail '10.1.1.1'");
}

static void rails_are_what_is_up_and_real(void **state)
{
    (void)state;
    shape(&machine, 1, 2, 1);
    nic(&machine, "lo", WF_NO_NODE, "");
    nic(&machine, "veth", WF_NO_NODE, "");
    machine.nics[0].pci[0] = machine.nics[1].pci[0] = '\0';
    snprintf(machine.nics[0].name, 32, "lo");
    make((struct wf_plan_request){0});
    assert_int_equal(plan.rail_count, 1);
    assert_string_equal(plan.rails[0].device, "veth1");
    nic(&machine, "eth", 0, "a");
    nic(&machine, "eth", 0, "b");
    machine.nics[3].up = false;
    make((struct wf_plan_request){0});
    assert_int_equal(plan.rail_count, 1);
    assert_string_equal(plan.rails[0].name, "eth2");
    machine.nics[2].up = machine.nics[1].up = false;
    make((struct wf_plan_request){.pin = WF_PIN_AUTO, .host_endpoints = 1});
    assert_int_equal(plan.rail_count, 0);
    assert_int_equal(plan.endpoints[0].rail_count, 0);
    expect_note("No NIC is up");
    shape(&machine, 1, 2, 1);
    for (int i = 0; i < WF_PLAN_RAILS + 4; i++)
        nic(&machine, "eth", 0, "a");
    make((struct wf_plan_request){.pin = WF_PIN_AUTO});
    assert_int_equal(plan.rail_count, WF_PLAN_RAILS);
    expect_note("4 more NICs");
}

static void gpus_are_chosen_by_number(void **state)
{
    static const struct {
        const char *gpus, *words;
    } rows[] = {
        {"8", "GPU 8 is not there: this machine has GPUs 0 to 7"},
        {"0,0", "GPU 0 is asked for twice"},
        {"0,", "'' is not a GPU"},
        {"x", "'x' is not a GPU"},
        {"-1", "'-1' is not a GPU"},
        {" 1", "' 1' is not a GPU"},
        {"1;2", "'1;2' is not a GPU"},
        {"99999999999999999999", "is not a GPU"},
        {"4294967296", "GPU 4294967296 is not there"},
    };
    (void)state;
    a3(&machine);
    make((struct wf_plan_request){.gpus = "6,2"});
    assert_int_equal(plan.endpoint_count, 2);
    assert_string_equal(plan.endpoints[0].name, "gpu6");
    expect_rails(0, "eth4 | eth3 eth1 eth2");
    make((struct wf_plan_request){.gpus = "6,2", .gpu_endpoints = 1});
    assert_int_equal(plan.endpoint_count, 1);
    assert_string_equal(plan.endpoints[0].name, "gpu6");
    make((struct wf_plan_request){.gpus = "6", .gpu_endpoints = 1024});
    assert_int_equal(plan.endpoint_count, 1);
    assert_non_null(strstr(plan.notes, "1024 endpoints on 1 GPU: those of one GPU are one line."));
    make((struct wf_plan_request){.gpu_endpoints = 8});
    assert_int_equal(plan.endpoint_count, 8);
    assert_string_equal(plan.notes, "");
    for (size_t i = 0; i < COUNT(rows); i++)
        refused((struct wf_plan_request){.gpus = rows[i].gpus}, rows[i].words);
    shape(&machine, 1, 1, 1);
    refused((struct wf_plan_request){.gpus = "0"}, "this machine has none");
    refused((struct wf_plan_request){.host_endpoints = 65}, "65 endpoints");
    refused((struct wf_plan_request){.rail_count = 65}, "65 rails");
    refused((struct wf_plan_request){.rail_count = -1}, "-1 rails");
    make((struct wf_plan_request){.pin = WF_PIN_REQUIRE});
    assert_int_equal(plan.endpoint_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gpu_of_the_a3_has_the_nic_of_its_bridge),
        cmocka_unit_test(the_a3_from_its_description_is_planned_alike),
        cmocka_unit_test(policies_admit_more_rails),
        cmocka_unit_test(gpus_that_are_equally_near_share_fairly),
        cmocka_unit_test(more_nics_than_gpus),
        cmocka_unit_test(host_memory_takes_turns_over_nodes_with_rails),
        cmocka_unit_test(one_node_is_no_matter),
        cmocka_unit_test(a_rail_that_is_no_nic_has_no_node),
        cmocka_unit_test(bindings_by_address),
        cmocka_unit_test(rails_are_what_is_up_and_real),
        cmocka_unit_test(gpus_are_chosen_by_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
