/*
 * option_table.h: the options that are no settings, and how settings are spelled on a command line.
 */
#ifndef WF_BENCH_OPTION_TABLE_H
#define WF_BENCH_OPTION_TABLE_H

#include <stddef.h>

#include "base/config.h"
#include "help.h"

enum bench_option_id {
    OPT_LISTEN,
    OPT_CONNECT,
    OPT_LOCAL,
    OPT_NODES,
    OPT_RANK,
    OPT_RENDEZVOUS,
    OPT_KEEP,
    OPT_LAT,
    OPT_RATE,
    OPT_AUTO,
    OPT_SAVE,
    OPT_UNLOCK_CLOCKS,
    OPT_LATEST,
    OPT_SET,
    OPT_PRESET,
    OPT_CONFIG,
    OPT_MARKDOWN,
    OPT_QUEUES,
    OPT_DRY_RUN,
    OPT_ALLOW,
    OPT_XML,
    OPT_SVG,
    OPT_IN_FORCE,
    OPT_HTML,
    OPT_PLOTS,
    OPT_BASELINE,
    OPT_PREDICTED,
    OPT_OPEN,
    OPT_REPORT,
    OPT_COLL_BACKEND,
    OPT_COLL_OP,
    OPT_COLL_TYPE,
    OPT_COLL_REDOP,
    OPT_COLL_PROCESSES,
    OPT_COLL_PLACE,
    OPT_COLL_BEST,
    OPT_COLL_HOSTS,
    OPT_COLL_RSH,
    OPT_COLL_MEETING,
    OPT_COLL_PROFILE,
    OPT_COLL_SELF_TEST,
    OPT_COLL_MEMBER,
    OPT_OVERLAP_LAYERS,
    OPT_OVERLAP_LAYER_MB,
    OPT_OVERLAP_BUCKET_MB,
    OPT_OVERLAP_BATCH,
    OPT_OVERLAP_STYLE,
    OPT_BARRIERS,
    OPT_DELAY_MS,
    OPT_EVERY,
    OPT_DELAYED_RANK,
    OPT_THRESHOLD_MS,
    OPT_INTERVAL_MS,
    OPT_HELP,
    OPT_VERSION,
    OPT_CHILD,
    OPT_INVITE,
    OPT_COUNT
};

enum bench_option_value { VALUE_NONE, VALUE_NEEDED, VALUE_OPTIONAL };

struct bench_option_row {
    const char *name;
    char letter; /* 0: none */
    enum bench_option_value value;
    unsigned commands; /* enum bench_command */
    enum bench_section section;
    const char *shown; /* what stands for the value: "FILE"; NULL: it takes none */
    const char *help;  /* NULL: for our own child process and script, not for people */
};

extern const struct bench_option_row bench_extra_options[OPT_COUNT];

/* The setting of a one-letter option; -1: none. */
int bench_option_by_letter(char letter);

#endif
