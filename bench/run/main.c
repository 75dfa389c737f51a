/* weft: moves messages between machines over TCP, and measures how well. This file: the table of commands. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/compare/compare.h"
#include "bench/plan/options.h"
#include "bench/raw/raw.h"
#include "bench/result/files.h"
#include "bench/topo/topo.h"
#include "bench/words/words.h"
#include "key.h"
#include "run.h"
#include "show_config.h"
#include "weft.h"

static int show_config(struct bench_options *options)
{
    return bench_show_config(options);
}

static const struct command {
    const char *name;
    enum bench_command id;
    int (*run)(struct bench_options *options);
    const char *help;
    int (*run_words)(int argc, char **argv); /* instead of `run`: reads its own options */
} commands[] = {
    {"mesh", BENCH_MESH, bench_run, "full mesh between two nodes: --local, --listen or --connect", NULL},
    {"pair", BENCH_PAIR, bench_run, "one directed pair: bandwidth, or ping-pong with --lat", NULL},
    {"peers", BENCH_PEERS, bench_compare, "the same pair on other tools, side by side, and the ratio", NULL},
    {"topo", BENCH_TOPO, bench_topo, "what is here, the plan of rails and cores, and why no faster path is in use",
     NULL},
    {"config", BENCH_CONFIG, show_config, "every setting: value, origin, default, meaning", NULL},
    {"key", 0, NULL, "makes a key file: with it, only those who hold the same key can connect", bench_key},
    {"raw", 0, NULL, "the floor: what plain TCP sockets give, without Weft", bench_raw},
};

#define COMMAND_COUNT ((int)(sizeof commands / sizeof commands[0]))

static void usage(FILE *out)
{
    fprintf(out, "usage: weft COMMAND [OPTIONS]\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
    fprintf(out, "\n'weft COMMAND --help' lists the options; 'weft --version' prints the version.\n");
}

static int unknown_command(const char *word)
{
    const char *names[COMMAND_COUNT];

    for (int i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    const char *nearest = bench_nearest(word, names, COMMAND_COUNT);
    if (nearest)
        fprintf(stderr, "weft: unknown command '%.60s': did you mean '%s'?\n", word, nearest);
    else
        fprintf(stderr, "weft: unknown command '%.60s': see 'weft --help'\n", word);
    return BENCH_USAGE;
}

static int run_command(const struct command *command, int argc, char **argv)
{
    struct bench_options options;
    struct wf_status status = {0};
    int result = bench_options_init(&options, command->id, argc, argv, &status), exit_status = BENCH_PASSED;

    if (result && options.config && command->id == BENCH_TOPO) {
        exit_status = bench_topo_refused(&options, &status);
    } else if (result) {
        fprintf(stderr, "weft: %s\n", status.text);
        exit_status = result == -EINVAL || result == -ENOENT ? BENCH_USAGE
                      : result == -EOPNOTSUPP                ? BENCH_UNAVAILABLE
                                                             : BENCH_FAILED;
        if (options.config && (command->id & (BENCH_MESH | BENCH_PAIR | BENCH_PEERS)))
            bench_result_refused(&options, &status, exit_status);
    } else if (options.help) {
        bench_options_help(command->id);
    } else {
        exit_status = command->run(&options);
    }
    bench_options_fini(&options);
    return exit_status;
}

/* A standard stream that is closed must not become a connection. Writing to such an output fails, as it should. */
static void fill_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY) < 0)
            _exit(BENCH_FAILED);
}

/* What could not be written is a failure, and said where it can be. */
static int finish_output(int exit_status)
{
    errno = 0;
    int result = fflush(stdout);
    if (exit_status != BENCH_PASSED || (result == 0 && !ferror(stdout)))
        return exit_status;
    fprintf(stderr, "weft: cannot write standard output: %s\n", wf_strerror(errno ? errno : EIO));
    return BENCH_FAILED;
}

static int run_words(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return BENCH_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return BENCH_PASSED;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("weft %s\n", weft_version());
        return BENCH_PASSED;
    }
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run_words ? commands[i].run_words(argc - 1, argv + 1)
                                         : run_command(&commands[i], argc - 1, argv + 1);
    return unknown_command(argv[1]);
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    return finish_output(run_words(argc, argv));
}
