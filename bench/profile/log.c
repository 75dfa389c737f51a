#include "log.h"

#include <inttypes.h>

#include "bench/words/whole.h"

struct table {
    const struct bench_profile_row *rows;
    size_t count;
};

static int put_log(const void *what, FILE *file)
{
    const struct table *table = what;

    fputs("config_id,src,dst,size,repetition,timestamp_start_ns,timestamp_end_ns,duration_ns\n", file);
    for (size_t i = 0; i < table->count; i++) {
        const struct bench_profile_row *row = &table->rows[i];
        fprintf(file,
                "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu32 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n",
                row->config, row->src, row->dst, row->size, row->repetition, row->start_ns, row->end_ns,
                row->end_ns - row->start_ns);
    }
    return 0;
}

static int put_stamps(const void *what, FILE *file)
{
    const struct table *table = what;
    char text[BENCH_STAMPS_TEXT];

    fputs("config_id,repetition,stamps\n", file);
    for (size_t i = 0; i < table->count; i++) {
        const struct bench_profile_row *row = &table->rows[i];
        if (row->stamps)
            fprintf(file, "%" PRIu32 ",%" PRIu32 ",%s\n", row->config, row->repetition,
                    bench_stamps_text(row->stamps, text, sizeof text));
    }
    return 0;
}

int bench_profile_write_log(const char *path, const struct bench_profile_row *rows, size_t count,
                            struct wf_status *status)
{
    return bench_write_whole(path, put_log, &(struct table){rows, count}, status);
}

int bench_profile_write_stamps(const char *path, const struct bench_profile_row *rows, size_t count,
                               struct wf_status *status)
{
    return bench_write_whole(path, put_stamps, &(struct table){rows, count}, status);
}
