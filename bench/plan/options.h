/*
 * options.h: what the user asked for: the settings, and the few things on the command line that are no settings.
 */
#ifndef WF_BENCH_OPTIONS_H
#define WF_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/config.h"
#include "base/status.h"

struct bench_backend_choice;

/* The exit statuses that scripts rely on. */
enum bench_exit {
    BENCH_PASSED = 0,      /* all ran and verified */
    BENCH_FAILED = 1,      /* a run or a check failed, or was interrupted */
    BENCH_USAGE = 2,       /* wrong usage */
    BENCH_UNAVAILABLE = 77 /* not available here; the reason is printed */
};

enum bench_place {
    BENCH_PLACE_NONE,    /* not said */
    BENCH_PLACE_LISTEN,  /* node0: waits for the other node */
    BENCH_PLACE_CONNECT, /* node1 */
    BENCH_PLACE_LOCAL,   /* node0, and node1 is a child process */
    BENCH_PLACE_GROUP    /* one of a group: which, options, the environment or the node that has started it says */
};

/* The commands an option belongs to. */
enum bench_command {
    BENCH_MESH = WF_USE_MESH,
    BENCH_PAIR = WF_USE_PAIR,
    BENCH_PEERS = WF_USE_PEERS,
    BENCH_TOPO = WF_USE_TOPO,
    BENCH_CONFIG = WF_USE_CONFIG,
    BENCH_SWEEP = WF_USE_SWEEP,
    BENCH_PROFILE = WF_USE_PROFILE,
    BENCH_DOCTOR = WF_USE_DOCTOR,
    BENCH_COLLECTIVE = WF_USE_COLLECTIVE,
    BENCH_OVERLAP = WF_USE_OVERLAP,
    BENCH_STRAGGLER = WF_USE_STRAGGLER,
    BENCH_SETUP_COST = WF_USE_SETUP_COST,
    BENCH_KEY = 64,
    BENCH_RAW = 128, /* reads its own options */
    BENCH_COMPLETION = 256,
    BENCH_REPORT = 1024,
    BENCH_NIC = 2048
};

#define BENCH_QUEUES_MAX 64
#define BENCH_NODES_MOST 4096

struct bench_options {
    enum bench_command command;
    struct wf_config *config; /* owned */
    enum bench_place place;
    char address[256]; /* of --listen or --connect; empty: the default address and port */
    char latest[1024]; /* --latest; empty: none */
    bool keep;         /* --keep */
    bool latency;      /* --lat */
    bool rate;         /* --rate */
    const char
        *invite; /* what starts the other node, before the address; "": it needs not be said. NULL: weft itself */
    bool help, version;
    bool automatic;     /* --auto */
    bool unlock_clocks; /* --unlock-clocks */
    const char *save;   /* --save; NULL: not said */
    bool dry_run;       /* --dry-run */
    int queues;         /* --queues; 0: not said */
    const char *allow;  /* --allow; NULL: not said */
    bool markdown;      /* config: the table of the documentation */
    const char **words; /* config, nic, completion, report, doctor: what stands there besides options; owned */
    int word_count;
    int nodes;              /* --nodes, of a group, each of its processes; 0: not said, or two that know each other */
    bool whole;             /* a plan of these options is of whole nodes, whatever processes they have */
    int rank;               /* --rank, of this node; -1: not said */
    const char *rendezvous; /* --rendezvous; NULL: not said */
    bool child;             /* this process is node1 of --local */
    bool member;            /* of a group, and not its node0: it leaves no results but its logs */
    char gave_way[900];     /* what gave way to memory, in lines; empty: nothing did */
    uint32_t default_endpoints; /* where the setting is 0: one for each GPU; 0: not known, or there is none */
    const struct bench_backend_choice *backends; /* what the setting `backend` may name; the caller knows them */
    /* topo; words of the command line; NULL: not said */
    const char *xml;      /* the machine: a file of hwloc's, or synthetic:... */
    const char *svg;      /* where a drawing goes */
    const char *in_force; /* a process or a result to be looked at instead of a plan */
    /* report; words of the command line; NULL: not said */
    const char *html;      /* where the page goes */
    const char *plots;     /* a folder for pictures and tables */
    const char *baseline;  /* a file or a backend to compare with */
    const char *predicted; /* a file of a simulator's */
    bool open;             /* shows the page; also mesh, pair */
    bool report;           /* mesh, pair: a page in the folder of --out */
    struct bench_collective_words {
        /* collective; words of the command line; NULL: not said */
        const char *backends, *ops, *type, *redop; /* --backend, --op, -d, -o */
        const char *processes, *place;             /* --processes, --place */
        const char *hosts, *rsh, *meeting;         /* --hosts, --rsh, --meeting */
        const char *profile;                       /* --profile */
        const char *member;                        /* of our own child processes: which rank it is */
        bool best, self_test;                      /* --best, --self-test */
        const char *layers, *layer_mb, *bucket_mb; /* of weft overlap, which also has most of the above */
        const char *batch, *style;
    } collective;
    struct bench_straggler_words {
        /* straggler; words of the command line; NULL: not said */
        const char *barriers, *delay_ms, *every, *delayed_rank; /* --barriers, --delay-ms, --every, --delayed-rank */
        const char *threshold_ms, *interval_ms;                 /* --threshold-ms, --interval-ms */
    } straggler;
};

/* Reads defaults, file, environment and the command line (argv[0] is the command's name). `launched`: a launcher seems
 * to have started this process as one of several, which counts where nothing says where the other nodes are. `options`
 * can be given to bench_options_fini() whatever the result. -EINVAL: wrong usage, -EOPNOTSUPP: known but not available
 * here; of what was said then, where the results go can be relied on (`config` NULL: no memory). */
int bench_options_init(struct bench_options *options, enum bench_command command, int argc, char **argv, bool launched,
                       struct wf_status *status);
void bench_options_fini(struct bench_options *options);

/* The help of one command of those, on standard output. */
void bench_options_help(enum bench_command command);

/* "mesh" */
const char *bench_command_name(enum bench_command command);

/* Fails with -EINVAL if `option` ("--size", "-b"), which is none of `command`, is one of another command, and says of
 * which; 0: it is none at all. */
int bench_option_elsewhere(const char *option, enum bench_command command, struct wf_status *status);

/* Whether only errors are printed, and where text for people goes: standard output, unless results go there. */
bool bench_quiet(const struct wf_config *config);
FILE *bench_people(const struct wf_config *config);

/* True while nobody has given the setting a value, not even a preset. */
static inline bool bench_is_default(const struct wf_config *config, enum wf_setting_id id)
{
    return config->values[id].origin == WF_ORIGIN_DEFAULT;
}

/* True where it is the user who has: what only a default or a preset says may give way. */
static inline bool bench_is_said(const struct wf_config *config, enum wf_setting_id id)
{
    return config->values[id].origin > WF_ORIGIN_PRESET;
}

#endif
