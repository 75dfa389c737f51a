/* Which interfaces are rails, which of them should not be, and which should but cannot. */
#include <dirent.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench/nodes/link.h"
#include "bench/words/words.h"
#include "parts.h"

/* --- what an interface is --- */

/* Asks by ioctl: /sys shows the network namespace of its mount, which may be another one. */
static bool ask(const char *name, unsigned long question, struct ifreq *request)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    bench_copy_text(request->ifr_name, sizeof request->ifr_name, name);
    bool told = fd >= 0 && ioctl(fd, question, request) == 0;
    if (fd >= 0)
        close(fd);
    return told;
}

/* The name of its driver: "mlx5_core", "veth", "bridge", "tun"; "": not known. */
static void driver_of(const char *name, char driver[32])
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq request = {.ifr_data = (char *)&info};

    bench_copy_text(driver, 32, ask(name, SIOCETHTOOL, &request) ? info.driver : "");
}

/* Has the bridge a port with hardware behind it? Then others than this machine's containers are reached by it. */
static bool has_card(const char *bridge)
{
    char path[600];
    struct dirent *entry;
    bool found = false;

    snprintf(path, sizeof path, "/sys/class/net/%s/brif", bridge);
    DIR *folder = opendir(path);
    while (folder && !found && (entry = readdir(folder)) != NULL) {
        snprintf(path, sizeof path, "/sys/class/net/%s/device", entry->d_name);
        found = entry->d_name[0] != '.' && access(path, F_OK) == 0;
    }
    if (folder)
        closedir(folder);
    return found;
}

/* --- the checks --- */

static void check_rail(struct doctor *doctor, const struct weft_interface_info *rail)
{
    char driver[32], remedy[160];

    driver_of(rail->interface, driver);
    if (strcmp(driver, "bridge") != 0 || has_card(rail->interface))
        return;
    snprintf(remedy, sizeof remedy, "leave it out: --rails ^%s, or name the network cards in --rails", rail->interface);
    doctor_fault(doctor, "bridge", remedy,
                 "rail %s (%s) is a bridge without a network card, such as Docker's: it leads to containers of this "
                 "machine, and other machines may have one with the same address",
                 rail->name, rail->address);
}

/* An address says that it is meant to be used. What software makes may be idle. */
static void check_left_out(struct doctor *doctor, const struct weft_interface_info *one)
{
    struct ifreq request = {0};
    char driver[32], remedy[160];

    if (!one->address[0] || strstr(one->why, "(setting rails)") || !ask(one->interface, SIOCGIFFLAGS, &request))
        return;
    driver_of(one->interface, driver);
    if (strcmp(driver, "bridge") == 0 || strcmp(driver, "tun") == 0 || strcmp(driver, "wireguard") == 0)
        return;
    bool up = request.ifr_flags & IFF_UP;
    if (up && request.ifr_flags & IFF_RUNNING)
        return;
    if (up)
        snprintf(remedy, sizeof remedy,
                 "look at its cable, the switch's port and the interface at the other end, or --rails ^%s",
                 one->interface);
    else
        snprintf(remedy, sizeof remedy, "ip link set %s up, or --rails ^%s", one->interface, one->interface);
    doctor_fault(doctor, "link", remedy, "%s has the address %s, but %s", one->interface, one->address,
                 up ? "no carrier" : "is down");
}

static int list_interfaces(struct doctor *doctor, struct wf_status *status)
{
    struct weft_config *settings;
    struct weft_error err = {0};
    int result = bench_library_settings(doctor->options->config, &settings, status);

    if (result)
        return result;
    int count = weft_interfaces(settings, doctor->interfaces, DOCTOR_RAILS_MAX, &err);
    weft_config_destroy(settings);
    if (count < 0)
        return bench_weft_failed(status, &err, NULL);
    doctor->interface_count = count < DOCTOR_RAILS_MAX ? count : DOCTOR_RAILS_MAX;
    return 0;
}

static void tell_rails(struct doctor *doctor)
{
    char names[400] = "";
    size_t used = 0;

    for (int i = 0; i < doctor->interface_count && used < sizeof names; i++)
        if (doctor->interfaces[i].is_rail)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s (%s)", used ? ", " : "",
                                     doctor->interfaces[i].name, doctor->interfaces[i].address);
    doctor_good(doctor, "rails", "%s", names);
}

void doctor_check_interfaces(struct doctor *doctor)
{
    struct wf_status status = {0};

    if (list_interfaces(doctor, &status) != 0) {
        doctor->unusable = true;
        doctor_fault(doctor, strstr(status.text, "key") ? "key" : "rails",
                     "weft topo lists the interfaces, weft config rails key_file where these settings come from", "%s",
                     status.text);
        return;
    }
    tell_rails(doctor);
    for (int i = 0; i < doctor->interface_count; i++)
        if (doctor->interfaces[i].is_rail)
            check_rail(doctor, &doctor->interfaces[i]);
        else
            check_left_out(doctor, &doctor->interfaces[i]);
}
