#include "option_table.h"

#include <stdio.h>

#include "bench/words/words.h"
#include "options.h"

#define EVERY_COMMAND (BENCH_MESH | BENCH_PAIR | BENCH_CONFIG | BENCH_PEERS | BENCH_TOPO)

const struct bench_option_row bench_extra_options[OPT_COUNT] = {
    [OPT_LISTEN] = {"listen", VALUE_OPTIONAL, BENCH_MESH | BENCH_PAIR | BENCH_PEERS, "--listen [[ADDR:]PORT]",
                    "be node0: wait for the other node, at ADDR and at that port of every rail (see --rails)"},
    [OPT_CONNECT] = {"connect", VALUE_NEEDED, BENCH_MESH | BENCH_PAIR | BENCH_PEERS, "--connect ADDR[:PORT]",
                     "be node1: connect to node0, and decide what is measured"},
    [OPT_LOCAL] = {"local", VALUE_NONE, BENCH_MESH | BENCH_PAIR | BENCH_PEERS, "--local",
                   "start both nodes on this machine (weft peers: the default)"},
    [OPT_LAT] = {"lat", VALUE_NONE, BENCH_PAIR | BENCH_PEERS, "--lat",
                 "ping-pong: half round-trip times instead of bandwidth"},
    [OPT_RATE] = {"rate", VALUE_NONE, BENCH_PEERS, "--rate", "messages per second instead of bandwidth"},
    [OPT_SET] = {"set", VALUE_NEEDED, EVERY_COMMAND, "--set NAME=VALUE", "any setting by its name"},
    [OPT_PRESET] = {"preset", VALUE_NEEDED, EVERY_COMMAND, "--preset NAME=VALUE",
                    "a default of whoever starts weft: file, environment and options go before it"},
    [OPT_CONFIG] = {"config", VALUE_NEEDED, EVERY_COMMAND, "--config FILE",
                    "settings from a file of NAME = VALUE lines"},
    [OPT_LATEST] = {"latest", VALUE_NEEDED, BENCH_MESH | BENCH_PAIR, "--latest LINK",
                    "a symbolic link that leads to --out once there are results in it"},
    [OPT_MARKDOWN] = {"markdown", VALUE_NONE, BENCH_CONFIG, "--markdown",
                      "the table of docs/configuration.md: defaults only"},
    [OPT_XML] = {"xml", VALUE_NEEDED, BENCH_TOPO, "--xml FILE",
                 "plan for another machine: hwloc's description of it, or synthetic:numa:2 core:4 pu:2"},
    [OPT_SVG] = {"svg", VALUE_NEEDED, BENCH_TOPO, "--svg FILE", "a drawing of the machine ('-': standard output)"},
    [OPT_IN_FORCE] = {"in-force", VALUE_NEEDED, BENCH_TOPO, "--in-force PID|FILE",
                      "instead: where the threads and memory of a process are, or were in a result's run"},
    [OPT_HELP] = {"help", VALUE_NONE, EVERY_COMMAND, "--help", "this text"},
    [OPT_CHILD] = {"local-child", VALUE_NONE, BENCH_MESH | BENCH_PAIR, NULL, NULL},
    [OPT_INVITE] = {"invite", VALUE_NEEDED, BENCH_MESH | BENCH_PAIR, NULL, NULL},
};

static const struct letter {
    char letter;
    enum wf_setting_id id;
} letters[] = {
    {'b', WF_SET_BEGIN},  {'e', WF_SET_END},   {'f', WF_SET_FACTOR}, {'n', WF_SET_ITERS},
    {'w', WF_SET_WARMUP}, {'c', WF_SET_CHECK}, {'m', WF_SET_MEMORY},
};

#define LETTER_COUNT ((int)(sizeof letters / sizeof letters[0]))

const char *bench_command_name(enum bench_command command)
{
    return command == BENCH_MESH    ? "mesh"
           : command == BENCH_PAIR  ? "pair"
           : command == BENCH_PEERS ? "peers"
           : command == BENCH_TOPO  ? "topo"
                                    : "config";
}

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

static char letter_of(enum wf_setting_id id)
{
    for (int i = 0; i < LETTER_COUNT; i++)
        if (letters[i].id == id)
            return letters[i].letter;
    return '\0';
}

/* The settings that act on `weft topo`; of the others it knows nothing. */
static bool acts_on_topo(enum wf_setting_id id)
{
    static const enum wf_setting_id ids[] = {WF_SET_RAILS,      WF_SET_PIN,         WF_SET_RAIL_POLICY,
                                             WF_SET_IRQ_POLICY, WF_SET_TX_BINDINGS, WF_SET_RX_BINDINGS,
                                             WF_SET_ZERO_COPY,  WF_SET_ENDPOINTS,   WF_SET_GPUS,
                                             WF_SET_CUDA,       WF_SET_MEMORY,      WF_SET_JSON};

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        if (id == ids[i])
            return true;
    return false;
}

static void help_settings(enum wf_setting_group group, enum bench_command command)
{
    for (int i = 0; i < WF_SETTING_COUNT; i++) {
        const struct wf_setting *setting = wf_setting(i);
        char name[40], shown[64];
        char letter = letter_of(i);

        if (setting->group != group || (command == BENCH_TOPO && !acts_on_topo(i)))
            continue;
        bench_option_name(setting, name, sizeof name);
        if (letter)
            snprintf(shown, sizeof shown, "-%c, --%s", letter, name);
        else
            snprintf(shown, sizeof shown, "--%s", name);
        printf("  %-24s %s [%s]\n", shown, setting->help, setting->fallback[0] ? setting->fallback : "none");
    }
}

void bench_options_help(enum bench_command command)
{
    static const char *const does[] = {
        [BENCH_MESH] =
            "every directed pair of endpoints between two nodes; what was measured is sent again and verified",
        [BENCH_PAIR] = "one directed pair: bandwidth, or latency with --lat",
        [BENCH_CONFIG] = "every setting: value, origin, default, meaning",
        [BENCH_PEERS] = "the same pair on other tools, and the ratio",
        [BENCH_TOPO] =
            "what this machine has, which rails and cores serve whom, and what is in the way of faster paths",
    };

    printf("weft %s: %s\n\n", bench_command_name(command), does[command]);
    for (int i = 0; i < OPT_COUNT; i++)
        if ((bench_extra_options[i].commands & command) && bench_extra_options[i].help)
            printf("  %-24s %s\n", bench_extra_options[i].shown, bench_extra_options[i].help);
    printf("\nbenchmark settings [default]\n");
    help_settings(WF_GROUP_BENCH, command);
    printf("\nlibrary settings [default]\n");
    help_settings(WF_GROUP_LIBRARY, command);
    printf("\nEach is also WEFT_<NAME> in the environment and NAME = VALUE in a file. "
           "K, M, G are powers of 1024.\n"
           "Exit status: 0 ran, and what was verified was right; 1 failed, 2 wrong usage, 77 not available here.\n");
}
