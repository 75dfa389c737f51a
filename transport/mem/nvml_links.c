/* How a GPU is connected: over PCIe, and over NVLink with another GPU. */
#include "mem/nvml_parts.h"

#include <errno.h>
#include <stdio.h>

static int ask(wf_nvml_result (*question)(wf_nvml_device device, unsigned int *value), wf_nvml_device device)
{
    unsigned int value;

    return question && question(device, &value) == 0 ? (int)value : WF_NVML_UNKNOWN;
}

int wf_nvml_pcie(struct wf_nvml *nvml, const char *pci, struct wf_nvml_pcie *out, struct wf_status *status)
{
    const struct wf_nvml_api *api = &nvml->api;
    wf_nvml_device device;
    int result = wf_nvml_find(nvml, pci, &device, status);

    if (result)
        return result;
    *out = (struct wf_nvml_pcie){
        .generation = ask(api->nvmlDeviceGetCurrPcieLinkGeneration, device),
        .lanes = ask(api->nvmlDeviceGetCurrPcieLinkWidth, device),
        .most_generation = ask(api->nvmlDeviceGetMaxPcieLinkGeneration, device),
        .most_lanes = ask(api->nvmlDeviceGetMaxPcieLinkWidth, device),
    };
    return 0;
}

static const char *path_word(unsigned int level)
{
    switch (level) {
    case WF_NVML_SAME_BOARD:
        return "same board";
    case WF_NVML_ONE_SWITCH:
        return "one switch";
    case WF_NVML_SWITCHES:
        return "switches";
    case WF_NVML_HOST_BRIDGE:
        return "host bridge";
    case WF_NVML_NUMA_NODE:
        return "NUMA node";
    case WF_NVML_SYSTEM:
        return "system";
    default:
        return "";
    }
}

/* The place in the library's list -> what people call the version. */
static int version_of(const struct wf_nvml_api *api, wf_nvml_device device, unsigned int link)
{
    static const int versions[] = {
        [WF_NVML_LINK_1_0] = 1, [WF_NVML_LINK_2_0] = 2, [WF_NVML_LINK_2_2] = 2, [WF_NVML_LINK_3_0] = 3,
        [WF_NVML_LINK_3_1] = 3, [WF_NVML_LINK_4_0] = 4, [WF_NVML_LINK_5_0] = 5, [WF_NVML_LINK_6_0] = 6,
    };
    unsigned int place;

    if (!api->nvmlDeviceGetNvLinkVersion || api->nvmlDeviceGetNvLinkVersion(device, link, &place) || place == 0 ||
        place >= sizeof versions / sizeof *versions)
        return WF_NVML_UNKNOWN;
    return versions[place];
}

static bool is_at(const wf_nvml_address *address, const char *pci)
{
    unsigned int domain, bus, device;

    return sscanf(pci, "%x:%x:%x", &domain, &bus, &device) == 3 && domain == address->domain && bus == address->bus &&
           device == address->device;
}

/* What one active link adds. The address of a switch is none of a GPU. */
static void count_link(const struct wf_nvml_api *api, wf_nvml_device device, unsigned int link, const char *other,
                       struct wf_nvml_link *out)
{
    wf_nvml_address remote = {0};
    unsigned int type;

    if (out->nvlink_version == WF_NVML_UNKNOWN)
        out->nvlink_version = version_of(api, device, link);
    if (api->nvmlDeviceGetNvLinkRemoteDeviceType &&
        api->nvmlDeviceGetNvLinkRemoteDeviceType(device, link, &type) == 0 && type == WF_NVML_REMOTE_SWITCH)
        out->switched++;
    else if (api->nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &remote) == 0 && is_at(&remote, other))
        out->nvlinks++;
}

/* A GPU without NVLink does not support the question: it has no links. After the last link the number is invalid. */
static void count_links(const struct wf_nvml_api *api, wf_nvml_device device, const char *other,
                        struct wf_nvml_link *out)
{
    struct wf_nvml_link links = *out;
    wf_nvml_result result = 0;

    if (!api->nvmlDeviceGetNvLinkState || !api->nvmlDeviceGetNvLinkRemotePciInfo_v2)
        return;
    links.nvlinks = 0;
    links.switched = api->nvmlDeviceGetNvLinkRemoteDeviceType ? 0 : WF_NVML_UNKNOWN;
    for (unsigned int i = 0; i < WF_NVML_LINKS_MAX; i++) {
        unsigned int active = 0;
        result = api->nvmlDeviceGetNvLinkState(device, i, &active);
        if (result == 0 && active == WF_NVML_LINK_ACTIVE)
            count_link(api, device, i, other, &links);
        if (result != 0 && result != WF_NVML_NOT_SUPPORTED)
            break;
    }
    if (result == 0 || result == WF_NVML_NOT_SUPPORTED || result == WF_NVML_INVALID_ARGUMENT)
        *out = links;
}

int wf_nvml_link(struct wf_nvml *nvml, const char *pci, const char *other, struct wf_nvml_link *out,
                 struct wf_status *status)
{
    const struct wf_nvml_api *api = &nvml->api;
    struct wf_nvml_link link = {
        .nvlinks = WF_NVML_UNKNOWN, .switched = WF_NVML_UNKNOWN, .nvlink_version = WF_NVML_UNKNOWN};
    wf_nvml_device one, two;
    unsigned int level;
    int result = wf_nvml_find(nvml, pci, &one, status);

    if (result == 0)
        result = wf_nvml_find(nvml, other, &two, status);
    if (result)
        return result;
    if (api->nvmlDeviceGetTopologyCommonAncestor && api->nvmlDeviceGetTopologyCommonAncestor(one, two, &level) == 0)
        snprintf(link.path, sizeof link.path, "%s", path_word(level));
    count_links(api, one, other, &link);
    *out = link;
    return 0;
}
