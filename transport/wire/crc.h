/*
 * crc.h: CRC32C (Castagnoli, reflected, initial and final inversion as in iSCSI, RFC 3720 appendix B.4), by ISA-L.
 */
#ifndef WF_WIRE_CRC_H
#define WF_WIRE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* CRC of `length` bytes, continuing from `crc` (0 to start). */
uint32_t wf_crc32c(uint32_t crc, const void *bytes, size_t length);

#define WF_CRC_HEADER 60 /* bytes of a frame's header before its sum */

/* The same of a header, which each message has to have: by the processor's instruction where there is one. */
uint32_t wf_crc32c_header(const void *bytes);

#endif
