/*
 * Machines without a driver that can be used: opening ends with -ENODEV and one line that says why, whatever is wrong
 * with the driver, and leaves nothing behind. Each case is a process of its own, since a driver stays once it is
 * loaded.
 */
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

#include "mem/cuda_driver.h"
#include "mem/memory.h"
#include "mem/nvml.h"

/* What a child found out. */
struct finding {
    bool loaded_before, loaded_after;
    int result;
    int again; /* result of a second try */
    bool untouched;
    struct wf_status status;
};

/* In the child. `library`: the driver of this machine; NULL: whatever there is. */
static struct finding look(const char *library)
{
    struct finding finding = {.loaded_before = wf_cuda_is_loaded()};
    struct wf_memory *memory = (void *)&finding;

    /* Under its name it is found from now on, wherever it lies. */
    if (library && !dlopen(library, RTLD_NOW)) {
        wf_fail(&finding.status, -ENOENT, "%s", dlerror());
        return finding;
    }
    finding.loaded_after = wf_cuda_is_loaded();
    finding.result = wf_memory_cuda.open(NULL, &memory, &finding.status);
    finding.untouched = memory == (void *)&finding;
    finding.again = finding.result ? wf_memory_cuda.open(NULL, &memory, NULL) : 0;
    return finding;
}

static struct finding look_apart(const char *library)
{
    struct finding finding = {0};
    int ends[2], status = -1;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        finding = look(library);
        _exit(write(ends[1], &finding, sizeof(finding)) == sizeof(finding) ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &finding, sizeof(finding)), sizeof(finding));
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return finding;
}

static void check_refused(const struct finding *finding, const char *text)
{
    assert_int_equal(finding->result, -ENODEV);
    assert_int_equal(finding->again, -ENODEV);
    assert_int_equal(finding->status.code, -ENODEV);
    assert_true(finding->untouched);
    assert_string_equal(finding->status.text, text);
}

static void no_library(void **state)
{
    (void)state;
    struct finding finding = look_apart(NULL);

    assert_false(finding.loaded_before);
    if (finding.result == 0 || !strstr(finding.status.text, "no libcuda.so.1")) {
        print_message("skipped: this machine has a driver\n");
        skip();
    }
    assert_false(finding.loaded_after);
    check_refused(&finding, "no libcuda.so.1: cannot open shared object file: No such file or directory");
}

static void unusable(void **state)
{
    static const struct {
        const char *library, *text;
    } cases[] = {
        {FAKES "/1/libcuda.so.1", "the GPU driver is too old: it is made for CUDA 11.4 and has no cuGetProcAddress_v2; "
                                  "install one for CUDA 12.0 or later"},
        {FAKES "/2/libcuda.so.1", "the GPU driver is too old: it is made for CUDA 12.2 and has no cuMemHostRegister; "
                                  "install one for CUDA 12.0 or later"},
        {FAKES "/3/libcuda.so.1", "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): system has unsupported display "
                                  "driver / cuda driver combination"},
        {FAKES "/4/libcuda.so.1", "the GPU driver has no device (is CUDA_VISIBLE_DEVICES empty?)"},
        {FAKES "/5/libcuda.so.1", "the GPU driver has no device (is CUDA_VISIBLE_DEVICES empty?)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct finding finding = look_apart(cases[i].library);
        assert_false(finding.loaded_before);
        assert_true(finding.loaded_after);
        check_refused(&finding, cases[i].text);
    }
}

static void closes_what_is_not_open(void **state)
{
    struct wf_cuda_driver driver = {0};

    (void)state;
    wf_cuda_driver_close(&driver);
    wf_memory_cuda.close(NULL);
    wf_nvml_close(NULL);
}

static void names_reasons_of_throttling(void **state)
{
    static const struct {
        unsigned long long reasons;
        const char *text;
    } cases[] = {
        {0, "none"},
        {0x1, "none"},
        {0x4, "power cap"},
        {0x5, "power cap"},
        {0x44, "power cap, thermal (hardware)"},
        {0x1FE, "application clocks set, power cap, hardware slowdown, sync boost, thermal (software), thermal "
                "(hardware), power brake, display clocks set"},
        {0x200, "others (0x200)"},
        {0x80000084, "power cap, power brake, others (0x80000000)"},
    };
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        wf_nvml_throttle_words(cases[i].reasons, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
    /* What does not fit is left out, and ends. */
    for (unsigned long size = 1; size < 40; size++) {
        memset(text, 'x', sizeof(text));
        wf_nvml_throttle_words(~0ull, text, size);
        assert_true(strlen(text) < size);
        assert_int_equal(text[size], 'x');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_library),
        cmocka_unit_test(unusable),
        cmocka_unit_test(closes_what_is_not_open),
        cmocka_unit_test(names_reasons_of_throttling),
    };

    return cmocka_run_group_tests_name("a driver that is not there", tests, NULL, NULL);
}
