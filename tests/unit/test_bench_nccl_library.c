/* Where NCCL's library is looked for, and what is said of one that is not there or cannot be used. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/backends/nccl/library.h"

struct fixture {
    char folder[64];
    char path[4096]; /* PATH as it was */
    struct nccl_library library;
    struct wf_status status;
};

static void make_folders(const char *path)
{
    char part[512];

    for (size_t i = 1; path[i]; i++)
        if (path[i] == '/') {
            snprintf(part, sizeof(part), "%.*s", (int)i, path);
            (void)mkdir(part, 0777);
        }
}

static const char *write_file(struct fixture *fixture, const char *name, const char *text)
{
    static char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", fixture->folder, name);
    make_folders(path);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
    assert_int_equal(chmod(path, 0755), 0);
    return path;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/weft-nccl-XXXXXX");
    *state = fixture;
    snprintf(fixture->path, sizeof(fixture->path), "%s", getenv("PATH"));
    unsetenv("VIRTUAL_ENV");
    unsetenv("CONDA_PREFIX");
    return mkdtemp(fixture->folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char command[96];

    assert_int_equal(setenv("PATH", fixture->path, 1), 0);
    nccl_library_close(&fixture->library);
    snprintf(command, sizeof(command), "rm -rf %s", fixture->folder);
    free(fixture);
    return system(command) == 0 ? 0 : -1;
}

/* What a search says that finds something which is no library. Where the loader itself knows one, nothing else is
 * looked at. */
static void finds(struct fixture *fixture, const char *path)
{
    if (nccl_library_open(&fixture->library, "", &fixture->status) == 0)
        skip();
    assert_non_null(strstr(fixture->status.text, path));
    assert_null(fixture->library.handle);
}

static void a_named_library_is_the_only_one_tried(void **state)
{
    struct fixture *fixture = *state;
    char path[128];

    snprintf(path, sizeof(path), "%s/none.so", fixture->folder);
    assert_int_equal(nccl_library_open(&fixture->library, path, &fixture->status), -EOPNOTSUPP);
    assert_non_null(strstr(fixture->status.text, "none.so"));
    assert_null(fixture->library.Send);
    write_file(fixture, "libnccl.so.2", "not a library\n");
    assert_int_equal(nccl_library_open(&fixture->library, fixture->folder, &fixture->status), -EOPNOTSUPP);
    assert_non_null(strstr(fixture->status.text, "libnccl.so.2"));
}

/* The C library has none of the names. */
static void a_library_that_lacks_a_function_is_refused_whole(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(nccl_library_open(&fixture->library, "libc.so.6", &fixture->status), -EOPNOTSUPP);
    assert_non_null(strstr(fixture->status.text, "ncclGetVersion"));
    assert_null(fixture->library.handle);
    assert_null(fixture->library.GetVersion);
}

static void the_active_environment_is_looked_at(void **state)
{
    struct fixture *fixture = *state;
    const char *wheel = "lib/python3.9/site-packages/nvidia/nccl/lib/libnccl.so.2";

    write_file(fixture, wheel, "not a library\n");
    assert_int_equal(setenv("VIRTUAL_ENV", fixture->folder, 1), 0);
    finds(fixture, "weft-nccl-");
    unsetenv("VIRTUAL_ENV");
    assert_int_equal(setenv("CONDA_PREFIX", fixture->folder, 1), 0);
    finds(fixture, "weft-nccl-");
    unsetenv("CONDA_PREFIX");
}

static void so_are_the_packages_of_the_python_on_path(void **state)
{
    struct fixture *fixture = *state;
    char here[128];

    write_file(fixture, "bin/python3", "#!/bin/sh\n");
    write_file(fixture, "lib/python3.11/dist-packages/nvidia/nccl/lib/libnccl.so.2", "not a library\n");
    snprintf(here, sizeof(here), "/nowhere:%s/bin:/usr/bin", fixture->folder);
    assert_int_equal(setenv("PATH", here, 1), 0);
    finds(fixture, "weft-nccl-");
}

/* Nothing of it is called but its version: that works without a GPU. */
static void one_that_is_here_is_complete(void **state)
{
    struct fixture *fixture = *state;
    int major, minor, patch;

    if (nccl_library_open(&fixture->library, "", &fixture->status) != 0)
        skip();
#define IS_THERE(name, arguments) assert_non_null(*(void **)&fixture->library.name);
    NCCL_FUNCTIONS(IS_THERE)
    assert_non_null(*(void **)&fixture->library.GetErrorString);
    assert_int_equal(sscanf(fixture->library.version, "%d.%d.%d", &major, &minor, &patch), 3);
    assert_true(major >= 2);
    assert_non_null(strstr(fixture->library.path, "libnccl.so.2"));
    assert_false(fixture->library.emulated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_named_library_is_the_only_one_tried, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_library_that_lacks_a_function_is_refused_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_active_environment_is_looked_at, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_here_is_complete, set_up, tear_down),
        cmocka_unit_test_setup_teardown(so_are_the_packages_of_the_python_on_path, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
