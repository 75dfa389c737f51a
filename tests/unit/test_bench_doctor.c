/* What weft doctor says of what it has seen, without a network. */
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

#include "bench/doctor/parts.h"

#define SECOND 1000000000ll

static const struct doctor_way way = {
    .from = "192.0.2.1", .interface = "eth1", .to = "192.0.2.2", .port = 18555, .direct = true};

static int make(void **state)
{
    static struct doctor doctor;

    doctor = (struct doctor){.node = 1, .findings = json_array()};
    *state = &doctor;
    return 0;
}

static int unmake(void **state)
{
    struct doctor *doctor = *state;

    json_decref(doctor->findings);
    return 0;
}

/* The last finding: its check, whether it is none, and that its text has this in it. */
static void assert_found(const struct doctor *doctor, const char *check, bool ok, const char *text)
{
    const json_t *last = json_array_get(doctor->findings, json_array_size(doctor->findings) - 1);

    assert_string_equal(json_string_value(json_object_get(last, "check")), check);
    assert_int_equal(json_is_true(json_object_get(last, "ok")), ok);
    assert_non_null(strstr(json_string_value(json_object_get(last, "text")), text));
    assert_int_equal(json_is_string(json_object_get(last, "remedy")), !ok);
}

static void a_way_that_works_is_none(void **state)
{
    struct doctor *doctor = *state;
    struct doctor_probe probe = {.leaves = "eth1", .packet = 1500, .passed = 1500};

    doctor_judge(doctor, &way, &probe, 1, 0);
    assert_found(doctor, "way", true, "packets of 1500 bytes come through");
    assert_int_equal(doctor->faults, 0);
}

static void each_failure_has_its_name(void **state)
{
    static const struct {
        int code;
        const char *check, *text;
    } all[] = {
        {-ETIMEDOUT, "firewall", "no answer within 3 s"},
        {-ECONNREFUSED, "firewall", "refused"},
        {-ENETUNREACH, "route", "no route"},
        {-EHOSTUNREACH, "reach", "192.0.2.1 (eth1) of node1 to 192.0.2.2 of node0"},
    };
    struct doctor *doctor = *state;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct doctor_probe probe = {.connected = all[i].code, .leaves = "eth1"};
        doctor_judge(doctor, &way, &probe, 1, 0);
        assert_found(doctor, all[i].check, false, all[i].text);
        assert_int_equal(doctor->faults, (int)i + 1);
    }
}

static void packets_that_get_lost(void **state)
{
    struct doctor *doctor = *state;
    struct doctor_probe probe = {.leaves = "eth1", .packet = 9000, .passed = 1500};

    doctor_judge(doctor, &way, &probe, 1, 0);
    assert_found(doctor, "mtu", false, "those of 1500 come through");
    probe.passed = 0;
    doctor_judge(doctor, &way, &probe, 1, 0);
    assert_found(doctor, "mtu", false, "none of the smaller ones");
}

/* A route tells something only where it can tell rails apart. */
static void another_interface(void **state)
{
    struct doctor *doctor = *state;
    struct doctor_probe probe = {.leaves = "eth0", .packet = 1500, .passed = 1500};
    struct doctor_way shared = way;

    doctor_judge(doctor, &way, &probe, 1, 0);
    assert_found(doctor, "route", false, "leave by eth0 instead of eth1");
    assert_int_equal(json_array_size(doctor->findings), 1);
    shared.direct = false;
    doctor_judge(doctor, &shared, &probe, 1, 0);
    assert_found(doctor, "way", true, "");
    probe.leaves[0] = '\0'; /* not known */
    doctor_judge(doctor, &way, &probe, 1, 0);
    assert_found(doctor, "way", true, "");
}

static void versions(void **state)
{
    struct doctor *doctor = *state;

    doctor_judge_version(doctor, weft_version());
    assert_found(doctor, "version", true, weft_version());
    doctor_judge_version(doctor, "0.0.99");
    assert_found(doctor, "version", false, "node0 runs weft 0.0.99");
    const json_t *last = json_array_get(doctor->findings, 1);
    assert_non_null(strstr(json_string_value(json_object_get(last, "remedy")), "on node0"));
    doctor_judge_version(doctor, "999.1");
    last = json_array_get(doctor->findings, 2);
    assert_non_null(strstr(json_string_value(json_object_get(last, "remedy")), "install weft 999.1 on node1"));
}

/* What is not known exactly is no fault. */
static void clocks(void **state)
{
    struct doctor *doctor = *state;

    doctor_judge_clock(doctor, 2 * SECOND, SECOND / 1000);
    assert_found(doctor, "clock", false, "2.0 s ahead of node1's");
    doctor_judge_clock(doctor, -2 * SECOND, SECOND / 1000);
    assert_found(doctor, "clock", false, "2.0 s behind node1's");
    doctor_judge_clock(doctor, SECOND / 2, 0);
    assert_found(doctor, "clock", true, "");
    doctor_judge_clock(doctor, 2 * SECOND, 2 * SECOND);
    assert_found(doctor, "clock", true, "");
}

static void quotas(void **state)
{
    (void)state;
    assert_true(doctor_quota("150000 100000\n") == 1.5);
    assert_true(doctor_quota("max 100000\n") < 0);
    assert_true(doctor_quota("1 0") < 0);
    assert_true(doctor_quota("") < 0);
}

/* There and back; and what is no way. */
static void ways_travel(void **state)
{
    struct doctor_probe probe = {.connected = -ETIMEDOUT, .leaves = "eth0", .packet = 9000, .passed = 1500}, heard;
    struct doctor_way back;
    json_t *json = doctor_way_to_json(&way);

    (void)state;
    assert_int_equal(doctor_way_from_json(json, &back), 0);
    assert_string_equal(back.from, way.from);
    assert_string_equal(back.to, way.to);
    assert_true(back.port == way.port && back.direct);
    json_object_set_new(json, "port", json_integer(65536));
    assert_int_equal(doctor_way_from_json(json, &back), -EINVAL);
    json_object_del(json, "to");
    assert_int_equal(doctor_way_from_json(json, &back), -EINVAL);
    json_decref(json);
    json = doctor_probe_to_json(&probe);
    doctor_probe_from_json(json, &heard);
    assert_memory_equal(&heard, &probe, sizeof probe);
    json_decref(json);
}

/* Where nothing can be written is a fault; also below what is no folder, and for a user who may not. */
static void folders_that_take_no_files(void **state)
{
    struct doctor *doctor = *state;
    struct bench_options options = {.config = malloc(sizeof *options.config)};
    char folder[] = "/tmp/weft_doctor_XXXXXX", path[64];
    struct wf_status status = {0};
    uid_t user = getuid();

    assert_non_null(options.config);
    assert_non_null(mkdtemp(folder));
    wf_config_init(options.config);
    doctor->options = &options;
    snprintf(path, sizeof path, "%s/file", folder);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fclose(file);
    for (const char **name = (const char *[]){"file", "file/below", "new", NULL}; *name; name++) {
        snprintf(path, sizeof path, "%s/%s", folder, *name);
        assert_int_equal(wf_config_set(options.config, WF_SET_OUT, path, WF_ORIGIN_COMMAND, "command line", &status),
                         0);
        doctor_check_disk(doctor);
        if (strcmp(*name, "new") == 0)
            assert_found(doctor, "disk", true, "are free at");
        else
            assert_found(doctor, "disk", false, "Not a directory");
    }
    assert_int_equal(doctor->faults, 2);
    assert_int_equal(chmod(folder, 0555), 0);
    bool known = user != 0 || setreuid(65534, (uid_t)-1) == 0; /* access() asks for the real one */
    doctor_check_disk(doctor);
    int faults = doctor->faults;
    assert_int_equal(wf_config_set(options.config, WF_SET_OUT, "", WF_ORIGIN_COMMAND, "command line", &status), 0);
    assert_int_equal(chdir(folder), 0);
    doctor_check_disk(doctor); /* no folder is named */
    assert_int_equal(doctor->faults, faults);
    assert_int_equal(chdir("/"), 0);
    assert_true(user != 0 || !known || setreuid(0, (uid_t)-1) == 0);
    if (known) {
        assert_found(doctor, "disk", false, "Permission denied");
        assert_found(doctor, "disk", false, folder);
    }
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(path, sizeof path, "%s/file", folder);
    assert_int_equal(remove(path), 0);
    assert_int_equal(rmdir(folder), 0);
    free(options.config);
    if (!known)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_way_that_works_is_none, make, unmake),
        cmocka_unit_test_setup_teardown(each_failure_has_its_name, make, unmake),
        cmocka_unit_test_setup_teardown(packets_that_get_lost, make, unmake),
        cmocka_unit_test_setup_teardown(another_interface, make, unmake),
        cmocka_unit_test_setup_teardown(versions, make, unmake),
        cmocka_unit_test_setup_teardown(clocks, make, unmake),
        cmocka_unit_test_setup_teardown(folders_that_take_no_files, make, unmake),
        cmocka_unit_test(quotas),
        cmocka_unit_test(ways_travel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
