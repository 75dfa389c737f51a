/*
 * astray.h: a pair of nodes in the simulated world whose sessions are looked into, and whose channels are broken, from
 * outside. What all these tests claim: however channels were lost, every operation ends, and nothing is left over.
 */
#ifndef ASTRAY_H
#define ASTRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/channel/channel.h"
#include "core/session/session.h"
#include "loop_support.h"
#include "loop_world.h"
#include "sim.h"

enum { ASTRAY_SOON_MS = 5000 }; /* of simulated time: the limit of what is expected to happen */

extern struct loop_pair astray_pair; /* [0] dialled, and dials again */

/* Turns the world until the condition holds; a test that waits longer has failed. */
#define ASTRAY_UNTIL(condition, ...)                                                                                   \
    do {                                                                                                               \
        for (int64_t limit_ms = loop_now_ms() + ASTRAY_SOON_MS; !(condition);)                                         \
            LOOP_CHECK(loop_now_ms() < limit_ms, __VA_ARGS__);                                                         \
    } while (0)

struct wf_session *astray_session(int side);
struct weft_connection *astray_connection(int side);
struct wf_sim *astray_sim(void);

/* Frames that lost channels have left with this side. */
uint32_t astray_frames(int side);

/* The message that this side is receiving under this number; NULL: none. */
const struct wf_inbound *astray_inbound(int side, uint64_t number);

/* Nothing arrives on any channel of this kind. */
void astray_freeze(enum wf_channel_kind kind);

/* The rail 127.0.number.1, on both sides; the channels of it that are up. */
void astray_set_rail(int number, const struct wf_sim_rail *rail);
void astray_cut_rail(int number);
void astray_freeze_rail(int number, bool frozen);

/* All channels are reset; both sides have seen it. */
void astray_cut_all(void);
void astray_until_back(void);

/* Ends within ASTRAY_SOON_MS. */
int astray_status(struct weft_request *request);

/* What of finished operations a side still keeps, in words; NULL: nothing. */
const char *astray_left_over(int side);
/* All channels are up, and on both sides nothing is left over. */
bool astray_is_clean(void);
/* Soon, that is. */
void astray_check_clean(void);

/* Cases of astray_storm.c. */
void storm_in_large_chunks(void);
void storm_in_small_chunks(void);
void storm_in_tiny_windows(void);

#endif
