/* conform.c: the command line. Exit status: 0 all passed, 1 one failed, 77 all were skipped, 2 wrong usage. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conform.h"

static const struct conform_case *const groups[] = {conform_connect_cases, conform_transfer_cases, conform_close_cases,
                                                    conform_life_cases,    conform_loss_cases,     conform_polled_cases,
                                                    conform_random_cases};
#define GROUPS (sizeof groups / sizeof groups[0])

_Noreturn static void usage(const char *reason)
{
    fprintf(stderr,
            "conform: %s\n"
            "usage: conform --plugin FILE [--table v8|v9|v10|v11|v12] [--processes 2|3|4] [--case NAME,...|GROUP|all]\n"
            "               [--except NAME,...] [--seed N] [--schedules N] [--rounds N] [--bound MS] [--alone] "
            "[--verbose]\n"
            "       conform --list\n"
            "  --table      default v12\n"
            "  --bound      of a call that must not block (200 ms)\n"
            "  --limit      of a wait for messages and comms (20000 ms)\n"
            "  --alone      also what the plugin loads must be gone after dlclose\n"
            "  --schedules  of the case schedules (5)\n"
            "  --rounds     of the cases that repeat something (50)\n",
            reason);
    exit(2);
}

static long number(const char *text, long least, long most)
{
    char *end;
    long value = strtol(text, &end, 0);
    if (!*text || *end || value < least || value > most)
        usage("a number is out of range");
    return value;
}

/* Is `name` one of the list's words? */
static bool in_list(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ','), at += at != NULL) {
        if (!strncmp(at, name, length) && (at[length] == ',' || !at[length]))
            return true;
    }
    return false;
}

static void list_all(void)
{
    for (size_t g = 0; g < GROUPS; g++) {
        for (const struct conform_case *at = groups[g]; at->name; at++)
            printf("%-18s %-9s %s\n", at->name, at->group, at->rule);
    }
}

static enum conform_status run_all(const char *wanted, const char *unwanted)
{
    int counts[78] = {0}, known = 0;
    for (size_t g = 0; g < GROUPS; g++) {
        for (const struct conform_case *at = groups[g]; at->name; at++) {
            if (!in_list(wanted, "all") && !in_list(wanted, at->name) && !in_list(wanted, at->group))
                continue;
            known++;
            if (in_list(unwanted, at->name))
                continue;
            int64_t start = now_ms();
            enum conform_status status = conform_run(at);
            counts[status]++;
            dprintf(conform.report, "%s %s v%d (%lld ms)\n",
                    status == CONFORM_PASSED    ? "ok"
                    : status == CONFORM_SKIPPED ? "--"
                                                : "NO",
                    at->name, conform.version, (long long)(now_ms() - start));
        }
    }
    if (!known)
        usage("no such case");
    dprintf(conform.report, "%d passed, %d failed, %d skipped; table v%d, %d processes, seed %llu\n",
            counts[CONFORM_PASSED], counts[CONFORM_FAILED], counts[CONFORM_SKIPPED], conform.version, conform.processes,
            (unsigned long long)conform.seed);
    return counts[CONFORM_FAILED] ? CONFORM_FAILED : counts[CONFORM_PASSED] ? CONFORM_PASSED : CONFORM_SKIPPED;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"plugin", required_argument, NULL, 'p'},
                                            {"table", required_argument, NULL, 't'},
                                            {"processes", required_argument, NULL, 'n'},
                                            {"case", required_argument, NULL, 'c'},
                                            {"except", required_argument, NULL, 'x'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"schedules", required_argument, NULL, 'S'},
                                            {"rounds", required_argument, NULL, 'r'},
                                            {"bound", required_argument, NULL, 'b'},
                                            {"limit", required_argument, NULL, 'L'},
                                            {"alone", no_argument, NULL, 'a'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {"list", no_argument, NULL, 'l'},
                                            {0}};
    const char *wanted = "all", *unwanted = NULL;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'p':
            conform.plugin = optarg;
            break;
        case 't':
            conform.version = (int)number(*optarg == 'v' ? optarg + 1 : optarg, 8, 12);
            break;
        case 'n':
            conform.processes = (int)number(optarg, 2, CONFORM_PROCESSES_MAX);
            break;
        case 'c':
            wanted = optarg;
            break;
        case 'x':
            unwanted = optarg;
            break;
        case 's':
            conform.seed = (uint64_t)number(optarg, 0, __LONG_MAX__);
            break;
        case 'S':
            conform.schedules = (int)number(optarg, 1, 1000000);
            break;
        case 'r':
            conform.rounds = (int)number(optarg, 1, 1000000);
            break;
        case 'b':
            conform.bound_ms = (int)number(optarg, 1, 60000);
            break;
        case 'L':
            conform.limit_ms = (int)number(optarg, 1, 3600000);
            break;
        case 'a':
            conform.alone = true;
            break;
        case 'v':
            conform.verbose = true;
            break;
        case 'l':
            list_all();
            return 0;
        default:
            usage("unknown option");
        }
    }
    if (!conform.plugin || optind != argc)
        usage("no --plugin");
    conform.report = dup(STDERR_FILENO);
    return (int)run_all(wanted, unwanted);
}
