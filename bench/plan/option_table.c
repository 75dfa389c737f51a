#include "option_table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/words/words.h"
#include "options.h"

#define COLL BENCH_COLLECTIVE
#define OVER BENCH_OVERLAP
#define STRAGGLER BENCH_STRAGGLER
#define SETUP_COST BENCH_SETUP_COST
#define RANKS (COLL | OVER | STRAGGLER | SETUP_COST) /* that start ranks */
#define MEASURES (BENCH_MESH | BENCH_PAIR | BENCH_PEERS | BENCH_SWEEP | BENCH_PROFILE)
#define HAS_SETTINGS (MEASURES | BENCH_TOPO | BENCH_CONFIG | BENCH_DOCTOR | RANKS)
#define EVERY_COMMAND (HAS_SETTINGS | BENCH_KEY | BENCH_NIC | BENCH_COMPLETION | BENCH_REPORT)

/* Arguments: name, letter, kind of value, commands, section, what stands for the value, help. */
#define ROW(called, short_name, takes, belongs_to, part, stands_for, does)                                             \
    {                                                                                                                  \
        .name = called, .letter = short_name, .value = VALUE_##takes, .commands = belongs_to,                          \
        .section = BENCH_SECTION_##part, .shown = stands_for, .help = does                                             \
    }

const struct bench_option_row bench_extra_options[OPT_COUNT] = {
    [OPT_LISTEN] = ROW("listen", 0, OPTIONAL, MEASURES | BENCH_DOCTOR, NODES, "[ADDR:]PORT",
                       "be node0: wait for the other node, at ADDR and at that port of every rail (see --rails)"),
    [OPT_CONNECT] = ROW("connect", 0, NEEDED, MEASURES | BENCH_DOCTOR, NODES, "ADDR[:PORT]",
                        "be node1: connect to node0, and decide what is measured"),
    [OPT_LOCAL] = ROW("local", 0, NONE, MEASURES, NODES, NULL,
                      "start both nodes on this machine (weft peers and sweep: the default)"),
    [OPT_NODES] = ROW("nodes", 0, NEEDED, BENCH_MESH, NODES, "N",
                      "a mesh of N nodes, all started with the same options; with --local: start them all here"),
    [OPT_RANK] = ROW("rank", 0, NEEDED, BENCH_MESH, NODES, "N", "with --nodes: which of them this is, from 0"),
    [OPT_RENDEZVOUS] = ROW("rendezvous", 0, NEEDED, BENCH_MESH, NODES, "HOST:PORT",
                           "where all nodes meet: node0 listens there; or file:PATH in a folder that all share"),
    [OPT_KEEP] = ROW("keep", 0, NONE, BENCH_MESH | BENCH_PAIR, NODES, NULL,
                     "with --listen: serve one client after the other, until a signal or --idle-timeout"),
    [OPT_LAT] = ROW("lat", 0, NONE, BENCH_PAIR | BENCH_PEERS | BENCH_SWEEP, WHAT, NULL,
                    "ping-pong: half round-trip times instead of bandwidth"),
    [OPT_RATE] = ROW("rate", 0, NONE, BENCH_PEERS, WHAT, NULL, "messages per second instead of bandwidth"),
    [OPT_AUTO] = ROW("auto", 0, NONE, BENCH_SWEEP, HOW, NULL,
                     "search: few points first, then the neighbours of the best, in a third of the runs"),
    [OPT_UNLOCK_CLOCKS] = ROW("unlock-clocks", 0, NONE, BENCH_PROFILE, HOW, NULL,
                              "instead: undo what runs of --lock-clocks have left that could not undo it themselves"),
    [OPT_SAVE] = ROW("save", 0, NEEDED, BENCH_SWEEP, OUTPUT, "FILE",
                     "the best settings, for WEFT_CONFIG; none where nothing beats the default"),
    [OPT_XML] = ROW("xml", 0, NEEDED, BENCH_TOPO, WHAT, "FILE",
                    "plan for another machine: hwloc's description of it, or synthetic:numa:2 core:4 pu:2"),
    [OPT_IN_FORCE] = ROW("in-force", 0, NEEDED, BENCH_TOPO, WHAT, "PID|FILE",
                         "instead: where the threads and memory of a process are, or were in a result's run"),
    [OPT_LATEST] = ROW("latest", 0, NEEDED, BENCH_MESH | BENCH_PAIR, OUTPUT, "LINK",
                       "a symbolic link that leads to --out once there are results in it"),
    [OPT_SVG] = ROW("svg", 0, NEEDED, BENCH_TOPO, OUTPUT, "FILE", "a drawing of the machine ('-': standard output)"),
    [OPT_HTML] = ROW("html", 0, NEEDED, BENCH_REPORT, OUTPUT, "FILE",
                     "the page (report.html in the current folder; '-': standard output)"),
    [OPT_PLOTS] = ROW("plots", 0, NEEDED, BENCH_REPORT, OUTPUT, "DIR",
                      "also each figure as PNG and SVG with its data and gnuplot script, and all tables as Markdown"),
    [OPT_BASELINE] = ROW("baseline", 0, NEEDED, BENCH_REPORT, WHAT, "FILE|BACKEND",
                         "compare with the result of an earlier run, or with a backend of the same run"),
    [OPT_PREDICTED] = ROW("predicted", 0, NEEDED, BENCH_REPORT, WHAT, "FILE",
                          "what a simulator has predicted, as CSV: src,dst,size_bytes,time_us"),
    [OPT_OPEN] = ROW("open", 0, NONE, BENCH_REPORT | BENCH_MESH | BENCH_PAIR, OUTPUT, NULL,
                     "write a page (as --report does, or weft report) and show it in a browser"),
    [OPT_REPORT] = ROW("report", 0, NONE, BENCH_MESH | BENCH_PAIR, OUTPUT, NULL,
                       "with --out: also report.html, as weft report makes it, and topo.svg"),
    [OPT_MARKDOWN] =
        ROW("markdown", 0, NONE, BENCH_CONFIG, OUTPUT, NULL, "the table of docs/configuration.md: defaults only"),
    [OPT_QUEUES] = ROW("queues", 0, NEEDED, BENCH_NIC, CHANGE, "N",
                       "receive queues of each card that are set aside, its last ones (default: 1)"),
    [OPT_DRY_RUN] = ROW("dry-run", 0, NONE, BENCH_NIC, CHANGE, NULL, "print what would be changed, and change nothing"),
    [OPT_ALLOW] = ROW("allow", 0, NEEDED, BENCH_NIC, CHANGE, "USER,...",
                      "serve: users, by name or number, who may have queues and rules, besides root"),
    [OPT_COLL_BACKEND] = ROW("backend", 0, NEEDED, COLL | OVER | SETUP_COST, WHAT, "LIST",
                             "weft, nccl, openmpi, mpich, gloo, in turns; mpi: both MPIs (default: weft)"),
    [OPT_COLL_OP] = ROW("op", 0, NEEDED, COLL, WHAT, "LIST",
                        "all_reduce, all_gather, reduce_scatter, broadcast, alltoall, sendrecv, or all (default: "
                        "all_reduce)"),
    [OPT_COLL_TYPE] = ROW("datatype", 'd', NEEDED, COLL, WHAT, "float64|float32|float16|bfloat16|int32|int64|uint8",
                          "type of the elements; double, float and half are float64, float32 and float16 (default: "
                          "float32)"),
    [OPT_COLL_REDOP] = ROW("redop", 'o', NEEDED, COLL, WHAT, "sum|min|max|avg",
                           "how elements are reduced (default: "
                           "sum)"),
    [OPT_COLL_PLACE] = ROW("place", 0, NEEDED, COLL, WHAT, "both|out|in",
                           "whether the result takes the place of what is handed in (default: both)"),
    [OPT_COLL_BEST] = ROW("best", 0, NONE, COLL, HOW, NULL,
                          "each backend also with its other algorithms and yielding; the best of all counts"),
    [OPT_COLL_PROCESSES] = ROW("processes", 0, NEEDED, RANKS, NODES, "N,...|found",
                               "so many ranks, started here, one number after the other; found: this is one of the "
                               "ranks that a launcher has started (default: 2; weft straggler: 4)"),
    [OPT_COLL_HOSTS] =
        ROW("hosts", 0, NEEDED, RANKS, NODES, "HOST,...",
            "start the ranks there by --rsh instead, as many at each: the first ones at the first host; this "
            "program lies at the same place"),
    [OPT_COLL_RSH] = ROW("rsh", 0, NEEDED, RANKS, NODES, "PROGRAM",
                         "what starts a command on a host: PROGRAM HOST COMMAND (default: ssh)"),
    [OPT_COLL_MEETING] = ROW("meeting", 0, NEEDED, RANKS, NODES, "DIR",
                             "a folder that all ranks share, in which they meet (default: one in TMPDIR, or /tmp)"),
    [OPT_COLL_SELF_TEST] = ROW("self-test", 0, NONE, COLL, WHAT, NULL,
                               "instead: whether each backend works here, with every operation; takes seconds"),
    [OPT_COLL_PROFILE] = ROW("profile", 0, NEEDED, COLL, OUTPUT, "DIR",
                             "also profile_BACKEND_worldN_TIME.txt in that folder, in the layout of the collective "
                             "communication profiler"),
    [OPT_COLL_MEMBER] = ROW("member", 0, NEEDED, RANKS, OTHER, NULL, NULL),
    [OPT_OVERLAP_LAYERS] = ROW("layers", 0, NEEDED, OVER, WHAT, "N", "layers that are computed (default: 48)"),
    [OPT_OVERLAP_LAYER_MB] = ROW("layer-mb", 0, NEEDED, OVER, WHAT, "N", "MiB of gradients of each (default: 5)"),
    [OPT_OVERLAP_BUCKET_MB] = ROW("bucket-mb", 0, NEEDED, OVER, WHAT, "N,...",
                                  "MiB of gradients that are synchronised together, one size after the other (default: "
                                  "25)"),
    [OPT_OVERLAP_BATCH] =
        ROW("batch", 0, NEEDED, OVER, WHAT, "N",
            "rows of the data, by which a layer takes longer (default: so many that computation takes "
            "half as long again as communication)"),
    [OPT_OVERLAP_STYLE] = ROW("style", 0, NEEDED, OVER, WHAT, "LIST",
                              "all_reduce: every rank alike; server: rank 0 gathers, adds and sends the sums (default: "
                              "all_reduce)"),
    [OPT_BARRIERS] = ROW("barriers", 0, NEEDED, STRAGGLER, WHAT, "N", "so many barriers (default: 200)"),
    [OPT_DELAY_MS] = ROW("delay-ms", 0, NEEDED, STRAGGLER, WHAT, "MS",
                         "how long the delayed rank is late (default: 50); 0: none is delayed, and who is late is "
                         "late by itself"),
    [OPT_EVERY] = ROW("every", 0, NEEDED, STRAGGLER, WHAT, "N",
                      "a rank is delayed before one barrier in N (default: "
                      "20)"),
    [OPT_DELAYED_RANK] = ROW("delayed-rank", 0, NEEDED, STRAGGLER, WHAT, "N|any",
                             "which one, from 0; any: --seed says which, each time (default: any)"),
    [OPT_INTERVAL_MS] =
        ROW("interval-ms", 0, NEEDED, STRAGGLER, WHAT, "MS", "how long all rest before a barrier (default: 0)"),
    [OPT_THRESHOLD_MS] = ROW("threshold-ms", 0, NEEDED, STRAGGLER, HOW, "MS",
                             "who is late by less than this is not named (default: 10)"),
    [OPT_SET] = ROW("set", 0, NEEDED, HAS_SETTINGS, SETTINGS, "NAME=VALUE", "any setting by its name"),
    [OPT_PRESET] = ROW("preset", 0, NEEDED, HAS_SETTINGS, SETTINGS, "NAME=VALUE",
                       "a default of whoever starts weft: file, environment and options go before it"),
    [OPT_CONFIG] =
        ROW("config", 0, NEEDED, HAS_SETTINGS, SETTINGS, "FILE", "settings from a file of NAME = VALUE lines"),
    [OPT_HELP] = ROW("help", 'h', NONE, EVERY_COMMAND, OTHER, NULL, "this text"),
    [OPT_VERSION] = ROW("version", 'V', NONE, EVERY_COMMAND, OTHER, NULL, "the version of weft"),
    [OPT_CHILD] = ROW("local-child", 0, NONE, BENCH_MESH | BENCH_PAIR | BENCH_PROFILE, OTHER, NULL, NULL),
    [OPT_INVITE] = ROW("invite", 0, NEEDED, BENCH_MESH | BENCH_PAIR, OTHER, NULL, NULL),
};

/* What `weft raw` alone has; its table is its own. */
static const char *const raw_names[] = {"streams", "batch", "block", "cpu"};

static const struct letter {
    char letter;
    enum wf_setting_id id;
} letters[] = {
    {'b', WF_SET_BEGIN},  {'e', WF_SET_END},   {'f', WF_SET_FACTOR}, {'n', WF_SET_ITERS},
    {'w', WF_SET_WARMUP}, {'c', WF_SET_CHECK}, {'m', WF_SET_MEMORY},
};

#define LETTER_COUNT ((int)(sizeof letters / sizeof letters[0]))

void bench_option_name(const struct wf_setting *setting, char *name, size_t room)
{
    bench_copy_text(name, room, setting->name);
    for (char *at = name; *at; at++)
        if (*at == '_')
            *at = '-';
}

int bench_option_by_letter(char letter)
{
    for (int i = 0; i < LETTER_COUNT; i++)
        if (letters[i].letter == letter)
            return (int)letters[i].id;
    return -1;
}

char bench_option_letter(enum wf_setting_id id)
{
    for (int i = 0; i < LETTER_COUNT; i++)
        if (letters[i].id == id)
            return letters[i].letter;
    return '\0';
}

/* --- refusing --- */

/* The commands that have an option of this name, or of this letter where `name` is NULL. */
static unsigned owners(const char *name, char letter, const char **full)
{
    char dashed[40];
    int id = name ? -1 : bench_option_by_letter(letter);
    unsigned found = 0;

    for (int i = 0; i < OPT_COUNT; i++) {
        const struct bench_option_row *row = &bench_extra_options[i];
        if (!row->help || (name ? strcmp(row->name, name) != 0 : row->letter != letter))
            continue;
        found |= row->commands;
        *full = row->name;
    }
    for (int i = 0; name && i < WF_SETTING_COUNT; i++) {
        bench_option_name(wf_setting(i), dashed, sizeof dashed);
        if (strcmp(dashed, name) == 0 || strcmp(wf_setting(i)->name, name) == 0)
            id = i;
    }
    for (size_t i = 0; name && i < sizeof raw_names / sizeof raw_names[0]; i++)
        if (strcmp(raw_names[i], name) == 0)
            return BENCH_RAW;
    if (id < 0)
        return found;
    *full = wf_setting(id)->name;
    return found | wf_setting(id)->uses;
}

/* "'weft mesh', 'weft pair' and 'weft peers'". */
static void list_commands(unsigned commands, char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (const struct bench_about *about = bench_commands(); about->name; about++) {
        if (!(commands & about->command))
            continue;
        commands &= ~(unsigned)about->command;
        used += (size_t)snprintf(text + used, room - used, "%s'weft %s'",
                                 used == 0  ? ""
                                 : commands ? ", "
                                            : " and ",
                                 about->name);
        if (used >= room)
            return;
    }
}

int bench_option_elsewhere(const char *option, enum bench_command command, struct wf_status *status)
{
    bool is_long = strncmp(option, "--", 2) == 0;
    const char *full = NULL;
    unsigned commands = owners(is_long ? option + 2 : NULL, option[1], &full) & ~(unsigned)command;
    char list[160];

    /* Everything is shown by weft config, which is of no help to one who wants to measure. */
    if (commands != BENCH_CONFIG)
        commands &= ~(unsigned)BENCH_CONFIG;
    if (!commands || strcmp(option, "-") == 0) /* which has no letter, as many options have none */
        return 0;
    list_commands(commands, list, sizeof list);
    if (is_long || !full)
        return wf_fail(status, -EINVAL, "%s is not for 'weft %s' but for %s", option, bench_command_name(command),
                       list);
    return wf_fail(status, -EINVAL, "%.2s (--%s) is not for 'weft %s' but for %s", option, full,
                   bench_command_name(command), list);
}
