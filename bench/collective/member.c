#include "member.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "bench/nodes/link.h"
#include "plan.h"

#define MEET_MS 60000 /* the first time: programs start, on other hosts as well */

/* "RANK/SIZE/FILE"; or "found", or "found/FILE" */
static int read_member(const char *text, uint64_t turn, struct weft_group_options *options, char rendezvous[PATH_MAX],
                       struct wf_status *status)
{
    char suffix[24] = "";
    int used = 0;

    if (strcmp(text, "found") == 0)
        return 0;
    if (strncmp(text, "found/", 6) == 0)
        used = 6;
    else if (sscanf(text, "%u/%u/%n", &options->rank, &options->size, &used) != 2 || used == 0 || !text[used])
        return wf_fail(status, -EINVAL, "--member '%.60s': expected RANK/SIZE/FILE", text);
    if (turn)
        snprintf(suffix, sizeof suffix, ".%llu", (unsigned long long)turn);
    snprintf(rendezvous, PATH_MAX, "file:%s%s", text + used, suffix);
    options->rendezvous = rendezvous;
    return 0;
}

int coll_open_context(const struct bench_options *options, struct coll_membership *own, struct wf_status *status)
{
    int result = bench_library_settings(options->config, &own->settings, status);

    return result ? result : bench_context_create(options->config, own->settings, &own->context, status);
}

int coll_make_group(const struct bench_options *options, struct coll_membership *own, uint64_t turn,
                    struct wf_status *status)
{
    struct weft_group_options group = {0};
    struct weft_error err = {0};
    char rendezvous[PATH_MAX];
    int meet_ms = turn ? (int)coll_timeout_s(options->config) * 1000 : MEET_MS;
    int result = read_member(options->collective.member, turn, &group, rendezvous, status);

    if (result == 0 && weft_group_create(own->context, &group, meet_ms, &own->group, &err) != 0)
        result = bench_weft_failed(status, &err, NULL);
    return result;
}

int coll_join(const struct bench_options *options, struct coll_membership *own, struct wf_status *status)
{
    memset(own, 0, sizeof *own);
    int result = coll_open_context(options, own, status);
    return result ? result : coll_make_group(options, own, 0, status);
}

void coll_drop_group(struct coll_membership *own)
{
    weft_group_destroy(own->group);
    own->group = NULL;
}

void coll_leave(struct coll_membership *own)
{
    coll_drop_group(own);
    weft_context_destroy(own->context);
    weft_config_destroy(own->settings);
    memset(own, 0, sizeof *own);
}
