/* The processors given to rails, as text. */
#include "affinity/bindings.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wf_bindings bindings; /* large; written by every call that succeeds */
    char why[200] = "", *text = fuzz_text(data, size);
    int rc = wf_bindings_parse(text, &bindings, why, sizeof why);

    FUZZ_CHECK(rc == 0 || why[0]);
    FUZZ_CHECK(memchr(why, '\0', sizeof why));
    FUZZ_CHECK(rc < 0 || (bindings.count >= 0 && bindings.count <= WF_PLAN_RAILS));
    for (int i = 0; rc == 0 && i < bindings.count; i++) {
        const struct wf_binding *binding = &bindings.of[i];
        FUZZ_CHECK(binding->rail[0] && memchr(binding->rail, '\0', sizeof binding->rail));
        FUZZ_CHECK(wf_cpus_count(&binding->cpus) > 0);
        for (int other = 0; other < i; other++)
            FUZZ_CHECK(strcmp(bindings.of[other].rail, binding->rail) != 0);
    }
    free(text);
    return 0;
}
