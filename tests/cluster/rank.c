/* rank.c: one process of a group that is found in the environment: a few barriers, then a line of what it was told.
 * Arguments: ADDRESS of its rails, and optionally a rendezvous. Status: 0; 1 failed; 2 who it is, or where, is not
 * known. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/weft_coll.h"

enum { WAIT_MS = 30000 };

static int run(struct weft_context *context, const char *rendezvous, struct weft_error *err)
{
    struct weft_group_options options = {.rendezvous = rendezvous};
    struct weft_group *group;
    int result = weft_group_create(context, &options, WAIT_MS, &group, err);
    for (int i = 0; i < 10 && result == 0; i++)
        result = weft_group_barrier(group, WAIT_MS, err);
    if (result < 0)
        return result;
    printf("rank %u of %u, local %u: %s\n", weft_group_rank(group), weft_group_size(group),
           weft_group_local_rank(group), weft_group_source(group));
    weft_group_destroy(group);
    return 0;
}

int main(int argc, char **argv)
{
    struct weft_config *config;
    struct weft_context *context = NULL;
    struct weft_error err = {0};
    int result = weft_config_create(&config, &err);
    if (result == 0)
        result = weft_config_set(config, "rails", argc > 1 ? argv[1] : "127.0.1.1", &err);
    if (result == 0)
        result = weft_context_create(config, &context, &err);
    if (result == 0)
        result = run(context, argc > 2 ? argv[2] : NULL, &err);
    if (result < 0)
        fprintf(stderr, "%s\n", err.text);
    weft_context_destroy(context);
    return result == 0 ? 0 : result == -EINVAL ? 2 : 1;
}
