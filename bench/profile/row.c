#include "row.h"

#include <inttypes.h>
#include <stdio.h>

char *bench_profile_name(const struct bench_profile_row *row, char *name, size_t room)
{
    snprintf(name, room, "p2p_cfg%04" PRIu32 "_s%" PRIu32 "d%" PRIu32 "_sz%" PRIu64 "_r%" PRIu32, row->config, row->src,
             row->dst, row->size, row->repetition);
    return name;
}
