/* The plan, on machines made by hand: which rails serve whom, and on which processors. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinity_machines.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct wf_machine machine;
static struct wf_plan plan;
static char why[512];

static void make(struct wf_plan_request request)
{
    if (wf_plan_make(&machine, &request, &plan, why, sizeof(why)) != 0)
        fail_msg("%s", why);
}

static void refused(struct wf_plan_request request, const char *words)
{
    struct wf_plan before = plan;
    why[0] = '\0';
    assert_int_equal(wf_plan_make(&machine, &request, &plan, why, sizeof(why)), -EINVAL);
    if (!strstr(why, words))
        fail_msg("'%s' is not in: %s", words, why);
    assert_memory_equal(&plan, &before, sizeof(plan));
}

static void expect_set(const struct wf_cpus *set, const char *text)
{
    char have[256];
    assert_string_equal(wf_cpus_text(set, have, sizeof(have)), text);
}

static void expect_cores(int rail, const char *tx, const char *rx)
{
    expect_set(&plan.rails[rail].tx, tx);
    expect_set(&plan.rails[rail].rx, rx);
}

/* "eth1 eth2 | eth3": those that carry traffic, then the rest. */
static void expect_rails(int endpoint, const char *text)
{
    const struct wf_plan_endpoint *one = &plan.endpoints[endpoint];
    char have[512] = "";
    for (int i = 0; i < plan.rail_count; i++) {
        size_t used = strlen(have);
        snprintf(have + used, sizeof(have) - used, "%s%s%s", used ? " " : "", i == one->rail_count ? "| " : "",
                 plan.rails[one->rails[i]].name);
    }
    assert_string_equal(have, text);
}

static void expect_note(const char *words)
{
    if (!strstr(plan.notes, words))
        fail_msg("'%s' is not in the notes: %s", words, plan.notes);
}

/* --- endpoints and rails --- */

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
    request.tx_bindings = "eth1:3";
    refused(request, "no rail 'eth1'; the rails are: 127.0.0.1 (lo), 10.0.3.1 (eth3)");
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
    for (int i = 0; i < 20; i++)
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
    for (size_t i = 0; i < COUNT(rows); i++)
        refused((struct wf_plan_request){.gpus = rows[i].gpus}, rows[i].words);
    shape(&machine, 1, 1, 1);
    refused((struct wf_plan_request){.gpus = "0"}, "this machine has none");
    refused((struct wf_plan_request){.host_endpoints = 65}, "65 endpoints");
    refused((struct wf_plan_request){.rail_count = 17}, "17 rails");
    refused((struct wf_plan_request){.rail_count = -1}, "-1 rails");
    make((struct wf_plan_request){.pin = WF_PIN_REQUIRE});
    assert_int_equal(plan.endpoint_count, 0);
}

/* --- processors --- */

static void rails_of_a_node_share_halves_of_it(void **state)
{
    (void)state;
    a3(&machine);
    make((struct wf_plan_request){.pin = WF_PIN_AUTO});
    expect_cores(0, "0-25,104-129", "26-51,130-155");
    expect_cores(1, "0-25,104-129", "26-51,130-155");
    expect_cores(2, "52-77,156-181", "78-103,182-207");
    expect_cores(3, "52-77,156-181", "78-103,182-207");
    for (int i = 0; i < 4; i++)
        assert_true(plan.rails[i].others && !plan.rails[i].shares && !plan.rails[i].tx_given);
}

static void off_leaves_all_sets_empty(void **state)
{
    (void)state;
    a3(&machine);
    make((struct wf_plan_request){.pin = WF_PIN_OFF, .tx_bindings = "nonsense"});
    assert_int_equal(plan.rail_count, 4);
    expect_rails(4, "eth3 | eth4 eth1 eth2");
    for (int i = 0; i < 4; i++)
        expect_cores(i, "none", "none");
    expect_note("pin is off");
}

static void an_odd_core_goes_to_rx(void **state)
{
    (void)state;
    shape(&machine, 1, 5, 2);
    nic(&machine, "eth", 0, "a");
    make((struct wf_plan_request){.pin = WF_PIN_AUTO});
    expect_cores(0, "0-1,5-6", "2-4,7-9");
}

static void few_processors_are_split_as_far_as_it_goes(void **state)
{
    static const struct {
        const char *allowed, *tx, *rx;
        bool shares;
    } rows[] = {
        {"2,6", "2", "6", false},       /* two threads of one core */
        {"3", "3", "3", true},          /* one */
        {"1-2", "1", "2", false},       /* two cores without their siblings */
        {"0,4,5", "0,4", "5", false},   /* a core and a half */
        {"1-3,6", "1", "2-3,6", false}, /* three cores */
        {"0-7", "0-1,4-5", "2-3,6-7", false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        shape(&machine, 1, 4, 2);
        nic(&machine, "eth", 0, "a");
        assert_int_equal(wf_cpus_parse(rows[i].allowed, &machine.allowed, why, sizeof(why)), 0);
        make((struct wf_plan_request){.pin = WF_PIN_AUTO});
        expect_cores(0, rows[i].tx, rows[i].rx);
        assert_int_equal(plan.rails[0].shares, rows[i].shares);
        assert_int_equal(strstr(plan.notes, "they share it") != NULL, rows[i].shares);
    }
    machine.allowed = (struct wf_cpus){0};
    refused((struct wf_plan_request){.pin = WF_PIN_AUTO}, "none of the processors");
    make((struct wf_plan_request){.pin = WF_PIN_OFF});
}

static void a_node_without_allowed_processors_borrows(void **state)
{
    (void)state;
    a3(&machine);
    assert_int_equal(wf_cpus_parse("0-3", &machine.allowed, why, sizeof(why)), 0);
    make((struct wf_plan_request){.pin = WF_PIN_AUTO});
    expect_cores(0, "0-1", "2-3");
    expect_cores(3, "0-1", "2-3");
    assert_int_equal(plan.rails[3].node, 1);
    assert_true(plan.rails[0].others);
    expect_note("Node 1 has no processor that this process may use: the threads of eth3, eth4");
    /* Memory without processors is a node, too. */
    shape(&machine, 2, 2, 1);
    machine.nodes[machine.node_count++] = (struct wf_node){.id = 9, .bytes = 1};
    nic(&machine, "eth", 9, "a");
    make((struct wf_plan_request){.pin = WF_PIN_AUTO, .host_endpoints = 1});
    assert_int_equal(plan.endpoints[0].node, 9);
    expect_cores(0, "0-1", "2-3");
    expect_note("Node 9 has no processor");
}

static void offline_processors_are_not_planned(void **state)
{
    (void)state;
    shape(&machine, 2, 4, 1);
    offline(&machine, 1);
    offline(&machine, 2);
    nic(&machine, "eth", 0, "a");
    make((struct wf_plan_request){.pin = WF_PIN_AUTO});
    expect_cores(0, "0", "3");
}

/* --- interrupts --- */

static void irq_of(int nic_index, const char *list)
{
    assert_int_equal(wf_cpus_parse(list, &machine.nics[nic_index].irq, why, sizeof(why)), 0);
}

static void interrupts_are_avoided_where_enough_is_left(void **state)
{
    static const struct {
        const char *irq, *tx, *rx;
        bool note;
    } rows[] = {
        {"0", "1-3,9-11", "4-7,12-15", false},     /* with its sibling */
        {"0-15", "0-3,8-11", "4-7,12-15", false},  /* everywhere: says nothing */
        {"0-31", "0-3,8-11", "4-7,12-15", false},  /* and elsewhere, too */
        {"0-5", "6,14", "7,15", false},            /* two are left */
        {"0-6", "0-3,8-11", "4-7,12-15", true},    /* one would be */
        {"16-31", "0-3,8-11", "4-7,12-15", false}, /* of the other node */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        shape(&machine, 1, 8, 2);
        grow(&machine, 8, 2);
        nic(&machine, "eth", 0, "a");
        irq_of(0, rows[i].irq);
        make((struct wf_plan_request){.pin = WF_PIN_AUTO, .irq_policy = WF_IRQ_AVOID});
        expect_cores(0, rows[i].tx, rows[i].rx);
        assert_int_equal(strstr(plan.notes, "Too few cores are free") != NULL, rows[i].note);
        make((struct wf_plan_request){.pin = WF_PIN_AUTO, .irq_policy = WF_IRQ_ANY});
        expect_cores(0, "0-3,8-11", "4-7,12-15");
    }
    /* The NIC of another node interrupts here. */
    shape(&machine, 2, 3, 1);
    nic(&machine, "eth", 0, "a");
    nic(&machine, "eth", 1, "b");
    irq_of(1, "1");
    make((struct wf_plan_request){.pin = WF_PIN_AUTO});
    expect_cores(0, "0", "2");
}

static void interrupts_are_used_for_rx(void **state)
{
    (void)state;
    shape(&machine, 2, 6, 1);
    for (int i = 0; i < 3; i++)
        nic(&machine, "eth", 0, "a");
    irq_of(0, "4,7");
    irq_of(1, "5");
    make((struct wf_plan_request){.pin = WF_PIN_AUTO, .irq_policy = WF_IRQ_USE});
    expect_cores(0, "0-1", "4");
    expect_cores(1, "0-1", "5");
    expect_cores(2, "0-1", "2-3"); /* of which nothing is known */
    assert_true(plan.rails[0].others);
    machine.nic_count = 2;
    make((struct wf_plan_request){.pin = WF_PIN_AUTO, .irq_policy = WF_IRQ_USE});
    expect_cores(0, "0-3", "4");
    irq_of(1, "0-3,5");
    make((struct wf_plan_request){.pin = WF_PIN_AUTO, .irq_policy = WF_IRQ_USE});
    expect_cores(0, "0-2", "3-5");
    expect_note("do not say which cores RX of eth0, eth1");
}

/* --- bindings --- */

static void known_bindings_of_the_a3_are_used_as_they_are(void **state)
{
    (void)state;
    a3(&machine);
    make((struct wf_plan_request){
        .pin = WF_PIN_REQUIRE,
        .tx_bindings = "eth1:8-21,112-125;eth2:8-21,112-125;eth3:60-73,164-177;eth4:60-73,164-177",
        .rx_bindings = "eth1:22-35,126-139;eth2:22-35,126-139;eth3:74-87,178-191;eth4:74-87,178-191"});
    for (int i = 0; i < 4; i++) {
        expect_cores(i, i < 2 ? "8-21,112-125" : "60-73,164-177", i < 2 ? "22-35,126-139" : "74-87,178-191");
        assert_true(plan.rails[i].tx_given && plan.rails[i].rx_given && plan.rails[i].others && !plan.rails[i].shares);
    }
    assert_string_equal(plan.notes, "");
}

static void what_is_not_given_stays_planned(void **state)
{
    (void)state;
    a3(&machine);
    make((struct wf_plan_request){.pin = WF_PIN_AUTO, .tx_bindings = "eth1:0-29"});
    /* RX of the same rail steps aside, other rails do not. */
    expect_cores(0, "0-29", "30-51,130-155");
    expect_cores(1, "0-25,104-129", "26-51,130-155");
    assert_true(plan.rails[0].tx_given && !plan.rails[0].rx_given && !plan.rails[0].shares);
    make((struct wf_plan_request){.pin = WF_PIN_AUTO, .tx_bindings = "eth1:0-207"});
    expect_cores(0, "0-207", "26-51,130-155");
    assert_true(plan.rails[0].shares);
    expect_note("TX and RX of eth1 have processors in common");
}

static void wrong_bindings_are_errors(void **state)
{
    static const struct {
        const char *tx, *rx, *words;
    } rows[] = {
        {"eth1:300", NULL, "tx_bindings: processor 300 of rail 'eth1' does not exist; allowed are 0-50,"},
        {NULL, "eth2:0;eth1:51", "rx_bindings: processor 51 of rail 'eth1' is offline"},
        {"eth1:203", NULL, "processor 203 of rail 'eth1' is outside of what this process may use"},
        {"eth9:0", NULL, "tx_bindings: there is no rail 'eth9'; the rails are: eth1, eth2, eth3, eth4"},
        {NULL, "eth1:5-2", "rx_bindings: 'eth1:5-2'"},
    };
    (void)state;
    a3(&machine);
    offline(&machine, 51);
    wf_cpus_remove(&machine.allowed, 203);
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int pin = WF_PIN_AUTO; pin <= WF_PIN_REQUIRE; pin++)
            refused(
                (struct wf_plan_request){.pin = (enum wf_pin)pin, .tx_bindings = rows[i].tx, .rx_bindings = rows[i].rx},
                rows[i].words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gpu_of_the_a3_has_the_nic_of_its_bridge),
        cmocka_unit_test(policies_admit_more_rails),
        cmocka_unit_test(gpus_that_are_equally_near_share_fairly),
        cmocka_unit_test(more_nics_than_gpus),
        cmocka_unit_test(host_memory_takes_turns_over_nodes_with_rails),
        cmocka_unit_test(one_node_is_no_matter),
        cmocka_unit_test(a_rail_that_is_no_nic_has_no_node),
        cmocka_unit_test(rails_are_what_is_up_and_real),
        cmocka_unit_test(gpus_are_chosen_by_number),
        cmocka_unit_test(rails_of_a_node_share_halves_of_it),
        cmocka_unit_test(off_leaves_all_sets_empty),
        cmocka_unit_test(an_odd_core_goes_to_rx),
        cmocka_unit_test(few_processors_are_split_as_far_as_it_goes),
        cmocka_unit_test(a_node_without_allowed_processors_borrows),
        cmocka_unit_test(offline_processors_are_not_planned),
        cmocka_unit_test(interrupts_are_avoided_where_enough_is_left),
        cmocka_unit_test(interrupts_are_used_for_rx),
        cmocka_unit_test(known_bindings_of_the_a3_are_used_as_they_are),
        cmocka_unit_test(what_is_not_given_stays_planned),
        cmocka_unit_test(wrong_bindings_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
