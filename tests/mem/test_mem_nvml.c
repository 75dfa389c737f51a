/* The management library: as it is emulated, and as it is where there is none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/nvml.h"

enum { PRESENT = 10, ABSENT, WRONG };

static int look(void)
{
    struct wf_nvml *untouched = (void *)&untouched, *nvml = untouched;
    struct wf_status status = {0};
    int result = wf_nvml_open(&nvml, &status);

    if (result == 0) {
        wf_nvml_close(nvml);
        return PRESENT;
    }
    if (result != -ENODEV || nvml != untouched)
        return WRONG;
    return strcmp(status.text, "no libnvidia-ml.so.1") == 0 ? ABSENT : PRESENT; /* one that does not work */
}

/* In a process of its own: the library of this machine would stay, and keep the emulated one out. */
static void is_absent(void **state)
{
    int status = 0;

    (void)state;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(look());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == PRESENT) {
        print_message("skipped: this machine has a driver\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), ABSENT);
}

static void reads_what_there_is(void **state)
{
    struct wf_nvml *nvml = NULL;
    struct wf_nvml_state now;
    struct wf_status status = {0};

    (void)state;
    assert_non_null(dlopen(EMULATED_NVML, RTLD_NOW | RTLD_LOCAL)); /* under its name it is found from now on */
    for (int round = 0; round < 2; round++) {
        assert_int_equal(wf_nvml_open(&nvml, &status), 0);
        assert_non_null(strstr(wf_nvml_driver(nvml), "emulated"));
        assert_int_equal(wf_nvml_read(nvml, "0000:3a:00.0", &now, &status), 0);
        assert_true(now.name[0]);
        assert_int_equal(now.celsius, 11);
        assert_int_equal(now.sm_mhz, 111);
        assert_int_equal(now.memory_mhz, 111);
        assert_int_equal(now.power_mw, 1111);
        assert_string_equal(now.throttling, "none");
        memset(&now, 0x55, sizeof(now));
        assert_int_equal(wf_nvml_read(nvml, "0000:ff:00.0", &now, &status), -ENODEV);
        assert_string_equal(status.text, "no GPU at PCI address '0000:ff:00.0': Not Found");
        assert_int_equal(now.celsius, 0x55555555);
        wf_nvml_close(nvml);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_absent),
        cmocka_unit_test(reads_what_there_is),
    };

    return cmocka_run_group_tests_name("the management library", tests, NULL, NULL);
}
