#include "row.h"

#include <inttypes.h>
#include <stdio.h>

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

char *bench_profile_name(const struct bench_profile_row *row, char *name, size_t room)
{
    snprintf(name, room, "p2p_cfg%04" PRIu32 "_s%" PRIu32 "d%" PRIu32 "_sz%" PRIu64 "_r%" PRIu32, row->config, row->src,
             row->dst, row->size, row->repetition);
    return name;
}
