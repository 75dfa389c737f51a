#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"

#include "pieces.h"

#define TID_MESSAGES 1
#define TID_LANES 2

/* Rails in order, channels within a rail, and the copies of GPUs below. */
#define SORT_RAIL 1024
#define SORT_COPIES (1 << 24)

/* --- JSON --- */

void bench_put_json_text(FILE *file, const char *text)
{
    json_t *string = json_string(text);

    if (!string) /* it is not UTF-8 */
        fputs("\"?\"", file);
    else
        json_dumpf(string, file, JSON_ENCODE_ANY);
    json_decref(string);
}

/* Microseconds with three decimals: a double would not have the nanoseconds of a long run. */
static void put_us(FILE *file, const char *name, int64_t ns)
{
    fprintf(file, "\"%s\": %" PRId64 ".%03d", name, ns / 1000, (int)(ns % 1000));
}

static FILE *next_event(struct bench_trace *trace)
{
    fputs(trace->events++ ? ",\n  {" : "\n  {", trace->whole.file);
    return trace->whole.file;
}

static void put_meta_text(struct bench_trace *trace, const char *name, int tid, const char *key, const char *text)
{
    FILE *file = next_event(trace);

    fprintf(file,
            "\"name\": \"%s\", \"ph\": \"M\", \"ts\": 0.000, \"pid\": %" PRId64 ", \"tid\": %d, \"args\": {\"%s\": ",
            name, trace->rank->pid, tid, key);
    bench_put_json_text(file, text);
    fputs("}}", file);
}

static void put_meta_index(struct bench_trace *trace, const char *name, int tid, int index)
{
    fprintf(next_event(trace),
            "\"name\": \"%s\", \"ph\": \"M\", \"ts\": 0.000, \"pid\": %" PRId64
            ", \"tid\": %d, \"args\": {\"sort_index\": %d}}",
            name, trace->rank->pid, tid, index);
}

static void put_thread(struct bench_trace *trace, int tid, const char *name, int index)
{
    put_meta_text(trace, "thread_name", tid, "name", name);
    put_meta_index(trace, "thread_sort_index", tid, index);
}

/* An event with a duration, up to its args. */
static FILE *put_complete(struct bench_trace *trace, const char *category, const char *name, int tid, int64_t begin_ns,
                          int64_t end_ns)
{
    FILE *file = next_event(trace);

    fprintf(file, "\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %" PRId64 ", \"tid\": %d, ", category,
            name, trace->rank->pid, tid);
    put_us(file, "ts", begin_ns - trace->rank->base_ns);
    fputs(", ", file);
    put_us(file, "dur", end_ns - begin_ns);
    fputs(", \"args\": {", file);
    return file;
}

/* --- lanes --- */

static void name_lane(struct bench_trace *trace, const struct bench_profile_span *span, int tid)
{
    char name[64];

    if (bench_span_copies(span)) {
        snprintf(name, sizeof name, "gpu%d copies", span->gpu);
        put_thread(trace, tid, name, SORT_COPIES + span->gpu);
    } else {
        snprintf(name, sizeof name, "rail%d channel%d", span->rail, span->channel);
        put_thread(trace, tid, name, (span->rail + 1) * SORT_RAIL + span->channel);
    }
}

/* Its tid, or a negative errno. */
static int lane_of(struct bench_trace *trace, const struct bench_profile_span *span)
{
    for (size_t i = 0; i < trace->lane_count; i++)
        if (bench_same_lane(&trace->lanes[i], span))
            return TID_LANES + (int)i;
    struct bench_profile_span *lanes = realloc(trace->lanes, (trace->lane_count + 1) * sizeof *lanes);
    if (!lanes)
        return -ENOMEM;
    trace->lanes = lanes;
    lanes[trace->lane_count] = *span;
    int tid = TID_LANES + (int)trace->lane_count++;
    name_lane(trace, span, tid);
    return tid;
}

static const char *const done_names[BENCH_SPAN_KINDS] = {"sent", "received", "copied out", "copied in"};

static int put_piece(struct bench_trace *trace, const struct bench_piece *piece)
{
    const struct bench_profile_span *span = &piece->span;
    bool copies = bench_span_copies(span);
    char name[96], bytes[24], offset[24];
    int tid = lane_of(trace, span);

    if (tid < 0)
        return tid;
    snprintf(name, sizeof name, "%s %s @%s %s%d", copies ? "copy" : "chunk",
             wf_format_size(span->bytes, bytes, sizeof bytes), wf_format_size(span->offset, offset, sizeof offset),
             copies ? "gpu" : "rail", copies ? span->gpu : span->rail);
    FILE *file = put_complete(trace, copies ? "copy" : "chunk", name, tid, span->begin_ns, span->end_ns);
    fprintf(file, "\"bytes\": %" PRIu64 ", \"offset\": %" PRIu64 ", \"rail\": %d, \"channel\": %d, \"gpu\": %d",
            span->bytes, span->offset, span->rail, span->channel, span->gpu);
    fprintf(file, ", \"done\": \"%s\"", done_names[span->kind]);
    if (piece->cut_ns != 0)
        fprintf(file, ", \"trimmed_ns\": %" PRId64, piece->cut_ns);
    fputs("}}", file);
    return 0;
}

/* --- messages --- */

/* `drawn`: of the pieces that this end has traced. */
static void put_message(struct bench_trace *trace, int64_t begin_ns, int64_t end_ns, size_t drawn)
{
    const struct bench_profile_row *row = &trace->row;
    char name[BENCH_PROFILE_NAME];
    json_t *stamps = bench_stamps_to_json(row->stamps);

    FILE *file = put_complete(trace, "user_annotation", bench_profile_name(row, name, sizeof name), TID_MESSAGES,
                              begin_ns, end_ns);
    fprintf(file, "\"Record function id\": %" PRIu64 ", \"size\": %" PRIu64 ", \"src\": %" PRIu32 ", \"dst\": %" PRIu32,
            bench_trace_record(trace->messages), row->size, row->src, row->dst);
    fprintf(file, ", \"role\": \"%s\", \"backend\": ", row->src == trace->rank->rank ? "send" : "recv");
    bench_put_json_text(file, trace->rank->backends[row->backend]);
    fputs(", \"stamps\": ", file);
    json_dumpf(stamps, file, JSON_COMPACT);
    uint32_t traced = row->src == trace->rank->rank ? row->sent : row->received;
    if (traced > drawn)
        fprintf(file, ", \"spans\": \"%zu of %" PRIu32 "\"", drawn, traced);
    if (begin_ns != row->start_ns)
        fprintf(file, ", \"trimmed_ns\": %" PRId64, begin_ns - row->start_ns);
    fputs("}}", file);
    json_decref(stamps);
    trace->messages++;
}

static int put_waiting(struct bench_trace *trace)
{
    const struct bench_profile_row *row = &trace->row;
    int64_t begin_ns = row->start_ns < trace->end_ns ? trace->end_ns : row->start_ns;
    int64_t end_ns = row->end_ns < begin_ns ? begin_ns : row->end_ns;
    size_t count = bench_pieces_fit(trace->pieces, trace->piece_count, begin_ns, end_ns);
    int result = 0;

    put_message(trace, begin_ns, end_ns, count);
    for (size_t i = 0; i < count && result == 0; i++)
        result = put_piece(trace, &trace->pieces[i]);
    trace->end_ns = end_ns;
    if (result == 0 && ferror(trace->whole.file))
        result = errno ? -errno : -EIO;
    return result;
}

static void flush(struct bench_trace *trace)
{
    if (trace->waits && trace->error == 0)
        trace->error = put_waiting(trace);
    trace->waits = false;
    trace->piece_count = 0;
}

void bench_trace_message(struct bench_trace *trace, const struct bench_profile_row *row)
{
    flush(trace);
    trace->row = *row;
    trace->waits = row->src == trace->rank->rank || row->dst == trace->rank->rank;
}

void bench_trace_span(struct bench_trace *trace, const struct bench_profile_span *span)
{
    if (!trace->waits || span->rank != trace->rank->rank || trace->error < 0)
        return;
    if (trace->piece_count == trace->piece_room) {
        size_t room = trace->piece_room ? 2 * trace->piece_room : 64;
        struct bench_piece *pieces = realloc(trace->pieces, room * sizeof *pieces);
        if (!pieces) {
            trace->error = -ENOMEM;
            return;
        }
        trace->pieces = pieces;
        trace->piece_room = room;
    }
    trace->pieces[trace->piece_count++] = (struct bench_piece){.span = *span};
}

/* --- the file --- */

/* Readers look for the rank in "distributedInfo" before they read events: it stands on a line. */
static void put_head(struct bench_trace *trace)
{
    const struct bench_trace_rank *rank = trace->rank;
    FILE *file = trace->whole.file;

    fputs("{\n\"schemaVersion\": 1,\n\"deviceProperties\": ", file);
    if (rank->devices)
        json_dumpf(rank->devices, file, JSON_INDENT(1));
    else
        fputs("[]", file);
    fputs(",\n\"distributedInfo\": {\"backend\": ", file);
    bench_put_json_text(file, rank->backend);
    fprintf(file, ", \"rank\": %" PRIu32 ", \"world_size\": %" PRIu32 "},\n", rank->rank, rank->world);
    fprintf(file, "\"displayTimeUnit\": \"ns\",\n\"baseTimeNanoseconds\": %" PRId64 ",\n", rank->base_unix_ns);
    fprintf(file, "\"baseMonotonicNanoseconds\": %" PRId64 ",\n\"traceEvents\": [", rank->base_ns);
    put_meta_text(trace, "process_name", 0, "name", rank->name);
    put_meta_text(trace, "process_labels", 0, "labels", rank->label);
    put_meta_index(trace, "process_sort_index", 0, (int)rank->rank);
    put_thread(trace, TID_MESSAGES, "messages", 0);
}

static void put_end(struct bench_trace *trace)
{
    const char *slash = strrchr(trace->whole.path, '/');

    fputs("\n],\n\"traceName\": ", trace->whole.file);
    bench_put_json_text(trace->whole.file, slash ? slash + 1 : trace->whole.path);
    fputs("\n}\n", trace->whole.file);
}

int bench_trace_open(struct bench_trace *trace, const char *path, const struct bench_trace_rank *rank,
                     struct wf_status *status)
{
    *trace = (struct bench_trace){.rank = rank, .end_ns = rank->base_ns};
    int result = bench_whole_open(&trace->whole, path, status);
    if (result == 0)
        put_head(trace);
    return result;
}

int bench_trace_close(struct bench_trace *trace, struct wf_status *status)
{
    if (trace->whole.file) {
        flush(trace);
        put_end(trace);
    }
    int result = bench_whole_close(&trace->whole, trace->error, status);
    free(trace->pieces);
    free(trace->lanes);
    trace->pieces = NULL;
    trace->lanes = NULL;
    return result;
}
