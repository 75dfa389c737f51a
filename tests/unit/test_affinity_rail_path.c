/* What is said to be in the way of a faster path, and that it is asked for without harm. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "affinity/show/ethtool_rings.h"
#include "affinity/show/rail_path.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A rail where nothing is in the way. */
static const struct wf_path_system best_system = {
    .kernel = 618, .net_admin = true, .gpus = 8, .zero_copy_bytes = 1, .buffer_bytes = 4096};
static const struct wf_nic best_nic = {
    .name = "eth1", .pci = "0000:06:00.0", .driver = "gve", .up = true, .mtu = 8244, .queues = 16};
static const struct wf_rail_path best_path = {.sg = 1, .tso = 1, .gro = 1, .queues_most = 16, .header_split = 1};

static struct wf_path_system on;
static struct wf_nic nic;
static struct wf_rail_path path;
static struct wf_obstacle found[WF_OBSTACLES_MAX];

static int start(void **state)
{
    (void)state;
    on = best_system;
    nic = best_nic;
    path = best_path;
    return 0;
}

/* Exactly one obstacle, on this path, with these words and this command. */
static void expect(const char *name, const char *why, const char *change)
{
    assert_int_equal(wf_rail_obstacles(&on, &nic, &path, found), 1);
    assert_string_equal(found[0].path, name);
    assert_non_null(strstr(found[0].why, why));
    assert_string_equal(found[0].change, change);
    start(NULL);
}

static void nothing_is_made_up(void **state)
{
    (void)state;
    assert_int_equal(wf_rail_obstacles(&on, &nic, &path, found), 0);
    on.kernel = 0;
    path = (struct wf_rail_path){.sg = -1, .tso = -1, .gro = -1, .queues_most = -1, .header_split = 1};
    nic.mtu = nic.queues = -1;
    assert_int_equal(wf_rail_obstacles(&on, &nic, &path, found), 0);
}

static void each_obstacle_has_its_command(void **state)
{
    (void)state;
    nic.up = false;
    expect("link", "down", "ip link set eth1 up");
    on.io_uring_disabled = 2;
    expect("zero copy", "io_uring is disabled", "sysctl kernel.io_uring_disabled=0");
    on.gpus = 0;
    on.kernel = 510;
    assert_int_equal(wf_rail_obstacles(&on, &nic, &path, found), 2);
    assert_non_null(strstr(found[0].why, "6.0 can"));
    start(NULL);
    on.zero_copy_bytes = 0;
    expect("zero copy", "zero_copy is 0", "--set zero_copy=512K");
    path.sg = 0;
    expect("zero copy", "scatter-gather", "ethtool -K eth1 sg on");
    on.kernel = 611;
    expect("device memory", "6.12", "");
    path.header_split = 0;
    expect("device memory", "header split is off", "ethtool -G eth1 tcp-data-split on");
    on.net_admin = false;
    expect("device memory", "CAP_NET_ADMIN", "setcap cap_net_admin+ep $(command -v weft)");
    snprintf(nic.driver, sizeof(nic.driver), "virtio_net");
    expect("device memory", "driver", "");
    path.tso = 0;
    expect("offload", "TSO", "ethtool -K eth1 tso on");
    path.gro = 0;
    expect("offload", "GRO", "ethtool -K eth1 gro on");
    path.queues_most = 32;
    expect("queues", "more queues", "ethtool -L eth1 combined 32");
    nic.mtu = 9000;
    expect("packets", "MTU 9000 leaves 27 % of device memory's buffers unused; 8244 fills them",
           "ip link set eth1 mtu 8244");
    nic.mtu = 1500;
    expect("packets", "MTU 1500 leaves 65 % of device memory's buffers unused; 4148 fills them, if the network",
           "ip link set eth1 mtu 4148");
    on.gpus = 0; /* then no setting of device memory matters */
    path.header_split = 0;
    on.net_admin = false;
    nic.mtu = 9000;
    expect("device memory", "this machine has no GPU", "");
}

/* One line, which says what is first in the way, whether there are GPUs or not. */
static void a_card_that_cannot_says_so_in_one_line(void **state)
{
    (void)state;
    for (int gpus = 0; gpus < 2; gpus++) {
        on.gpus = gpus;
        on.net_admin = false;
        snprintf(nic.driver, sizeof(nic.driver), "virtio_net");
        path.device = (struct wf_device_way){.asked = true, .never = true, .why = "no header split"};
        expect("device memory", "no header split", "");
        on.gpus = gpus;
        snprintf(nic.driver, sizeof(nic.driver), "ena");
        expect("device memory", "not with this driver", "");
        on.gpus = gpus;
        snprintf(nic.driver, sizeof(nic.driver), "ena");
        nic.mtu = 1460; /* where buffers are the host's only the size counts */
        assert_int_equal(wf_rail_obstacles(&on, &nic, &path, found), 2);
        assert_string_equal(found[1].change, "ip link set eth1 mtu 9000");
        start(NULL);
    }
}

/* Who has asked knows more than the name of the driver tells. */
static void what_was_asked_goes_before_the_drivers_name(void **state)
{
    static const struct wf_device_way ready = {.asked = true};
    static const struct wf_device_way rules = {.asked = true, .why = "rules are off", .change = "ethtool -K %s x"};

    (void)state;
    snprintf(nic.driver, sizeof(nic.driver), "newcomer");
    path.header_split = -1;
    on.kernel = 600;
    path.device = ready;
    assert_int_equal(wf_rail_obstacles(&on, &nic, &path, found), 0);
    path.device = rules;
    expect("device memory", "rules are off", "ethtool -K eth1 x");
    path.device = rules;
    on.net_admin = false;
    assert_int_equal(wf_rail_obstacles(&on, &nic, &path, found), 2);
    assert_non_null(strstr(found[1].why, "CAP_NET_ADMIN"));
    path.device.never = true; /* then a right would not help */
    expect("device memory", "rules are off", "ethtool -K eth1 x");
}

static void what_stays_in_this_machine_is_copied(void **state)
{
    (void)state;
    on.zero_copy_bytes = 0;
    nic = (struct wf_nic){.name = "lo", .up = true, .mtu = 65536, .queues = 1};
    path.loopback = true;
    path.queues_most = -1;
    assert_int_equal(wf_rail_obstacles(&on, &nic, &path, found), 2);
    assert_string_equal(found[0].why, "loopback copies what is sent without a copy");
    start(NULL);
    snprintf(nic.driver, sizeof(nic.driver), "veth");
    path.gro = 0; /* large packets come whole */
    assert_int_equal(wf_rail_obstacles(&on, &nic, &path, found), 2);
    assert_string_equal(found[0].why, "veth copies what is sent without a copy");
    assert_string_equal(found[1].path, WF_DEVICE_MEMORY);
}

static void all_obstacles_have_room(void **state)
{
    (void)state;
    on = (struct wf_path_system){.kernel = 419, .io_uring_disabled = 2, .gpus = 1, .buffer_bytes = 4096};
    nic.up = false;
    nic.mtu = 1500;
    nic.queues = 1;
    path = (struct wf_rail_path){.queues_most = 8};
    memset(nic.name, 'x', sizeof(nic.name) - 1);
    int count = wf_rail_obstacles(&on, &nic, &path, found);
    assert_true(count > 8 && count < WF_OBSTACLES_MAX);
    for (int i = 0; i < count; i++)
        assert_true(strlen(found[i].why) < sizeof(found[i].why) - 1 && strlen(found[i].why) > 10);
}

static void interfaces_that_are_not_there_are_unknown(void **state)
{
    static const char *const names[] = {"", "nosuchnic0", "a name of thirty-one characters"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(nic.name, sizeof(nic.name), "%s", names[i]);
        wf_rail_path_read(&nic, &path);
        assert_false(path.loopback);
        assert_int_equal(path.tso, -1);
        assert_int_equal(path.queues_most, -1);
        assert_int_equal(path.header_split, -1);
    }
}

static void loopback_is_known_for_what_it_is(void **state)
{
    struct wf_machine *machine = calloc(1, sizeof(*machine));

    (void)state;
    assert_non_null(machine);
    machine->gpu_count = 3;
    wf_path_system_read(machine, 7, &on);
    assert_true(on.kernel >= 400);
    assert_true(on.gpus == 3 && on.zero_copy_bytes == 7);
    free(machine);
    if (access("/sys/class/net/lo", F_OK) != 0)
        return;
    snprintf(nic.name, sizeof(nic.name), "lo");
    wf_rail_path_read(&nic, &path);
    assert_true(path.loopback);
    assert_int_not_equal(path.header_split, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_made_up, start),
        cmocka_unit_test_setup(each_obstacle_has_its_command, start),
        cmocka_unit_test_setup(a_card_that_cannot_says_so_in_one_line, start),
        cmocka_unit_test_setup(what_was_asked_goes_before_the_drivers_name, start),
        cmocka_unit_test_setup(what_stays_in_this_machine_is_copied, start),
        cmocka_unit_test_setup(all_obstacles_have_room, start),
        cmocka_unit_test_setup(interfaces_that_are_not_there_are_unknown, start),
        cmocka_unit_test_setup(loopback_is_known_for_what_it_is, start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
