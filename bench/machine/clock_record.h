/*
 * clock_record.h: the files that say which GPUs a run has locked the clocks of; shared by the files clock_*.c. No other
 * file includes it.
 *
 *     clocks are locked only while a record names them, and a record goes only when they are unlocked
 *
 * A record stands for its GPUs while its run or its guardian lives. GPUs that two records stand for are unlocked with
 * the second one. Whoever decides on that holds the folder, which one process at a time can.
 */
#ifndef WF_BENCH_CLOCK_RECORD_H
#define WF_BENCH_CLOCK_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/status.h"
#include "gpus.h"

#define BENCH_CLOCK_USUAL "/run/weft"
#define BENCH_CLOCK_NAME 32
#define BENCH_CLOCK_FOLDER 256
#define BENCH_CLOCK_RECORDS 256 /* of a folder that are looked at, at most */

/* A number of a process is used again; with the time of its start it is not. */
struct bench_process {
    pid_t pid;
    unsigned long long start; /* ticks after the boot */
};

struct bench_clock_record {
    struct bench_process run, guardian;
    int mhz; /* that was asked for; 0: the highest */
    uint32_t count;
    char pci[BENCH_GPUS_MAX][20];
};

/* A process of this number that lives; -ESRCH: there is none. */
int bench_process_find(pid_t pid, struct bench_process *out);
bool bench_process_lives(const struct bench_process *process);

/* A descriptor that is readable when the process has ended; -1: none can be had. */
int bench_process_open(pid_t pid);

/* Waits until the process `pid`, if it is that one, has ended, at most so long. */
void bench_process_await(const struct bench_process *process, int timeout_ms);

/* The folder of records: the one that is given, or else the first of the usual places that can be written to, which is
 * created. `path` has BENCH_CLOCK_FOLDER bytes. -EACCES and the like: there is none. */
int bench_clock_folder(const char *given, char *path, struct wf_status *status);
/* Opens and holds it until the descriptor is closed. -ENOENT: it is not there, without words; -EPERM: others than this
 * user could put records there. */
int bench_clock_hold(const char *path, struct wf_status *status);

/* The name of a run's record. Returns `name`. */
char *bench_clock_record_name(pid_t run, char name[BENCH_CLOCK_NAME]);
/* Creates it, on the disk when this returns. -EEXIST: something is there already. */
int bench_clock_record_write(int folder, const struct bench_clock_record *record, struct wf_status *status);
/* -ENOENT: there is none; -EINVAL: what has its name is none of this user's records. Follows no link. */
int bench_clock_record_read(int folder, const char *name, struct bench_clock_record *out);

/* Names of records in the folder, and what else is called so: how many of them are in `names`. */
int bench_clock_record_list(int folder, char (*names)[BENCH_CLOCK_NAME], int max);
/* The living record beside `name` that has this GPU. False: none has it. */
bool bench_clock_record_beside(int folder, const char *name, const char *pci, struct bench_clock_record *out);

/* Unlocks the GPUs for which no other record stands, and takes the record away. Where a GPU cannot be unlocked the
 * record stays. `news` (NULL is allowed) gets a line of each GPU. */
int bench_clock_record_undo(int folder, const char *name, FILE *news, struct wf_status *status);

#endif
