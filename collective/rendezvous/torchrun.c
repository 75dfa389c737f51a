/* torchrun's variables, which many other launchers set as well. */
#include "collective/rendezvous/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int wf_find_torchrun(struct wf_meet *meet, const struct wf_meet_env *env, struct wf_found *found,
                     struct weft_error *err)
{
    (void)meet;
    int result = wf_meet_numbers(env, "RANK", "WORLD_SIZE", "LOCAL_RANK", found, err);
    if (result <= 0)
        return result;
    const char *host = wf_meet_get(env, "MASTER_ADDR"), *store = wf_meet_get(env, "TORCHELASTIC_USE_AGENT_STORE");
    uint32_t port = 0;
    result = wf_meet_number(env, "MASTER_PORT", 65535, &port, err);
    if (result < 0)
        return result;
    if (!host || port == 0) {
        snprintf(found->lacks, sizeof found->lacks, "set MASTER_ADDR and MASTER_PORT, or name a rendezvous");
    } else if (store && strcmp(store, "True") == 0) {
        snprintf(found->lacks, sizeof found->lacks,
                 "MASTER_PORT is that of torchrun's own store, so name a rendezvous: HOST:PORT or file:PATH");
    } else if (wf_meet_place(found, host, port)) {
        found->way = WF_MEET_HOST;
        snprintf(found->where, sizeof found->where, "MASTER_ADDR and MASTER_PORT");
    }
    return 1;
}
