/* Set-up messages of every type: what is taken for one keeps to its limits and can be said again. */
#include "fuzz.h"
#include "wire/crc.h"
#include "wire/hello.h"

static void check(const struct wf_setup *setup)
{
    struct wf_setup twice;
    uint8_t again[WF_SETUP_MAX];

    if (setup->type == WF_SETUP_HELLO) {
        FUZZ_CHECK(setup->hello.rail_count <= WF_RAILS_MAX);
        FUZZ_CHECK(memchr(setup->hello.name, '\0', sizeof setup->hello.name));
        for (int i = 0; i < setup->hello.rail_count; i++)
            FUZZ_CHECK(memchr(setup->hello.rails[i].name, '\0', sizeof setup->hello.rails[i].name));
    } else if (setup->type == WF_SETUP_JOIN) {
        FUZZ_CHECK(setup->join.rail < WF_RAILS_MAX && setup->join.domain <= WF_STRANDS_MAX);
        bool device = setup->join.kind == WF_CHANNEL_DEVICE || setup->join.kind == WF_CHANNEL_PAYLOAD;
        FUZZ_CHECK(device == (setup->join.domain > 0));
    } else if (setup->type == WF_SETUP_DENY) {
        FUZZ_CHECK(memchr(setup->deny.text, '\0', sizeof setup->deny.text));
        for (const char *at = setup->deny.text; *at; at++)
            FUZZ_CHECK(*at >= ' ' && *at < 0x7f);
    } else if (setup->type == WF_SETUP_GREETING) {
        FUZZ_CHECK(setup->greeting.length <= WF_GREETING_MAX);
    }
    int length = wf_setup_encode(setup, again, sizeof again);
    FUZZ_CHECK(length > WF_SETUP_PREFIX && length == wf_setup_length(again));
    FUZZ_CHECK(wf_setup_decode(again, (size_t)length, &twice) == 0 && twice.type == setup->type);
}

static void take(const uint8_t *bytes, size_t size)
{
    struct wf_setup setup;

    if (wf_setup_decode(bytes, size, &setup) == 0)
        check(&setup);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes;
    int length;

    if (size < WF_SETUP_PREFIX) {
        take(data, size);
        return 0;
    }
    length = wf_setup_length(data);
    FUZZ_CHECK(length < 0 || (length > WF_SETUP_PREFIX && length <= WF_SETUP_MAX));
    take(data, size);
    if (size < WF_SETUP_PREFIX + 4 || size > WF_SETUP_MAX)
        return 0;
    /* With the length and the checksum that the rest of it asks for. */
    bytes = malloc(size);
    FUZZ_CHECK(bytes);
    memcpy(bytes, data, size);
    bytes[6] = (uint8_t)(size - WF_SETUP_PREFIX - 4);
    bytes[7] = (uint8_t)((size - WF_SETUP_PREFIX - 4) >> 8);
    uint32_t crc = wf_crc32c(0, bytes, size - 4);
    for (int i = 0; i < 4; i++)
        bytes[size - 4 + (size_t)i] = (uint8_t)(crc >> (8 * i));
    take(bytes, size);
    free(bytes);
    return 0;
}
