/*
 * How the emulated GPUs are connected, as no machine is: GPU 2k and GPU 2k + 1 have 2 NVLinks between them (links 0 and
 * 1 of either) and one PCIe switch above them; 11 more links of each GPU lead to a switch (2 to 12), and the last one
 * (13) to nothing. Four GPUs are one NUMA node.
 */
#include "nvml_internal.h"

#define DIRECT_LINKS 2
#define SWITCHED_LINKS 11
#define LINKS (DIRECT_LINKS + SWITCHED_LINKS + 1)
#define LINK_VERSION 3 /* 2.2, in the library's list of versions */
#define SWITCH_BUS 0xff
#define PCIE_GENERATION 1
#define PCIE_MOST_GENERATION 11
#define PCIE_LANES 3
#define PCIE_MOST_LANES 111

enum { TO_GPU = 0, TO_SWITCH = 2 };
enum { ONE_SWITCH = 10, NUMA_NODE = 40, SYSTEM = 50 };

static int other_of(int index)
{
    return index ^ 1;
}

/* The links to another GPU are idle where there is no other one. */
static bool is_active(int index, unsigned int link)
{
    return link < DIRECT_LINKS ? other_of(index) < emu_nvml_world.device_count : link < LINKS - 1;
}

static emu_nvml_result check_link(const struct nvmlDevice_st *device, unsigned int link, const void *out)
{
    emu_nvml_result result = emu_nvml_check(device, out);

    return result == EMU_NVML_OK && link >= LINKS ? EMU_NVML_INVALID_ARGUMENT : result;
}

/* What is at the end of a link can be asked of an active one only. */
static emu_nvml_result check_active(const struct nvmlDevice_st *device, unsigned int link, const void *out)
{
    emu_nvml_result result = check_link(device, link, out);

    return result == EMU_NVML_OK && !is_active(device->index, link) ? EMU_NVML_NOT_SUPPORTED : result;
}

emu_nvml_result nvmlDeviceGetNvLinkState(struct nvmlDevice_st *device, unsigned int link, unsigned int *active)
{
    emu_nvml_result result = check_link(device, link, active);

    if (result == EMU_NVML_OK)
        *active = is_active(device->index, link);
    return result;
}

emu_nvml_result nvmlDeviceGetNvLinkVersion(struct nvmlDevice_st *device, unsigned int link, unsigned int *version)
{
    emu_nvml_result result = check_active(device, link, version);

    if (result == EMU_NVML_OK)
        *version = LINK_VERSION;
    return result;
}

emu_nvml_result nvmlDeviceGetNvLinkRemoteDeviceType(struct nvmlDevice_st *device, unsigned int link, unsigned int *type)
{
    emu_nvml_result result = check_active(device, link, type);

    if (result == EMU_NVML_OK)
        *type = link < DIRECT_LINKS ? TO_GPU : TO_SWITCH;
    return result;
}

emu_nvml_result nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvmlDevice_st *device, unsigned int link,
                                                    struct nvmlPciInfo_st *remote)
{
    emu_nvml_result result = check_active(device, link, remote);

    if (result != EMU_NVML_OK)
        return result;
    if (link < DIRECT_LINKS)
        emu_nvml_address(other_of(device->index), remote);
    else
        *remote =
            (struct nvmlPciInfo_st){.short_address = "0000:ff:00.0", .bus = SWITCH_BUS, .address = "00000000:ff:00.0"};
    return EMU_NVML_OK;
}

emu_nvml_result nvmlDeviceGetTopologyCommonAncestor(struct nvmlDevice_st *one, struct nvmlDevice_st *other,
                                                    unsigned int *level)
{
    emu_nvml_result result = emu_nvml_check(one, level);

    if (result == EMU_NVML_OK)
        result = emu_nvml_check(other, level);
    if (result != EMU_NVML_OK)
        return result;
    *level = one->index / 2 == other->index / 2 ? ONE_SWITCH : one->index / 4 == other->index / 4 ? NUMA_NODE : SYSTEM;
    return EMU_NVML_OK;
}

emu_nvml_result nvmlDeviceGetCurrPcieLinkGeneration(struct nvmlDevice_st *device, unsigned int *generation)
{
    return emu_nvml_put(device, generation, PCIE_GENERATION);
}

emu_nvml_result nvmlDeviceGetCurrPcieLinkWidth(struct nvmlDevice_st *device, unsigned int *lanes)
{
    return emu_nvml_put(device, lanes, PCIE_LANES);
}

emu_nvml_result nvmlDeviceGetMaxPcieLinkGeneration(struct nvmlDevice_st *device, unsigned int *generation)
{
    return emu_nvml_put(device, generation, PCIE_MOST_GENERATION);
}

emu_nvml_result nvmlDeviceGetMaxPcieLinkWidth(struct nvmlDevice_st *device, unsigned int *lanes)
{
    return emu_nvml_put(device, lanes, PCIE_MOST_LANES);
}
