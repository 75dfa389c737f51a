/* Devices that do not exist, their memory, and the seam on top. */
#include "sim_memory_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLICE ((uint64_t)1 << 37) /* addresses of a device */
#define GRAIN 512                 /* where allocations begin; two may touch */
#define FRESH 0xD7                /* what stands in new memory */
#define FRESH_BYTES (1 << 20)     /* of its start; filling all of a large one takes long */

/* --- chance and time --- */

/* splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). Its own sequence: memory
 * does not change what a seed does to a network. */
uint64_t sim_memory_below(struct wf_sim_memory *memory, uint64_t bound)
{
    uint64_t z = memory->random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % bound;
}

bool sim_memory_chance(struct wf_sim_memory *memory, uint32_t percent)
{
    return percent <= 100 && sim_memory_below(memory, 100) < percent;
}

int64_t sim_memory_now(const struct wf_sim_memory *memory)
{
    return memory->sim ? memory->sim->now_ns : 0;
}

static int64_t extra_next(struct sim_extra *extra)
{
    struct wf_sim_memory *memory = WF_CONTAINER(extra, struct wf_sim_memory, extra);
    int64_t copies = sim_copies_next(memory), streams = sim_streams_next(memory);
    return copies < streams ? copies : streams;
}

static void extra_settle(struct sim_extra *extra)
{
    struct wf_sim_memory *memory = WF_CONTAINER(extra, struct wf_sim_memory, extra);
    sim_copies_settle(memory);
    sim_streams_settle(memory);
}

/* --- create and destroy --- */

static void fill_defaults(struct wf_sim_memory_options *options)
{
    if (!options->devices)
        options->devices = 2;
    if (!options->device_bytes)
        options->device_bytes = (uint64_t)16 << 30;
    if (!options->copy_min_ns)
        options->copy_min_ns = 2 * WF_NS_PER_US;
    if (!options->copy_max_ns)
        options->copy_max_ns = 60 * WF_NS_PER_US;
    if (!options->bytes_per_second)
        options->bytes_per_second = 20ull * 1000 * 1000 * 1000;
    if (!options->late_percent)
        options->late_percent = 4;
    if (!options->scribble_percent)
        options->scribble_percent = 50;
}

struct wf_sim_memory *wf_sim_memory_create(const struct wf_sim_memory_options *options)
{
    struct wf_sim_memory *memory = calloc(1, sizeof(*memory));
    if (!memory)
        return NULL;
    if (options)
        memory->options = *options;
    fill_defaults(&memory->options);
    memory->random_state = memory->options.seed;
    memory->extra = (struct sim_extra){.next_ns = extra_next, .settle = extra_settle};
    wf_link_init(&memory->extra.link);
    wf_list_init(&memory->pins);
    wf_list_init(&memory->copies);
    wf_list_init(&memory->streams);
    size_t bytes = SLICE * (uint64_t)memory->options.devices;
    memory->reserved = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory->reserved == MAP_FAILED) {
        free(memory);
        return NULL;
    }
    for (int i = 0; i < memory->options.devices; i++) {
        struct sim_device *device = &memory->devices[i];
        device->room = memory->options.device_bytes;
        device->next = (uint64_t)(uintptr_t)memory->reserved + SLICE * (uint64_t)i + GRAIN;
        device->copy_min_ns = memory->options.copy_min_ns;
        device->copy_max_ns = memory->options.copy_max_ns;
        device->why = "no failure";
        device->stream = (struct wf_sim_stream){.memory = memory, .device = i};
        wf_list_init(&device->stream.items);
        wf_list_push_back(&memory->streams, &device->stream.link);
    }
    return memory;
}

void wf_sim_memory_destroy(struct wf_sim_memory *memory)
{
    if (!memory)
        return;
    if (memory->opened)
        sim_violation("memory is still open at the end (%d times)", memory->opened);
    if (memory->allocation_count)
        sim_violation("%" PRIu64 " bytes of device %d are still in use at the end (%d ranges in all)",
                      memory->allocations[0].bytes, memory->allocations[0].device, memory->allocation_count);
    for (int i = 0; i < memory->options.devices; i++)
        wf_link_remove(&memory->devices[i].stream.link);
    if (!wf_list_empty(&memory->streams))
        sim_violation("a stream still exists at the end");
    wf_sim_memory_join(memory, NULL);
    munmap(memory->reserved, SLICE * (uint64_t)memory->options.devices);
    free(memory->allocations);
    free(memory);
}

void wf_sim_memory_join(struct wf_sim_memory *memory, struct wf_sim *sim)
{
    if (!wf_list_empty(&memory->copies) && memory->sim != sim)
        sim_violation("copies are under way where time ends");
    wf_link_remove(&memory->extra.link);
    memory->sim = sim;
    if (sim)
        wf_list_push_back(&sim->extras, &memory->extra.link);
}

/* --- where memory is --- */

bool sim_ranges_meet(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    const uint8_t *first = a, *second = b;
    return first < second + b_bytes && second < first + a_bytes;
}

bool sim_is_device_address(const struct wf_sim_memory *memory, const void *address, uint64_t bytes)
{
    return sim_ranges_meet(memory->reserved, SLICE * (uint64_t)memory->options.devices, address, bytes ? bytes : 1);
}

/* The last allocation that begins at `address` or below; -1: there is none. */
static int last_before(const struct wf_sim_memory *memory, uint64_t address)
{
    int low = 0, high = memory->allocation_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (memory->allocations[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

struct sim_allocation *sim_allocation_of(const struct wf_sim_memory *memory, const void *address)
{
    uint64_t at = (uint64_t)(uintptr_t)address;
    int index = last_before(memory, at);
    if (index < 0 || at - memory->allocations[index].base >= memory->allocations[index].bytes)
        return NULL;
    return &memory->allocations[index];
}

static bool holds(const struct sim_allocation *allocation, const void *address, uint64_t bytes)
{
    uint64_t offset = (uint64_t)(uintptr_t)address - allocation->base;
    return bytes <= allocation->bytes && offset <= allocation->bytes - bytes;
}

uint8_t *sim_memory_at(struct wf_sim_memory *memory, const void *address, uint64_t bytes, int device)
{
    if (device == WF_NO_DEVICE) {
        if (sim_is_device_address(memory, address, bytes))
            sim_violation("%p is a device's, and was given as the host's", address);
        return (uint8_t *)(uintptr_t)address;
    }
    struct sim_allocation *allocation = sim_allocation_of(memory, address);
    if (!allocation)
        sim_violation("%p was given as memory of device %d, and is none", address, device);
    if (allocation->device != device)
        sim_violation("%p was given as memory of device %d, and is of device %d", address, device, allocation->device);
    if (!holds(allocation, address, bytes))
        sim_violation("%" PRIu64 " bytes at %p of device %d leave their allocation", bytes, address, device);
    return allocation->content + ((uint64_t)(uintptr_t)address - allocation->base);
}

int wf_sim_memory_device(const struct wf_sim_memory *memory, const void *address)
{
    const struct sim_allocation *allocation = sim_allocation_of(memory, address);
    return allocation ? allocation->device : WF_NO_DEVICE;
}

bool sim_is_pinned(const struct wf_sim_memory *memory, const void *address, uint64_t bytes)
{
    WF_LIST_EACH (link, following, &memory->pins) {
        const struct sim_pin *pin = WF_CONTAINER(link, struct sim_pin, link);
        const uint8_t *at = address;
        if (at >= pin->base && bytes <= pin->bytes && (uint64_t)(at - pin->base) <= pin->bytes - bytes)
            return true;
    }
    return false;
}

uint8_t *wf_sim_memory_view(struct wf_sim_memory *memory, const void *address, uint64_t bytes)
{
    return sim_memory_at(memory, address, bytes, wf_sim_memory_device(memory, address));
}

void wf_sim_memory_copy(struct wf_sim_memory *memory, void *to, const void *from, uint64_t bytes)
{
    memmove(wf_sim_memory_view(memory, to, bytes), wf_sim_memory_view(memory, from, bytes), bytes);
}

/* --- allocations --- */

/* Where `bytes` fit at an address that has not been used for long, so that a stale one is noticed; 0: nowhere. */
static uint64_t place_for(struct wf_sim_memory *memory, int device, uint64_t bytes)
{
    uint64_t start = (uint64_t)(uintptr_t)memory->reserved + SLICE * (uint64_t)device, end = start + SLICE;
    uint64_t at = memory->devices[device].next;
    for (bool wrapped = false;;) {
        if (bytes > end - at) {
            if (wrapped)
                return 0;
            wrapped = true;
            at = start + GRAIN;
        }
        int before = last_before(memory, at + bytes - 1);
        if (before < 0 || memory->allocations[before].base + memory->allocations[before].bytes <= at)
            return at;
        at = (memory->allocations[before].base + memory->allocations[before].bytes + GRAIN - 1) / GRAIN * GRAIN;
    }
}

static int insert(struct wf_sim_memory *memory, const struct sim_allocation *allocation)
{
    if (memory->allocation_count == memory->allocation_room) {
        int room = memory->allocation_room ? 2 * memory->allocation_room : 64;
        struct sim_allocation *grown = realloc(memory->allocations, sizeof(*grown) * (size_t)room);
        if (!grown)
            return -ENOMEM;
        memory->allocations = grown;
        memory->allocation_room = room;
    }
    int index = last_before(memory, allocation->base) + 1;
    struct sim_allocation *at = &memory->allocations[index];
    memmove(at + 1, at, sizeof(*at) * (size_t)(memory->allocation_count - index));
    *at = *allocation;
    memory->allocation_count += 1;
    return 0;
}

void *wf_sim_memory_take(struct wf_sim_memory *memory, int index, uint64_t bytes)
{
    struct sim_device *device = &memory->devices[index];
    uint64_t base = bytes && bytes <= device->room ? place_for(memory, index, bytes) : 0;
    uint8_t *content = base ? malloc(bytes) : NULL;
    struct sim_allocation allocation = {
        .base = base, .bytes = bytes, .id = ++memory->last_id, .device = index, .content = content};
    if (!content || insert(memory, &allocation) < 0) {
        free(content);
        return NULL;
    }
    memset(content, FRESH, bytes < FRESH_BYTES ? bytes : FRESH_BYTES);
    device->room -= bytes;
    /* Half of them touch: what leaves its allocation then meets another one, which must be noticed, too. */
    uint64_t gap = sim_memory_chance(memory, 50) ? 0 : GRAIN * (1 + sim_memory_below(memory, 8));
    device->next = (base + bytes + GRAIN - 1) / GRAIN * GRAIN + gap;
    device->counts.allocations += 1;
    device->counts.taken += bytes;
    return (void *)(uintptr_t)base;
}

void wf_sim_memory_give(struct wf_sim_memory *memory, void *base)
{
    if (!base)
        return;
    struct sim_allocation *allocation = sim_allocation_of(memory, base);
    if (!allocation || allocation->base != (uint64_t)(uintptr_t)base)
        sim_violation("%p is freed, and is no allocation", base);
    if (sim_copies_use(memory, base, allocation->bytes))
        sim_violation("%" PRIu64 " bytes of device %d are freed under a copy", allocation->bytes, allocation->device);
    struct sim_device *device = &memory->devices[allocation->device];
    device->room += allocation->bytes;
    device->counts.allocations -= 1;
    device->counts.taken -= allocation->bytes;
    free(allocation->content);
    int index = (int)(allocation - memory->allocations);
    memory->allocation_count -= 1;
    memmove(allocation, allocation + 1, sizeof(*allocation) * (size_t)(memory->allocation_count - index));
}

/* --- the seam --- */

static bool sim_present(void *host)
{
    return host != NULL;
}

static int sim_memory_open(void *host, struct wf_memory **out, struct wf_status *status)
{
    struct wf_sim_memory *world = host;
    if (!world)
        return wf_fail(status, -ENODEV, "the simulated memory needs its devices as host");
    struct wf_memory *memory = calloc(1, sizeof(*memory));
    if (!memory)
        return wf_fail(status, -ENOMEM, "simulated memory: out of memory");
    memory->host = world;
    world->opened += 1;
    *out = memory;
    return 0;
}

static void sim_memory_close(struct wf_memory *memory)
{
    if (!memory)
        return;
    WF_LIST_EACH (link, following, &memory->host->copies) {
        if (WF_CONTAINER(link, struct sim_copy, link)->owner == memory)
            sim_violation("memory is closed with a copy under way");
    }
    WF_LIST_EACH (link, following, &memory->host->pins) {
        if (WF_CONTAINER(link, struct sim_pin, link)->owner == memory)
            sim_violation("memory is closed with %" PRIu64 " bytes pinned",
                          WF_CONTAINER(link, struct sim_pin, link)->bytes);
    }
    memory->host->opened -= 1;
    free(memory);
}

static const char *sim_name(const struct wf_memory *memory)
{
    (void)memory;
    return "cuda (simulated)";
}

static int sim_devices(const struct wf_memory *memory, struct wf_device_info *infos, int max)
{
    const struct wf_sim_memory_options *options = &memory->host->options;
    for (int i = 0; i < options->devices && i < max; i++) {
        infos[i] = (struct wf_device_info){.index = i, .bytes = options->device_bytes};
        snprintf(infos[i].name, sizeof(infos[i].name), "simulated GPU %d", i);
        snprintf(infos[i].pci, sizeof(infos[i].pci), "0000:%02x:00.0", (unsigned)(0x19 + 0x22 * i) & 0xff);
    }
    return options->devices;
}

static bool exists(const struct wf_memory *memory, int device)
{
    return device >= 0 && device < memory->host->options.devices;
}

static int sim_use(struct wf_memory *memory, int device, struct wf_status *status)
{
    if (!exists(memory, device))
        return wf_fail(status, -ENODEV, "there is no simulated GPU %d: there are %d", device,
                       memory->host->options.devices);
    if (memory->host->devices[device].lost)
        return wf_fail(status, -ENODEV, "simulated GPU %d is lost", device);
    memory->used[device] = true;
    return 0;
}

static int sim_locate(struct wf_memory *memory, const void *base, uint64_t length, struct wf_memory_place *out,
                      struct wf_status *status)
{
    struct wf_sim_memory *host = memory->host;
    if (!sim_is_device_address(host, base, length)) {
        *out = (struct wf_memory_place){.device = WF_NO_DEVICE, .pinned = sim_is_pinned(host, base, length)};
        return 0;
    }
    const struct sim_allocation *first = sim_allocation_of(host, base);
    const void *end = (const uint8_t *)base + (length ? length - 1 : 0);
    if (!first)
        return wf_fail(status, -EINVAL, "%p is no memory of a simulated GPU", base);
    if (holds(first, base, length)) {
        *out = (struct wf_memory_place){.device = first->device};
        return 0;
    }
    const struct sim_allocation *last = sim_allocation_of(host, end);
    if (!last)
        return wf_fail(status, -EINVAL,
                       "%" PRIu64 " bytes at %p begin in the allocation of %" PRIu64 " bytes at 0x%" PRIx64
                       " and end in none",
                       length, base, first->bytes, first->base);
    return wf_fail(status, -EINVAL,
                   "%" PRIu64 " bytes at %p span two allocations: %" PRIu64 " bytes at 0x%" PRIx64 " and %" PRIu64
                   " bytes at 0x%" PRIx64,
                   length, base, first->bytes, first->base, last->bytes, last->base);
}

static int sim_alloc(struct wf_memory *memory, int device, uint64_t bytes, void **out, struct wf_status *status)
{
    if (!exists(memory, device) || !memory->used[device])
        sim_violation("memory of device %d is allocated before it is used", device);
    struct sim_device *of = &memory->host->devices[device];
    if (of->lost)
        return wf_fail(status, -ENODEV, "simulated GPU %d is lost", device);
    bool fails = of->failing_allocs > 0;
    of->failing_allocs -= fails;
    void *base = fails ? NULL : wf_sim_memory_take(memory->host, device, bytes);
    if (!base)
        return wf_fail(status, -ENOMEM, "simulated GPU %d has no %" PRIu64 " bytes left", device, bytes);
    *out = base;
    return 0;
}

static void sim_free(struct wf_memory *memory, int device, void *base)
{
    if (base && wf_sim_memory_device(memory->host, base) != device)
        sim_violation("%p is freed as memory of device %d, and is not", base, device);
    wf_sim_memory_give(memory->host, base);
}

static int sim_pin_range(struct wf_memory *memory, int device, void *base, uint64_t bytes, struct wf_status *status)
{
    struct wf_sim_memory *host = memory->host;
    if (!exists(memory, device))
        return wf_fail(status, -EINVAL, "simulated: there is no device %d", device);
    if ((uintptr_t)base % 4096 || !bytes || sim_is_device_address(host, base, bytes))
        sim_violation("%" PRIu64 " bytes at %p cannot be pinned", bytes, base);
    WF_LIST_EACH (link, following, &host->pins) {
        const struct sim_pin *other = WF_CONTAINER(link, struct sim_pin, link);
        if (sim_ranges_meet(other->base, other->bytes, base, bytes))
            return wf_fail(status, -EINVAL, "some of %" PRIu64 " bytes at %p is pinned already", bytes, base);
    }
    bool fails = host->failing_pins > 0;
    host->failing_pins -= fails;
    struct sim_pin *pin = fails ? NULL : calloc(1, sizeof(*pin));
    if (!pin)
        return wf_fail(status, -ENOMEM, "simulated: %" PRIu64 " bytes cannot be pinned", bytes);
    *pin = (struct sim_pin){.base = base, .bytes = bytes, .owner = memory};
    wf_list_push_back(&host->pins, &pin->link);
    return 0;
}

static void sim_unpin(struct wf_memory *memory, int device, void *base)
{
    (void)device;
    WF_LIST_EACH (link, following, &memory->host->pins) {
        struct sim_pin *pin = WF_CONTAINER(link, struct sim_pin, link);
        if (pin->base != base)
            continue;
        if (sim_copies_use(memory->host, base, pin->bytes))
            sim_violation("%" PRIu64 " bytes are unpinned under a copy", pin->bytes);
        if (sim_streams_use(memory->host, base, pin->bytes, NULL))
            sim_violation("%" PRIu64 " bytes are unpinned that a stream waits for", pin->bytes);
        wf_link_remove(&pin->link);
        free(pin);
        return;
    }
    sim_violation("%p is unpinned, and was not pinned", base);
}

static const char *sim_why(const struct wf_memory *memory, int device)
{
    return exists(memory, device) ? memory->host->devices[device].why : "no such device";
}

static int sim_hold(struct wf_memory *memory, int device, void *stream, const uint32_t *flag, uint32_t value)
{
    struct wf_sim_memory *host = memory->host;
    if (!exists(memory, device) || !memory->used[device])
        sim_violation("a stream of device %d is held before it is used", device);
    if (host->options.no_hold)
        return -ENOTSUP;
    if (host->devices[device].lost)
        return -ENODEV;
    if (!sim_is_pinned(host, flag, sizeof(*flag)))
        sim_violation("a stream is held by a word that is not pinned");
    struct sim_item item = {.kind = SIM_HOLD, .flag = flag, .value = value, .owner = memory};
    sim_stream_add(host, device, stream, &item);
    return 0;
}

static int sim_copy_now(struct wf_memory *memory, void *to, const void *from, uint64_t bytes, struct wf_status *status)
{
    struct wf_sim_memory *host = memory->host;
    const void *sides[] = {to, from};
    for (int i = 0; i < 2; i++) {
        int device = wf_sim_memory_device(host, sides[i]);
        if (device != WF_NO_DEVICE && host->devices[device].lost)
            return wf_fail(status, -ENODEV, "simulated GPU %d is lost", device);
        struct wf_memory_place place;
        int result = sim_locate(memory, sides[i], bytes, &place, status);
        if (result < 0)
            return result;
    }
    wf_sim_memory_copy(host, to, from, bytes);
    return 0;
}

const struct wf_memory_ops wf_memory_sim = {
    .kind = "cuda",
    .present = sim_present,
    .open = sim_memory_open,
    .close = sim_memory_close,
    .name = sim_name,
    .devices = sim_devices,
    .use = sim_use,
    .locate = sim_locate,
    .extent = sim_extent,
    .alloc = sim_alloc,
    .free = sim_free,
    .pin = sim_pin_range,
    .unpin = sim_unpin,
    .copy_start = sim_copy_start,
    .copy_done = sim_copy_done,
    .why = sim_why,
    .hold = sim_hold,
    .copy_now = sim_copy_now,
    .exports = sim_exports,
    .export_dmabuf = sim_export_dmabuf,
};
