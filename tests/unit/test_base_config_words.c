/* What settings and their values are called: the words for on and off mean the same wherever they stand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    const char *word;
    int means;
} booleans[] = {
    {"0", 0}, {"off", 0}, {"no", 0},  {"false", 0}, {"No", 0}, {"FALSE", 0},
    {"1", 1}, {"on", 1},  {"yes", 1}, {"true", 1},  {"ON", 1}, {"True", 1},
};

/* What a setting shows for off and on; NULL: it takes no word for that. */
static const struct {
    enum wf_setting_id id;
    const char *off, *on;
} switches[] = {
    {WF_SET_QUIET, "0", "1"},         {WF_SET_CRC, "off", "on"},   {WF_SET_ENCRYPT, "off", "on"},
    {WF_SET_READ_AHEAD, "off", "on"}, {WF_SET_PIN, "off", NULL},   {WF_SET_CUDA, "off", NULL},
    {WF_SET_CHECK, "0", "1"},         {WF_SET_ENGINE, NULL, NULL}, {WF_SET_BACKEND, NULL, NULL},
};

static struct wf_config *fresh(void)
{
    struct wf_config *config = malloc(sizeof *config);

    assert_non_null(config);
    wf_config_init(config);
    return config;
}

static int load_as_file(struct wf_config *config, const char *line)
{
    char path[] = "/tmp/weft-test-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, line, strlen(line)), (ssize_t)strlen(line));
    close(fd);
    int result = wf_config_load_file(config, path, NULL);
    unlink(path);
    return result;
}

static int load_as_variable(struct wf_config *config, char *entry)
{
    char *environment[] = {entry, NULL};

    return wf_config_load_environment(config, environment, NULL, NULL);
}

/* One setting and one word, from each of the sources. */
static void expect(enum wf_setting_id id, const char *word, const char *shown)
{
    struct wf_config *config = fresh();
    char line[80], entry[80] = "WEFT_";
    const char *name = wf_setting(id)->name;
    int wanted = shown ? 0 : -EINVAL;

    assert_int_equal(wf_config_set(config, id, word, WF_ORIGIN_COMMAND, "command line", NULL), wanted);
    assert_int_equal(wf_setting_takes(id, word), shown != NULL);
    assert_string_equal(wf_config_text(config, id), shown ? shown : wf_setting(id)->fallback);
    wf_config_init(config);
    snprintf(line, sizeof line, "%s = %s\n", name, word);
    assert_int_equal(load_as_file(config, line), wanted);
    assert_string_equal(wf_config_text(config, id), shown ? shown : wf_setting(id)->fallback);
    wf_config_init(config);
    for (size_t i = 0; i <= strlen(name); i++)
        entry[5 + i] = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
    strcat(entry, "=");
    strcat(entry, word);
    assert_int_equal(load_as_variable(config, entry), wanted);
    assert_string_equal(wf_config_text(config, id), shown ? shown : wf_setting(id)->fallback);
    free(config);
}

static void test_booleans(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(booleans); i++) {
        assert_int_equal(wf_setting_boolean(booleans[i].word), booleans[i].means);
        for (size_t j = 0; j < COUNT(switches); j++)
            expect(switches[j].id, booleans[i].word, booleans[i].means ? switches[j].on : switches[j].off);
    }
    assert_int_equal(wf_setting_boolean("2"), -EINVAL);
    assert_int_equal(wf_setting_boolean(""), -EINVAL);
    assert_int_equal(wf_setting_boolean("auto"), -EINVAL);
}

/* The number behind a word is that of the table's word. */
static void test_numbers(void **state)
{
    struct wf_config *config = fresh();

    (void)state;
    assert_int_equal(wf_config_set(config, WF_SET_CRC, "yes", WF_ORIGIN_FILE, "here", NULL), 0);
    assert_int_equal(wf_config_number(config, WF_SET_CRC), 1);
    assert_int_equal(wf_config_offer(config, WF_SET_READ_AHEAD, "true", WF_ORIGIN_FILE, "here", NULL), 0);
    assert_int_equal(wf_config_number(config, WF_SET_READ_AHEAD), 2);
    /* A value of a higher origin stays, and what does not count is checked all the same. */
    assert_int_equal(wf_config_offer(config, WF_SET_CRC, "no", WF_ORIGIN_PRESET, "preset", NULL), 0);
    assert_string_equal(wf_config_text(config, WF_SET_CRC), "on");
    assert_int_equal(wf_config_offer(config, WF_SET_CRC, "nein", WF_ORIGIN_PRESET, "preset", NULL), -EINVAL);
    free(config);
}

static void test_switches(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(switches); i++)
        assert_int_equal(wf_setting_is_switch(wf_setting(switches[i].id)),
                         switches[i].off && switches[i].on && switches[i].id != WF_SET_CHECK);
}

static void test_other_names(void **state)
{
    static const struct {
        const char *name;
        int id;
    } cases[] = {
        {"chunk", WF_SET_CHUNK},
        {"--chunk", WF_SET_CHUNK},
        {"WEFT_CHUNK", WF_SET_CHUNK},
        {"UCCL_TCPX_CHUNK_BYTES", WF_SET_CHUNK},
        {"--connect-timeout", WF_SET_CONNECT_TIMEOUT},
        {"connect_timeout", WF_SET_CONNECT_TIMEOUT},
        {"WEFT_CONNECT_TIMEOUT", WF_SET_CONNECT_TIMEOUT},
        {"NCCL_SOCKET_IFNAME", WF_SET_RAILS},
        {"LOG_DIR", WF_SET_LOG_DIR},
        {"WEFT_", -ENOENT},
        {"", -ENOENT},
        {"--", -ENOENT},
        {"chnk", -ENOENT},
        {"WEFT_CONFIG", -ENOENT},
        {"a_name_that_is_much_longer_than_any_setting_could_ever_be_in_this_table", -ENOENT},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(wf_setting_find_any(cases[i].name), cases[i].id);
}

static void test_value_names(void **state)
{
    char text[128];

    (void)state;
    assert_string_equal(wf_setting_value_name(wf_setting(WF_SET_CHUNK)), "SIZE");
    assert_string_equal(wf_setting_value_name(wf_setting(WF_SET_SIZE)), "SIZE[,SIZE...]");
    assert_string_equal(wf_setting_value_name(wf_setting(WF_SET_WARMUP)), "N");
    assert_string_equal(wf_setting_value_name(wf_setting(WF_SET_TIMEOUT)), "S");
    assert_string_equal(wf_setting_value_name(wf_setting(WF_SET_ENGINE)), "auto|uring|epoll");
    assert_string_equal(wf_setting_value_name(wf_setting(WF_SET_RAILS)), "LIST");
    assert_null(wf_setting_value_name(wf_setting(WF_SET_QUIET)));
    assert_string_equal(wf_setting_allowed(wf_setting(WF_SET_CHUNK), text, sizeof text), "64..64M");
    assert_string_equal(wf_setting_allowed(wf_setting(WF_SET_PORT), text, sizeof text), "0..65535");
    assert_string_equal(wf_setting_allowed(wf_setting(WF_SET_BACKEND), text, sizeof text), "weft|nccl|plugin|null, ...");
    assert_string_equal(wf_setting_allowed(wf_setting(WF_SET_QUIET), text, sizeof text), "0|1");
    assert_string_equal(wf_setting_allowed(wf_setting(WF_SET_OUT), text, sizeof text), "text");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_booleans),    cmocka_unit_test(test_numbers),     cmocka_unit_test(test_switches),
        cmocka_unit_test(test_other_names), cmocka_unit_test(test_value_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
