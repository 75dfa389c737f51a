/*
 * group_clock.h: the time that libweft_coll sees in a barrier of this process: never later than how far the members
 * have come. So what a barrier says of who is late does not depend on how fast the machine is.
 *
 *     seen = the true time, but no later than
 *         its start + 1/2 of the barrier's patience   until all who wait in it have told the board, and rank 0
 *         its start + 23/24                           until the board has answered this member
 *
 * A member tells the board after a quarter of its patience (2 s at most), and asks it before the last twelfth
 * (collective/group). The rest of the process, libweft with it, sees the true time. After half of LOOP_WAIT_MS this one
 * does, too: then the words are wrong, and the test ends.
 */
#ifndef GROUP_CLOCK_H
#define GROUP_CLOCK_H

#include "group_support.h"

/* The next barrier of this thread has such a time, until group_clock_stop(). `waiting`: a bit for each rank that waits
 * in it; `told`: in shared memory, zero at first. */
void group_clock_start(const struct group_process *process, int patience_ms, uint64_t waiting, uint64_t *told);
/* The same, but the time stops after 3/4 of the patience: nobody is late. */
void group_clock_start_early(int patience_ms);
void group_clock_stop(void);

#endif
