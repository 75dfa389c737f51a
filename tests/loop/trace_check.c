/*
 * trace_check [--pieces] FOLDER: reads execution_log.csv, and every rank_N.pt.trace.json and rank_N_CPU_trace.json of a
 * profile's folder. With --pieces also whether each chunk lies within its message's bytes, and each message of Weft's
 * has one. Exit status 0 if they are as trace_check.h says; otherwise 1, and a line that says what is wrong.
 */
#include "trace_check.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct check check;

    bool pieces = argc > 1 && strcmp(argv[1], "--pieces") == 0;
    if (argc != 2 + pieces) {
        fprintf(stderr, "usage: trace_check [--pieces] FOLDER\n");
        return 2;
    }
    int result = check_folder(&check, argv[1 + pieces], pieces);
    if (result < 0)
        fprintf(stderr, "trace_check: %s\n", check.why);
    else
        printf("%zu messages, %u ranks\n", check.count, check.world);
    check_end(&check);
    return result < 0;
}
