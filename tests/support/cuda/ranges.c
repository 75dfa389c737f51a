#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* The number of ranges that begin at or below `address`. */
static int below(const struct emu_ranges *ranges, uintptr_t address)
{
    int low = 0, high = ranges->count;

    while (low < high) {
        int middle = low + (high - low) / 2;
        if (ranges->at[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct emu_range *emu_ranges_find(const struct emu_ranges *ranges, uintptr_t address)
{
    int index = below(ranges, address) - 1;

    if (index < 0 || address - ranges->at[index].start >= ranges->at[index].bytes)
        return NULL;
    return &ranges->at[index];
}

bool emu_ranges_touches(const struct emu_ranges *ranges, uintptr_t start, size_t bytes)
{
    int index = below(ranges, start);

    if (index > 0 && start - ranges->at[index - 1].start < ranges->at[index - 1].bytes)
        return true;
    return index < ranges->count && ranges->at[index].start - start < bytes;
}

bool emu_ranges_add(struct emu_ranges *ranges, struct emu_range range)
{
    int index = below(ranges, range.start);

    if (ranges->count == ranges->room) {
        int room = ranges->room > 0 ? 2 * ranges->room : 16;
        struct emu_range *at = realloc(ranges->at, (size_t)room * sizeof(*at));
        if (!at)
            return false;
        ranges->at = at;
        ranges->room = room;
    }
    memmove(&ranges->at[index + 1], &ranges->at[index], (size_t)(ranges->count - index) * sizeof(range));
    ranges->at[index] = range;
    ranges->count++;
    return true;
}

void emu_ranges_remove(struct emu_ranges *ranges, struct emu_range *range)
{
    size_t behind = (size_t)(&ranges->at[ranges->count] - (range + 1));

    memmove(range, range + 1, behind * sizeof(*range));
    ranges->count--;
}

uintptr_t emu_ranges_gap(const struct emu_ranges *ranges, uintptr_t from, uintptr_t to, size_t bytes, size_t guard)
{
    uintptr_t at = from;
    int index = below(ranges, from);

    if (index > 0 && ranges->at[index - 1].start + ranges->at[index - 1].bytes + guard > at)
        at = ranges->at[index - 1].start + ranges->at[index - 1].bytes + guard;
    for (;; index++) {
        uintptr_t end = index < ranges->count && ranges->at[index].start < to ? ranges->at[index].start - guard : to;
        at = (at + 511) & ~(uintptr_t)511; /* cuMemAlloc promises an alignment for every type: 256 at least */
        if (at <= end && end - at >= bytes)
            return at;
        if (end == to)
            return 0;
        at = ranges->at[index].start + ranges->at[index].bytes + guard;
    }
}
