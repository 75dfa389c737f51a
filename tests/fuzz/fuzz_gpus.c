/* The setting gpus: only devices that are there are marked. */
#include "core/device/gpu.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct wf_device_info infos[] = {{.index = 0}, {.index = 1}, {.index = 3}, {.index = 7}};
    const int count = sizeof infos / sizeof infos[0];
    bool wanted[WF_DEVICES_MAX] = {false};
    struct wf_status status = {0};
    char *text = fuzz_text(data, size);
    int rc = wf_gpu_list_read(text, infos, count, wanted, &status), marked = 0;

    FUZZ_CHECK(rc == 0 || (rc == status.code && status.text[0]));
    for (int i = 0; i < WF_DEVICES_MAX; i++) {
        FUZZ_CHECK(!wanted[i] || i == 0 || i == 1 || i == 3 || i == 7);
        marked += wanted[i];
    }
    FUZZ_CHECK(rc < 0 || marked > 0);
    free(text);
    return 0;
}
