#include "help.h"

#include <stdlib.h>
#include <string.h>

#include "bench/words/columns.h"
#include "bench/words/words.h"
#include "option_table.h"

#define TEXT_COLUMN 26

static const char *const titles[BENCH_SECTIONS] = {
    [BENCH_SECTION_NODES] = "The other node",
    [BENCH_SECTION_WHAT] = "What is measured",
    [BENCH_SECTION_HOW] = "How it is measured",
    [BENCH_SECTION_CHANGE] = "What is changed",
    [BENCH_SECTION_OUTPUT] = "Output",
    [BENCH_SECTION_SETTINGS] = "Settings from elsewhere",
    [BENCH_SECTION_NETWORK] = "Settings of the library: rails, deadlines, security",
    [BENCH_SECTION_DATA] = "Settings of the library: how data moves",
    [BENCH_SECTION_LIMITS] = "Settings of the library: buffers and limits",
    [BENCH_SECTION_PLACE] = "Settings of the library: threads, memory, GPUs",
    [BENCH_SECTION_OTHER] = "Help",
};

static const enum bench_section section_of_topic[WF_TOPIC_COUNT] = {
    [WF_TOPIC_WHAT] = BENCH_SECTION_WHAT,     [WF_TOPIC_HOW] = BENCH_SECTION_HOW,
    [WF_TOPIC_OUTPUT] = BENCH_SECTION_OUTPUT, [WF_TOPIC_NETWORK] = BENCH_SECTION_NETWORK,
    [WF_TOPIC_DATA] = BENCH_SECTION_DATA,     [WF_TOPIC_LIMITS] = BENCH_SECTION_LIMITS,
    [WF_TOPIC_PLACE] = BENCH_SECTION_PLACE,
};

/* What happens where a command has a default of its own; the table has that of the setting. */
static const struct own_default {
    enum bench_command command;
    enum wf_setting_id id;
    const char *text;
} own_defaults[] = {
    {BENCH_MESH, WF_SET_INFLIGHT, "1"},
    {BENCH_PAIR, WF_SET_INFLIGHT, "16"},
    {BENCH_PAIR, WF_SET_BEGIN, "1M; with --lat 8"},
    {BENCH_PAIR, WF_SET_END, "64M; with --lat 32K"},
    {BENCH_PAIR, WF_SET_WARMUP, "5; with --lat 100"},
    {BENCH_MESH, WF_SET_RAILS, "empty; with --local 127.0.1.1,127.0.2.1"},
    {BENCH_PAIR, WF_SET_RAILS, "empty; with --local 127.0.1.1,127.0.2.1"},
    {BENCH_SWEEP, WF_SET_RAILS, "empty; with --local 127.0.1.1,127.0.2.1"},
    {BENCH_SWEEP, WF_SET_INFLIGHT, "as of what it measures: mesh 1, pair 16"},
    {BENCH_SWEEP, WF_SET_BEGIN, "1M; with --lat 8"},
    {BENCH_SWEEP, WF_SET_END, "64M; with --lat 32K"},
    {BENCH_SWEEP, WF_SET_WARMUP, "5; with --lat 100"},
    {BENCH_SWEEP, WF_SET_DURATION, "1"},
    {BENCH_SWEEP, WF_SET_CHECK_TIME_MS, "500"},
    {BENCH_SWEEP, WF_SET_MODE, "loaded"},
    {BENCH_PROFILE, WF_SET_RAILS, "empty; with --local 127.0.1.1,127.0.2.1"},
    {BENCH_PROFILE, WF_SET_BEGIN, "1"},
    {BENCH_PROFILE, WF_SET_END, "1G"},
    {BENCH_PROFILE, WF_SET_FACTOR, "2"},
    {BENCH_PROFILE, WF_SET_ITERS, "10"},
    {BENCH_DOCTOR, WF_SET_CONNECT_TIMEOUT, "10"},
    {BENCH_DOCTOR, WF_SET_LOG, "error"},
    {BENCH_PEERS, WF_SET_RAILS, "empty; with --local 127.0.0.1"},
    {BENCH_PEERS, WF_SET_PORT, "a free one for each run; with --listen 18555"},
    {BENCH_PEERS, WF_SET_SIZE, "8 as --lat, 64 as --rate, and 64K,1M,64M"},
    {BENCH_PEERS, WF_SET_ITERS, "by --seconds"},
    {BENCH_PEERS, WF_SET_WARMUP, "a tenth of the messages; with --iters also --inflight"},
    {BENCH_PEERS, WF_SET_INFLIGHT, "16; with --rate 64"},
    {BENCH_PEERS, WF_SET_BUFFERS, "1; for 64M and more also --inflight"},
    {BENCH_PEERS, WF_SET_MEMORY, "host"},
    {BENCH_COLLECTIVE, WF_SET_ROUNDS, "1"},
    {BENCH_COLLECTIVE, WF_SET_WARMUP, "1"},
    {BENCH_COLLECTIVE, WF_SET_TIMEOUT, "60"},
    {BENCH_COLLECTIVE, WF_SET_RAILS, "127.0.0.1; with --hosts or found ranks empty"},
    {BENCH_OVERLAP, WF_SET_ITERS, "5"},
    {BENCH_OVERLAP, WF_SET_WARMUP, "1"},
    {BENCH_OVERLAP, WF_SET_TIMEOUT, "60"},
    {BENCH_OVERLAP, WF_SET_RAILS, "127.0.0.1; with --hosts or found ranks empty"},
    {BENCH_STRAGGLER, WF_SET_RAILS, "127.0.0.1; with --hosts or found ranks empty"},
    {BENCH_SETUP_COST, WF_SET_RAILS, "127.0.0.1; with --hosts or found ranks empty"},
    {BENCH_SETUP_COST, WF_SET_SIZE, "64K"},
    {BENCH_SETUP_COST, WF_SET_ITERS, "20"},
    {BENCH_SETUP_COST, WF_SET_TIMEOUT, "60"},
};

/* What a setting means to a command where that is not what the setting says. */
static const struct {
    enum bench_command command;
    enum wf_setting_id id;
    const char *value, *text;
} own_texts[] = {
    {BENCH_PROFILE, WF_SET_ITERS, "N|auto", "Repetitions of each configuration; auto (or 0) takes 10."},
    {BENCH_COLLECTIVE, WF_SET_CHECK, "0|1", "Whether every result is verified, outside of the measured time."},
    {BENCH_COLLECTIVE, WF_SET_MEMORY, "auto|host|cuda",
     "Where the arrays lie; auto is GPU memory for NCCL and host memory for all others."},
    {BENCH_OVERLAP, WF_SET_CHECK, "0|1", "Whether the gradients of each iteration are verified."},
    {BENCH_OVERLAP, WF_SET_MEMORY, "auto|host|cuda", "Where the gradients lie; auto is host memory."},
    {BENCH_OVERLAP, WF_SET_ITERS, "N|auto", "Iterations of each case; auto (or 0) takes 5."},
    {BENCH_SETUP_COST, WF_SET_ITERS, "N", "How often each kind of set-up is made, from 1 up."},
};

/* --- which options there are --- */

static void put_default(struct bench_shown *row, enum bench_command command, enum wf_setting_id id)
{
    const char *text = wf_setting(id)->fallback[0] ? wf_setting(id)->fallback : "empty";

    for (size_t i = 0; i < sizeof own_defaults / sizeof own_defaults[0]; i++)
        if (own_defaults[i].command == command && own_defaults[i].id == id)
            text = own_defaults[i].text;
    bench_copy_text(row->fallback, sizeof row->fallback, text);
}

static void show_setting(struct bench_shown *row, enum bench_command command, enum wf_setting_id id)
{
    const struct wf_setting *setting = wf_setting(id);
    const char *value = wf_setting_value_name(setting);

    *row = (struct bench_shown){.section = section_of_topic[setting->topic],
                                .letter = bench_option_letter(id),
                                .optional = wf_setting_is_switch(setting),
                                .text = setting->help};
    bench_option_name(setting, row->name, sizeof row->name);
    if (value)
        snprintf(row->value, sizeof row->value, "%s%s", value, setting->list ? "[,...]" : "");
    for (size_t i = 0; i < sizeof own_texts / sizeof own_texts[0]; i++)
        if (own_texts[i].command == command && own_texts[i].id == id) {
            bench_copy_text(row->value, sizeof row->value, own_texts[i].value);
            row->text = own_texts[i].text;
        }
    put_default(row, command, id);
}

int bench_shown_options(enum bench_command command, struct bench_shown *rows)
{
    int count = 0;

    for (int i = 0; i < OPT_COUNT; i++) {
        const struct bench_option_row *option = &bench_extra_options[i];
        if (!(option->commands & command) || !option->help)
            continue;
        struct bench_shown *row = &rows[count++];
        *row = (struct bench_shown){.section = option->section,
                                    .letter = option->letter,
                                    .optional = option->value == VALUE_OPTIONAL,
                                    .text = option->help};
        bench_copy_text(row->name, sizeof row->name, option->name);
        bench_copy_text(row->value, sizeof row->value, option->shown ? option->shown : "");
    }
    for (int i = 0; i < WF_SETTING_COUNT; i++)
        if (wf_setting(i)->uses & command)
            show_setting(&rows[count++], command, i);
    return count;
}

/* --- how they are printed --- */

static void put_text(const char *text, int column, int indent)
{
    bench_put_wrapped(stdout, text, &column, indent, BENCH_HELP_WIDTH);
    putchar('\n');
}

static void put_option(const struct bench_shown *row)
{
    char letter[8] = "", left[160], text[512];
    size_t length = strlen(row->text);

    bool bracket = row->optional && row->value[0];
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(left, sizeof left, "%s--%s%s%s%s%s", letter, row->name, row->value[0] ? " " : "", bracket ? "[" : "",
             row->value, bracket ? "]" : "");
    /* The default belongs to the sentence. */
    if (row->fallback[0]) {
        while (length > 0 && row->text[length - 1] == '.')
            length--;
        snprintf(text, sizeof text, "%.*s (default: %s)", (int)length, row->text, row->fallback);
    } else {
        bench_copy_text(text, sizeof text, row->text);
    }
    int column = printf("  %s", left);
    if (column > TEXT_COLUMN - 2) {
        putchar('\n');
        column = 0;
    }
    column += printf("%*s", TEXT_COLUMN - column, "");
    put_text(text, column, TEXT_COLUMN);
}

static void put_forms(const char *usage)
{
    const char *head = "usage: ";

    while (*usage) {
        size_t length = strcspn(usage, "\n");
        char line[400];

        snprintf(line, sizeof line, "%.*s", (int)length, usage);
        put_text(line, printf("%s", head), 12);
        head = "       ";
        usage += length + (usage[length] == '\n');
    }
}

static void put_examples(const char *examples)
{
    printf("\nExamples:\n");
    while (*examples) {
        size_t length = strcspn(examples, "\n");

        printf("  %.*s\n", (int)length, examples);
        examples += length + (examples[length] == '\n');
    }
}

void bench_help_print(enum bench_command command, const struct bench_shown *rows, int count)
{
    const struct bench_about *about = bench_about(command);

    put_forms(about->usage);
    putchar('\n');
    put_text(about->does, 0, 0);
    for (int section = 0; section < BENCH_SECTIONS; section++) {
        bool begun = false;
        for (int i = 0; i < count; i++) {
            if (rows[i].section != (enum bench_section)section)
                continue;
            if (!begun)
                printf("\n%s:\n", titles[section]);
            begun = true;
            put_option(&rows[i]);
        }
    }
    if (about->notes) {
        putchar('\n');
        put_text(about->notes, 0, 0);
    }
    put_examples(about->examples);
}

void bench_options_help(enum bench_command command)
{
    struct bench_shown *rows = calloc(BENCH_SHOWN_MAX, sizeof *rows);

    if (rows)
        bench_help_print(command, rows, bench_shown_options(command, rows));
    free(rows);
}
