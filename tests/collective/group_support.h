/*
 * group_support.h: several processes on loopback, each with a context, that make one group. The test's own process
 * starts them, says what each one does, and reads how it ended.
 */
#ifndef GROUP_SUPPORT_H
#define GROUP_SUPPORT_H

#include "../loop/loop_support.h"
#include "collective/weft_coll.h"

#define GROUP_MAX 64
#define GROUP_MS (30000 * LOOP_SLOWER) /* for members that are expected to come */

/* What members share: counters that each one raises before a barrier, and how each one has ended. */
struct group_shared {
    uint64_t entered[GROUP_MAX];
    uint64_t told; /* group_clock.h */
    int status[GROUP_MAX + 1];
    int64_t took_ms[GROUP_MAX + 1];
    uint64_t memory_kb[GROUP_MAX + 1], value[GROUP_MAX + 1];
    char text[GROUP_MAX + 1][WEFT_TEXT_BYTES];
    char source[GROUP_MAX + 1][WEFT_TEXT_BYTES];
    char refused[GROUP_MAX + 1][1024];
};

struct group_world;

/* One process. `slot` is its place in `shared`; `rank` as it believes. */
struct group_process {
    struct group_world *world;
    struct loop_child child;
    int slot;
    uint32_t rank, size;
    const char *name, *settings;
    int timeout_ms;
    /* With its group, once it is made. The result becomes the status. May be NULL. */
    int (*body)(struct group_process *process, struct weft_group *group, struct weft_error *err);
    int in, out;                  /* to the test, in the process */
    struct weft_context *context; /* in the process */
    uint64_t number, value;       /* for the body */
    uint32_t sessions;
    int rails;               /* 0: two */
    struct weft_group *kept; /* of a split, destroyed when all else is; NULL: none */
};

struct group_world {
    struct group_shared *shared;
    char folder[64];
    char rendezvous[160];
    struct group_process process[GROUP_MAX + 1];
    int count;
};

void group_world_create(struct group_world *world, uint32_t size,
                        int (*body)(struct group_process *, struct weft_group *, struct weft_error *));
/* One more process. */
struct group_process *group_world_add(struct group_world *world, uint32_t rank);
void group_start(struct group_process *process);
void group_start_all(struct group_world *world);
/* Waits for all that are alive, and removes what is left. */
void group_join_all(struct group_world *world);
void group_world_destroy(struct group_world *world);
void group_check(struct group_world *world, int slot, int status, const char *words);
/* The same of every slot but `but` (-1: of all). */
void group_check_all(struct group_world *world, int but, int status, const char *words);
/* A world of `size` processes from beginning to end, in which all goes well. */
void group_run_all(uint32_t size, int (*body)(struct group_process *, struct weft_group *, struct weft_error *));
/* Every rank but the victim has failed, and names it, and `how`. */
void group_check_named(struct group_world *world, uint32_t victim, const char *how);
/* Stops the victim, waits for the others, and kills it. How long they took. */
int64_t group_stop_one(struct group_world *world, uint32_t victim);
/* The ranks with a bit in `late` have told that they wait for a word: they get it when all others have ended. */
void group_join_late(struct group_world *world, uint64_t late);
/* In a process: raises its counter, enters a barrier, and checks that all have raised theirs. */
int group_pass(struct group_process *process, struct weft_group *group, int timeout_ms, struct weft_error *err);

#define GROUP_VERSION 7 /* what members of this version say in HELLO */

/* Plays a member in this process: dials the address in the file of the rendezvous, and says HELLO with these words for
 * version, rank, size. The tag of the answer, and its text. The context is the caller's. */
int group_play(struct group_world *world, struct weft_context *context, unsigned version, unsigned rank, unsigned size,
               char answer[512]);

#endif
