/* The plan, on machines made by hand: which processors the threads of each rail get. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "affinity_planned.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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
    cpus_remove(&machine.allowed, 203);
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int pin = WF_PIN_AUTO; pin <= WF_PIN_REQUIRE; pin++)
            refused(
                (struct wf_plan_request){.pin = (enum wf_pin)pin, .tx_bindings = rows[i].tx, .rx_bindings = rows[i].rx},
                rows[i].words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
