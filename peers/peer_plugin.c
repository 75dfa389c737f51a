/* Weft as NCCL drives it: the net plugin, through the backend of `weft pair`. What its layer costs is its distance from
 * Weft's own line. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

#define FILE_NAME "libnccl-net-weft.so"

/* Where the program looks, too; a file that is named is looked at by the program alone. */
static bool has_plugin(const struct peer_place *place)
{
    static const char *const folders[] = {"/../lib/", "/"};
    char path[PATH_MAX];

    for (int i = 0; place->settings[i]; i++)
        if (strncmp(place->settings[i], "plugin_library=", 15) == 0)
            return true;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s%s" FILE_NAME, place->folder, folders[i]);
        if (access(path, F_OK) == 0)
            return true;
    }
    void *loaded = dlopen(FILE_NAME, RTLD_LAZY | RTLD_LOCAL);
    if (loaded)
        dlclose(loaded);
    return loaded != NULL;
}

static int plugin_variants(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    (void)asked;
    if (has_plugin(place))
        return 1;
    snprintf(why, 200, "no " FILE_NAME " here: build the target weft_nccl");
    return 0;
}

static int plugin_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                           struct peer_commands *out)
{
    (void)index;
    return peer_pair_commands("plugin", asked, place, out);
}

const struct peer_tool peer_plugin = {
    .name = "plugin",
    .program = "weft",
    .package = NULL,
    .aside = "Weft as NCCL drives it",
    .many_buffers = true,
    .variants = plugin_variants,
    .commands = plugin_commands,
    .read = peer_pair_read,
};
