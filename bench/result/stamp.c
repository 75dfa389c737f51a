#include "stamp.h"

#include <stdio.h>
#include <string.h>

static const char *const names[BENCH_STAMPS] = {"variance",   "throttled", "clock",         "retransmits",
                                                "others",     "gpu_drift", "drift_changed", "disciplined",
                                                "nic_errors", "alignment"};

const char *bench_stamp_name(int bit)
{
    return bit >= 0 && bit < BENCH_STAMPS ? names[bit] : NULL;
}

char *bench_stamps_text(unsigned stamps, char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < BENCH_STAMPS && used < room; i++)
        if (stamps & (1u << i))
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ";" : "", names[i]);
    return text;
}

json_t *bench_stamps_to_json(unsigned stamps)
{
    json_t *array = json_array();

    for (int i = 0; i < BENCH_STAMPS; i++)
        if (stamps & (1u << i))
            json_array_append_new(array, json_string(names[i]));
    return array;
}

unsigned bench_stamps_from_json(const json_t *array)
{
    unsigned stamps = 0;
    const json_t *entry;
    size_t index;

    json_array_foreach(array, index, entry)
    {
        for (int i = 0; json_is_string(entry) && i < BENCH_STAMPS; i++)
            if (strcmp(json_string_value(entry), names[i]) == 0)
                stamps |= 1u << i;
    }
    return stamps;
}
