#include "sense_fixture.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* --- the tree --- */

char tree_root[64];

int tree_create(void **state)
{
    (void)state;
    snprintf(tree_root, sizeof tree_root, "/tmp/weft-sense-XXXXXX");
    return mkdtemp(tree_root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

int tree_remove(void **state)
{
    (void)state;
    return nftw(tree_root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void tree_put(const char *path, const char *format, ...)
{
    char whole[512];
    va_list arguments;

    snprintf(whole, sizeof whole, "%s%s", tree_root, path);
    for (char *at = strchr(whole + strlen(tree_root) + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(whole, 0700);
        *at = '/';
    }
    FILE *file = fopen(whole, "we");
    assert_non_null(file);
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fputc('\n', file);
    fclose(file);
}

void tree_put_task(int process, int thread, char state, unsigned flags, unsigned ticks, int cpu)
{
    static const char *const till_signal = "0 0 20 0 3 0 777 1000 20 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17";
    char path[64];

    if (process)
        snprintf(path, sizeof path, "/proc/%d/task/%d/stat", process, thread);
    else
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    tree_put(path, "%d (a (busy) one) %c 1 2 3 0 -1 %u 5 0 0 0 %u %u %s %d 0 0 0 0 0", thread, state, flags, ticks / 2,
             ticks - ticks / 2, till_signal, cpu);
}

/* --- the machine --- */

const char *const machine_pci[2] = {"0000:18:00.0", "0000:3a:00.0"};
const char *const machine_interfaces[1] = {"eth7"};
struct wf_nvml_state machine_gpus[2];
bool machine_gpus_answer;

static unsigned work[MACHINE_CPUS], interrupts[MACHINE_CPUS], idle[MACHINE_CPUS];

int machine_read_gpu(struct wf_nvml *nvml, const char *address, struct wf_nvml_state *out, struct wf_status *status)
{
    (void)nvml;
    if (!machine_gpus_answer)
        return wf_fail(status, -ENODEV, "no GPU at '%s'", address);
    *out = machine_gpus[strcmp(address, machine_pci[0]) != 0];
    return 0;
}

static void put_stat(void)
{
    char text[1024] = "cpu  1 1 1 1 1 1 1 1\n";

    for (int i = 0; i < MACHINE_CPUS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "cpu%d %u 0 0 %u 0 0 %u 0 0 0\n", i, work[i], idle[i],
                 interrupts[i]);
    tree_put("/proc/stat", "%sintr 1 2 3", text);
}

void machine_pass_second(int cpu, unsigned ticks, unsigned interrupted)
{
    for (int i = 0; i < MACHINE_CPUS; i++) {
        work[i] += i == cpu ? ticks : 0;
        interrupts[i] += i == cpu ? interrupted : 0;
        idle[i] += i == cpu ? 100 - ticks - interrupted : 100;
    }
    put_stat();
}

void machine_put_retransmits(unsigned count)
{
    tree_put("/proc/net/snmp",
             "Ip: Forwarding DefaultTTL\nIp: 1 64\nTcp: RtoMin MaxConn RetransSegs InErrs\n"
             "Tcp: 200 -1 %u 0\nUdp: InDatagrams\nUdp: 5",
             count);
}

void machine_put_nic(const char *which, unsigned count)
{
    char path[128];

    snprintf(path, sizeof path, "/sys/class/net/eth7/statistics/%s", which);
    tree_put(path, "%u", count);
}

static void put_sensors(void)
{
    tree_put("/sys/class/hwmon/hwmon0/name", "nvme");
    tree_put("/sys/class/hwmon/hwmon0/temp1_input", "99000");
    tree_put("/sys/class/hwmon/hwmon1/name", "coretemp");
    tree_put("/sys/class/hwmon/hwmon1/temp1_label", "Core 0");
    tree_put("/sys/class/hwmon/hwmon1/temp1_input", "70000");
    tree_put("/sys/class/hwmon/hwmon1/temp2_label", "Package id 0");
    tree_put("/sys/class/hwmon/hwmon1/temp2_input", "54600");
    tree_put("/sys/class/powercap/intel-rapl:0/energy_uj", "900000");
    tree_put("/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000");
}

void machine_put(void)
{
    put_sensors();
    tree_put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2400000");
    tree_put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance");
    tree_put("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "3");
    tree_put("/sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count", "4");
    tree_put("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "9");
    for (int i = 0; i < MACHINE_CPUS; i++) {
        work[i] = interrupts[i] = 0;
        idle[i] = 1000;
        machine_gpus[i % 2] = (struct wf_nvml_state){
            .celsius = 40, .sm_mhz = 1980, .memory_mhz = 2619, .power_mw = 300500, .throttling = "none"};
    }
    put_stat();
    machine_put_retransmits(10);
    machine_put_nic("rx_bytes", 1000);
    machine_put_nic("tx_bytes", 2000);
    machine_put_nic("rx_errors", 0);
    machine_put_nic("tx_errors", 0);
    machine_put_nic("rx_dropped", 7);
    machine_gpus_answer = true;
}

void machine_throttle(int gpu, const char *words, bool held_back)
{
    snprintf(machine_gpus[gpu].throttling, sizeof machine_gpus[gpu].throttling, "%s", words);
    machine_gpus[gpu].held_back = held_back;
}

struct bench_sense *machine_sense(int gpu_count)
{
    cpu_set_t bound;
    struct bench_sense *sense = NULL;
    struct wf_status status;

    CPU_ZERO(&bound);
    CPU_SET(1, &bound);
    struct bench_sense_want want = {.root = tree_root,
                                    .gpu_pci = machine_pci,
                                    .gpu_count = gpu_count,
                                    .interfaces = machine_interfaces,
                                    .interface_count = 1,
                                    .bound = &bound};
    assert_int_equal(bench_sense_create(&want, &sense, &status), 0);
    sense->gpus.read = machine_read_gpu;
    return sense;
}
