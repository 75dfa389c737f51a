/*
 * clock_lock.h: the clocks of GPUs, kept at one frequency for the time of a run. They are the machine's, not the
 * process's, so they would stay locked after a run that was killed:
 *
 *     clocks are locked -> there is a record of it, and a guardian that unlocks them when the run has ended, however
 *
 * The guardian is a process of its own that outlives the run. Where both are killed the record is left, and the next
 * run, or bench_clocks_undo(), unlocks them by it. Runs that want the same clocks of a GPU share them: the last one
 * unlocks.
 *
 * What somebody had locked by other means is forgotten: the library does not tell what it was.
 */
#ifndef WF_BENCH_CLOCK_LOCK_H
#define WF_BENCH_CLOCK_LOCK_H

#include <stdio.h>
#include <sys/types.h>

#include "base/status.h"
#include "gpus.h"

/* Owner: the measuring thread. */
struct bench_clock_lock {
    int guard; /* the guardian's socket; -1: nothing is locked */
    pid_t guardian;
    char folder[256];        /* of the record */
    uint32_t count;          /* GPUs that are locked */
    int mhz[BENCH_GPUS_MAX]; /* what the GPU of endpoint i is locked to */
};

/*
 * Locks the clocks of the GPUs of these endpoints at `mhz`; 0: the highest that each has. Undoes before what runs have
 * left. `folder`: where the record is; NULL: /run/weft, or weft in XDG_RUNTIME_DIR. After a failure nothing is locked,
 * or else its record is left, and bench_clocks_unlock() has nothing to do.
 *
 * Early in a run: it forks, and the guardian shares the memory that is there until then. Meanwhile no wf_nvml is open
 * in this process: the guardian could not use the library, which would take what it inherits for open.
 *
 * -EINVAL: no GPU; -EPERM: it needs root; -EOPNOTSUPP: the GPU or its driver cannot do it; -EBUSY: another run keeps
 * one of them at other clocks; -EACCES, -EROFS, -EEXIST and the like: the record cannot be written.
 */
int bench_clocks_lock(struct bench_clock_lock *lock, const struct bench_gpus *gpus, uint32_t endpoints, int mhz,
                      const char *folder, struct wf_status *status);

/* The end of a run: unlocks, and waits for it a few seconds at most. Afterwards `lock` is done with, also when it
 * failed: then the record is left. */
int bench_clocks_unlock(struct bench_clock_lock *lock, struct wf_status *status);

/* Unlocks what ended runs have left locked by the records in `folder` (NULL: in the usual places): `undone` of them.
 * A line of each GPU, and of each run that has not ended, goes to `news` (NULL: nowhere). Fails where one could not be
 * undone, after it has tried the others. No record: nothing to do. */
int bench_clocks_undo(const char *folder, FILE *news, int *undone, struct wf_status *status);

#endif
