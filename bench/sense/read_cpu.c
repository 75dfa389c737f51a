/* Processors: what they did since the sample before, their clocks, how hot they are and what they draw. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sense_parts.h"

#define STAT_BYTES (256 * 1024) /* lines of 1024 processors and their sum */
#define CHIPS_LOOKED_AT 64      /* numbers of hwmon */
#define SENSORS_LOOKED_AT 64    /* of one chip */
#define SYSTEM_CPU "/sys/devices/system/cpu/cpu%d"

/* --- sensors --- */

static bool is_processor(const char *chip)
{
    static const char *const chips[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal", "via_cputemp", "soc_thermal"};

    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (strcmp(chip, chips[i]) == 0)
            return true;
    return false;
}

/* How well a sensor stands for its package; Tctl is what AMD's fans and limits go by. */
static int worth_of(const char *label)
{
    if (strncmp(label, "Package", 7) == 0 || strcmp(label, "Tctl") == 0)
        return 3;
    return strcmp(label, "Tdie") == 0 ? 2 : 1;
}

/* The sensor of a chip that stands for its package; -1: it has none. */
static int open_sensor(const char *root, int chip)
{
    char label[64];
    int best = -1, worth = 0;

    for (int i = 1; i <= SENSORS_LOOKED_AT; i++) {
        int fd = bench_sense_open(root, "/sys/class/hwmon/hwmon%d/temp%d_input", chip, i), this_worth = 0;
        if (fd < 0)
            continue;
        if (!bench_sense_read(root, label, sizeof label, "/sys/class/hwmon/hwmon%d/temp%d_label", chip, i))
            label[0] = '\0';
        this_worth = worth_of(label);
        if (this_worth > worth) {
            bench_sense_close(&best);
            best = fd;
            worth = this_worth;
        } else {
            bench_sense_close(&fd);
        }
    }
    return best;
}

static void open_sensors(struct bench_sense_cpu *cpu, const char *root)
{
    char name[64];

    for (int chip = 0; chip < CHIPS_LOOKED_AT && cpu->chip_count < BENCH_SENSE_CHIPS_MAX; chip++) {
        if (!bench_sense_read(root, name, sizeof name, "/sys/class/hwmon/hwmon%d/name", chip) || !is_processor(name))
            continue;
        int fd = open_sensor(root, chip);
        if (fd >= 0)
            cpu->sensors[cpu->chip_count++] = fd;
    }
}

/* Only domains of whole packages; cores and memory within them have a second number. */
static void open_domains(struct bench_sense_cpu *cpu, const char *root)
{
    for (int i = 0; i < BENCH_SENSE_CHIPS_MAX; i++) {
        char range[32];
        int fd = bench_sense_open(root, "/sys/class/powercap/intel-rapl:%d/energy_uj", i);
        if (fd < 0)
            continue;
        if (!bench_sense_read(root, range, sizeof range, "/sys/class/powercap/intel-rapl:%d/max_energy_range_uj", i))
            range[0] = '\0';
        cpu->energy_range_uj[cpu->domain_count] = strtoll(range, NULL, 10);
        cpu->energy_uj[cpu->domain_count] = -1;
        cpu->domains[cpu->domain_count++] = fd;
    }
}

/* --- open and close --- */

static void watch(struct bench_sense_cpu *cpu, const char *root)
{
    for (int i = 0; i < BENCH_CPUS_MAX && cpu->watched_count < BENCH_SENSE_WATCHED_MAX; i++) {
        if (!CPU_ISSET(i, &cpu->ours))
            continue;
        cpu->watched[cpu->watched_count++] = (struct bench_sense_watched){
            .cpu = i,
            .clock_fd = bench_sense_open(root, SYSTEM_CPU "/cpufreq/scaling_cur_freq", i),
            .core_fd = bench_sense_open(root, SYSTEM_CPU "/thermal_throttle/core_throttle_count", i),
            .package_fd = bench_sense_open(root, SYSTEM_CPU "/thermal_throttle/package_throttle_count", i),
        };
    }
}

cpu_set_t bench_sense_cpu_ours(const cpu_set_t *bound)
{
    cpu_set_t ours;

    if (bound && CPU_COUNT(bound) > 0)
        return *bound;
    if (sched_getaffinity(0, sizeof ours, &ours) != 0)
        CPU_ZERO(&ours);
    return ours;
}

/* The next line of a processor in the text of /proc/stat; NULL: no more. */
static const char *next_processor(char **rest, int *number)
{
    char *line = *rest;
    int length;

    while (line && strncmp(line, "cpu", 3) == 0) {
        char *end = strchr(line, '\n');
        *rest = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        /* "cpu  1234 ..." is the sum of all. */
        if (line[3] != ' ' && sscanf(line, "cpu%d%n", number, &length) == 1 && *number >= 0 && *number < BENCH_CPUS_MAX)
            return line + length;
        line = *rest;
    }
    return NULL;
}

static int count_processors(struct bench_sense_cpu *cpu)
{
    char *rest = cpu->stat;
    int number, count = 0;

    if (bench_sense_text(cpu->stat_fd, cpu->stat, STAT_BYTES) <= 0)
        return 0;
    while (next_processor(&rest, &number))
        count = number >= count ? number + 1 : count;
    return count;
}

int bench_sense_cpu_init(struct bench_sense_cpu *cpu, const char *root, const cpu_set_t *bound)
{
    memset(cpu, 0, sizeof *cpu);
    cpu->ours = bench_sense_cpu_ours(bound);
    cpu->stat_fd = bench_sense_open(root, "/proc/stat");
    open_sensors(cpu, root);
    open_domains(cpu, root);
    watch(cpu, root);
    if (cpu->watched_count && !bench_sense_read(root, cpu->governor, sizeof cpu->governor,
                                                SYSTEM_CPU "/cpufreq/scaling_governor", cpu->watched[0].cpu))
        cpu->governor[0] = '\0';
    cpu->stat = malloc(STAT_BYTES);
    if (!cpu->stat)
        return -ENOMEM;
    cpu->cpu_count = count_processors(cpu);
    return 0;
}

void bench_sense_cpu_fini(struct bench_sense_cpu *cpu)
{
    bench_sense_close(&cpu->stat_fd);
    for (int i = 0; i < cpu->chip_count; i++)
        bench_sense_close(&cpu->sensors[i]);
    for (int i = 0; i < cpu->domain_count; i++)
        bench_sense_close(&cpu->domains[i]);
    for (int i = 0; i < cpu->watched_count; i++) {
        bench_sense_close(&cpu->watched[i].clock_fd);
        bench_sense_close(&cpu->watched[i].core_fd);
        bench_sense_close(&cpu->watched[i].package_fd);
    }
    free(cpu->stat);
    cpu->stat = NULL;
}

/* --- one sample --- */

/* Time of guests is in that of tasks already. */
static bool ticks_of(const char *fields, struct bench_sense_ticks *ticks)
{
    uint64_t user, nice, system, idle, wait, irq, softirq, steal = 0;

    int count =
        sscanf(fields, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &user, &nice, &system, &idle, &wait, &irq, &softirq, &steal);
    if (count < 7)
        return false;
    ticks->tasks = user + nice + system + steal;
    ticks->work = ticks->tasks + irq + softirq;
    ticks->all = ticks->work + idle + wait;
    return true;
}

static uint64_t growth(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

static void count_ticks(struct bench_sense_cpu *cpu, int number, const struct bench_sense_ticks *ticks, uint16_t *busy)
{
    struct bench_sense_ticks *before = &cpu->ticks[number];
    uint64_t all = growth(before->all, ticks->all), work = growth(before->work, ticks->work);

    if (before->all && all) {
        bool ours = CPU_ISSET(number, &cpu->ours);
        work = work < all ? work : all;
        *busy = (uint16_t)(work * BENCH_SENSE_BUSY_ALL / all);
        cpu->tasks_anywhere += growth(before->tasks, ticks->tasks);
        cpu->tasks_on_ours += ours ? growth(before->tasks, ticks->tasks) : 0;
        cpu->busy_ours += ours && work > 0;
        cpu->ticked = true;
    }
    *before = *ticks;
}

static void read_busy(struct bench_sense_cpu *cpu, uint16_t *busy)
{
    char *rest = cpu->stat;
    const char *fields;
    struct bench_sense_ticks ticks;
    int number;

    for (int i = 0; i < cpu->cpu_count; i++)
        busy[i] = BENCH_SENSE_BUSY_UNKNOWN;
    cpu->tasks_on_ours = cpu->tasks_anywhere = 0;
    cpu->busy_ours = 0;
    cpu->ticked = false;
    if (bench_sense_text(cpu->stat_fd, cpu->stat, STAT_BYTES) <= 0)
        return;
    while ((fields = next_processor(&rest, &number)) != NULL)
        if (number < cpu->cpu_count && ticks_of(fields, &ticks))
            count_ticks(cpu, number, &ticks, &busy[number]);
}

static int read_celsius(struct bench_sense_cpu *cpu)
{
    int hottest = BENCH_SENSE_UNKNOWN;
    int64_t thousandths;

    for (int i = 0; i < cpu->chip_count; i++)
        if (bench_sense_number(cpu->sensors[i], &thousandths)) {
            int celsius = (int)((thousandths + (thousandths < 0 ? -500 : 500)) / 1000);
            hottest = celsius > hottest ? celsius : hottest;
        }
    return hottest;
}

/* A counter of energy starts again at its range. */
static int read_power(struct bench_sense_cpu *cpu, int64_t now_ns)
{
    int64_t elapsed_ns = now_ns - cpu->energy_at_ns, sum_uj = 0, energy_uj;
    bool known = cpu->domain_count > 0 && cpu->energy_at_ns && elapsed_ns > 0;

    for (int i = 0; i < cpu->domain_count; i++) {
        bool there = bench_sense_number(cpu->domains[i], &energy_uj);
        int64_t more = there ? energy_uj - cpu->energy_uj[i] : 0;
        known &= there && cpu->energy_uj[i] >= 0;
        more += more < 0 ? cpu->energy_range_uj[i] : 0;
        sum_uj += more > 0 ? more : 0;
        cpu->energy_uj[i] = there ? energy_uj : -1;
    }
    cpu->energy_at_ns = now_ns;
    return known ? (int)((double)sum_uj * 1e6 / (double)elapsed_ns) : BENCH_SENSE_UNKNOWN;
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    if (a == BENCH_SENSE_COUNT_UNKNOWN || b == BENCH_SENSE_COUNT_UNKNOWN)
        return a == BENCH_SENSE_COUNT_UNKNOWN ? b : a;
    return a + b;
}

/* Returns the mean clock of the watched processors that worked. */
static int read_watched(struct bench_sense_cpu *cpu, const struct bench_sense_reading *now)
{
    int64_t khz, sum_mhz = 0;
    int busy = 0;

    for (int i = 0; i < cpu->watched_count; i++) {
        const struct bench_sense_watched *watched = &cpu->watched[i];
        struct bench_sense_core *core = &now->cores[i];
        uint16_t share = watched->cpu < cpu->cpu_count ? now->busy[watched->cpu] : BENCH_SENSE_BUSY_UNKNOWN;
        core->throttled = sum_of(bench_sense_count(watched->core_fd), bench_sense_count(watched->package_fd));
        core->mhz = bench_sense_number(watched->clock_fd, &khz) ? (int)(khz / 1000) : BENCH_SENSE_UNKNOWN;
        if (core->mhz != BENCH_SENSE_UNKNOWN && share != BENCH_SENSE_BUSY_UNKNOWN &&
            share >= BENCH_SENSE_BUSY_ALL / 2) {
            sum_mhz += core->mhz;
            busy++;
        }
    }
    return busy ? (int)(sum_mhz / busy) : BENCH_SENSE_UNKNOWN;
}

void bench_sense_cpu_read(struct bench_sense_cpu *cpu, int64_t now_ns, struct bench_sense_reading *now)
{
    read_busy(cpu, now->busy);
    now->sample->mhz = read_watched(cpu, now);
    now->sample->celsius = read_celsius(cpu);
    now->sample->power_mw = read_power(cpu, now_ns);
}
