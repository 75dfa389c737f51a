#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "bench/words/words.h"

#define FILE_NAME "libnccl.so.2"
#define WHEEL "lib*/python3*/*-packages/nvidia/nccl/lib/" FILE_NAME
#define REMEDY "install NCCL (the Python package nvidia-nccl-cu13 has it), or name it with --nccl-library"

/* What became of the search so far: the first library that was there and could not be used is worth telling. */
struct search {
    struct nccl_library *library;
    char refused[160];
};

/* --- one library --- */

static void forget(struct nccl_library *library)
{
    if (library->handle)
        dlclose(library->handle);
    memset(library, 0, sizeof *library);
}

/* The table is complete, or `lacking` is the first name that is not there. */
static bool look_up_all(struct nccl_library *library, const char **lacking)
{
#define LOOK_UP(name, arguments)                                                                                       \
    *lacking = "nccl" #name;                                                                                           \
    *(void **)&library->name = dlsym(library->handle, *lacking);                                                       \
    if (!library->name)                                                                                                \
        return false;
    NCCL_FUNCTIONS(LOOK_UP)
    LOOK_UP(GetErrorString, )
#undef LOOK_UP
    *(void **)&library->GetLastError = dlsym(library->handle, "ncclGetLastError");
    return true;
}

/* 2.9 and later: major * 10000 + minor * 100 + patch; before: major * 1000. */
static void describe(struct nccl_library *library)
{
    Dl_info info;
    int code = 0;

    if (dladdr(*(void **)&library->GetVersion, &info) && info.dli_fname)
        bench_copy_text(library->path, sizeof library->path, info.dli_fname);
    if (library->GetVersion(&code) == NCCL_SUCCESS && code > 0)
        snprintf(library->version, sizeof library->version, "%d.%d.%d", code < 10000 ? code / 1000 : code / 10000,
                 code < 10000 ? code / 100 % 10 : code / 100 % 100, code % 100);
    else
        bench_copy_text(library->version, sizeof library->version, "unknown");
    library->emulated = dlsym(library->handle, "weft_emulated_driver") != NULL;
}

static bool refuse(struct search *search, const char *path, const char *why)
{
    if (!search->refused[0])
        snprintf(search->refused, sizeof search->refused, "%.70s: %.80s", path, why);
    forget(search->library);
    return false;
}

static bool try_path(struct search *search, const char *path)
{
    struct nccl_library *library = search->library;
    const char *lacking;
    char why[80];

    /* A name without a folder that the loader does not find is no library that was refused. */
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library->handle)
        return strchr(path, '/') ? refuse(search, path, dlerror()) : false;
    if (!look_up_all(library, &lacking)) {
        snprintf(why, sizeof why, "has no %s: too old", lacking);
        return refuse(search, path, why);
    }
    describe(library);
    return true;
}

/* --- the places --- */

static bool try_pattern(struct search *search, const char *pattern)
{
    glob_t found;
    bool worked = false;

    if (glob(pattern, 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc && !worked; i++)
        worked = try_path(search, found.gl_pathv[i]);
    globfree(&found);
    return worked;
}

/* A Python environment: its wheels, and what conda puts beside them. */
static bool try_prefix(struct search *search, const char *prefix)
{
    char pattern[PATH_MAX + 80];

    snprintf(pattern, sizeof pattern, "%s/" WHEEL, prefix);
    if (try_pattern(search, pattern))
        return true;
    snprintf(pattern, sizeof pattern, "%s/lib/" FILE_NAME, prefix);
    return try_pattern(search, pattern);
}

static void cut_names(char *path, int names)
{
    for (char *slash; names > 0 && (slash = strrchr(path, '/')) != NULL; names--)
        *slash = '\0';
}

/* The environment of a python3: where it lies, and, if it is a link (as in a virtual environment), where it leads. */
static bool try_python(struct search *search, const char *program)
{
    char here[PATH_MAX], real[PATH_MAX];

    bench_copy_text(here, sizeof here, program);
    cut_names(here, 2); /* bin/python3 */
    if (try_prefix(search, here))
        return true;
    if (!realpath(program, real))
        return false;
    cut_names(real, 2);
    return strcmp(here, real) != 0 && try_prefix(search, real);
}

static bool try_python_on_path(struct search *search)
{
    const char *path = wf_environment_value("PATH");
    char *copy = path ? strdup(path) : NULL, *rest = copy, *folder;
    char program[PATH_MAX];
    bool worked = false, seen = false;

    while (!seen && copy && (folder = bench_next_word(&rest, ':')) != NULL) {
        snprintf(program, sizeof program, "%s/python3", folder);
        seen = folder[0] == '/' && access(program, X_OK) == 0;
        worked = seen && try_python(search, program);
    }
    free(copy);
    return worked;
}

static bool try_usual_places(struct search *search)
{
    static const char *const environments[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    static const char *const folders[] = {"/usr/local/" WHEEL, "/usr/lib/*-linux-gnu/" FILE_NAME,
                                          "/usr/lib64/" FILE_NAME, "/usr/local/cuda*/lib64/" FILE_NAME,
                                          "/usr/local/cuda*/lib/" FILE_NAME};

    if (try_path(search, FILE_NAME))
        return true;
    for (size_t i = 0; i < sizeof environments / sizeof environments[0]; i++) {
        const char *prefix = wf_environment_value(environments[i]);
        if (prefix && try_prefix(search, prefix))
            return true;
    }
    if (try_python_on_path(search))
        return true;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (try_pattern(search, folders[i]))
            return true;
    return false;
}

/* --- for callers --- */

static int open_named(struct search *search, const char *where, struct wf_status *status)
{
    char path[WF_VALUE_MAX + sizeof FILE_NAME + 1];
    struct stat there;

    snprintf(path, sizeof path, "%s", where);
    if (stat(where, &there) == 0 && S_ISDIR(there.st_mode))
        snprintf(path, sizeof path, "%s/" FILE_NAME, where);
    if (try_path(search, path))
        return 0;
    return wf_fail(status, -EOPNOTSUPP, "nccl_library %.90s: %s", where,
                   search->refused[0] ? search->refused : "the loader does not find it");
}

int nccl_library_open(struct nccl_library *library, const char *where, struct wf_status *status)
{
    struct search search = {.library = library};

    memset(library, 0, sizeof *library);
    if (where && where[0])
        return open_named(&search, where, status);
    if (try_usual_places(&search))
        return 0;
    if (search.refused[0])
        return wf_fail(status, -EOPNOTSUPP, "NCCL cannot be used: %s", search.refused);
    return wf_fail(status, -EOPNOTSUPP,
                   "no " FILE_NAME
                   " in the loader's paths, in lib and the Python packages of VIRTUAL_ENV, CONDA_PREFIX and python3, "
                   "/usr/local's Python packages, /usr/lib/*-linux-gnu, /usr/lib64, /usr/local/cuda*/lib64, "
                   "/usr/local/cuda*/lib: " REMEDY);
}

void nccl_library_close(struct nccl_library *library)
{
    forget(library);
}

char *nccl_library_error(const struct nccl_library *library, nccl_result result, char *buffer, size_t room)
{
    const char *last = library->GetLastError ? library->GetLastError(NULL) : NULL;

    snprintf(buffer, room, "%s%s%s", library->GetErrorString(result), last && last[0] ? ": " : "", last ? last : "");
    buffer[strcspn(buffer, "\n")] = '\0';
    return buffer;
}
