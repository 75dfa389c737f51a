/* The management library: as it is emulated, and as it is where there is none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
        assert_true(now.free_bytes > 0 && (now.free_bytes + (11 << 20)) % (1 << 20) == 0);
        assert_string_equal(now.throttling, "none");
        assert_true(now.reasons_known && now.reasons == 1 && !now.held_back);
        memset(&now, 0x55, sizeof(now));
        assert_int_equal(wf_nvml_read(nvml, "0000:ff:00.0", &now, &status), -ENODEV);
        assert_string_equal(status.text, "no GPU at PCI address '0000:ff:00.0': Not Found");
        assert_int_equal(now.celsius, 0x55555555);
        wf_nvml_close(nvml);
    }
}

/* --- what a test says of a GPU --- */

#define FIRST "0000:18:00.0"
#define SECOND "0000:3a:00.0"

static char folder[64];

static void say(const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void say_nothing(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

/* A GPU of which nothing is said any more, and the library. */
static int with_folder(void **state)
{
    struct wf_nvml *nvml = NULL;

    assert_non_null(dlopen(EMULATED_NVML, RTLD_NOW | RTLD_LOCAL));
    snprintf(folder, sizeof folder, "/tmp/weft-nvml-XXXXXX");
    assert_non_null(mkdtemp(folder));
    setenv("WEFT_EMULATED_NVML_STATE", folder, 1);
    assert_int_equal(wf_nvml_open(&nvml, NULL), 0);
    *state = nvml;
    return 0;
}

/* The test has taken away its files. */
static int without_folder(void **state)
{
    wf_nvml_close(*state);
    unsetenv("WEFT_EMULATED_NVML_STATE");
    return rmdir(folder);
}

static void says_when_a_gpu_is_held_back(void **state)
{
    static const struct {
        const char *reasons, *words;
        bool held_back;
    } rows[] = {
        {"0", "none", false},
        {"1", "none", false},
        {"2", "application clocks set", false},
        {"0x100", "display clocks set", false},
        {"4", "power cap", true},
        {"0x8", "hardware slowdown", true},
        {"0x10", "sync boost", true},
        {"0x20", "thermal (software)", true},
        {"0x41", "thermal (hardware)", true},
        {"0x82", "application clocks set, power brake", true},
        {"0x1000", "others (0x1000)", false}, /* nobody here knows what it is */
    };
    struct wf_nvml_state now;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        say("gpu0.reasons", rows[i].reasons);
        assert_int_equal(wf_nvml_read(*state, FIRST, &now, NULL), 0);
        assert_string_equal(now.throttling, rows[i].words);
        assert_true(now.reasons_known);
        assert_int_equal(now.reasons, strtoull(rows[i].reasons, NULL, 0));
        assert_int_equal(now.held_back, rows[i].held_back);
    }
    say_nothing("gpu0.reasons");
    say("gpu0.celsius", "88");
    say("gpu0.mhz", "222");
    assert_int_equal(wf_nvml_read(*state, FIRST, &now, NULL), 0);
    assert_int_equal(now.celsius, 88);
    assert_int_equal(now.sm_mhz, 222);
    assert_int_equal(now.memory_mhz, 111);
    assert_int_equal(wf_nvml_read(*state, SECOND, &now, NULL), 0);
    assert_int_equal(now.celsius, 11);
    say_nothing("gpu0.celsius");
    say_nothing("gpu0.mhz");
}

static void counts_processes(void **state)
{
    uint32_t pids[3] = {7, 7, 7};

    assert_int_equal(wf_nvml_processes(*state, FIRST, pids, 3), 0);
    say("gpu0.processes", "11 12\n13");
    assert_int_equal(wf_nvml_processes(*state, SECOND, pids, 3), 0);
    assert_int_equal(wf_nvml_processes(*state, FIRST, pids, 2), 3);
    assert_int_equal(pids[0], 11);
    assert_int_equal(pids[1], 12);
    assert_int_equal(pids[2], 7);
    say("gpu0.processes",
        "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"); /* more than are reckoned with at first */
    assert_int_equal(wf_nvml_processes(*state, FIRST, pids, 3), 20);
    assert_int_equal(pids[2], 3);
    assert_int_equal(wf_nvml_processes(*state, "0000:ff:00.0", pids, 3), -ENODEV);
    say_nothing("gpu0.processes");
}

static void knows_what_lies_between_gpus(void **state)
{
    struct wf_nvml_link link;
    struct wf_nvml_pcie pcie;
    struct wf_status status = {0};

    assert_int_equal(wf_nvml_link(*state, FIRST, SECOND, &link, &status), 0);
    assert_int_equal(link.nvlinks, 2);
    assert_int_equal(link.switched, 11);
    assert_int_equal(link.nvlink_version, 2);
    assert_string_equal(link.path, "one switch");
    assert_int_equal(wf_nvml_link(*state, SECOND, "0000:4b:00.0", &link, &status), 0);
    assert_int_equal(link.nvlinks, 0);
    assert_string_equal(link.path, "NUMA node");
    assert_int_equal(wf_nvml_link(*state, FIRST, "0000:da:00.0", &link, &status), 0);
    assert_string_equal(link.path, "system");
    assert_int_equal(wf_nvml_link(*state, FIRST, "0000:ff:00.0", &link, &status), -ENODEV);
    assert_non_null(strstr(status.text, "0000:ff:00.0"));
    assert_int_equal(wf_nvml_pcie(*state, FIRST, &pcie, &status), 0);
    assert_int_equal(pcie.generation, 1);
    assert_int_equal(pcie.lanes, 3);
    assert_int_equal(pcie.most_generation, 11);
    assert_int_equal(pcie.most_lanes, 111);
    assert_int_equal(wf_nvml_pcie(*state, "0000:ff:00.0", &pcie, &status), -ENODEV);
}

static void locks_clocks(void **state)
{
    struct wf_nvml_state now;
    struct wf_status status = {0};
    char text[32] = "", path[128];
    int most = 0;

    assert_int_equal(wf_nvml_clock_range(*state, SECOND, &most, &status), 0);
    assert_int_equal(most, 1111);
    assert_int_equal(wf_nvml_lock_clocks(*state, SECOND, 777, 888, &status), 0);
    snprintf(path, sizeof path, "%s/gpu1.locked", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_string_equal(text, "777 888\n");
    assert_int_equal(wf_nvml_read(*state, SECOND, &now, &status), 0);
    assert_int_equal(now.sm_mhz, 888);
    assert_int_equal(wf_nvml_unlock_clocks(*state, SECOND, &status), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(wf_nvml_unlock_clocks(*state, SECOND, &status), 0); /* and nothing is wrong with that */
    assert_int_equal(wf_nvml_lock_clocks(*state, SECOND, 888, 777, &status), -EINVAL);
    assert_int_equal(wf_nvml_lock_clocks(*state, SECOND, 0, 777, &status), -EINVAL);
    assert_int_equal(wf_nvml_lock_clocks(*state, "0000:ff:00.0", 777, 777, &status), -ENODEV);
}

static void says_why_clocks_stay_as_they_are(void **state)
{
    struct wf_status status = {0};

    say("gpu1.refuse", "");
    assert_int_equal(wf_nvml_lock_clocks(*state, SECOND, 777, 777, &status), -EPERM);
    assert_non_null(strstr(status.text, "root"));
    assert_non_null(strstr(status.text, SECOND));
    assert_int_equal(wf_nvml_unlock_clocks(*state, SECOND, &status), -EPERM);
    say_nothing("gpu1.refuse");
    unsetenv("WEFT_EMULATED_NVML_STATE");
    assert_int_equal(wf_nvml_lock_clocks(*state, SECOND, 777, 777, &status), -EOPNOTSUPP);
    assert_non_null(strstr(status.text, "does not support"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_absent),
        cmocka_unit_test(reads_what_there_is),
        cmocka_unit_test_setup_teardown(says_when_a_gpu_is_held_back, with_folder, without_folder),
        cmocka_unit_test_setup_teardown(counts_processes, with_folder, without_folder),
        cmocka_unit_test_setup_teardown(knows_what_lies_between_gpus, with_folder, without_folder),
        cmocka_unit_test_setup_teardown(locks_clocks, with_folder, without_folder),
        cmocka_unit_test_setup_teardown(says_why_clocks_stay_as_they_are, with_folder, without_folder),
    };

    return cmocka_run_group_tests_name("the management library", tests, NULL, NULL);
}
