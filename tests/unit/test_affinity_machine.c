/* Distances between devices, and finding parts of a machine by what they are called. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinity/machine.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* "a/b/c" as a path; "": unknown. */
static struct wf_path path_of(const char *text)
{
    struct wf_path path = {0};
    while (*text) {
        size_t length = strcspn(text, "/");
        snprintf(path.step[path.depth++], sizeof(path.step[0]), "%.*s", (int)length, text);
        text += length + (text[length] == '/');
    }
    return path;
}

static void paths_decide_before_nodes(void **state)
{
    static const struct {
        const char *a;
        int node_a;
        const char *b;
        int node_b;
        enum wf_step step;
    } rows[] = {
        {"h/r/s/p1", 0, "h/r/s/p2", 0, WF_STEP_SWITCH},
        {"h/r/s/p1", 0, "h/r/s/p1", 0, WF_STEP_SWITCH},
        {"h/r/s", 0, "h/r/s/p2/x/y", 0, WF_STEP_SWITCH},
        {"h/r/s", 0, "h/r/t", 0, WF_STEP_ROOT_PORT},
        {"h/r", 0, "h/r", 0, WF_STEP_ROOT_PORT},
        {"h/r", 0, "h/r/s", 0, WF_STEP_ROOT_PORT},
        {"h/r/s", 0, "h/q/s", 0, WF_STEP_BRIDGE},
        {"h", 0, "h", 0, WF_STEP_BRIDGE},
        {"h", 0, "h/r/s", 0, WF_STEP_BRIDGE},
        {"h", -1, "h", -1, WF_STEP_BRIDGE},
        {"h/r/s", 0, "g/r/s", 0, WF_STEP_NODE},
        {"h/r/s", 0, "g/r/s", 1, WF_STEP_OTHER},
        {"", 2, "g/r/s", 2, WF_STEP_NODE},
        {"", 2, "", 3, WF_STEP_OTHER},
        {"h", -1, "g", 0, WF_STEP_UNKNOWN},
        {"", 0, "", -1, WF_STEP_UNKNOWN},
        {"", -1, "", -1, WF_STEP_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wf_path a = path_of(rows[i].a), b = path_of(rows[i].b);
        assert_int_equal(wf_step_between(&a, rows[i].node_a, &b, rows[i].node_b), rows[i].step);
        assert_int_equal(wf_step_between(&b, rows[i].node_b, &a, rows[i].node_a), rows[i].step);
    }
}

static void the_deepest_paths_are_compared_to_their_ends(void **state)
{
    struct wf_path a = path_of("0/1/2/3/4/5/6/7/8/9/10/11");

    (void)state;
    assert_int_equal(a.depth, WF_PATH_MAX);
    assert_int_equal(wf_step_between(&a, 0, &a, 0), WF_STEP_SWITCH);
}

static void steps_have_names_and_order(void **state)
{
    (void)state;
    assert_true(WF_STEP_SWITCH < WF_STEP_ROOT_PORT && WF_STEP_ROOT_PORT < WF_STEP_BRIDGE &&
                WF_STEP_BRIDGE < WF_STEP_NODE && WF_STEP_NODE < WF_STEP_OTHER && WF_STEP_OTHER < WF_STEP_UNKNOWN);
    assert_string_equal(wf_step_text(WF_STEP_SWITCH), "same switch");
    assert_string_equal(wf_step_text(WF_STEP_OTHER), "other node");
    assert_string_equal(wf_step_text(WF_STEP_UNKNOWN), "unknown");
    assert_string_equal(wf_step_text((enum wf_step)77), "unknown");
}

static void parts_are_found_by_name_and_id(void **state)
{
    struct wf_machine *machine = calloc(1, sizeof(*machine));

    (void)state;
    assert_non_null(machine);
    assert_int_equal(wf_machine_nic(machine, "eth0"), -1);
    assert_int_equal(wf_machine_node(machine, 0), -1);
    machine->node_count = 2;
    machine->nodes[1].id = 8; /* numbers need not be dense */
    machine->nic_count = 2;
    snprintf(machine->nics[0].name, sizeof(machine->nics[0].name), "eth1");
    snprintf(machine->nics[1].name, sizeof(machine->nics[1].name), "eth10");
    assert_int_equal(wf_machine_nic(machine, "eth10"), 1);
    assert_int_equal(wf_machine_nic(machine, "eth"), -1);
    assert_int_equal(wf_machine_nic(machine, ""), -1);
    assert_int_equal(wf_machine_node(machine, 0), 0);
    assert_int_equal(wf_machine_node(machine, 8), 1);
    assert_int_equal(wf_machine_node(machine, 1), -1);
    assert_int_equal(wf_machine_node(machine, -1), -1);
    free(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_decide_before_nodes),
        cmocka_unit_test(the_deepest_paths_are_compared_to_their_ends),
        cmocka_unit_test(steps_have_names_and_order),
        cmocka_unit_test(parts_are_found_by_name_and_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
