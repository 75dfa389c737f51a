/* The header of a frame: what is taken for one says again, byte for byte, what it was read from. */
#include "fuzz.h"
#include "wire/crc.h"
#include "wire/frame.h"

#define CRC_AT (WF_FRAME_BYTES - 4)

static void take(const uint8_t bytes[WF_FRAME_BYTES])
{
    struct wf_frame frame;
    uint8_t again[WF_FRAME_BYTES];

    if (wf_frame_decode(bytes, &frame) < 0)
        return;
    FUZZ_CHECK(wf_frame_name(frame.type)[0] != '?');
    FUZZ_CHECK(frame.data_off >= WF_FRAME_BYTES && frame.data_off <= WF_FRAME_DATA_OFF_MAX);
    FUZZ_CHECK(frame.type != WF_DATA || frame.offset + frame.length >= frame.offset);
    FUZZ_CHECK(frame.type != WF_DATA || frame.offset + frame.length <= frame.total);
    wf_frame_encode(&frame, again);
    FUZZ_CHECK(memcmp(bytes, again, sizeof again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[WF_FRAME_BYTES] = {0};

    memcpy(bytes, data, size < sizeof bytes ? size : sizeof bytes);
    take(bytes);
    /* And with the checksum that the rest of it asks for: by chance nobody finds that one. */
    uint32_t crc = wf_crc32c(0, bytes, CRC_AT);
    for (int i = 0; i < 4; i++)
        bytes[CRC_AT + i] = (uint8_t)(crc >> (8 * i));
    take(bytes);
    return 0;
}
