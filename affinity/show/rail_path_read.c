/* How NICs of this machine send and receive, by ethtool's calls. No root needed. */
#include "affinity/show/rail_path.h"

#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "affinity/show/ethtool_rings.h"

#define UNKNOWN (-1)

void wf_path_system_read(const struct wf_machine *machine, int64_t zero_copy_bytes, struct wf_path_system *out)
{
    struct utsname name;
    int major, minor;
    char line[256];
    unsigned long long effective = 0;

    *out = (struct wf_path_system){
        .gpus = machine->gpu_count, .zero_copy_bytes = zero_copy_bytes, .buffer_bytes = (int)sysconf(_SC_PAGESIZE)};
    if (uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2) {
        out->kernel = major * 100 + minor;
        snprintf(out->release, sizeof out->release, "%.63s", name.release);
    }
    FILE *file = fopen("/proc/sys/kernel/io_uring_disabled", "re");
    if (file) {
        if (fscanf(file, "%d", &out->io_uring_disabled) != 1)
            out->io_uring_disabled = 0;
        fclose(file);
    }
    file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "CapEff: %llx", &effective) == 1)
            break;
    if (file)
        fclose(file);
    out->net_admin = effective >> CAP_NET_ADMIN & 1;
}

static int request(int fd, const char *name, int what, void *data)
{
    struct ifreq about = {0};
    snprintf(about.ifr_name, sizeof about.ifr_name, "%s", name);
    about.ifr_data = data;
    return ioctl(fd, (unsigned long)what, &about);
}

static int offload(int fd, const char *name, uint32_t command)
{
    struct ethtool_value value = {.cmd = command};
    return request(fd, name, SIOCETHTOOL, &value) == 0 ? value.data != 0 : UNKNOWN;
}

static int most_queues(int fd, const char *name)
{
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
    if (request(fd, name, SIOCETHTOOL, &channels) != 0 || channels.max_combined == 0 || channels.max_combined > 65536)
        return UNKNOWN;
    return (int)channels.max_combined;
}

static bool is_loopback(int fd, const char *name)
{
    struct ifreq about = {0};
    snprintf(about.ifr_name, sizeof about.ifr_name, "%s", name);
    return ioctl(fd, SIOCGIFFLAGS, &about) == 0 && (about.ifr_flags & IFF_LOOPBACK);
}

void wf_rail_path_read(const struct wf_nic *nic, struct wf_rail_path *out)
{
    *out = (struct wf_rail_path){.sg = UNKNOWN,
                                 .tso = UNKNOWN,
                                 .gro = UNKNOWN,
                                 .queues_most = UNKNOWN,
                                 .header_split = UNKNOWN,
                                 .device = {.header_split = UNKNOWN,
                                            .hds_thresh = UNKNOWN,
                                            .queues = nic->queues,
                                            .queues_aside = UNKNOWN,
                                            .rules = UNKNOWN,
                                            .rules_most = UNKNOWN,
                                            .rules_used = UNKNOWN}};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    out->loopback = is_loopback(fd, nic->name);
    out->sg = offload(fd, nic->name, ETHTOOL_GSG);
    out->tso = offload(fd, nic->name, ETHTOOL_GTSO);
    out->gro = offload(fd, nic->name, ETHTOOL_GGRO);
    out->queues_most = most_queues(fd, nic->name);
    close(fd);
    out->header_split = out->device.header_split = wf_ethtool_header_split(nic->name);
}
