/*
 * pattern.h: the bytes that a payload stream begins with. Both sides know them; no two incarnations of a channel, nor
 * two sessions, have the same, so what an earlier stream has left in memory is not taken for them.
 */
#ifndef WF_WIRE_PATTERN_H
#define WF_WIRE_PATTERN_H

#include <stdint.h>

#define WF_PATTERN_BYTES 16384u

void wf_pattern_fill(uint64_t session, uint32_t channel, uint32_t incarnation, uint8_t out[WF_PATTERN_BYTES]);

#endif
