/* Device memory: addresses that nobody can touch, and their content in a file in memory that only copies reach. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define HUGE_PAGE ((size_t)2 << 20)

/* What the signal handler reads: it can take no lock. */
static _Atomic uintptr_t first[EMU_DEVICES_MAX], behind[EMU_DEVICES_MAX];
static atomic_int engine_threads[EMU_DEVICES_MAX];
static struct sigaction former;

int emu_memory_device(uintptr_t address)
{
    for (int i = 0; i < EMU_DEVICES_MAX; i++)
        if (address >= atomic_load(&first[i]) && address < atomic_load(&behind[i]))
            return i;
    return EMU_HOST;
}

void emu_memory_engine_touches(int device)
{
    static _Thread_local int mine = EMU_HOST;

    if (device != EMU_HOST)
        atomic_store(&engine_threads[device], gettid());
    else if (mine != EMU_HOST)
        atomic_store(&engine_threads[mine], 0);
    mine = device;
}

/* "... 7f12 ...": by hand, since a signal handler may call next to nothing. */
static char *put(char *at, const char *text)
{
    size_t length = strlen(text);
    memcpy(at, text, length);
    return at + length;
}

static char *put_number(char *at, uintptr_t number, unsigned int base)
{
    char digits[24];
    int count = 0;

    do {
        digits[count++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0);
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

static void say(const char *before, int device, const char *between, uintptr_t address, const char *after)
{
    char text[256], *at = text;

    at = put_number(put(at, before), (uintptr_t)device, 10);
    at = put_number(put(at, between), address, 16);
    at = put(at, after);
    if (write(STDERR_FILENO, text, (size_t)(at - text)) < 0)
        return;
}

static void touched(int signal, siginfo_t *info, void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;
    int device = emu_memory_device(address);
    pid_t self = gettid();

    if (device != EMU_HOST)
        say("emulated CUDA driver: the processor touched memory of emulated GPU ", device, " at 0x", address, "\n");
    for (int i = 0; i < EMU_DEVICES_MAX; i++)
        if (atomic_load(&engine_threads[i]) == self)
            say("emulated CUDA driver: a copy of emulated GPU ", i, " refers to host memory that is gone, at 0x",
                address, "\n");
    if (former.sa_flags & SA_SIGINFO)
        former.sa_sigaction(signal, info, context);
    else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN)
        former.sa_handler(signal);
    else
        sigaction(signal, &former, NULL); /* the same access comes again, and ends the process as it would have */
}

static void watch(void)
{
    struct sigaction action = {.sa_sigaction = touched, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, &former);
}

emu_result emu_memory_reserve_locked(struct emu_device *device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    /* Twice the memory: addresses are used in turn, and gaps take some. */
    size_t span = 2 * emu.settings.memory, reach = span + (emu.settings.huge ? HUGE_PAGE : 0);
    bool huge = emu.settings.huge;
    int fd;

    if (device->base)
        return EMU_OK;
    fd = memfd_create(device->name, MFD_CLOEXEC | MFD_ALLOW_SEALING | (huge ? MFD_HUGETLB : 0U));
    if (fd < 0)
        return EMU_OUT_OF_MEMORY;
    /* Addresses are cut by huge pages where their content is; what is before the first one is never used. */
    char *base = mmap(NULL, reach, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *content = MAP_FAILED;
    if (ftruncate(fd, (off_t)span) == 0)
        content = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED || content == MAP_FAILED) {
        close(fd);
        if (base != MAP_FAILED)
            munmap(base, reach);
        if (content != MAP_FAILED)
            munmap(content, span);
        return EMU_OUT_OF_MEMORY;
    }
    if (huge)
        base = (char *)(((uintptr_t)base + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    madvise(content, span, MADV_DONTDUMP);
    device->file = emu_dmabuf_keep(fd);
    device->base = base;
    device->content = content;
    device->span = span;
    device->next = (uintptr_t)base;
    atomic_store(&behind[device->index], (uintptr_t)base + span);
    atomic_store(&first[device->index], (uintptr_t)base);
    pthread_once(&once, watch);
    return EMU_OK;
}

emu_result emu_memory_alloc_locked(struct emu_device *device, size_t bytes, uintptr_t *out)
{
    uintptr_t base = (uintptr_t)device->base, end = base + device->span, at;
    size_t guard = emu.settings.guard;

    if (bytes > emu.settings.memory - device->allocated)
        return EMU_OUT_OF_MEMORY;
    at = emu_ranges_gap(&device->blocks, device->next, end, bytes, guard);
    if (at == 0)
        at = emu_ranges_gap(&device->blocks, base, end, bytes, guard);
    if (at == 0 ||
        !emu_ranges_add(&device->blocks,
                        (struct emu_range){.start = at, .bytes = bytes, .device = device->index, .id = ++emu.next_id}))
        return EMU_OUT_OF_MEMORY;
    device->next = at + bytes + guard < end ? at + bytes + guard : base;
    device->allocated += bytes;
    emu.allocated += bytes;
    *out = at;
    return EMU_OK;
}

/* One of the reservation that begins there; NULL: none is left. */
static struct emu_range *next_mapping_locked(int device, uintptr_t reserved)
{
    struct emu_ranges *blocks = &emu.devices[device].blocks;

    for (int i = 0; i < blocks->count; i++)
        if (blocks->at[i].reserved == reserved)
            return &blocks->at[i];
    return NULL;
}

/* Gives the pages back, and forgets the block. */
static void drop_locked(struct emu_device *device, struct emu_range *block)
{
    uintptr_t from = (block->start + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    uintptr_t to = (block->start + block->bytes) & ~(uintptr_t)(PAGE - 1);

    if (to > from)
        madvise(emu_memory_content(device->index, from), to - from, MADV_REMOVE);
    emu_ranges_remove(&device->blocks, block);
}

void emu_memory_free_locked(struct emu_device *device, struct emu_range *block)
{
    device->allocated -= block->bytes;
    emu.allocated -= block->bytes;
    drop_locked(device, block);
}

static int map_locked(struct emu_device *device, const uint64_t *bytes, int count, uint64_t *address)
{
    uintptr_t end, at;
    size_t total = 0;

    for (int i = 0; i < count; i++) {
        if (bytes[i] == 0 || bytes[i] % PAGE != 0 || bytes[i] > emu.settings.memory)
            return -EINVAL;
        total += bytes[i];
    }
    if (emu_memory_reserve_locked(device) != EMU_OK)
        return -ENOMEM;
    end = (uintptr_t)device->base + device->span;
    at = emu_ranges_gap(&device->blocks, device->next, end, total, emu.settings.guard);
    if (at == 0)
        return -ENOMEM;
    *address = at;
    device->next = at + total;
    for (int i = 0; i < count; i++) {
        struct emu_range mapping = {.start = at,
                                    .bytes = bytes[i],
                                    .device = device->index,
                                    .id = ++emu.next_id,
                                    .reserved = (uintptr_t)*address,
                                    .reserved_bytes = total};
        if (!emu_ranges_add(&device->blocks, mapping))
            return -ENOMEM;
        at += bytes[i];
    }
    return 0;
}

int weft_emulated_map(int device, const uint64_t *bytes, int count, uint64_t *address)
{
    int code = -EINVAL;

    pthread_mutex_lock(&emu.lock);
    if (atomic_load(&emu.ready) && device >= 0 && device < emu.device_count && count > 0)
        code = map_locked(&emu.devices[device], bytes, count, address);
    pthread_mutex_unlock(&emu.lock);
    return code;
}

int weft_emulated_unmap(uint64_t address)
{
    int device = emu_memory_device((uintptr_t)address), code = -EINVAL;
    struct emu_range *mapping;

    pthread_mutex_lock(&emu.lock);
    while (device != EMU_HOST && (mapping = next_mapping_locked(device, (uintptr_t)address)) != NULL) {
        drop_locked(&emu.devices[device], mapping);
        code = 0;
    }
    pthread_mutex_unlock(&emu.lock);
    return code;
}

struct emu_range *emu_memory_block_locked(uintptr_t address)
{
    int device = emu_memory_device(address);
    return device == EMU_HOST ? NULL : emu_ranges_find(&emu.devices[device].blocks, address);
}

char *emu_memory_content(int device, uintptr_t address)
{
    return emu.devices[device].content + (address - (uintptr_t)emu.devices[device].base);
}

/* How far one can go from `address`: to the end of its range, or of the mappings behind it in one reservation. */
static size_t left_behind_locked(const struct emu_range *range, uintptr_t address)
{
    const struct emu_ranges *blocks = &emu.devices[range->device].blocks;
    uintptr_t end = range->start + range->bytes;

    while (range->reserved != 0 && range + 1 < blocks->at + blocks->count && range[1].reserved == range->reserved) {
        range++;
        end = range->start + range->bytes;
    }
    return end - address;
}

bool emu_memory_place_locked(uintptr_t address, size_t bytes, int *out)
{
    int device = emu_memory_device(address);
    const struct emu_range *range = device == EMU_HOST ? emu_ranges_find(&emu.registered, address)
                                                       : emu_ranges_find(&emu.devices[device].blocks, address);

    if (range) {
        *out = device;
        return bytes <= left_behind_locked(range, address);
    }
    *out = EMU_NOWHERE;
    return device == EMU_HOST && !emu_ranges_touches(&emu.registered, address, bytes);
}
