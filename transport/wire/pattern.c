#include "wire/pattern.h"

void wf_pattern_fill(uint64_t session, uint32_t channel, uint32_t incarnation, uint8_t out[WF_PATTERN_BYTES])
{
    uint64_t seed = session + ((uint64_t)channel << 32 | incarnation);
    for (uint32_t at = 0; at < WF_PATTERN_BYTES; at += 8) {
        uint64_t word = (seed + at / 8) * UINT64_C(0x9e3779b97f4a7c15);
        word ^= word >> 32;
        for (uint32_t i = 0; i < 8; i++)
            out[at + i] = (uint8_t)(word >> 8 * i);
    }
}
