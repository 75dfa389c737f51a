/* Device memory as dma-bufs: pages of the file that is its content, handed to /dev/udmabuf. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PAGE 4096

bool emu_dmabuf_able(void)
{
    return emu.settings.udmabuf && access("/dev/udmabuf", R_OK | W_OK) == 0;
}

int emu_dmabuf_keep(int file)
{
    if (emu_dmabuf_able() && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0) /* udmabuf takes no file that may shrink */
        return file;
    close(file);
    return -1;
}

/* Whole pages of one device, from one that an allocation reaches into to one that an allocation reaches into. */
static bool is_allocated_locked(uintptr_t start, size_t bytes)
{
    int device = emu_memory_device(start);

    if (device == EMU_HOST || start % PAGE != 0 || bytes % PAGE != 0 || bytes == 0 ||
        emu_memory_device(start + bytes - 1) != device)
        return false;
    const struct emu_ranges *blocks = &emu.devices[device].blocks;
    return emu_ranges_touches(blocks, start, PAGE) && emu_ranges_touches(blocks, start + bytes - PAGE, PAGE);
}

static emu_result export_locked(uintptr_t start, size_t bytes, int *out)
{
    const struct emu_device *device = &emu.devices[emu_memory_device(start)];
    struct udmabuf_create about = {.memfd = (uint32_t)device->file,
                                   .flags = UDMABUF_FLAGS_CLOEXEC,
                                   .offset = start - (uintptr_t)device->base,
                                   .size = bytes};
    int udmabuf = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    int made = udmabuf < 0 ? -1 : ioctl(udmabuf, UDMABUF_CREATE, &about);

    if (udmabuf >= 0)
        close(udmabuf);
    if (made < 0)
        return EMU_OUT_OF_MEMORY;
    *out = made;
    return EMU_OK;
}

emu_result cuMemGetHandleForAddressRange(void *handle, emu_pointer address, size_t bytes, unsigned int type,
                                         unsigned long long flags)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!handle || type != EMU_HANDLE_DMA_BUF_FD || flags > EMU_RANGE_OVER_PCIE)
        return EMU_INVALID_VALUE;
    if (!emu_dmabuf_able())
        return EMU_NOT_SUPPORTED;
    pthread_mutex_lock(&emu.lock);
    if (is_allocated_locked((uintptr_t)address, bytes))
        result = export_locked((uintptr_t)address, bytes, handle);
    else
        result = EMU_INVALID_VALUE;
    pthread_mutex_unlock(&emu.lock);
    return result;
}
