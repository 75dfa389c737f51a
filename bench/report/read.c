/* From a path to a run: what a file is, and whether it can be believed. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/machine/memory_limits.h"
#include "bench/words/words.h"
#include "run.h"

#define MEMORY_PER_BYTE 14 /* of a JSON file, while it is read: 11 were measured */
#define TEXT_MOST (64u << 20)

double report_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

uint64_t report_count(const json_t *object, const char *name)
{
    double value = report_number(object, name);

    return value >= 0x1p62 ? UINT64_C(1) << 62 : value > 0 ? (uint64_t)value : 0;
}

const char *report_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

int report_node_of(const char *end)
{
    int node;

    return sscanf(end, "node%9d:", &node) == 1 && node >= 0 ? node : -1;
}

int report_compare_ends(const void *one, const void *other, void *ends)
{
    char *const *list = ends;

    return strverscmp(list[*(const uint32_t *)one], list[*(const uint32_t *)other]);
}

int report_text_index(struct report_texts *texts, const char *text, uint32_t *index)
{
    for (size_t i = texts->count; i-- > 0;)
        if (strcmp(texts->list[i], text) == 0) {
            *index = (uint32_t)i;
            return 0;
        }
    if (texts->count == texts->room) {
        size_t room = texts->room ? 2 * texts->room : 16;
        char **wider = realloc(texts->list, room * sizeof *wider);
        if (!wider)
            return -ENOMEM;
        texts->list = wider;
        texts->room = room;
    }
    texts->list[texts->count] = strdup(text);
    if (!texts->list[texts->count])
        return -ENOMEM;
    *index = (uint32_t)texts->count++;
    return 0;
}

void report_texts_fini(struct report_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->list[i]);
    free(texts->list);
    *texts = (struct report_texts){0};
}

void report_run_destroy(struct report_run *run)
{
    if (!run)
        return;
    json_decref(run->root);
    report_texts_fini(&run->ends);
    report_texts_fini(&run->backends);
    report_texts_fini(&run->rails);
    report_texts_fini(&run->names);
    free(run->samples);
    free(run->carried);
    free(run->flows);
    free(run->text);
    free(run->folder);
    free(run->path);
    free(run);
}

/* --- a file as bytes --- */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), of_end = strlen(end);

    return length >= of_end && strcmp(text + length - of_end, end) == 0;
}

/* Opening a pipe waits for its writer, who may never come, unless one asks not to; and of a pipe or device nothing says
 * whether all of it fits into memory. */
int report_open(const char *path, FILE **file, uint64_t *bytes, struct wf_status *status)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), result = 0;
    struct stat about;

    if (fd < 0)
        return wf_fail(status, -errno, "cannot open it: %s", strerror(errno));
    if (fstat(fd, &about) != 0)
        result = wf_fail(status, -errno, "cannot read it: %s", strerror(errno));
    else if (S_ISDIR(about.st_mode))
        result = wf_fail(status, -EISDIR, "it is a folder");
    else if (!S_ISREG(about.st_mode))
        result = wf_fail(status, -ESPIPE, "it is a pipe or a device: write what comes out of it into a file");
    FILE *opened = result == 0 ? fdopen(fd, "r") : NULL;
    if (!opened) {
        close(fd);
        return result ? result : wf_fail(status, -ENOMEM, "no memory to read it");
    }
    *file = opened;
    *bytes = (uint64_t)about.st_size;
    return 0;
}

static int check_size(uint64_t bytes, bool is_json, struct wf_status *status)
{
    char size[32], needed[32], there[32];
    const char *why;
    uint64_t available = bench_memory_available(&why);

    if (bytes == 0)
        return wf_fail(status, -EBADMSG, "it is empty: a full disk or a run that was killed leaves such a file");
    if (!is_json && bytes > TEXT_MOST)
        return wf_fail(status, -EFBIG, "it has %s, more than the %u MiB that are read",
                       bench_human_bytes(bytes, size, sizeof size), TEXT_MOST >> 20);
    if (is_json && bytes > available / MEMORY_PER_BYTE)
        return wf_fail(status, -EFBIG, "it has %s, and reading it takes %s of memory, where %s are free (%s)",
                       bench_human_bytes(bytes, size, sizeof size),
                       bench_human_bytes(bytes * MEMORY_PER_BYTE, needed, sizeof needed),
                       bench_human_bytes(available, there, sizeof there), why ? why : "this machine");
    return 0;
}

/* All of a file, which is less than TEXT_MOST. */
static int read_text(FILE *file, char **text, struct wf_status *status)
{
    size_t room = 1 << 16, length = 0, got;
    char *bytes = malloc(room);

    while (bytes && (got = fread(bytes + length, 1, room - length - 1, file)) > 0) {
        length += got;
        if (length + 1 < room)
            continue;
        char *wider = room < 2 * (size_t)TEXT_MOST ? realloc(bytes, 2 * room) : NULL;
        if (!wider)
            free(bytes);
        bytes = wider;
        room *= 2;
    }
    if (!bytes)
        return wf_fail(status, -ENOMEM, "no memory to read it");
    if (ferror(file)) {
        free(bytes);
        return wf_fail(status, -EIO, "cannot read it: %s", strerror(errno));
    }
    bytes[length] = '\0';
    *text = bytes;
    return 0;
}

/* --- what it is --- */

static const struct known {
    const char *schema;
    int version;
    enum report_source source;
} known[] = {
    {"weft.result/", 1, REPORT_OF_RUN},          {"weft.sweep/", 1, REPORT_OF_SWEEP},
    {"weft.model/", 1, REPORT_OF_MODEL},         {"weft.collective/", 1, REPORT_OF_COLLECTIVE},
    {"weft.straggler/", 1, REPORT_OF_STRAGGLER}, {"weft.setup_cost/", 1, REPORT_OF_SETUP},
    {"weft.overlap/", 1, REPORT_OF_OVERLAP},
};

/* The number behind a schema's name; 0: there is none. */
static long version_of(const char *digits)
{
    char *end;
    long version = strtol(digits, &end, 10); /* LONG_MAX where it is larger */

    return digits[0] >= '0' && digits[0] <= '9' && !*end ? version : 0;
}

static int recognise(struct report_run *run, struct wf_status *status)
{
    const char *schema = report_text(run->root, "schema");

    if (!json_is_object(run->root) || strncmp(schema, "weft.", 5) != 0)
        return wf_fail(status, -EPROTO, "it is JSON, but no result of weft: it has no schema of ours");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t length = strlen(known[i].schema);
        long version = strncmp(schema, known[i].schema, length) == 0 ? version_of(schema + length) : 0;
        if (version < 1)
            continue;
        if (version > known[i].version)
            return wf_fail(status, -EBADMSG,
                           "it was written by a newer weft: its schema is %.40s, and %s%d is the newest "
                           "that is known here",
                           schema, known[i].schema, known[i].version);
        run->source = known[i].source;
        if (run->source == REPORT_OF_RUN && strcmp(report_text(run->root, "command"), "peers") == 0)
            run->source = REPORT_OF_PEERS;
        return 0;
    }
    return wf_fail(status, -EPROTO, "its schema is %.40s, of which there is no report", schema);
}

/* A file on its way into the parser. */
struct source {
    FILE *file;
    struct bench_progress *progress; /* NULL: nobody looks */
    const char *name;
};

static size_t next_bytes(void *buffer, size_t room, void *context)
{
    struct source *source = context;
    char doing[96];
    size_t count = fread(buffer, 1, room, source->file);

    snprintf(doing, sizeof doing, "bytes, reading %.60s", source->name);
    if (source->progress)
        bench_progress_step(source->progress, count, count, doing);
    return count ? count : ferror(source->file) ? (size_t)-1 : 0;
}

static int read_json(struct report_run *run, FILE *file, struct bench_progress *progress, struct wf_status *status)
{
    json_error_t error;
    const char *slash = strrchr(run->path, '/');
    struct source source = {file, progress, slash ? slash + 1 : run->path};

    run->root = json_load_callback(next_bytes, &source, 0, &error);
    if (!run->root && json_error_code(&error) == json_error_out_of_memory)
        return wf_fail(status, -ENOMEM, "no memory to read it");
    if (!run->root && json_error_code(&error) == json_error_premature_end_of_input)
        return wf_fail(status, -EBADMSG, "it is not whole: it ends in the middle (line %d)", error.line);
    if (!run->root)
        return wf_fail(status, -EBADMSG, "it is no JSON, or is damaged: line %d, %.100s", error.line, error.text);
    int result = recognise(run, status);
    if (result == 0 && run->source == REPORT_OF_RUN)
        result = report_run_take_samples(run, status);
    return result;
}

static int read_other(struct report_run *run, FILE *file, struct wf_status *status)
{
    int result = read_text(file, &run->text, status);

    if (result)
        return result;
    if (ends_with(run->path, ".svg")) {
        run->source = REPORT_OF_PLAN;
        return strstr(run->text, "<svg") ? 0 : wf_fail(status, -EPROTO, "it is no drawing in SVG");
    }
    if (report_collective_csv(run))
        return report_collective_read(run, status);
    run->source = REPORT_OF_SENSE;
    if (strncmp(run->text, "timestamp_ns,node,device,", 25) == 0)
        return 0;
    return wf_fail(status, -EPROTO,
                   "it is CSV, but none that a report is made of: give the JSON of the same run, the "
                   "temperatures.csv of weft profile, or the CSV of weft collective");
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
}

int report_run_read(const char *path, struct bench_progress *progress, struct report_run **run,
                    struct wf_status *status)
{
    struct report_run *made = calloc(1, sizeof *made);
    bool is_json = !ends_with(path, ".csv") && !ends_with(path, ".svg");
    FILE *file = NULL;
    uint64_t bytes = 0;
    int result = report_open(path, &file, &bytes, status);

    if (made) {
        made->path = strdup(path);
        made->folder = folder_of(path);
    }
    if (!made || !made->path || !made->folder)
        result = wf_fail(status, -ENOMEM, "no memory to read it");
    if (result == 0)
        result = check_size(bytes, is_json, status);
    if (result == 0 && progress)
        bench_progress_start(progress, bytes, bytes, 0);
    if (result == 0)
        result = is_json ? read_json(made, file, progress, status) : read_other(made, file, status);
    if (file)
        fclose(file);
    if (result)
        report_run_destroy(made);
    else
        *run = made;
    return result;
}
