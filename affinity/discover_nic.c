#include "affinity/discover_nic.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define UNKNOWN (-1)
#define LOWER_LEVELS 4 /* a VLAN on a bond on a VLAN is as deep as people go */

int wf_nic_order(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            char *end_a, *end_b;
            unsigned long value_a = strtoul(a, &end_a, 10), value_b = strtoul(b, &end_b, 10);
            if (value_a != value_b)
                return value_a < value_b ? -1 : 1;
            a = end_a;
            b = end_b;
        } else if (*a != *b) {
            break;
        } else {
            a += 1;
            b += 1;
        }
    }
    return (unsigned char)*a - (unsigned char)*b;
}

/* --- files of one line --- */

__attribute__((format(printf, 3, 4))) static bool read_line(char *line, size_t room, const char *format, ...)
{
    char path[PATH_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(path, sizeof path, format, list);
    va_end(list);

    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool there = fgets(line, (int)room, file) != NULL;
    fclose(file);
    if (there)
        line[strcspn(line, "\n")] = '\0';
    return there;
}

/* A number that may be on the line, 0 or larger; else -1. */
static int32_t number_of(const char *line)
{
    char *end;
    errno = 0;
    long long value = strtoll(line, &end, 0);
    return errno || end == line || value < 0 || value > INT32_MAX ? UNKNOWN : (int32_t)value;
}

/* --- one interface --- */

static int32_t attribute(const char *sys, const char *name, const char *what)
{
    char line[64];
    return read_line(line, sizeof line, "%s/class/net/%s/%s", sys, name, what) ? number_of(line) : UNKNOWN;
}

/* "0000:05:00.0", or a longer domain. */
static bool is_pci_address(const char *text, size_t length)
{
    unsigned domain, bus, device, function;
    char copy[16], end;
    if (length < 12 || length >= sizeof copy)
        return false;
    snprintf(copy, sizeof copy, "%.*s", (int)length, text);
    return sscanf(copy, "%x:%2x:%2x.%1x%c", &domain, &bus, &device, &function, &end) == 4;
}

/* The last PCI device on the way to where the device's link leads: virtio devices hang below theirs. */
static void read_pci(struct wf_nic *nic, const char *sys)
{
    char path[PATH_MAX], real[PATH_MAX];
    snprintf(path, sizeof path, "%s/class/net/%s/device", sys, nic->name);
    if (!realpath(path, real))
        return;
    for (const char *part = real; *part;) {
        part += strspn(part, "/");
        size_t length = strcspn(part, "/");
        if (is_pci_address(part, length))
            snprintf(nic->pci, sizeof nic->pci, "%.*s", (int)length, part);
        part += length;
    }
}

static void read_driver(struct wf_nic *nic, const char *sys)
{
    char path[PATH_MAX], real[PATH_MAX];
    snprintf(path, sizeof path, "%s/class/net/%s/device/driver", sys, nic->name);
    if (realpath(path, real))
        snprintf(nic->driver, sizeof nic->driver, "%s", strrchr(real, '/') + 1);
}

static int32_t count_queues(const char *sys, const char *name)
{
    char path[PATH_MAX];
    int32_t count = 0;
    snprintf(path, sizeof path, "%s/class/net/%s/queues", sys, name);
    DIR *directory = opendir(path);
    if (!directory)
        return UNKNOWN;
    for (struct dirent *entry; (entry = readdir(directory));)
        count += strncmp(entry->d_name, "rx-", 3) == 0;
    closedir(directory);
    return count ? count : UNKNOWN;
}

/* Interrupts that carry no packets, by what their drivers call them: "virtio1-config", "mlx5_async0@…", "gve-mgmnt". */
static bool is_control_interrupt(const char *action)
{
    static const char *const words[] = {"config", "async", "mgmnt", "mgmt", "misc", "control", "firmware"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(action, words[i]))
            return true;
    return false;
}

/* True when a driver handles the interrupt and packets come with it: then there is a folder named as the driver
 * wishes. */
static bool is_packet_interrupt(const char *proc, const char *number)
{
    char path[PATH_MAX];
    bool found = false;
    snprintf(path, sizeof path, "%s/irq/%s", proc, number);
    DIR *directory = opendir(path);
    if (!directory)
        return false;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] != '.' && entry->d_type == DT_DIR)
            found = found || !is_control_interrupt(entry->d_name);
    closedir(directory);
    return found;
}

/* Where the interrupt goes now; where the kernel does not tell, where it may go. */
static void add_interrupt(struct wf_cpus *irq, const char *proc, const char *number)
{
    char line[4096], why[8];
    struct wf_cpus cpus;
    if (!is_packet_interrupt(proc, number))
        return;
    if ((read_line(line, sizeof line, "%s/irq/%s/effective_affinity_list", proc, number) && line[0]) ||
        read_line(line, sizeof line, "%s/irq/%s/smp_affinity_list", proc, number))
        if (wf_cpus_parse(line, &cpus, why, sizeof why) == 0)
            wf_cpus_unite(irq, &cpus);
}

static void read_interrupts(struct wf_nic *nic, const char *sys, const char *proc)
{
    char path[PATH_MAX];
    if (!nic->pci[0])
        return;
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s/msi_irqs", sys, nic->pci);
    DIR *directory = opendir(path);
    if (!directory)
        return;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (isdigit((unsigned char)entry->d_name[0]))
            add_interrupt(&nic->irq, proc, entry->d_name);
    closedir(directory);
}

static void read_nic(struct wf_nic *nic, const char *name, const char *sys, const char *proc)
{
    *nic = (struct wf_nic){.node = WF_NO_NODE};
    snprintf(nic->name, sizeof nic->name, "%s", name);
    int32_t flags = attribute(sys, name, "flags"), speed = attribute(sys, name, "speed");
    nic->up = flags >= 0 && (flags & IFF_UP) && attribute(sys, name, "carrier") == 1;
    nic->speed_mbit = speed > 0 ? speed : UNKNOWN;
    nic->mtu = attribute(sys, name, "mtu");
    nic->queues = count_queues(sys, name);
    read_pci(nic, sys);
    read_driver(nic, sys);
    read_interrupts(nic, sys, proc);
}

/* --- all of them --- */

struct name {
    char text[IFNAMSIZ];
    bool kept_first; /* has a device, or is loopback */
};

static int by_order(const void *a, const void *b)
{
    return wf_nic_order(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static int by_worth(const void *a, const void *b)
{
    int worth = ((const struct name *)b)->kept_first - ((const struct name *)a)->kept_first;
    return worth ? worth : by_order(a, b);
}

static void note_name(struct name *name, const char *text, const char *sys)
{
    char path[PATH_MAX], real[PATH_MAX];
    snprintf(name->text, sizeof name->text, "%s", text);
    snprintf(path, sizeof path, "%s/class/net/%s/device", sys, text);
    name->kept_first = strcmp(text, "lo") == 0 || realpath(path, real);
}

/* Every name, in an array that the caller frees. */
static int list_names(const char *sys, struct name **names)
{
    char path[PATH_MAX];
    int count = 0;
    *names = NULL;
    snprintf(path, sizeof path, "%s/class/net", sys);
    DIR *directory = opendir(path);
    if (!directory)
        return 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        /* "bonding_masters" is a file; a name that the kernel does not allow is no interface either. */
        if (entry->d_name[0] == '.' || entry->d_type == DT_REG || strlen(entry->d_name) >= IFNAMSIZ)
            continue;
        struct name *grown = realloc(*names, (size_t)(count + 1) * sizeof **names);
        if (!grown)
            break;
        *names = grown;
        note_name(&grown[count++], entry->d_name, sys);
    }
    closedir(directory);
    return count;
}

void wf_nics_read(struct wf_machine *machine, const char *sys, const char *proc)
{
    struct name *names;
    int count = list_names(sys, &names);

    if (count > WF_NICS_MAX) {
        qsort(names, (size_t)count, sizeof *names, by_worth);
        count = WF_NICS_MAX;
    }
    if (count)
        qsort(names, (size_t)count, sizeof *names, by_order);
    for (int i = 0; i < count; i++)
        read_nic(&machine->nics[i], names[i].text, sys, proc);
    machine->nic_count = count;
    free(names);
}

/* --- drivers of NICs without a device --- */

void wf_nics_ask_drivers(struct wf_machine *machine)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    for (int i = 0; i < machine->nic_count; i++) {
        struct wf_nic *nic = &machine->nics[i];
        struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
        struct ifreq about = {.ifr_data = (void *)&info};
        snprintf(about.ifr_name, sizeof about.ifr_name, "%s", nic->name);
        if (!nic->driver[0] && ioctl(fd, SIOCETHTOOL, &about) == 0)
            snprintf(nic->driver, sizeof nic->driver, "%.*s", (int)sizeof info.driver, info.driver);
    }
    close(fd);
}

/* --- bonds and VLANs --- */

static bool has_place(const struct wf_nic *nic)
{
    return nic->path.depth > 0 || nic->node >= 0;
}

/* The first of them in order, as the kernel lists them in no order of its own. */
static const struct wf_nic *placed_lower(const struct wf_machine *machine, const char *name, const char *sys)
{
    char path[PATH_MAX];
    const struct wf_nic *first = NULL;
    snprintf(path, sizeof path, "%s/class/net/%s", sys, name);
    DIR *directory = opendir(path);
    if (!directory)
        return NULL;
    for (struct dirent *entry; (entry = readdir(directory));) {
        int index = strncmp(entry->d_name, "lower_", 6) == 0 ? wf_machine_nic(machine, entry->d_name + 6) : -1;
        if (index < 0 || !has_place(&machine->nics[index]))
            continue;
        if (!first || &machine->nics[index] < first)
            first = &machine->nics[index];
    }
    closedir(directory);
    return first;
}

void wf_nics_inherit(struct wf_machine *machine, const char *sys)
{
    for (int level = 0; level < LOWER_LEVELS; level++)
        for (int i = 0; i < machine->nic_count; i++) {
            struct wf_nic *nic = &machine->nics[i];
            const struct wf_nic *lower = has_place(nic) || nic->pci[0] ? NULL : placed_lower(machine, nic->name, sys);
            if (lower) {
                nic->node = lower->node;
                nic->path = lower->path;
            }
        }
}
