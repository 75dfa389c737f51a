#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "bench/words/words.h"
#include "weft.h"

#define FILE_NAME "libnccl-net-weft.so"
#define REMEDY "build the target weft_nccl, or name a plugin with --plugin-library"

/* As NCCL loads it. */
static bool try_path(struct net_library *library, const char *path, char *why, size_t room)
{
    Dl_info info;

    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle) {
        bench_copy_text(why, room, dlerror());
        return false;
    }
    library->net = dlsym(library->handle, NET_TABLE);
    if (!library->net) {
        snprintf(why, room, "%.90s: has no " NET_TABLE, path);
        net_library_close(library);
        return false;
    }
    bool known = dladdr(library->net, &info) && info.dli_fname;
    bench_copy_text(library->path, sizeof library->path, known ? info.dli_fname : path);
    return true;
}

/* The folder of libweft.so, or of the program where the library is a part of it. */
static void own_folder(char *folder, size_t room)
{
    Dl_info info;
    bool known = dladdr((void *)(uintptr_t)weft_version, &info) && info.dli_fname && strchr(info.dli_fname, '/');

    bench_copy_text(folder, room, known ? info.dli_fname : "./");
    *strrchr(folder, '/') = '\0';
}

/* What is there and cannot be used is not passed over. */
int net_library_open(struct net_library *library, const char *where, struct wf_status *status)
{
    static const char *const places[] = {"/", "/../lib/"};
    char folder[PATH_MAX], path[PATH_MAX + 64], why[160];

    memset(library, 0, sizeof *library);
    if (where && where[0]) {
        if (try_path(library, where, why, sizeof why))
            return 0;
        return wf_fail(status, -EOPNOTSUPP, "plugin_library %.90s: %s", where, why);
    }
    own_folder(folder, sizeof folder);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s%s" FILE_NAME, folder, places[i]);
        if (access(path, F_OK) != 0)
            continue;
        if (try_path(library, path, why, sizeof why))
            return 0;
        return wf_fail(status, -EOPNOTSUPP, "the plugin for NCCL cannot be used: %s", why);
    }
    if (try_path(library, FILE_NAME, why, sizeof why))
        return 0;
    return wf_fail(status, -EOPNOTSUPP, "no " FILE_NAME " in %.90s or the loader's paths: " REMEDY, folder);
}

void net_library_close(struct net_library *library)
{
    if (library->handle)
        dlclose(library->handle);
    memset(library, 0, sizeof *library);
}
