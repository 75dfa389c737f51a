/* Copies of simulated devices: when their bytes move, and how they end. */
#include "sim_memory_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SCRIBBLE 0xE5    /* what stands where a copy is going to write */
#define SPLIT_PERCENT 25 /* pieces whose halves move apart */
#define LATE_FACTOR 20
#define ASKING_NS 400 /* most that a look at a copy takes */

/* --- faults --- */

void wf_sim_memory_fail_copy(struct wf_sim_memory *memory, int device, enum wf_copy_way way, uint64_t n, bool at_start)
{
    memory->devices[device].failing[way].countdown = n;
    memory->devices[device].failing[way].at_start = at_start;
}

void wf_sim_memory_fail_percent(struct wf_sim_memory *memory, int device, uint32_t percent)
{
    memory->devices[device].fail_percent = percent;
}

void wf_sim_memory_fail_alloc(struct wf_sim_memory *memory, int device, int n)
{
    memory->devices[device].failing_allocs = n;
}

void wf_sim_memory_fail_pin(struct wf_sim_memory *memory, int n)
{
    memory->failing_pins = n;
}

void wf_sim_memory_freeze(struct wf_sim_memory *memory, int device, bool frozen)
{
    memory->devices[device].frozen = frozen;
}

void wf_sim_memory_slow(struct wf_sim_memory *memory, int device, int64_t copy_min_ns, int64_t copy_max_ns)
{
    memory->devices[device].copy_min_ns = copy_min_ns;
    memory->devices[device].copy_max_ns = copy_max_ns;
}

void wf_sim_memory_lose(struct wf_sim_memory *memory, int device)
{
    memory->devices[device].lost = true;
    memory->devices[device].why = "SIMULATED_DEVICE_LOST (46)";
    WF_LIST_EACH (link, following, &memory->copies) {
        struct sim_copy *copy = WF_CONTAINER(link, struct sim_copy, link);
        bool concerned = copy->device == device || (copy->way == WF_COPY_PEER && copy->to_device == device);
        if (concerned && copy->state == SIM_MOVING)
            sim_copy_end(memory, copy, -ENODEV);
    }
    sim_streams_lose(memory, device);
}

void wf_sim_memory_mend(struct wf_sim_memory *memory, int device)
{
    memory->devices[device].lost = false;
}

struct wf_sim_memory_counts wf_sim_memory_counts(const struct wf_sim_memory *memory, int device)
{
    return memory->devices[device].counts;
}

int wf_sim_memory_pins(const struct wf_sim_memory *memory)
{
    int count = 0;
    WF_LIST_EACH (link, following, &memory->pins)
        count += 1;
    return count;
}

/* --- the start --- */

static struct sim_copy *find(struct wf_sim_memory *memory, const struct wf_copy *copy)
{
    WF_LIST_EACH (link, following, &memory->copies) {
        struct sim_copy *of = WF_CONTAINER(link, struct sim_copy, link);
        if (of->copy == copy)
            return of;
    }
    return NULL;
}

static void drop(struct wf_sim_memory *memory, struct sim_copy *copy)
{
    memory->devices[copy->device].counts.live -= 1;
    wf_link_remove(&copy->link);
    free(copy->parts);
    free(copy->ranges);
    free(copy);
}

static void check_device(const struct wf_memory *memory, int device)
{
    if (device < 0 || device >= memory->host->options.devices || !memory->used[device])
        sim_violation("a copy of device %d, which is not in use", device);
}

static struct sim_copy *begin(struct wf_memory *memory, struct wf_copy *copy)
{
    check_device(memory, copy->device);
    if (copy->way == WF_COPY_PEER)
        check_device(memory, copy->to_device);
    struct sim_copy *record = calloc(1, sizeof(*record));
    if (!record)
        abort();
    *record = (struct sim_copy){.copy = copy,
                                .owner = memory,
                                .way = copy->way,
                                .device = copy->device,
                                .to_device = copy->to_device,
                                .end_ns = WF_NEVER};
    wf_list_push_back(&memory->host->copies, &record->link);
    memory->host->devices[copy->device].counts.live += 1;
    return record;
}

/* `array` with room for one entry more. */
static void *grown(void *array, int count, int *room, size_t entry)
{
    if (count < *room)
        return array;
    *room = *room ? 2 * *room : 4;
    void *larger = realloc(array, entry * (size_t)*room);
    if (!larger)
        abort();
    return larger;
}

static void add_part(struct wf_sim_memory *memory, struct sim_copy *copy, uint8_t *to, const uint8_t *from,
                     uint64_t bytes)
{
    copy->parts = grown(copy->parts, copy->part_count, &copy->part_room, sizeof(*copy->parts));
    copy->parts[copy->part_count++] =
        (struct sim_part){.to = to, .from = from, .bytes = bytes, .moment = (int)sim_memory_below(memory, SIM_MOMENTS)};
}

static void add_piece(struct wf_sim_memory *memory, struct sim_copy *copy, const struct wf_copy_piece *piece)
{
    if (!piece->bytes)
        sim_violation("a piece of no bytes");
    int from_device = copy->way == WF_COPY_IN ? WF_NO_DEVICE : copy->device;
    int to_device = copy->way == WF_COPY_PEER ? copy->to_device : copy->way == WF_COPY_IN ? copy->device : WF_NO_DEVICE;
    uint8_t *to = sim_memory_at(memory, piece->to, piece->bytes, to_device);
    const uint8_t *from = sim_memory_at(memory, piece->from, piece->bytes, from_device);
    copy->ranges = grown(copy->ranges, copy->range_count, &copy->range_room, sizeof(*copy->ranges));
    copy->ranges[copy->range_count++] = *piece;
    copy->bytes += piece->bytes;
    uint64_t first = piece->bytes > 1 && sim_memory_chance(memory, SPLIT_PERCENT)
                         ? 1 + sim_memory_below(memory, piece->bytes - 1)
                         : piece->bytes;
    add_part(memory, copy, to, from, first);
    if (first < piece->bytes)
        add_part(memory, copy, to + first, from + first, piece->bytes - first);
}

/* How it is to end, as the test has asked. */
static int fate_of(struct wf_sim_memory *memory, const struct sim_copy *copy, bool *at_start)
{
    struct sim_device *device = &memory->devices[copy->device];
    *at_start = device->failing[copy->way].at_start;
    if (device->lost || (copy->way == WF_COPY_PEER && memory->devices[copy->to_device].lost)) {
        *at_start = true;
        return -ENODEV;
    }
    if (device->failing[copy->way].countdown && --device->failing[copy->way].countdown == 0)
        return -EIO;
    if (device->fail_percent && sim_memory_chance(memory, device->fail_percent)) {
        *at_start = sim_memory_chance(memory, 50);
        return -EIO;
    }
    return 0;
}

static void scribble(const struct sim_copy *copy)
{
    for (int i = 0; i < copy->part_count; i++)
        memset(copy->parts[i].to, SCRIBBLE, copy->parts[i].bytes);
}

/* All pieces are known: draws when they move. */
static void launch(struct wf_sim_memory *memory, struct sim_copy *copy)
{
    const struct sim_device *device = &memory->devices[copy->device];
    int64_t latency = device->copy_min_ns;
    if (device->copy_max_ns > latency)
        latency += (int64_t)sim_memory_below(memory, (uint64_t)(device->copy_max_ns - latency));
    if (sim_memory_chance(memory, memory->options.late_percent))
        latency *= LATE_FACTOR;
    int64_t now = sim_memory_now(memory);
    int64_t took = latency + (int64_t)((double)copy->bytes * 1e9 / (double)memory->options.bytes_per_second);
    copy->state = SIM_MOVING;
    copy->end_ns = now + took;
    for (int i = 0; i < SIM_MOMENTS; i++) {
        int64_t begin = i ? copy->moments_ns[i - 1] : now;
        copy->moments_ns[i] = begin + (int64_t)sim_memory_below(memory, (uint64_t)(copy->end_ns - begin) + 1);
    }
    if (sim_memory_chance(memory, memory->options.scribble_percent))
        scribble(copy);
}

int sim_copy_start(struct wf_memory *memory, struct wf_copy *copy, const struct wf_copy_piece *pieces, int count,
                   bool more)
{
    struct wf_sim_memory *host = memory->host;
    struct sim_copy *record = find(host, copy);
    if (record && record->state != SIM_GATHERING)
        sim_violation("a copy object is used again while its copy is under way");
    if (!record)
        record = begin(memory, copy);
    for (int i = 0; i < count; i++)
        add_piece(host, record, &pieces[i]);
    if (more)
        return 0;
    bool mark = record->way == WF_COPY_MARK, at_start;
    if (mark ? count != 0 : !record->range_count)
        sim_violation("a copy of %d pieces", record->range_count);
    struct sim_device *device = &host->devices[record->device];
    device->counts.copies[record->way] += 1;
    device->counts.bytes[record->way] += record->bytes;
    record->fate = fate_of(host, record, &at_start);
    if (record->fate < 0) {
        device->why = record->fate == -ENODEV ? "SIMULATED_DEVICE_LOST (46)" : "SIMULATED_COPY_FAILED (719)";
        if (record->way == WF_COPY_PEER) /* either may be asked */
            host->devices[record->to_device].why = device->why;
        if (at_start) {
            int result = record->fate;
            device->counts.failed += 1;
            if (result != -ENODEV)
                scribble(record); /* some of it may have been under way */
            drop(host, record);
            return result;
        }
    }
    copy->event = record;
    if (mark) {
        record->state = SIM_MOVING;
        sim_stream_add(host, copy->device, copy->stream, &(struct sim_item){.kind = SIM_MARK, .mark = record});
    } else {
        launch(host, record);
    }
    return 0;
}

/* --- the way to the end --- */

static bool stands_still(const struct wf_sim_memory *memory, const struct sim_copy *copy)
{
    return copy->state != SIM_MOVING || copy->way == WF_COPY_MARK || memory->devices[copy->device].frozen ||
           (copy->way == WF_COPY_PEER && memory->devices[copy->to_device].frozen);
}

int64_t sim_copies_next(const struct wf_sim_memory *memory)
{
    int64_t next = WF_NEVER;
    WF_LIST_EACH (link, following, &memory->copies) {
        const struct sim_copy *copy = WF_CONTAINER(link, struct sim_copy, link);
        if (stands_still(memory, copy))
            continue;
        int64_t own = copy->moment < SIM_MOMENTS ? copy->moments_ns[copy->moment] : copy->end_ns;
        next = own < next ? own : next;
    }
    return next;
}

void sim_copy_end(struct wf_sim_memory *memory, struct sim_copy *copy, int result)
{
    copy->state = SIM_ENDED;
    copy->result = result;
    memory->devices[copy->device].counts.failed += result < 0;
}

/* Of a copy that is to fail the last bytes do not move. */
static void move(struct sim_copy *copy)
{
    int moment = copy->moment++;
    for (int i = 0; i < copy->part_count; i++) {
        struct sim_part *part = &copy->parts[i];
        if (part->moment != moment)
            continue;
        if (copy->fate < 0 && moment == SIM_MOMENTS - 1)
            memset(part->to, SCRIBBLE, part->bytes);
        else
            memmove(part->to, part->from, part->bytes);
    }
}

void sim_copies_settle(struct wf_sim_memory *memory)
{
    int64_t now = sim_memory_now(memory);
    WF_LIST_EACH (link, following, &memory->copies) {
        struct sim_copy *copy = WF_CONTAINER(link, struct sim_copy, link);
        if (stands_still(memory, copy))
            continue;
        while (copy->moment < SIM_MOMENTS && copy->moments_ns[copy->moment] <= now)
            move(copy);
        if (copy->moment == SIM_MOMENTS && copy->end_ns <= now)
            sim_copy_end(memory, copy, copy->fate);
    }
}

bool sim_copies_use(const struct wf_sim_memory *memory, const void *base, uint64_t bytes)
{
    WF_LIST_EACH (link, following, &memory->copies) {
        const struct sim_copy *copy = WF_CONTAINER(link, struct sim_copy, link);
        for (int i = 0; i < copy->range_count; i++) {
            const struct wf_copy_piece *range = &copy->ranges[i];
            if (sim_ranges_meet(range->to, range->bytes, base, bytes) ||
                sim_ranges_meet(range->from, range->bytes, base, bytes))
                return true;
        }
    }
    return false;
}

int sim_copy_done(struct wf_memory *memory, struct wf_copy *copy)
{
    struct wf_sim_memory *host = memory->host;
    struct sim_copy *record = find(host, copy);
    if (!record || record->state == SIM_GATHERING)
        sim_violation("asked about a copy that is not under way");
    if (record->owner != memory)
        sim_violation("asked about a copy of somebody else");
    /* Asking takes a moment, so that who does nothing else gets an answer. */
    if (host->sim)
        wf_sim_advance(host->sim, host->sim->now_ns + (int64_t)sim_memory_below(host, ASKING_NS));
    if (record->state != SIM_ENDED)
        return 0;
    int result = record->result < 0 ? record->result : 1;
    drop(host, record);
    copy->event = NULL;
    return result;
}
