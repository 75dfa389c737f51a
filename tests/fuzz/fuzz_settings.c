/* A file of settings: what cannot be read is named in a sentence, and what was set before stays in force. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "fuzz.h"

static void check(const struct wf_config *config)
{
    for (int id = 0; id < WF_SETTING_COUNT; id++) {
        const struct wf_setting *setting = wf_setting((enum wf_setting_id)id);
        const struct wf_value *value = &config->values[id];
        bool number = setting->type == WF_TYPE_INT || setting->type == WF_TYPE_SIZE;
        FUZZ_CHECK(memchr(value->text, '\0', sizeof value->text));
        FUZZ_CHECK(memchr(value->source, '\0', sizeof value->source));
        FUZZ_CHECK(!number || (setting->zero && value->number == 0) ||
                   (value->number >= setting->min && value->number <= setting->max));
        FUZZ_CHECK(value->origin == WF_ORIGIN_DEFAULT || value->origin == WF_ORIGIN_FILE ||
                   (id == WF_SET_CHUNK && value->origin == WF_ORIGIN_COMMAND));
    }
    FUZZ_CHECK(config->values[WF_SET_CHUNK].number == 8192);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wf_status status = {0};
    struct wf_config *config = malloc(sizeof *config);
    char path[64];
    int fd = memfd_create("settings", MFD_CLOEXEC);

    FUZZ_CHECK(config && fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    wf_config_init(config);
    FUZZ_CHECK(wf_config_set(config, WF_SET_CHUNK, "8K", WF_ORIGIN_COMMAND, "command line", &status) == 0);
    int rc = wf_config_load_file(config, path, &status);
    FUZZ_CHECK(rc == 0 || (rc == status.code && status.text[0] && memchr(status.text, '\0', sizeof status.text)));
    check(config);
    close(fd);
    free(config);
    return 0;
}
