/* The command line of `weft raw`. Its options are no settings: nothing of the library acts here. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "bench/words/words.h"
#include "parts.h"
#include "raw.h"

#define MESSAGES_MAX (UINT64_C(1) << 40)
#define COUNT_MAX (UINT64_C(1) << 20)
#define TIMEOUT_MAX_S 86400u
#define ADDRESS_TEXT 256
#define NOT_SAID UINT64_MAX

enum option_id {
    RAW_LISTEN,
    RAW_CONNECT,
    RAW_STREAMS,
    RAW_SIZE,
    RAW_ITERS,
    RAW_WARMUP,
    RAW_INFLIGHT,
    RAW_BUFFERS,
    RAW_CALL,
    RAW_BATCH,
    RAW_BLOCK,
    RAW_READ_AHEAD,
    RAW_CONGESTION,
    RAW_LAT,
    RAW_RATE_MODE,
    RAW_TIMEOUT,
    RAW_CPU,
    RAW_HELP,
    RAW_VERSION,
    RAW_OPTIONS
};

enum value_kind { VALUE_NONE, VALUE_NAME, VALUE_TEXT, VALUE_OPTIONAL_TEXT, VALUE_SIZE, VALUE_COUNT };

static const struct option_row {
    const char *name;
    char letter; /* 0: none */
    enum value_kind value;
    uint64_t least, most;
    enum bench_section section;
    const char *shown; /* what stands for the value */
    const char *help, *fallback;
} rows[RAW_OPTIONS] = {
    [RAW_LISTEN] = {"listen", 0, VALUE_OPTIONAL_TEXT, 0, 0, BENCH_SECTION_NODES, "[ADDR:]PORT",
                    "be the server of one run: receive, then end", "18555"},
    [RAW_CONNECT] = {"connect", 0, VALUE_TEXT, 0, 0, BENCH_SECTION_NODES, "ADDR[:PORT][,...]",
                     "be the client: measure; one stream to each address, or --streams", NULL},
    [RAW_STREAMS] = {"streams", 0, VALUE_COUNT, 1, RAW_STREAMS_MAX, BENCH_SECTION_NODES, "N",
                     "streams to each address of --connect, 1024 in all at most", "1"},
    [RAW_SIZE] = {"size", 0, VALUE_SIZE, 1, UINT64_C(1) << 40, BENCH_SECTION_WHAT, "SIZE", "bytes of a message",
                  "1M; with --lat 8, with --rate 64"},
    [RAW_ITERS] = {"iters", 'n', VALUE_COUNT, 1, MESSAGES_MAX, BENCH_SECTION_HOW, "N", "messages that are measured",
                   "1000; with --lat 20000, with --rate 1000000"},
    [RAW_WARMUP] = {"warmup", 'w', VALUE_COUNT, 0, MESSAGES_MAX, BENCH_SECTION_HOW, "N", "messages before them",
                    "a tenth"},
    [RAW_INFLIGHT] = {"inflight", 0, VALUE_COUNT, 0, COUNT_MAX, BENCH_SECTION_HOW, "N",
                      "messages not known to be received, at most; 0 means no limit", "16; with --rate 64"},
    [RAW_BUFFERS] = {"buffers", 0, VALUE_COUNT, 1, COUNT_MAX, BENCH_SECTION_HOW, "N",
                     "areas of --size bytes that take turns, at each side", "--inflight"},
    [RAW_CALL] = {"call", 0, VALUE_SIZE, 1, UINT64_C(1) << 40, BENCH_SECTION_HOW, "SIZE",
                  "most bytes of one system call", "the whole message"},
    [RAW_BATCH] = {"batch", 0, VALUE_COUNT, 1, COUNT_MAX, BENCH_SECTION_HOW, "N",
                   "messages of one send call with --rate", "half of --inflight"},
    [RAW_BLOCK] = {"block", 0, VALUE_NONE, 0, 0, BENCH_SECTION_HOW, NULL,
                   "calls wait in the kernel; else they are repeated (spinning)", NULL},
    [RAW_READ_AHEAD] = {"read-ahead", 0, VALUE_NONE, 0, 0, BENCH_SECTION_HOW, NULL,
                        "the client reads its memory, then sends it: that may take less time", NULL},
    [RAW_CONGESTION] = {"congestion", 0, VALUE_NAME, 0, 0, BENCH_SECTION_HOW, "NAME",
                        "congestion control of this side's sockets", "the system's"},
    [RAW_LAT] = {"lat", 0, VALUE_NONE, 0, 0, BENCH_SECTION_WHAT, NULL,
                 "ping-pong on the first stream: half round-trip times", NULL},
    [RAW_RATE_MODE] = {"rate", 0, VALUE_NONE, 0, 0, BENCH_SECTION_WHAT, NULL,
                       "small messages, a batch of them in each call", NULL},
    [RAW_TIMEOUT] = {"timeout", 0, VALUE_COUNT, 1, TIMEOUT_MAX_S, BENCH_SECTION_NODES, "S",
                     "seconds without a client, or without progress, that end it", "30"},
    [RAW_CPU] = {"cpu", 0, VALUE_COUNT, 0, CPU_SETSIZE - 1, BENCH_SECTION_HOW, "N",
                 "the one processor that this side runs on", "any that it may"},
    [RAW_HELP] = {"help", 'h', VALUE_NONE, 0, 0, BENCH_SECTION_OTHER, NULL, "this text", NULL},
    [RAW_VERSION] = {"version", 'V', VALUE_NONE, 0, 0, BENCH_SECTION_OTHER, NULL, "the version of weft", NULL},
};

/* The command line as it is read. */
struct cursor {
    int argc, at;
    char **argv;
    uint64_t numbers[RAW_OPTIONS]; /* NOT_SAID, or what was; 1 for an option without a value */
};

const char *raw_mode_name(enum raw_mode mode)
{
    return mode == RAW_LATENCY ? "latency" : mode == RAW_RATE ? "rate" : "bandwidth";
}

int raw_options_shown(struct bench_shown *shown)
{
    for (int i = 0; i < RAW_OPTIONS; i++) {
        shown[i] = (struct bench_shown){.section = rows[i].section,
                                        .letter = rows[i].letter,
                                        .optional = rows[i].value == VALUE_OPTIONAL_TEXT,
                                        .text = rows[i].help};
        bench_copy_text(shown[i].name, sizeof shown[i].name, rows[i].name);
        bench_copy_text(shown[i].value, sizeof shown[i].value, rows[i].shown ? rows[i].shown : "");
        bench_copy_text(shown[i].fallback, sizeof shown[i].fallback, rows[i].fallback ? rows[i].fallback : "");
    }
    return RAW_OPTIONS;
}

void raw_options_help(void)
{
    struct bench_shown shown[RAW_OPTIONS];

    bench_help_print(BENCH_RAW, shown, raw_options_shown(shown));
}

int raw_plan_check(const struct raw_plan *plan, struct wf_status *status)
{
    uint64_t bytes;

    if (plan->size < 1 || plan->messages < 1 || plan->messages > MESSAGES_MAX || plan->warmup > MESSAGES_MAX ||
        plan->call < 1 || plan->buffers < 1 || plan->buffers > COUNT_MAX || plan->inflight > COUNT_MAX ||
        plan->timeout_s < 1 || plan->timeout_s > TIMEOUT_MAX_S)
        return wf_fail(status, -EINVAL, "a number is out of its bounds");
    if (plan->batch < 1 || (plan->inflight ? plan->batch > plan->inflight : plan->batch > COUNT_MAX))
        return wf_fail(status, -EINVAL, "--batch %llu is more than --inflight %llu: no credit would ever come back",
                       (unsigned long long)plan->batch, (unsigned long long)plan->inflight);
    if (__builtin_mul_overflow(plan->size, plan->messages + plan->warmup, &bytes) || bytes > INT64_MAX ||
        __builtin_mul_overflow(plan->size, plan->buffers, &bytes) || bytes > INT64_MAX ||
        __builtin_mul_overflow(plan->size, plan->batch, &bytes) || bytes > INT64_MAX ||
        __builtin_mul_overflow(plan->size, plan->inflight, &bytes) || bytes > INT64_MAX)
        return wf_fail(status, -EINVAL,
                       "--size %llu is too much for that many messages: their bytes do not fit 63 bits",
                       (unsigned long long)plan->size);
    return 0;
}

/* --- words --- */

static int read_number(const struct option_row *row, const char *text, uint64_t *out, struct wf_status *status)
{
    uint64_t number = 0;
    char *end = NULL, meant[32];
    bool good;

    if (row->value == VALUE_SIZE) {
        good = wf_parse_size(text, &number) == 0;
    } else {
        errno = 0;
        number = strtoull(text, &end, 10);
        good = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
    }
    if (!good && row->value == VALUE_SIZE && wf_size_meant(text, meant, sizeof meant))
        return wf_fail(status, -EINVAL, "--%s %.60s: write %s (K, M, G and T are powers of 1024)", row->name, text,
                       meant);
    if (!good || number < row->least || number > row->most)
        return wf_fail(status, -EINVAL, "--%s %.60s: expected a %s from %llu to %llu", row->name, text,
                       row->value == VALUE_SIZE ? "size" : "number", (unsigned long long)row->least,
                       (unsigned long long)row->most);
    *out = number;
    return 0;
}

/* Cuts the list of --connect into its addresses. */
static int read_addresses(struct raw_options *options, const char *text, struct wf_status *status)
{
    options->list = strdup(text);
    options->addresses = calloc(RAW_STREAMS_MAX, sizeof *options->addresses);
    if (!options->list || !options->addresses)
        return wf_fail(status, -ENOMEM, "no memory for the addresses of --connect");
    char *rest = options->list, *word;
    while ((word = bench_next_word(&rest, ','))) {
        if (options->address_count == RAW_STREAMS_MAX)
            return wf_fail(status, -EINVAL, "--connect: more than %d addresses", RAW_STREAMS_MAX);
        if (strlen(word) >= ADDRESS_TEXT)
            return wf_fail(status, -EINVAL, "--connect %.40s...: too long", word);
        if (raw_address_check(word, false, status))
            return status->code;
        options->addresses[options->address_count++] = word;
    }
    return 0;
}

static int read_place(struct raw_options *options, enum option_id id, const char *text, struct wf_status *status)
{
    if (options->listen || options->list)
        return wf_fail(status, -EINVAL, "--listen and --connect exclude each other, and are given once");
    if (id == RAW_CONNECT)
        return read_addresses(options, text, status);
    if (strlen(text) >= sizeof options->address)
        return wf_fail(status, -EINVAL, "--listen %.40s...: too long", text);
    options->listen = true;
    bench_copy_text(options->address, sizeof options->address, text);
    return raw_address_check(text, true, status);
}

static int read_congestion(struct raw_options *options, const char *text, struct wf_status *status)
{
    if (strlen(text) >= sizeof options->congestion)
        return wf_fail(status, -EINVAL, "--congestion %.40s...: no name is that long", text);
    bench_copy_text(options->congestion, sizeof options->congestion, text);
    return text[0] ? raw_congestion_check(text, status) : 0;
}

static int apply(struct raw_options *options, struct cursor *cursor, enum option_id id, const char *value,
                 struct wf_status *status)
{
    switch (rows[id].value) {
    case VALUE_NONE:
        cursor->numbers[id] = 1;
        return 0;
    case VALUE_NAME:
        return read_congestion(options, value, status);
    case VALUE_TEXT:
    case VALUE_OPTIONAL_TEXT:
        return read_place(options, id, value, status);
    default:
        return read_number(&rows[id], value, &cursor->numbers[id], status);
    }
}

static int find(const char *name, size_t length)
{
    for (int i = 0; i < RAW_OPTIONS; i++)
        if ((strlen(rows[i].name) == length && strncmp(rows[i].name, name, length) == 0))
            return i;
    return -1;
}

static int find_letter(char letter)
{
    for (int i = 0; i < RAW_OPTIONS; i++)
        if (rows[i].letter == letter)
            return i;
    return -1;
}

static int unknown(const char *word, struct wf_status *status)
{
    char option[64]; /* without what may be attached to it */
    const char *names[RAW_OPTIONS];

    snprintf(option, sizeof option, "%.*s", word[1] == '-' ? (int)strcspn(word, "=") : 2, word);
    if (word[0] == '-' && bench_option_elsewhere(option, BENCH_RAW, status))
        return -EINVAL;
    for (int i = 0; i < RAW_OPTIONS; i++)
        names[i] = rows[i].name;
    const char *nearest = strncmp(word, "--", 2) == 0 ? bench_nearest(word + 2, names, RAW_OPTIONS) : NULL;
    if (nearest)
        return wf_fail(status, -EINVAL, "unknown option '%.60s': did you mean '--%s'?", word, nearest);
    return wf_fail(status, -EINVAL, "unknown option '%.60s': see 'weft raw --help'", word);
}

static int read_word(struct raw_options *options, struct cursor *cursor, const char *word, struct wf_status *status)
{
    bool is_long = strncmp(word, "--", 2) == 0;
    const char *equals = is_long ? strchr(word, '=') : NULL;
    const char *value = equals ? equals + 1 : NULL;
    int id = is_long ? find(word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2))
             : word[0] == '-' && word[1] != '\0' ? find_letter(word[1])
                                                 : -1;

    if (id < 0)
        return unknown(word, status);
    if (!is_long && word[2])
        value = word + 2;
    if (rows[id].value == VALUE_NONE && value)
        return wf_fail(status, -EINVAL, "--%s takes no value", rows[id].name);
    if (rows[id].value != VALUE_NONE && !value && cursor->at < cursor->argc && cursor->argv[cursor->at][0] != '-')
        value = cursor->argv[cursor->at++];
    if (rows[id].value == VALUE_OPTIONAL_TEXT && !value)
        value = "";
    if (rows[id].value != VALUE_NONE && !value)
        return wf_fail(status, -EINVAL, "--%s needs a value", rows[id].name);
    return apply(options, cursor, (enum option_id)id, value, status);
}

/* --- the plan --- */

static uint64_t or_else(const struct cursor *said, enum option_id id, uint64_t otherwise)
{
    return said->numbers[id] == NOT_SAID ? otherwise : said->numbers[id];
}

/* An option that would not act is a mistake of the one who gave it. */
static int check_acts(const struct raw_options *options, const struct cursor *said, struct wf_status *status)
{
    enum raw_mode mode = options->plan.mode;

    for (int id = RAW_STREAMS; id < RAW_TIMEOUT; id++) {
        if (said->numbers[id] == NOT_SAID)
            continue;
        if (options->listen)
            return wf_fail(status, -EINVAL, "--%s is the client's to say: give it to 'weft raw --connect'",
                           rows[id].name);
        if ((mode == RAW_LATENCY && (id == RAW_INFLIGHT || id == RAW_STREAMS)) ||
            (mode != RAW_BANDWIDTH && (id == RAW_CALL || id == RAW_READ_AHEAD)) ||
            (mode != RAW_RATE && id == RAW_BATCH))
            return wf_fail(status, -EINVAL, "--%s does nothing for %s", rows[id].name, raw_mode_name(mode));
    }
    return 0;
}

/* To each address as many streams. */
static int count_streams(struct raw_options *options, const struct cursor *said, struct wf_status *status)
{
    options->streams = (int)or_else(said, RAW_STREAMS, 1);
    int all = options->address_count * options->streams;
    if (all <= RAW_STREAMS_MAX)
        return 0;
    return wf_fail(status, -EINVAL, "--streams %d: to %d addresses these are %d, and there may be %d: lower it to %d",
                   options->streams, options->address_count, all, RAW_STREAMS_MAX,
                   RAW_STREAMS_MAX / options->address_count);
}

static int make_plan(struct raw_options *options, const struct cursor *said, struct wf_status *status)
{
    static const uint64_t sizes[] = {1 << 20, 8, 64}, messages[] = {1000, 20000, 1000000}, inflight[] = {16, 1, 64};
    struct raw_plan *plan = &options->plan;

    if (said->numbers[RAW_LAT] != NOT_SAID && said->numbers[RAW_RATE_MODE] != NOT_SAID)
        return wf_fail(status, -EINVAL, "--lat and --rate exclude each other");
    plan->mode = said->numbers[RAW_LAT] != NOT_SAID         ? RAW_LATENCY
                 : said->numbers[RAW_RATE_MODE] != NOT_SAID ? RAW_RATE
                                                            : RAW_BANDWIDTH;
    plan->size = or_else(said, RAW_SIZE, sizes[plan->mode]);
    plan->messages = or_else(said, RAW_ITERS, messages[plan->mode]);
    plan->warmup = or_else(said, RAW_WARMUP, plan->messages / 10);
    plan->inflight = or_else(said, RAW_INFLIGHT, inflight[plan->mode]);
    plan->buffers = or_else(said, RAW_BUFFERS, plan->inflight ? plan->inflight : inflight[plan->mode]);
    plan->call = or_else(said, RAW_CALL, plan->size);
    plan->batch = or_else(said, RAW_BATCH, plan->inflight > 1 ? plan->inflight / 2 : 1);
    plan->block = said->numbers[RAW_BLOCK] != NOT_SAID;
    options->read_ahead = said->numbers[RAW_READ_AHEAD] != NOT_SAID;
    plan->timeout_s = or_else(said, RAW_TIMEOUT, 30);
    if (check_acts(options, said, status) || count_streams(options, said, status))
        return status->code;
    return raw_plan_check(plan, status);
}

int raw_options_read(struct raw_options *options, int argc, char **argv, struct wf_status *status)
{
    struct cursor cursor = {.argc = argc, .at = 1, .argv = argv};
    int result = 0;

    memset(options, 0, sizeof *options);
    for (int i = 0; i < RAW_OPTIONS; i++)
        cursor.numbers[i] = NOT_SAID;
    while (result == 0 && cursor.at < argc)
        result = read_word(options, &cursor, argv[cursor.at++], status);
    if (result)
        return result;
    options->help = cursor.numbers[RAW_HELP] != NOT_SAID;
    options->version = cursor.numbers[RAW_VERSION] != NOT_SAID;
    options->cpu = cursor.numbers[RAW_CPU] == NOT_SAID ? RAW_ANY_CPU : (int)cursor.numbers[RAW_CPU];
    if (options->help || options->version)
        return 0;
    if (!options->listen && options->address_count == 0)
        return wf_fail(status, -EINVAL, "which side is this? Give --listen [ADDR:]PORT or --connect ADDR:PORT");
    return make_plan(options, &cursor, status);
}

void raw_options_free(struct raw_options *options)
{
    free(options->addresses);
    free(options->list);
    options->addresses = NULL;
    options->list = NULL;
}
