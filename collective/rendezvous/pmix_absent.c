/* PMIx in a build without libpmix: what the launcher's variables tell, and no meeting. */
#include "collective/rendezvous/source.h"

#include <errno.h>
#include <stdio.h>

int wf_find_pmix(struct wf_meet *meet, const struct wf_meet_env *env, struct wf_found *found, struct weft_error *err)
{
    (void)meet;
    if (!wf_meet_get(env, "PMIX_NAMESPACE"))
        return 0;
    snprintf(
        found->lacks, sizeof found->lacks,
        "this build has no libpmix: build where pkg-config finds pmix, or name a rendezvous: HOST:PORT or file:PATH");
    int result = wf_meet_numbers(env, "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", found, err);
    return result == 0 ? wf_meet_fail(err, 0, "PMIx has started this process, and this build has no libpmix") : result;
}

int wf_pmix_put(struct wf_pmix *pmix, const char *key, const char *value, struct weft_error *err)
{
    (void)pmix, (void)key, (void)value, (void)err;
    return -ENOTSUP;
}

int wf_pmix_get(struct wf_pmix *pmix, const char *key, char *value, uint32_t room, int timeout_ms,
                struct weft_error *err)
{
    (void)pmix, (void)key, (void)value, (void)room, (void)timeout_ms, (void)err;
    return -ENOTSUP;
}

void wf_pmix_close(struct wf_pmix *pmix)
{
    (void)pmix;
}
