/* From descriptions of machines to machines: synthetic ones, files, files that are none, a made-up /sys, and here. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "affinity/discover.h"
#include "affinity/discover_nic.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct wf_machine machine; /* too large for a stack */
static char folder[] = "/tmp/weft_discover_XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

static int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* With the folders above it. */
static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s", in_folder(name));
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(path, 0755);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void write_link(const char *name, const char *target)
{
    write_file(name, ""); /* for the folders above it */
    assert_int_equal(unlink(in_folder(name)), 0);
    assert_int_equal(symlink(target, in_folder(name)), 0);
}

static void discover(const char *source)
{
    char why[512] = "";
    int rc = wf_machine_discover(source, &machine, why, sizeof(why));
    if (rc)
        print_message("%s: %s\n", source ? source : "here", why);
    assert_int_equal(rc, 0);
}

/* The invariant of machine.h. */
static void check_machine(void)
{
    struct wf_cpus all = {0};
    int count = 0;

    for (int i = 0; i < machine.node_count; i++) {
        assert_true(i == 0 || machine.nodes[i].id > machine.nodes[i - 1].id);
        count += wf_cpus_count(&machine.nodes[i].cpus);
        wf_cpus_unite(&all, &machine.nodes[i].cpus);
    }
    assert_int_equal(count, machine.cpu_count);
    assert_true(wf_cpus_equal(&all, &machine.online));
    for (int i = 0; i < machine.cpu_count; i++) {
        int node = wf_machine_node(&machine, machine.cpus[i].node);
        assert_true(i == 0 || machine.cpus[i].id > machine.cpus[i - 1].id);
        assert_true(node >= 0 && wf_cpus_has(&machine.nodes[node].cpus, machine.cpus[i].id));
    }
    assert_true(wf_cpus_within(&machine.online, &machine.present));
    assert_true(wf_cpus_within(&machine.allowed, &machine.online));
    assert_true(wf_cpus_count(&machine.allowed) > 0);
}

static void synthetic_machines_have_what_they_say(void **state)
{
    static const struct {
        const char *source;
        int nodes, cpus, cores;
    } rows[] = {
        {"synthetic:numa:1 core:1 pu:1", 1, 1, 1},         {"synthetic:numa:2 core:4 pu:2", 2, 16, 8},
        {"synthetic:numa:4 core:2 pu:1", 4, 8, 8},         {"synthetic:pack:2 numa:4 core:8 pu:2", 8, 128, 64},
        {"synthetic:pack:1 core:2 pu:2", 1, 4, 2},         {"synthetic:numa:64 core:1 pu:1", 64, 64, 64},
        {"synthetic:numa:2 core:512 pu:2", 2, 2048, 1024},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int cores = 0;
        discover(rows[i].source);
        check_machine();
        assert_int_equal(machine.node_count, rows[i].nodes);
        assert_int_equal(machine.cpu_count, rows[i].cpus);
        for (int cpu = 0; cpu < machine.cpu_count; cpu++)
            cores = machine.cpus[cpu].core + 1 > cores ? machine.cpus[cpu].core + 1 : cores;
        assert_int_equal(cores, rows[i].cores);
        assert_true(machine.foreign && wf_cpus_equal(&machine.allowed, &machine.online));
        assert_int_equal(machine.gpu_count + machine.nic_count, 0);
    }
    discover("synthetic:pack:2 numa:2 core:2 pu:2"); /* siblings share a core, packages count through */
    assert_int_equal(machine.cpus[0].core, machine.cpus[1].core);
    assert_int_not_equal(machine.cpus[1].core, machine.cpus[2].core);
    assert_int_equal(machine.cpus[7].package, 0);
    assert_int_equal(machine.cpus[8].package, 1);
    assert_int_equal(machine.cpus[8].node, 2);
}

static void what_is_no_machine_is_refused(void **state)
{
    static const struct {
        const char *file, *text; /* NULL: there is none */
        int rc;
        const char *says;
    } rows[] = {
        {"missing.xml", NULL, -ENOENT, "missing.xml"},
        {"empty.xml", "", -EINVAL, "empty"},
        {"text.xml", "this is no topology\n", -EINVAL, "text.xml"},
        {"cut.xml",
         "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
         "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\"",
         -EINVAL, "cut.xml"},
        {"other.xml", "<?xml version=\"1.0\"?>\n<html><body/></html>\n", -EINVAL, "other.xml"},
        {"bare.xml",
         "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology "
         "version=\"2.0\">\n</topology>\n",
         -EINVAL, "bare.xml"},
        {"alone.xml",
         "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
         "<object type=\"Machine\" os_index=\"0\"/></topology>\n",
         -EINVAL, "alone.xml"},
    };
    char why[512];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (rows[i].text)
            write_file(rows[i].file, rows[i].text);
        machine.node_count = 77;
        assert_int_equal(wf_machine_discover(in_folder(rows[i].file), &machine, why, sizeof(why)), rows[i].rc);
        assert_non_null(strstr(why, rows[i].says));
        assert_int_equal(machine.node_count, 77); /* written only on success */
    }
    assert_int_equal(wf_machine_discover(folder, &machine, why, sizeof(why)), -EINVAL);
    assert_non_null(strstr(why, "directory"));
    assert_int_equal(wf_machine_discover("/dev/zero", &machine, why, sizeof(why)), -EINVAL);
    assert_non_null(strstr(why, "not a plain file"));
    assert_int_equal(wf_machine_discover("/dev/null/x", &machine, why, sizeof(why)), -ENOENT);
    assert_int_equal(wf_machine_discover("synthetic:", &machine, why, sizeof(why)), -EINVAL);
    assert_int_equal(wf_machine_discover("synthetic:numa:0", &machine, why, sizeof(why)), -EINVAL);
    assert_int_equal(wf_machine_discover("synthetic:numa:65 pu:1", &machine, why, sizeof(why)), -EINVAL);
    assert_non_null(strstr(why, "64"));
    assert_int_equal(wf_machine_discover("synthetic:nonsense", &machine, why, 9), -EINVAL); /* little room */
    assert_true(strlen(why) < 9);
}

/* "0-51,104-155" */
static void check_node(int id, const char *cpus)
{
    char text[64];
    int node = wf_machine_node(&machine, id);
    assert_true(node >= 0);
    assert_string_equal(wf_cpus_text(&machine.nodes[node].cpus, text, sizeof(text)), cpus);
}

static enum wf_step gpu_to_nic(int gpu, const char *name)
{
    int nic = wf_machine_nic(&machine, name);
    assert_true(gpu < machine.gpu_count && nic >= 0);
    return wf_step_between(&machine.gpus[gpu].path, machine.gpus[gpu].node, &machine.nics[nic].path,
                           machine.nics[nic].node);
}

static void the_cloud_machine_with_gpus_is_read(void **state)
{
    static const char *const nics[] = {"eth1", "eth2", "eth3", "eth4"};

    (void)state;
    discover(TOPOLOGIES "/a3-highgpu-8g.xml");
    check_machine();
    assert_string_equal(machine.name, "a3-highgpu-8g.xml");
    assert_int_equal(machine.cpu_count, 208);
    check_node(0, "0-51,104-155");
    check_node(1, "52-103,156-207");
    for (int cpu = 0; cpu < 104; cpu++)
        assert_int_equal(machine.cpus[cpu].core, machine.cpus[cpu + 104].core);
    assert_int_equal(machine.gpu_count, 8);
    assert_int_equal(machine.nic_count, 5);
    for (int gpu = 0; gpu < 8; gpu++) {
        assert_string_equal(machine.gpus[gpu].name, "NVIDIA H100 80GB HBM3");
        for (int nic = 0; nic < 4; nic++)
            assert_int_equal(gpu_to_nic(gpu, nics[nic]), nic == gpu / 2       ? WF_STEP_SWITCH
                                                         : nic / 2 == gpu / 4 ? WF_STEP_NODE
                                                                              : WF_STEP_OTHER);
        assert_int_equal(gpu_to_nic(gpu, "eth0"), gpu < 4 ? WF_STEP_NODE : WF_STEP_OTHER);
    }
    assert_int_equal(machine.nics[1].speed_mbit, 200000);
    assert_string_equal(machine.nics[1].driver, "gve");
    assert_true(machine.nics[1].up);
}

static void the_other_machines_are_read(void **state)
{
    char name[16];

    (void)state;
    discover(TOPOLOGIES "/dgx-8nic.xml");
    check_machine();
    check_node(1, "56-111,168-223");
    assert_int_equal(machine.gpu_count, 8);
    for (int gpu = 0; gpu < 8; gpu++)
        for (int nic = 0; nic < 8; nic++) {
            snprintf(name, sizeof(name), "eth%d", nic);
            assert_int_equal(gpu_to_nic(gpu, name) == WF_STEP_SWITCH, gpu == nic);
        }
    discover(TOPOLOGIES "/cloud-1nic.xml");
    check_machine();
    check_node(0, "0-15");
    assert_int_equal(machine.gpu_count, 0);
    assert_int_equal(machine.nic_count, 1);
    assert_int_equal(machine.nics[0].speed_mbit, -1);
    discover(TOPOLOGIES "/local-2node-4nic.xml");
    check_machine();
    check_node(0, "0-1");
    check_node(1, "2-3");
    assert_int_equal(machine.nic_count, 4);
    for (int nic = 0; nic < 4; nic++)
        assert_int_equal(machine.nics[nic].node, nic / 2);
}

/* Whatever a file's first part is, it is a machine or it is refused. */
static void a_file_cut_anywhere_does_no_harm(void **state)
{
    char text[8192], why[512], path[256];
    FILE *file = fopen(TOPOLOGIES "/local-2node-4nic.xml", "r");
    size_t length;
    int read = 0;

    (void)state;
    assert_non_null(file);
    length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    assert_in_range(length, 1000, sizeof(text) - 2);
    snprintf(path, sizeof(path), "%s", in_folder("part.xml"));
    for (size_t part = 1; part < length - 1; part += 97) {
        file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(text, 1, part, file), part);
        assert_int_equal(fclose(file), 0);
        why[0] = '\0';
        int rc = wf_machine_discover(path, &machine, why, sizeof(why));
        assert_true(rc == 0 || (rc == -EINVAL && strstr(why, "part.xml")));
        read += rc == 0;
    }
    assert_true(read < 5); /* a file without its last words may pass */
}

static void numbers_beyond_reason_are_refused(void **state)
{
    static const char *const machines[] = {
        "<object type=\"NUMANode\" os_index=\"4294967294\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
        "nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"2\" local_memory=\"1\"/>"
        "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"3\"/>",
        "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"2\" local_memory=\"99999999999999999999\"/>"
        "<object type=\"PU\" os_index=\"4294967295\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"3\"/>",
    };
    char text[2048], why[512];

    (void)state;
    for (size_t i = 0; i < COUNT(machines); i++) {
        snprintf(text, sizeof(text),
                 "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
                 "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
                 "allowed_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" "
                 "gp_index=\"1\">%s</object></topology>\n",
                 machines[i]);
        write_file("numbers.xml", text);
        why[0] = '\0';
        assert_int_equal(wf_machine_discover(in_folder("numbers.xml"), &machine, why, sizeof(why)), -EINVAL);
        assert_true(why[0] != '\0');
    }
}

/* hwloc breaks on some of these. */
static void what_breaks_hwloc_is_refused(void **state)
{
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"os_index=\"3\"", "os_index=\"4294967295\""},        {"type=\"NUMANode\"", "type=\"PU\""},
        {"nodeset=\"0x00000002\"", "nodeset=\"0x0000000f\""}, {"cpuset=\"0x00000008\"", "cpuset=\"\""},
        {"bridge_type=\"0-1\"", "bridge_type=\"9-9\""},       {"osdev_type=\"2\"", "osdev_type=\"99\""},
    };
    static char text[8192], changed[8192];
    char why[512];
    FILE *file = fopen(TOPOLOGIES "/local-2node-4nic.xml", "r");

    (void)state;
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    for (size_t i = 0; i < COUNT(changes); i++) {
        char *at = strstr(text, changes[i].from);
        assert_non_null(at);
        snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, changes[i].to,
                 at + strlen(changes[i].from));
        write_file("changed.xml", changed);
        why[0] = '\0';
        int rc = wf_machine_discover(in_folder("changed.xml"), &machine, why, sizeof(why));
        assert_true(rc == 0 || rc == -EINVAL); /* what it makes of it differs between its releases */
        if (rc == 0)
            check_machine();
        else
            assert_true(why[0]);
    }
}

static void whoever_ignores_children_gets_the_machine_all_the_same(void **state)
{
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);

    (void)state;
    discover("synthetic:numa:2 core:4 pu:2");
    signal(SIGCHLD, before);
    check_machine();
}

static void names_are_ordered_by_the_numbers_in_them(void **state)
{
    static const char *const rows[] = {"enp1s0", "enp2s0f0", "enp2s0f1", "enp10s0", "eth0", "eth2", "eth10", "lo"};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t j = 0; j < COUNT(rows); j++) {
            int order = wf_nic_order(rows[i], rows[j]);
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    assert_true(wf_nic_order("eth", "eth0") < 0);
}

/* Two ports of one card, a bond over them, a VLAN on the bond, loopback. */
static void make_sys(void)
{
    write_file("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/virtio3/driver_is", "");
    write_link("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/virtio3/driver", "/");
    write_link("sys/class/net/eth10/device", "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/virtio3");
    write_link("sys/bus/pci/devices/0000:01:00.0", "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0");
    write_file("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/msi_irqs/40", "msix\n");
    write_file("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/msi_irqs/41", "msix\n");
    write_file("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/msi_irqs/42", "msix\n");
    write_file("proc/irq/40/virtio3-config/x", "");
    write_file("proc/irq/40/smp_affinity_list", "0\n");
    write_file("proc/irq/41/virtio3-input.0/x", "");
    write_file("proc/irq/41/effective_affinity_list", "5\n");
    write_file("proc/irq/41/smp_affinity_list", "0-63\n");
    write_file("proc/irq/42/virtio3-output.0/x", "");
    write_file("proc/irq/42/effective_affinity_list", "\n");
    write_file("proc/irq/42/smp_affinity_list", "8-9\n");
    write_file("sys/class/net/eth10/flags", "0x1003\n");
    write_file("sys/class/net/eth10/carrier", "1\n");
    write_file("sys/class/net/eth10/speed", "200000\n");
    write_file("sys/class/net/eth10/mtu", "8896\n");
    write_file("sys/class/net/eth10/queues/rx-0/x", "");
    write_file("sys/class/net/eth10/queues/rx-1/x", "");
    write_file("sys/class/net/eth10/queues/tx-0/x", "");
    write_file("sys/class/net/eth2/flags", "0x1003\n");
    write_file("sys/class/net/eth2/carrier", "0\n");
    write_file("sys/class/net/eth2/speed", "-1\n");
    write_file("sys/class/net/eth2/mtu", "99999999999999999999\n");
    write_file("sys/class/net/bond0/flags", "nonsense\n");
    write_file("sys/class/net/bond0/lower_eth2/x", "");
    write_file("sys/class/net/bond0/lower_eth10/x", "");
    write_file("sys/class/net/bond0.7/lower_bond0/x", "");
    write_file("sys/class/net/bonding_masters", "bond0\n");
    write_file("sys/class/net/lo/flags", "0x9\n");
}

static void interfaces_are_read_from_sys(void **state)
{
    char sys[256], proc[256], text[32];
    const struct wf_nic *nic;

    (void)state;
    make_sys();
    memset(&machine, 0, sizeof(machine));
    snprintf(sys, sizeof(sys), "%s", in_folder("sys"));
    snprintf(proc, sizeof(proc), "%s", in_folder("proc"));
    wf_nics_read(&machine, sys, proc);
    assert_int_equal(machine.nic_count, 5);
    assert_string_equal(machine.nics[0].name, "bond0");
    assert_string_equal(machine.nics[2].name, "eth2");
    nic = &machine.nics[3];
    assert_string_equal(nic->name, "eth10");
    assert_string_equal(nic->pci, "0000:01:00.0");
    assert_true(nic->up);
    assert_int_equal(nic->speed_mbit, 200000);
    assert_int_equal(nic->mtu, 8896);
    assert_int_equal(nic->queues, 2);
    /* Not those of the config interrupt; where nothing is in effect yet, those that may be. */
    assert_string_equal(wf_cpus_text(&nic->irq, text, sizeof(text)), "5,8-9");
    nic = &machine.nics[2];
    assert_false(nic->up);
    assert_int_equal(nic->speed_mbit, -1);
    assert_int_equal(nic->mtu, -1);
    assert_int_equal(nic->queues, -1);
    assert_int_equal(nic->node, WF_NO_NODE);
    assert_string_equal(nic->driver, "");

    machine.nics[3].node = 1;
    machine.nics[3].path = (struct wf_path){.depth = 1, .step = {"pci0000:00"}};
    wf_nics_inherit(&machine, sys);
    for (int i = 0; i < 2; i++) { /* the bond, and the VLAN on it */
        assert_int_equal(machine.nics[i].node, 1);
        assert_string_equal(machine.nics[i].path.step[0], "pci0000:00");
    }
    assert_int_equal(machine.nics[2].node, WF_NO_NODE);
    assert_int_equal(machine.nics[4].node, WF_NO_NODE);
}

static void without_sys_there_are_no_interfaces(void **state)
{
    (void)state;
    memset(&machine, 0, sizeof(machine));
    wf_nics_read(&machine, in_folder("nowhere"), "/proc");
    assert_int_equal(machine.nic_count, 0);
    wf_nics_inherit(&machine, in_folder("nowhere"));
}

static void among_many_interfaces_those_with_a_device_stay(void **state)
{
    char sys[256], name[64];

    (void)state;
    for (int i = 0; i < WF_NICS_MAX + 16; i++) {
        snprintf(name, sizeof(name), "many/class/net/aveth%d/flags", i);
        write_file(name, "0x1003\n");
    }
    write_file("many/devices/pci0000:00/0000:00:09.0/x", "");
    write_link("many/class/net/eth0/device", "../../../devices/pci0000:00/0000:00:09.0");
    write_file("many/class/net/lo/flags", "0x9\n");
    memset(&machine, 0, sizeof(machine));
    snprintf(sys, sizeof(sys), "%s", in_folder("many"));
    wf_nics_read(&machine, sys, "/proc");
    assert_int_equal(machine.nic_count, WF_NICS_MAX);
    assert_true(wf_machine_nic(&machine, "eth0") >= 0 && wf_machine_nic(&machine, "lo") >= 0);
    snprintf(name, sizeof name, "aveth%d", WF_NICS_MAX - 3); /* lo, eth0, and those from aveth0 on */
    assert_true(wf_machine_nic(&machine, name) >= 0);
    snprintf(name, sizeof name, "aveth%d", WF_NICS_MAX - 2);
    assert_true(wf_machine_nic(&machine, name) < 0);
}

static void this_machine_is_discovered(void **state)
{
    (void)state;
    discover(NULL);
    check_machine();
    assert_false(machine.foreign);
    assert_true(machine.name[0]);
    assert_int_equal(wf_cpus_count(&machine.online), (int)sysconf(_SC_NPROCESSORS_ONLN));
    int lo = wf_machine_nic(&machine, "lo");
    if (access("/sys/class/net/lo", F_OK) == 0) {
        assert_true(lo >= 0);
        assert_int_equal(machine.nics[lo].node, WF_NO_NODE);
        assert_int_equal(machine.nics[lo].path.depth, 0);
        assert_string_equal(machine.nics[lo].pci, "");
    }
    discover("");
    assert_false(machine.foreign);
}

static void what_may_be_used_is_the_affinity(void **state)
{
    cpu_set_t before, one;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    discover(NULL);
    int cpu = wf_cpus_next(&machine.allowed, 0);
    assert_true(cpu >= 0 && cpu < CPU_SETSIZE);
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    discover(NULL);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(wf_cpus_count(&machine.allowed), 1);
    assert_true(wf_cpus_has(&machine.allowed, cpu));
    assert_int_equal(wf_cpus_count(&machine.online), (int)sysconf(_SC_NPROCESSORS_ONLN));
}

static void the_addresses_of_this_machine_are_known(void **state)
{
    (void)state;
    assert_true(wf_address_is_here("127.0.0.1"));
    assert_false(wf_address_is_here("0.0.0.0"));
    assert_false(wf_address_is_here("ff02::1"));
    assert_false(wf_address_is_here("lo"));
    assert_false(wf_address_is_here(""));
    assert_true(wf_address_is_here("127.0.0.1%lo"));
    assert_false(wf_address_is_here("127.0.0.1%eth"));
    assert_true(wf_address_same("fd00::1", "FD00:0::1"));
    assert_true(wf_address_same("fe80::1%eth0", "fe80::1"));
    assert_false(wf_address_same("fe80::1%eth0", "fe80::1%eth1"));
    assert_false(wf_address_same("10.0.0.1", "10.0.0.2"));
    assert_false(wf_address_same("eth0", "eth0"));
    assert_false(wf_address_same("", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synthetic_machines_have_what_they_say),
        cmocka_unit_test(what_is_no_machine_is_refused),
        cmocka_unit_test(the_cloud_machine_with_gpus_is_read),
        cmocka_unit_test(the_other_machines_are_read),
        cmocka_unit_test(a_file_cut_anywhere_does_no_harm),
        cmocka_unit_test(numbers_beyond_reason_are_refused),
        cmocka_unit_test(what_breaks_hwloc_is_refused),
        cmocka_unit_test(whoever_ignores_children_gets_the_machine_all_the_same),
        cmocka_unit_test(names_are_ordered_by_the_numbers_in_them),
        cmocka_unit_test(interfaces_are_read_from_sys),
        cmocka_unit_test(without_sys_there_are_no_interfaces),
        cmocka_unit_test(among_many_interfaces_those_with_a_device_stay),
        cmocka_unit_test(this_machine_is_discovered),
        cmocka_unit_test(what_may_be_used_is_the_affinity),
        cmocka_unit_test(the_addresses_of_this_machine_are_known),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
