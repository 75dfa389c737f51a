/*
 * help.h: what `weft COMMAND --help` prints, and what the completion of a shell offers: both come from the tables of
 * options, so they cannot say anything else than what the command accepts.
 */
#ifndef WF_BENCH_HELP_H
#define WF_BENCH_HELP_H

#include <stdbool.h>

#include "options.h"

#define BENCH_HELP_WIDTH 80

/* The parts of a help text, in their order. */
enum bench_section {
    BENCH_SECTION_NODES,
    BENCH_SECTION_WHAT,
    BENCH_SECTION_HOW,
    BENCH_SECTION_CHANGE,
    BENCH_SECTION_OUTPUT,
    BENCH_SECTION_SETTINGS,
    BENCH_SECTION_NETWORK,
    BENCH_SECTION_DATA,
    BENCH_SECTION_LIMITS,
    BENCH_SECTION_PLACE,
    BENCH_SECTION_OTHER,
    BENCH_SECTIONS
};

/* An option as it is shown. */
struct bench_shown {
    enum bench_section section;
    char letter; /* 0: none */
    char name[40];
    char value[80];    /* "SIZE", "auto|uring|epoll"; "": it takes none */
    bool optional;     /* the value may be left out */
    const char *text;  /* what it does: a sentence, with or without its full stop */
    char fallback[80]; /* the default, for people; "": nothing is said of it */
};

#define BENCH_SHOWN_MAX (WF_SETTING_COUNT + 32)

/* What a command is. */
struct bench_about {
    enum bench_command command;
    const char *name;
    const char *brief;    /* in the list of commands */
    const char *usage;    /* after "usage: "; each line is one form */
    const char *does;     /* a paragraph */
    const char *examples; /* lines; one that begins with '#' is a remark on those that follow */
    const char *notes;    /* a paragraph for the end; NULL: none */
    const char *words;    /* what the words that are no options are: "bash|zsh"; NULL: there are none */
};

/* All commands in the order of the list; the last one has no name. */
const struct bench_about *bench_commands(void);
const struct bench_about *bench_about(enum bench_command command);

/* "connect-timeout" for the setting connect_timeout. */
void bench_option_name(const struct wf_setting *setting, char *name, size_t room);

/* The letter of a setting; 0: none. */
char bench_option_letter(enum wf_setting_id id);

/* The options of a command whose table is option_table.h; returns their number. `rows` has room for BENCH_SHOWN_MAX. */
int bench_shown_options(enum bench_command command, struct bench_shown *rows);

/* Prints the help of a command with these options to standard output. */
void bench_help_print(enum bench_command command, const struct bench_shown *rows, int count);

/* The list of commands. */
void bench_usage(FILE *out);

#endif
