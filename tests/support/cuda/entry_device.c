/* Entries about devices, and those of modules and kernels, of which there are none. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CUuuid */
struct CUuuid_st {
    char bytes[16];
};

static bool is_device(int device)
{
    return device >= 0 && device < emu.device_count;
}

emu_result cuDriverGetVersion(int *version)
{
    const char *old = getenv("WEFT_EMULATED_OLD"); /* may be asked before cuInit */

    (void)EMU_ENTER();
    if (!version)
        return EMU_INVALID_VALUE;
    *version = old && strcmp(old, "1") == 0 ? 12000 : 13000;
    return EMU_OK;
}

emu_result cuDeviceGetCount(int *count)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!count)
        return EMU_INVALID_VALUE;
    *count = emu.device_count;
    return EMU_OK;
}

emu_result cuDeviceGet(int *device, int ordinal)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!device)
        return EMU_INVALID_VALUE;
    if (!is_device(ordinal))
        return EMU_INVALID_DEVICE;
    *device = ordinal;
    return EMU_OK;
}

emu_result cuDeviceGetName(char *name, int length, int device)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!name || length < 1)
        return EMU_INVALID_VALUE;
    if (!is_device(device))
        return EMU_INVALID_DEVICE;
    snprintf(name, (size_t)length, "%s", emu.devices[device].name);
    return EMU_OK;
}

emu_result cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!bytes)
        return EMU_INVALID_VALUE;
    if (!is_device(device))
        return EMU_INVALID_DEVICE;
    *bytes = emu.settings.memory;
    return EMU_OK;
}

emu_result cuDeviceGetPCIBusId(char *address, int length, int device)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!address || length < 13) /* "0000:18:00.0" and its end */
        return EMU_INVALID_VALUE;
    if (!is_device(device))
        return EMU_INVALID_DEVICE;
    snprintf(address, (size_t)length, "%s", emu.devices[device].address);
    return EMU_OK;
}

/* Numbers as cuda.h has them; what is not here is 0: a GPU without it. */
static int attribute_of(const struct emu_device *device, unsigned int attribute)
{
    unsigned int domain = 0, bus = 0, slot = 0;

    sscanf(device->address, "%x:%x:%x", &domain, &bus, &slot);
    switch (attribute) {
    case 10: /* WARP_SIZE */
        return 32;
    case 15: /* GPU_OVERLAP */
    case 16: /* MULTIPROCESSOR_COUNT */
    case 19: /* CAN_MAP_HOST_MEMORY */
    case 35: /* TCC_DRIVER */
    case 41: /* UNIFIED_ADDRESSING */
    case 91: /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
    case 99: /* HOST_REGISTER_SUPPORTED */
        return 1;
    case 33: /* PCI_BUS_ID */
        return (int)bus;
    case 34: /* PCI_DEVICE_ID */
        return (int)slot;
    case 50: /* PCI_DOMAIN_ID */
        return (int)domain;
    case 40: /* ASYNC_ENGINE_COUNT */
        return EMU_WAYS;
    case 75: /* COMPUTE_CAPABILITY_MAJOR: that of no GPU, so that no kernel is for it */
        return 1;
    case 124: /* DMA_BUF_SUPPORTED */
        return emu_dmabuf_able();
    case 134: /* HOST_NUMA_ID: not known */
        return -1;
    default:
        return 0;
    }
}

emu_result cuDeviceGetAttribute(int *value, unsigned int attribute, int device)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!value || attribute == 0 || attribute > 160)
        return EMU_INVALID_VALUE;
    if (!is_device(device))
        return EMU_INVALID_DEVICE;
    *value = attribute_of(&emu.devices[device], attribute);
    return EMU_OK;
}

emu_result cuDeviceGetUuid_v2(struct CUuuid_st *uuid, int device)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!uuid)
        return EMU_INVALID_VALUE;
    if (!is_device(device))
        return EMU_INVALID_DEVICE;
    memcpy(uuid->bytes, "Weft emulated", sizeof("Weft emulated"));
    uuid->bytes[14] = 0;
    uuid->bytes[15] = (char)device;
    return EMU_OK;
}

emu_result cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!can)
        return EMU_INVALID_VALUE;
    if (!is_device(device) || !is_device(peer))
        return EMU_INVALID_DEVICE;
    *can = device != peer;
    return EMU_OK;
}

/* --- kernels --- */

emu_result cuModuleLoadData(struct CUmod_st **module, const void *image)
{
    struct CUctx_st *context;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!module || !image)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    pthread_mutex_unlock(&emu.lock);
    return result != EMU_OK ? result : EMU_NO_BINARY_FOR_GPU;
}

emu_result cuModuleUnload(struct CUmod_st *module)
{
    emu_result result = EMU_ENTER();

    (void)module;
    return result != EMU_OK ? result : EMU_INVALID_HANDLE;
}

emu_result cuModuleGetFunction(struct CUfunc_st **function, struct CUmod_st *module, const char *name)
{
    emu_result result = EMU_ENTER();

    (void)function;
    (void)module;
    (void)name;
    return result != EMU_OK ? result : EMU_INVALID_HANDLE;
}

emu_result cuLaunchKernel(struct CUfunc_st *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                          unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                          struct CUstream_st *stream, void **arguments, void **extra)
{
    emu_result result = EMU_ENTER();

    (void)function;
    (void)grid_x;
    (void)grid_y;
    (void)grid_z;
    (void)block_x;
    (void)block_y;
    (void)block_z;
    (void)shared_bytes;
    (void)stream;
    (void)arguments;
    (void)extra;
    return result != EMU_OK ? result : EMU_INVALID_HANDLE;
}
