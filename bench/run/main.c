/* weft: moves messages between machines over TCP, and measures how well. This file: the table of commands. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/limits.h"
#include "bench/collective/collective.h"
#include "bench/compare/compare.h"
#include "bench/doctor/doctor.h"
#include "bench/nic/nic.h"
#include "bench/overlap/overlap.h"
#include "bench/plan/help.h"
#include "bench/plan/options.h"
#include "bench/raw/raw.h"
#include "bench/report/report.h"
#include "bench/result/files.h"
#include "bench/setup/setup_cost.h"
#include "bench/straggler/straggler.h"
#include "bench/sweep/sweep.h"
#include "bench/topo/topo.h"
#include "bench/words/words.h"
#include "collective/weft_coll.h"
#include "completion.h"
#include "key.h"
#include "run.h"
#include "show_config.h"
#include "weft.h"

#define STACK_LEAST_KIB 256

static int show_config(struct bench_options *options)
{
    return bench_show_config(options);
}

/* What the commands of bench_commands() do. */
static const struct command {
    enum bench_command id;
    int (*run)(struct bench_options *options);
    int (*run_words)(int argc, char **argv); /* instead of `run`: reads its own options */
} commands[] = {
    {BENCH_MESH, bench_run, NULL},
    {BENCH_PAIR, bench_run, NULL},
    {BENCH_PEERS, bench_compare, NULL},
    {BENCH_PROFILE, bench_run, NULL},
    {BENCH_COLLECTIVE, bench_collective_run, NULL},
    {BENCH_OVERLAP, bench_overlap, NULL},
    {BENCH_STRAGGLER, bench_straggler, NULL},
    {BENCH_SETUP_COST, bench_setup_cost, NULL},
    {BENCH_SWEEP, bench_sweep, NULL},
    {BENCH_TOPO, bench_topo, NULL},
    {BENCH_DOCTOR, bench_doctor, NULL},
    {BENCH_NIC, bench_nic, NULL},
    {BENCH_CONFIG, show_config, NULL},
    {BENCH_KEY, bench_key, NULL},
    {BENCH_REPORT, bench_make_report, NULL},
    {BENCH_RAW, NULL, bench_raw},
    {BENCH_COMPLETION, bench_completion, NULL},
};

#define COMMAND_COUNT ((int)(sizeof commands / sizeof commands[0]))

static int unknown_command(const char *word)
{
    const char *names[COMMAND_COUNT + 1] = {"help"};
    int count = 1;

    for (const struct bench_about *about = bench_commands(); about->name; about++)
        names[count++] = about->name;
    const char *nearest = bench_nearest(word, names, count);
    struct wf_status status;
    if (nearest)
        wf_fail(&status, -EINVAL, "unknown command '%.60s': did you mean '%s'?", word, nearest);
    else
        wf_fail(&status, -EINVAL, "unknown command '%.60s': see 'weft --help'", word);
    fprintf(stderr, "weft: %s\n", status.text);
    return BENCH_USAGE;
}

static int print_version(void)
{
    printf("weft %s\n", weft_version());
    return BENCH_PASSED;
}

static int run_command(const struct command *command, int argc, char **argv)
{
    struct bench_options options;
    struct wf_status status = {0};
    int result = bench_options_init(&options, command->id, argc, argv, weft_group_launched() == 1, &status),
        exit_status = BENCH_PASSED;

    if (result && options.config && command->id == BENCH_TOPO) {
        exit_status = bench_topo_refused(&options, &status);
    } else if (result) {
        wf_blame_memory_limit(&status);
        fprintf(stderr, "weft: %s\n", status.text);
        exit_status = result == -EINVAL || result == -ENOENT ? BENCH_USAGE
                      : result == -EOPNOTSUPP                ? BENCH_UNAVAILABLE
                                                             : BENCH_FAILED;
        if (options.config && (command->id & (BENCH_MESH | BENCH_PAIR | BENCH_PEERS)))
            bench_result_refused(&options, &status, exit_status);
    } else if (options.help) {
        bench_options_help(command->id);
    } else if (options.version) {
        print_version();
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

/* What could not be written is a failure, and said where it can be. Where a write has failed long ago, its reason is
 * gone: one more byte asks for it. */
static int finish_output(int exit_status)
{
    struct wf_status status = {0};

    errno = 0;
    int result = fflush(stdout);
    if (exit_status != BENCH_PASSED || (result == 0 && !ferror(stdout)))
        return exit_status;
    if (errno == 0 && write(STDOUT_FILENO, "\n", 1) == 1)
        errno = EIO;
    bench_cannot_write("-", -errno, &status);
    fprintf(stderr, "weft: %s\n", status.text);
    return BENCH_FAILED;
}

/* argv[0] is the name of the command. */
static int run_named(int argc, char **argv)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(argv[0], bench_command_name(commands[i].id)) == 0)
            return commands[i].run_words ? commands[i].run_words(argc, argv) : run_command(&commands[i], argc, argv);
    return unknown_command(argv[0]);
}

/* "weft help" and "weft help COMMAND". */
static int help(int argc, char **argv)
{
    static char option[] = "--help";
    char *words[] = {argc > 1 ? argv[1] : NULL, option, NULL};
    struct wf_status status;

    if (argc > 2) {
        wf_fail(&status, -EINVAL, "'weft help' takes one command, and '%.60s' is one word too many", argv[2]);
        fprintf(stderr, "weft: %s\n", status.text);
        return BENCH_USAGE;
    }
    if (argc == 2 && strcmp(argv[1], "help") != 0 && argv[1][0] != '-')
        return run_named(2, words);
    bench_usage(stdout);
    return BENCH_PASSED;
}

/* With less, a command ends in the middle of a call. */
static void check_stack(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_LEAST_KIB * 1024)
        return;
    fprintf(stderr, "weft: the stack may have %llu KiB: allow at least %d (ulimit -s)\n",
            (unsigned long long)limit.rlim_cur / 1024, STACK_LEAST_KIB);
    exit(BENCH_FAILED);
}

static int run_words(int argc, char **argv)
{
    if (argc < 2) {
        bench_usage(stderr);
        return BENCH_USAGE;
    }
    if (strcmp(argv[1], "help") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        bench_usage(stdout);
        return BENCH_PASSED;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return print_version();
    return run_named(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    check_stack();
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of file sizes (ulimit -f) fails, and is told */
    return finish_output(run_words(argc, argv));
}
