/* What is found before a measurement: each finding where its reason is, and none where there is no reason. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/sense/before.h"
#include "sense_fixture.h"

static json_t *look(const struct bench_sense_gpu_users *users)
{
    cpu_set_t bound;
    struct bench_sense_want want = {.root = tree_root, .gpu_pci = machine_pci, .gpu_count = 2, .bound = &bound};
    json_t *findings = NULL;

    CPU_ZERO(&bound);
    CPU_SET(1, &bound);
    CPU_SET(3, &bound);
    assert_int_equal(bench_sense_before(&want, users, &findings), 0);
    return findings;
}

/* What the finding of that name found; NULL: there is none. Each one says what it means and what helps. */
static const char *found(const json_t *findings, const char *name)
{
    size_t i;
    json_t *finding;

    json_array_foreach(findings, i, finding)
    {
        assert_true(json_string_length(json_object_get(finding, "means")) > 0);
        assert_true(json_string_length(json_object_get(finding, "remedy")) > 0);
        if (strcmp(json_string_value(json_object_get(finding, "name")), name) == 0)
            return json_string_value(json_object_get(finding, "found"));
    }
    return NULL;
}

static void put_quiet_machine(void)
{
    tree_put("/sys/devices/system/cpu/online", "0-3,6");
    tree_put("/proc/loadavg", "2.50 9.00 9.00 1/200 4711");
    tree_put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"); /* not ours */
    tree_put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance");
    tree_put("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "performance");
    tree_put("/sys/devices/system/cpu/intel_pstate/no_turbo", "1");
    tree_put("/sys/devices/system/cpu/cpufreq/boost", "0");
    tree_put("/sys/devices/system/cpu/smt/active", "0");
    tree_put_task(100, 100, 'S', 0, 5, 1);
    tree_put_task(100, 101, 'R', 0, 5, 2);          /* not on ours */
    tree_put_task(102, 102, 'R', 0x00208040, 5, 1); /* a thread of the kernel's */
    tree_put_task(getpid(), getpid(), 'R', 0, 5, 1);
}

static void nothing_is_found_where_nothing_is(void **state)
{
    json_t *findings = look(NULL);

    (void)state;
    assert_int_equal(json_array_size(findings), 0);
    json_decref(findings);
    put_quiet_machine();
    findings = look(NULL);
    assert_int_equal(json_array_size(findings), 0);
    json_decref(findings);
}

static void each_reason_is_a_finding(void **state)
{
    (void)state;
    put_quiet_machine();
    tree_put("/proc/loadavg", "2.51 0.00 0.00 1/200 4711");
    tree_put("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "schedutil");
    tree_put("/sys/devices/system/cpu/intel_pstate/no_turbo", "0");
    tree_put("/sys/devices/system/cpu/smt/active", "1");
    tree_put_task(100, 103, 'R', 0, 5, 3);
    json_t *findings = look(NULL);
    assert_int_equal(json_array_size(findings), 5);
    assert_non_null(strstr(found(findings, "load"), "2.51 on 5 processors"));
    assert_non_null(strstr(found(findings, "governor"), "1 of our processors"));
    assert_non_null(strstr(found(findings, "governor"), "schedutil"));
    assert_non_null(strstr(found(findings, "processes"), "1 thread of others ran"));
    assert_non_null(strstr(found(findings, "processes"), "a (busy) one (100) on 3"));
    assert_non_null(found(findings, "turbo"));
    assert_non_null(found(findings, "smt"));
    json_decref(findings);
}

static int count_users(void *context, const char *address)
{
    return strcmp(address, context) == 0 ? 2 : -ENOTSUP;
}

static void processes_on_gpus_are_asked_for(void **state)
{
    struct bench_sense_gpu_users users = {count_users, "0000:3a:00.0"};
    json_t *findings = look(&users);

    (void)state;
    assert_int_equal(json_array_size(findings), 1);
    assert_string_equal(found(findings, "gpu_processes"), "2 other processes compute on gpu1 (0000:3a:00.0)");
    json_decref(findings);
}

static void findings_are_printed_with_their_remedies(void **state)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    (void)state;
    tree_put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave");
    json_t *findings = look(NULL);
    bench_sense_put_before(findings, out, 80);
    fclose(out);
    assert_non_null(strstr(text, "note: the clocks of 1 of our processors"));
    assert_non_null(strstr(text, "\n  cpupower frequency-set -g performance\n"));
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
        assert_true(end - line <= 80);
    free(text);
    json_decref(findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_found_where_nothing_is, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(each_reason_is_a_finding, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(processes_on_gpus_are_asked_for, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(findings_are_printed_with_their_remedies, tree_create, tree_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
