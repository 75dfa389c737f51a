/* The setting fault. */
#include "base/fault_spec.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wf_fault_spec spec, before;
    struct wf_status status = {0};
    char *text = fuzz_text(data, size);

    memset(&spec, 0x5a, sizeof spec);
    spec.shorten = true; /* no byte of it may be one that a bool cannot have */
    for (int i = 0; i < WF_FAULT_WINDOWS; i++)
        spec.windows[i].drop = true;
    memcpy(&before, &spec, sizeof before);
    int rc = wf_fault_parse(text, &spec, &status);
    if (rc < 0) {
        FUZZ_CHECK(rc == status.code && status.text[0]);
        FUZZ_CHECK(memcmp(&before, &spec, sizeof spec) == 0);
    }
    FUZZ_CHECK(rc < 0 || (spec.window_count >= 0 && spec.window_count <= WF_FAULT_WINDOWS));
    for (int i = 0; rc == 0 && i < spec.window_count; i++) {
        const struct wf_fault_window *window = &spec.windows[i];
        FUZZ_CHECK(window->rail[0] && memchr(window->rail, '\0', sizeof window->rail));
        FUZZ_CHECK(window->start_ms >= 0 && window->start_ms <= WF_FAULT_MS_MAX);
        FUZZ_CHECK(window->length_ms >= 1 && window->length_ms <= WF_FAULT_MS_MAX);
    }
    free(text);
    return 0;
}
