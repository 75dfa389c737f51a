/* Settings: the table is sound, every value is checked, files and the environment rank as promised. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Fresh for every test: settings, the last status, and a log that ends in a pipe. */
struct fixture {
    struct wf_config config;
    struct wf_status status;
    struct wf_log log;
    int ends[2];
    char logged[8192];
    char path[64];
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    if (!fixture || pipe2(fixture->ends, O_NONBLOCK | O_CLOEXEC) != 0)
        return -1;
    wf_config_init(&fixture->config);
    wf_log_init(&fixture->log, WF_LOG_WARN);
    fixture->log.fd = fixture->ends[1];
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    if (fixture->path[0])
        unlink(fixture->path);
    close(fixture->ends[0]);
    close(fixture->ends[1]);
    free(fixture);
    return 0;
}

static const char *logged(struct fixture *fixture)
{
    ssize_t got = read(fixture->ends[0], fixture->logged, sizeof(fixture->logged) - 1);

    fixture->logged[got > 0 ? got : 0] = '\0';
    return fixture->logged;
}

static void write_file(struct fixture *fixture, const void *text, size_t length)
{
    int fd;

    if (fixture->path[0])
        unlink(fixture->path);
    strcpy(fixture->path, "/tmp/weft-test-XXXXXX");
    fd = mkstemp(fixture->path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), (ssize_t)length);
    close(fd);
}

static void expect_text(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in '%s'", part, text);
}

static int set(struct fixture *fixture, enum wf_setting_id id, const char *text)
{
    memset(&fixture->status, 0, sizeof(fixture->status));
    return wf_config_set(&fixture->config, id, text, WF_ORIGIN_COMMAND, "command line", &fixture->status);
}

static int load_environment(struct fixture *fixture, const char *const *environment)
{
    memset(&fixture->status, 0, sizeof(fixture->status));
    wf_config_init(&fixture->config);
    return wf_config_load_environment(&fixture->config, (char *const *)(uintptr_t)environment, &fixture->log,
                                      &fixture->status);
}

/* ------------------------------------------------------------------------------------------- the table */

static void test_table_is_complete(void **state)
{
    struct fixture *fixture = *state;

    for (int id = 0; id < WF_SETTING_COUNT; id++) {
        const struct wf_setting *setting = wf_setting((enum wf_setting_id)id);
        size_t help;

        assert_non_null(setting->name);
        assert_non_null(setting->unit);
        assert_non_null(setting->choices);
        assert_in_range(strlen(setting->name), 3, 30);
        assert_int_equal(strspn(setting->name, "abcdefghijklmnopqrstuvwxyz_"), strlen(setting->name));
        help = strlen(setting->help);
        assert_true(help > 10 && setting->help[help - 1] == '.' && !strstr(setting->help, ". "));
        assert_true(help <= 125); /* what is longer belongs into `more` */
        assert_true(!setting->more || setting->more[strlen(setting->more) - 1] == '.');
        assert_true(setting->type != WF_TYPE_TEXT || setting->value);
        assert_true((setting->uses & WF_USE_CONFIG) && setting->uses != WF_USE_CONFIG);
        assert_in_range(setting->topic, 0, WF_TOPIC_COUNT - 1);
        assert_int_equal(setting->group, id < WF_SET_ENDPOINTS ? WF_GROUP_LIBRARY : WF_GROUP_BENCH);
        assert_int_equal(wf_setting_find(setting->name, NULL), id);
        assert_int_equal(set(fixture, (enum wf_setting_id)id, setting->fallback), 0);
    }
    assert_null(wf_setting(WF_SETTING_COUNT));
}

static void test_defaults(void **state)
{
    static const struct {
        enum wf_setting_id id;
        const char *text;
        int64_t number;
    } cases[] = {
        {WF_SET_RAILS, "", 0},
        {WF_SET_PORT, "18555", 18555},
        {WF_SET_ENGINE, "auto", 0},
        {WF_SET_CHANNELS, "1", 1},
        {WF_SET_WINDOW, "64", 64},
        {WF_SET_CHUNK, "512K", 512 << 10},
        {WF_SET_EAGER, "8K", 8 << 10},
        {WF_SET_FIRST_BURST, "1M", 1 << 20},
        {WF_SET_INTRODUCTIONS, "1024", 1024},
        {WF_SET_UNEXPECTED, "8M", 8 << 20},
        {WF_SET_SMALL_POOL, "2M", 2 << 20},
        {WF_SET_REQUESTS, "65536", 65536},
        {WF_SET_PEERS, "64", 64},
        {WF_SET_HEADER_PAD, "512", 512},
        {WF_SET_SOCKET_BUFFER, "0", 0},
        {WF_SET_CALL, "0", 0},
        {WF_SET_ZERO_COPY, "0", 0},
        {WF_SET_SPIN_US, "50", 50},
        {WF_SET_TIMEOUT, "30", 30},
        {WF_SET_CONNECT_TIMEOUT, "30", 30},
        {WF_SET_RAIL_TIMEOUT_MS, "2000", 2000},
        {WF_SET_CRC, "off", 0},
        {WF_SET_CRC_LIMIT, "16", 16},
        {WF_SET_ENCRYPT, "off", 0},
        {WF_SET_FAULT, "", 0},
        {WF_SET_LOG, "warn", WF_LOG_WARN},
        {WF_SET_ENDPOINTS, "0", 0},
        {WF_SET_BEGIN, "1M", 1 << 20},
        {WF_SET_END, "64M", 64 << 20},
        {WF_SET_FACTOR, "4", 4},
        {WF_SET_SIZE, "", 0},
        {WF_SET_ITERS, "auto", 0},
        {WF_SET_WARMUP, "5", 5},
        {WF_SET_CHECK, "1", 1},
        {WF_SET_CHECK_TIME_MS, "2000", 2000},
        {WF_SET_MODE, "both", 2},
        {WF_SET_INFLIGHT, "0", 0},
        {WF_SET_BACKEND, "weft", 0},
        {WF_SET_SEED, "42", 42},
        {WF_SET_SRC, "node0:host0", 0},
        {WF_SET_DST, "node1:host0", 0},
        {WF_SET_LOG_DIR, "", 0},
        {WF_SET_QUIET, "0", 0},
        {WF_SET_WIDTH, "auto", 0},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct wf_value *value = &fixture->config.values[cases[i].id];
        assert_string_equal(wf_config_text(&fixture->config, cases[i].id), cases[i].text);
        assert_true(wf_config_number(&fixture->config, cases[i].id) == cases[i].number);
        assert_int_equal(value->origin, WF_ORIGIN_DEFAULT);
        assert_string_equal(value->source, "default");
    }
}

static void test_find(void **state)
{
    static const struct {
        const char *name;
        int id;
        const char *said;
    } cases[] = {
        {"chunk", WF_SET_CHUNK, ""},
        {"connect_timeout", WF_SET_CONNECT_TIMEOUT, ""},
        {"connect-timeout", WF_SET_CONNECT_TIMEOUT, ""},
        {"chunks", -ENOENT, "unknown setting 'chunks': did you mean 'chunk'?"},
        {"chanels", -ENOENT, "did you mean 'channels'?"},
        {"conect-timout", -ENOENT, "did you mean 'connect_timeout'?"},
        {"cnnct_tmout", -ENOENT, "unknown setting 'cnnct_tmout': see 'weft config'"},
        {"CHUNK", -ENOENT, "unknown setting 'CHUNK': did you mean 'chunk'?"},
        {"WEFT_CHUNK", -ENOENT, "unknown setting 'WEFT_CHUNK': did you mean 'chunk'?"},
        {"export WEFT_KEY_FILE", -ENOENT, "did you mean 'key_file'?"},
        {"--rail-policy", -ENOENT, "did you mean 'rail_policy'?"},
        {"NCCL_SOCKET_IFNAME", -ENOENT, "unknown setting 'NCCL_SOCKET_IFNAME': did you mean 'rails'?"},
        {"WEFT_", -ENOENT, "unknown setting 'WEFT_': see 'weft config'"},
        {"", -ENOENT, "unknown setting '': see 'weft config'"},
        {"xy", -ENOENT, "unknown setting 'xy': see 'weft config'"},
        {"chunk ", -ENOENT, "did you mean 'chunk'?"},
        {"a_name_that_is_much_longer_than_any_setting_could_ever_be_in_this_table", -ENOENT, "see 'weft config'"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        memset(&fixture->status, 0, sizeof(fixture->status));
        assert_int_equal(wf_setting_find(cases[i].name, &fixture->status), cases[i].id);
        assert_int_equal(fixture->status.code, cases[i].id < 0 ? -ENOENT : 0);
        expect_text(fixture->status.text, cases[i].said);
    }
}

/* ------------------------------------------------------------------------------------------- values */

static void test_accepted(void **state)
{
    static const struct {
        enum wf_setting_id id;
        const char *text;
        int64_t number;
    } cases[] = {
        {WF_SET_PORT, "0", 0},
        {WF_SET_PORT, "65535", 65535},
        {WF_SET_CHANNELS, "64", 64},
        {WF_SET_CHUNK, "64", 64},
        {WF_SET_CHUNK, "64M", 64 << 20},
        {WF_SET_CHUNK, "64k", 64 << 10},
        {WF_SET_CHUNK, "12345", 12345},
        {WF_SET_HEADER_PAD, "64", 64},
        {WF_SET_HEADER_PAD, "4K", 4096},
        {WF_SET_SEED, "9223372036854775807", INT64_MAX},
        {WF_SET_ENGINE, "uring", 1},
        {WF_SET_ENGINE, "epoll", 2},
        {WF_SET_WORKERS, "split", 2},
        {WF_SET_LOG, "error", WF_LOG_ERROR},
        {WF_SET_LOG, "debug", WF_LOG_DEBUG},
        {WF_SET_CHECK, "0", 0},
        {WF_SET_CHECK, "all", 2},
        {WF_SET_QUIET, "0", 0},
        {WF_SET_QUIET, "1", 1},
        {WF_SET_WIDTH, "40", 40},
        {WF_SET_WIDTH, "0", 0},
        {WF_SET_WIDTH, "auto", 0},
        {WF_SET_SIZE, "", 0},
        {WF_SET_SIZE, "0", 0},
        {WF_SET_SIZE, "64K", 0},
        {WF_SET_SIZE, "0,1,64K,1M", 0},
        {WF_SET_BACKEND, "null", 0},
        {WF_SET_BACKEND, "weft,null", 0},
        {WF_SET_BACKEND, "weft,nccl", 0},
        {WF_SET_RAILS, "^docker*,lo", 0},
        {WF_SET_GPUS, "", 0},
        {WF_SET_GPUS, "all", 0},
        {WF_SET_GPUS, "0,2,5-7", 0},
        {WF_SET_OUT, "a folder with gr\xc3\xbc\xc3\x9f", 0},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        if (set(fixture, cases[i].id, cases[i].text) != 0)
            fail_msg("%s", fixture->status.text);
        assert_string_equal(wf_config_text(&fixture->config, cases[i].id), cases[i].text);
        assert_true(wf_config_number(&fixture->config, cases[i].id) == cases[i].number);
        assert_int_equal(fixture->config.values[cases[i].id].origin, WF_ORIGIN_COMMAND);
        assert_string_equal(fixture->config.values[cases[i].id].source, "command line");
    }
}

static void test_refused(void **state)
{
    static const struct {
        enum wf_setting_id id;
        const char *text, *said;
    } cases[] = {
        {WF_SET_CHUNK, "12Q", "chunk = '12Q': expected a size from 64 to 64M, such as 64K or 1M"},
        {WF_SET_CHUNK, "-1", "chunk = '-1': expected a size"},
        {WF_SET_CHUNK, "", "chunk = '': expected a size"},
        {WF_SET_CHUNK, "99999999999G", "chunk = '99999999999G': expected a size"},
        {WF_SET_CHUNK, "63", "from 64 to 64M"},
        {WF_SET_CHUNK, "65M", "from 64 to 64M"},
        {WF_SET_CHANNELS, "0", "channels = '0': expected a whole number from 1 to 64"},
        {WF_SET_CHANNELS, "65", "from 1 to 64"},
        {WF_SET_CHANNELS, "four", "from 1 to 64"},
        {WF_SET_CHANNELS, "4x", "from 1 to 64"},
        {WF_SET_CHANNELS, " 4", "from 1 to 64"},
        {WF_SET_CHANNELS, "+4", "from 1 to 64"},
        {WF_SET_CHANNELS, "-", "from 1 to 64"},
        {WF_SET_CHANNELS, "", "from 1 to 64"},
        {WF_SET_CHANNELS, "4K", "from 1 to 64"},
        {WF_SET_PORT, "65536", "from 0 to 65535"},
        {WF_SET_GPUS, "x", "gpus = 'x': expected GPUs by number, as in 0,2,5-7, or all"},
        {WF_SET_GPUS, "0-", "gpus = '0-': expected GPUs"},
        {WF_SET_GPUS, "0,", "gpus = '0,': expected GPUs"},
        {WF_SET_GPUS, "0;1", "gpus = '0;1': expected GPUs"},
        {WF_SET_GPUS, "-1", "gpus = '-1': expected GPUs"},
        {WF_SET_GPUS, "1-2-3", "gpus = '1-2-3': expected GPUs"},
        {WF_SET_SEED, "9223372036854775808", "seed = '9223372036854775808'"},
        {WF_SET_SEED, "-1", "seed = '-1': expected a whole number from 0"},
        {WF_SET_HEADER_PAD, "100",
         "header_pad = '100': expected a size from 64 to 4K, such as 64K or 1M, a multiple of 64"},
        {WF_SET_ENGINE, "kqueue", "engine = 'kqueue': expected one of auto|uring|epoll"},
        {WF_SET_ENGINE, "auto|epoll", "one of"},
        {WF_SET_ENGINE, "aut", "one of"},
        {WF_SET_ENGINE, "Auto", "one of"},
        {WF_SET_ENGINE, "", "one of"},
        {WF_SET_MEMORY, "gpu", "one of auto|host|cuda"},
        {WF_SET_MODE, "isolated,loaded", "one of isolated|loaded|both"},
        {WF_SET_BACKEND, "weft,", "a comma separated list of weft|nccl|plugin|null"},
        {WF_SET_BACKEND, ",", "a comma separated list of weft|nccl|plugin|null"},
        {WF_SET_BACKEND, "", "a comma separated list of weft|nccl|plugin|null"},
        {WF_SET_BACKEND, "weft,nvshmem", "backend = 'weft,nvshmem': expected"},
        {WF_SET_CHECK, "2", "check = '2': expected one of 0|1|all"},
        {WF_SET_QUIET, "2", "quiet = '2': expected 0 or 1"},
        {WF_SET_QUIET, "", "expected 0 or 1"},
        {WF_SET_SIZE, "1K,", "size = '1K,': expected sizes from 0 to 1T, such as 64K,1M"},
        {WF_SET_SIZE, ",1K", "expected sizes"},
        {WF_SET_SIZE, "1K,,2K", "expected sizes"},
        {WF_SET_SIZE, "1K 2K", "expected sizes"},
        {WF_SET_SIZE, "1K,2T", "expected sizes"},
        {WF_SET_SIZE, "0000000000000000000000000000000000000000000000000000000001", "expected sizes"},
        {WF_SET_OUT, "two\nlines", "out = 'two?lines': expected a line of text"},
        {WF_SETTING_COUNT, "1", "there is no setting"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        enum wf_setting_id id = cases[i].id;
        assert_int_equal(set(fixture, id, cases[i].text), -EINVAL);
        assert_int_equal(fixture->status.code, -EINVAL);
        expect_text(fixture->status.text, cases[i].said);
        if (id == WF_SETTING_COUNT)
            continue;
        assert_string_equal(wf_config_text(&fixture->config, id), wf_setting(id)->fallback);
        assert_int_equal(fixture->config.values[id].origin, WF_ORIGIN_DEFAULT);
    }
}

static void test_long_values(void **state)
{
    struct fixture *fixture = *state;
    char text[WF_VALUE_MAX + 1];

    memset(text, 'x', sizeof(text));
    text[WF_VALUE_MAX - 1] = '\0';
    assert_int_equal(set(fixture, WF_SET_RAILS, text), 0);
    assert_string_equal(wf_config_text(&fixture->config, WF_SET_RAILS), text);
    /* The value does not push what is expected out of the message. */
    assert_int_equal(set(fixture, WF_SET_CHUNK, text), -EINVAL);
    expect_text(fixture->status.text, "xxx...': expected a size from 64 to 64M");

    memset(text, 'y', sizeof(text));
    text[WF_VALUE_MAX] = '\0';
    assert_int_equal(set(fixture, WF_SET_RAILS, text), -EINVAL);
    expect_text(fixture->status.text, "rails: the value has 4096 characters, at most 4095 fit");
    assert_int_equal(wf_config_text(&fixture->config, WF_SET_RAILS)[0], 'x');
}

static void test_set_to_itself(void **state)
{
    struct fixture *fixture = *state;
    const struct wf_value *value = &fixture->config.values[WF_SET_SRC];

    assert_int_equal(
        wf_config_set(&fixture->config, WF_SET_SRC, value->text, WF_ORIGIN_COMMAND, value->source, &fixture->status),
        0);
    assert_string_equal(value->text, "node0:host0");
    assert_string_equal(value->source, "default");
}

/* ------------------------------------------------------------------------------------------- files */

static void test_file(void **state)
{
    static const char text[] = "# two rails\r\n"
                               "\n"
                               "   \t\r\n"
                               "chunk=1M\n"
                               "  connect-timeout\t=  7  # seconds\r\n"
                               "out = a folder \n"
                               "rails =\n"
                               "chunk = 2M\n"
                               "log_dir = a=b";
    struct fixture *fixture = *state;
    char source[128];

    write_file(fixture, text, sizeof(text) - 1);
    assert_int_equal(wf_config_load_file(&fixture->config, fixture->path, &fixture->status), 0);
    assert_int_equal(wf_config_number(&fixture->config, WF_SET_CHUNK), 2 << 20);
    assert_int_equal(wf_config_number(&fixture->config, WF_SET_CONNECT_TIMEOUT), 7);
    assert_string_equal(wf_config_text(&fixture->config, WF_SET_OUT), "a folder");
    assert_string_equal(wf_config_text(&fixture->config, WF_SET_LOG_DIR), "a=b");
    assert_int_equal(fixture->config.values[WF_SET_RAILS].origin, WF_ORIGIN_FILE);
    snprintf(source, sizeof(source), "file %s:8", fixture->path);
    assert_string_equal(fixture->config.values[WF_SET_CHUNK].source, source);
    assert_int_equal(fixture->config.values[WF_SET_WINDOW].origin, WF_ORIGIN_DEFAULT);
}

static void test_bad_files(void **state)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"chunk 1M\n", ":1: 'chunk 1M': expected NAME = VALUE"},
        {"\n# x\nchunk = 12Q", ":3: chunk = '12Q': expected a size from 64 to 64M"},
        {"chunk = 1M # fine\nchnk = 1M\n", ":2: unknown setting 'chnk': did you mean 'chunk'?"},
        {"= 1M\n", ":1: unknown setting ''"},
        {"chunk =\n", ":1: chunk = '': expected"},
        {"chunk = # 1M\n", ":1: chunk = '': expected"},
        {"window = 1\nchunk = 0\nchannels = 0\n", ":2: chunk = '0'"},
        {"chunk = \"64K\"\n", ":1: chunk = \"64K\": write the value without quotation marks"},
        {"rails = 'eth0'\n", ":1: rails = 'eth0': write the value without quotation marks"},
        {"WEFT_CHUNK = 64K\n", ":1: unknown setting 'WEFT_CHUNK': did you mean 'chunk'?"},
        {"\xEF\xBB\xBF# x\nchunk = 1.5K\n", ":2: chunk = '1.5K': write 1536 (K, M, G and T are"},
        {"chunk = 64 K\n", ":1: chunk = '64 K': write 64K (K"},
        {"size = 64K, 1M\n", ":1: size = '64K, 1M': write 1M for ' 1M'"},
        {"window = 1\n\xEF\xBB\xBF"
         "chunk = 1M\n",
         ":2: unknown setting '\xEF\xBB\xBF"
         "chunk'"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        char expected[256];
        write_file(fixture, cases[i].text, strlen(cases[i].text));
        assert_int_equal(wf_config_load_file(&fixture->config, fixture->path, &fixture->status), -EINVAL);
        assert_int_equal(fixture->status.code, -EINVAL);
        snprintf(expected, sizeof(expected), "%s%s", fixture->path, cases[i].said);
        assert_memory_equal(fixture->status.text, expected, strlen(expected));
        assert_int_equal(wf_config_load_file(&fixture->config, fixture->path, NULL), -EINVAL);
    }
}

static void test_line_length(void **state)
{
    static const struct {
        size_t length;
        const char *end;
        int rc;
    } cases[] = {{4096, "", 0},       {4096, "\n", 0},       {4095, "\r\n", 0},
                 {4097, "", -EINVAL}, {4097, "\n", -EINVAL}, {5000, "\nchunk = 1M\n", -EINVAL}};
    struct fixture *fixture = *state;
    char text[6000];

    for (size_t i = 0; i < COUNT(cases); i++) {
        memset(text, '#', sizeof(text));
        strcpy(text + cases[i].length, cases[i].end);
        write_file(fixture, text, cases[i].length + strlen(cases[i].end));
        assert_int_equal(wf_config_load_file(&fixture->config, fixture->path, &fixture->status), cases[i].rc);
        if (cases[i].rc)
            expect_text(fixture->status.text, ":1: the line has more than 4096 bytes");
    }
    write_file(fixture, "chunk = 1M\0Q\nwindow = 1\n", 24);
    assert_int_equal(wf_config_load_file(&fixture->config, fixture->path, &fixture->status), -EINVAL);
    expect_text(fixture->status.text, ":1: the line has a null byte in it");
}

static void test_byte_order_mark(void **state)
{
    static const char text[] = "\xEF\xBB\xBF"
                               "chunk = 1M\r\nwindow = 3\r\n";
    struct fixture *fixture = *state;

    write_file(fixture, text, strlen(text));
    assert_int_equal(wf_config_load_file(&fixture->config, fixture->path, &fixture->status), 0);
    assert_int_equal(wf_config_number(&fixture->config, WF_SET_CHUNK), 1 << 20);
    assert_int_equal(wf_config_number(&fixture->config, WF_SET_WINDOW), 3);
}

/* Each of them at once: none may keep its caller waiting. */
static void test_no_regular_file(void **state)
{
    struct fixture *fixture = *state;
    char pipe[sizeof(fixture->path) + 8];

    snprintf(pipe, sizeof(pipe), "%s.pipe", fixture->path);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(wf_config_load_file(&fixture->config, pipe, &fixture->status), -EINVAL);
    expect_text(fixture->status.text, "is no regular file");
    unlink(pipe);
    assert_int_equal(wf_config_load_file(&fixture->config, "/dev/zero", &fixture->status), -EINVAL);
    expect_text(fixture->status.text, "'/dev/zero' is no regular file");
    assert_int_equal(wf_config_load_file(&fixture->config, "/dev/null", &fixture->status), 0);
    write_file(fixture, "chunk = 1M\n", 11);
    assert_int_equal(truncate(fixture->path, 100 << 20), 0);
    assert_int_equal(wf_config_load_file(&fixture->config, fixture->path, &fixture->status), -EINVAL);
    expect_text(fixture->status.text, "has 104857600 bytes, and at most 1048576 are read");
}

static void test_unreadable_files(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(wf_config_load_file(&fixture->config, "/nowhere/weft.conf", &fixture->status), -ENOENT);
    assert_string_equal(fixture->status.text,
                        "cannot open the settings file '/nowhere/weft.conf': No such file or directory");
    assert_int_equal(wf_config_load_file(&fixture->config, "/tmp", &fixture->status), -EISDIR);
    expect_text(fixture->status.text, "/tmp");
    expect_text(fixture->status.text, "Is a directory");
}

static void test_long_path(void **state)
{
    struct fixture *fixture = *state;
    char path[300] = "";
    size_t used = 0;

    write_file(fixture, "chunk = 1M\n", 11);
    while (used < 200)
        used += (size_t)snprintf(path + used, sizeof(path) - used, "/tmp/../");
    snprintf(path + used, sizeof(path) - used, "%s", fixture->path);
    assert_int_equal(wf_config_load_file(&fixture->config, path, &fixture->status), 0);
    expect_text(fixture->config.values[WF_SET_CHUNK].source, "file ...");
    expect_text(fixture->config.values[WF_SET_CHUNK].source, fixture->path);
    expect_text(fixture->config.values[WF_SET_CHUNK].source + 20, ":1");
}

/* ------------------------------------------------------------------------------------------- environment */

static void test_precedence(void **state)
{
    static const struct {
        const char *environment[4];
        const char *text, *source; /* of chunk; source NULL: the file's */
        enum wf_origin origin;
    } cases[] = {
        {{NULL}, "1M", NULL, WF_ORIGIN_FILE},
        {{"UCCL_TCPX_CHUNK_BYTES=65536"}, "65536", "environment UCCL_TCPX_CHUNK_BYTES (alias)", WF_ORIGIN_ENVIRONMENT},
        {{"WEFT_CHUNK=2M"}, "2M", "environment WEFT_CHUNK", WF_ORIGIN_ENVIRONMENT},
        {{"UCCL_TCPX_CHUNK_BYTES=3M", "WEFT_CHUNK=2M"}, "2M", "environment WEFT_CHUNK", WF_ORIGIN_ENVIRONMENT},
        {{"WEFT_CHUNK=2M", "UCCL_TCPX_CHUNK_BYTES=rubbish"}, "2M", "environment WEFT_CHUNK", WF_ORIGIN_ENVIRONMENT},
        {{"WEFT_CHUNK="}, "1M", NULL, WF_ORIGIN_FILE},
        {{"WEFT_CHUNK=", "UCCL_TCPX_CHUNK_BYTES="}, "1M", NULL, WF_ORIGIN_FILE},
        {{"WEFT_CHUNK"}, "1M", NULL, WF_ORIGIN_FILE},
    };
    struct fixture *fixture = *state;
    char file[128], source[128];

    write_file(fixture, "chunk = 1M\n", 11);
    snprintf(file, sizeof(file), "WEFT_CONFIG=%s", fixture->path);
    snprintf(source, sizeof(source), "file %s:1", fixture->path);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *environment[6] = {file};
        const struct wf_value *value = &fixture->config.values[WF_SET_CHUNK];

        memcpy(environment + 1, cases[i].environment, sizeof(cases[i].environment));
        if (load_environment(fixture, environment) != 0)
            fail_msg("%s", fixture->status.text);
        assert_string_equal(value->text, cases[i].text);
        assert_string_equal(value->source, cases[i].source ? cases[i].source : source);
        assert_int_equal(value->origin, cases[i].origin);
    }
}

/* Whatever is read first. */
static void test_a_preset_is_above_a_default_alone(void **state)
{
    static char variable[] = "WEFT_CHUNK=3M";
    char *environment[] = {variable, NULL};
    struct fixture *fixture = *state;

    assert_int_equal(wf_config_load_environment(&fixture->config, environment, NULL, &fixture->status), 0);
    assert_int_equal(set(fixture, WF_SET_EAGER, "5"), 0);
    for (int i = 0; i < 2; i++) {
        static const enum wf_setting_id ids[] = {WF_SET_CHUNK, WF_SET_WINDOW, WF_SET_EAGER, WF_SET_CHANNELS};
        for (size_t k = 0; k < COUNT(ids); k++)
            assert_int_equal(
                wf_config_offer(&fixture->config, ids[k], "64", WF_ORIGIN_PRESET, "preset", &fixture->status), 0);
        write_file(fixture, "window = 3\n", 11);
        assert_int_equal(wf_config_load_file(&fixture->config, fixture->path, &fixture->status), 0);
        assert_string_equal(wf_config_text(&fixture->config, WF_SET_CHUNK), "3M");
        assert_string_equal(wf_config_text(&fixture->config, WF_SET_WINDOW), "3");
        assert_string_equal(wf_config_text(&fixture->config, WF_SET_EAGER), "5");
        assert_string_equal(wf_config_text(&fixture->config, WF_SET_CHANNELS), "64");
        assert_string_equal(fixture->config.values[WF_SET_CHANNELS].source, "preset");
    }
    assert_int_equal(
        wf_config_offer(&fixture->config, WF_SET_CHUNK, "much", WF_ORIGIN_PRESET, "preset", &fixture->status), -EINVAL);
}

static void test_later_loading_keeps_the_rank(void **state)
{
    static char variable[] = "WEFT_CHUNK=3M", bad[] = "WEFT_CHUNK=rubbish";
    char *environment[] = {variable, NULL}, *bad_environment[] = {bad, NULL};
    struct fixture *fixture = *state;

    assert_int_equal(wf_config_load_environment(&fixture->config, environment, NULL, &fixture->status), 0);
    write_file(fixture, "chunk = 1M\nwindow = 3\n", 22);
    assert_int_equal(wf_config_load_file(&fixture->config, fixture->path, &fixture->status), 0);
    assert_string_equal(wf_config_text(&fixture->config, WF_SET_CHUNK), "3M");
    assert_string_equal(wf_config_text(&fixture->config, WF_SET_WINDOW), "3");
    assert_int_equal(set(fixture, WF_SET_CHUNK, "4M"), 0);
    assert_int_equal(wf_config_load_environment(&fixture->config, environment, NULL, &fixture->status), 0);
    assert_string_equal(wf_config_text(&fixture->config, WF_SET_CHUNK), "4M");
    /* Outranked, yet checked. */
    assert_int_equal(wf_config_load_environment(&fixture->config, bad_environment, NULL, &fixture->status), -EINVAL);
}

static void test_bad_environment(void **state)
{
    static const struct {
        const char *variable, *said;
        int rc;
    } cases[] = {
        {"WEFT_CHUNK=12Q", "WEFT_CHUNK: chunk = '12Q': expected a size", -EINVAL},
        {"WEFT_CONNECT_TIMEOUT=soon", "WEFT_CONNECT_TIMEOUT: connect_timeout = 'soon': expected", -EINVAL},
        {"UCCL_TCPX_NUM_CHANNELS=0", "UCCL_TCPX_NUM_CHANNELS: channels = '0': expected", -EINVAL},
        {"WEFT_CONFIG=/nowhere/weft.conf", "cannot open the settings file '/nowhere/weft.conf'", -ENOENT},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *environment[] = {cases[i].variable, NULL};
        assert_int_equal(load_environment(fixture, environment), cases[i].rc);
        assert_memory_equal(fixture->status.text, cases[i].said, strlen(cases[i].said));
    }
}

static void test_aliases(void **state)
{
    static const struct {
        const char *variable;
        enum wf_setting_id id;
        const char *text;
    } cases[] = {
        {"UCCL_TCPX_NUM_CHANNELS=4", WF_SET_CHANNELS, "4"},
        {"UCCL_TCPX_CHUNK_BYTES=524288", WF_SET_CHUNK, "524288"},
        {"UCCL_TCPX_WINDOW_SIZE=16", WF_SET_WINDOW, "16"},
        {"UCCL_TCPX_PERF_SIZE=67108864", WF_SET_SIZE, "67108864"},
        {"UCCL_TCPX_PERF_ITERS=10", WF_SET_ITERS, "10"},
        {"UCCL_TCPX_BOOTSTRAP_PORT_BASE=20000", WF_SET_PORT, "20000"},
        {"LOG_DIR=/var/log/x", WF_SET_LOG_DIR, "/var/log/x"},
        {"NCCL_SOCKET_IFNAME=eth,ens", WF_SET_RAILS, "eth*,ens*"},
        {"NCCL_SOCKET_IFNAME=eth0", WF_SET_RAILS, "eth0*"},
        {"NCCL_SOCKET_IFNAME==eth0,eth1", WF_SET_RAILS, "eth0,eth1"},
        {"NCCL_SOCKET_IFNAME=^docker,lo", WF_SET_RAILS, "^docker*,lo*"},
        {"NCCL_SOCKET_IFNAME=^=a,b", WF_SET_RAILS, "^a,b"},
        {"NCCL_SOCKET_IFNAME=,eth,,ens,", WF_SET_RAILS, "eth*,ens*"},
        {"NCCL_SOCKET_IFNAME=^", WF_SET_RAILS, ""},
        {"NCCL_SOCKET_IFNAME==", WF_SET_RAILS, ""},
        {"NCCL_SOCKET_IFNAME=^,", WF_SET_RAILS, ""},
        {"NCCL_SOCKET_FAMILY=AF_INET", WF_SET_FAMILY, "ipv4"},
        {"NCCL_SOCKET_FAMILY=AF_INET6", WF_SET_FAMILY, "ipv6"},
        {"NCCL_SOCKET_FAMILY=AF_UNSPEC", WF_SET_FAMILY, "auto"},
        {"NCCL_SOCKET_FAMILY=ipv6", WF_SET_FAMILY, "auto"},
        {"NCCL_GPUDIRECTTCPX_SOCKET_IFNAME=eth1,eth2", WF_SET_RAILS, "eth1*,eth2*"},
        {"NCCL_GPUDIRECTTCPX_TX_BINDINGS=eth1:8-21,112-125;eth2:8-21", WF_SET_TX_BINDINGS,
         "eth1:8-21,112-125;eth2:8-21"},
        {"NCCL_GPUDIRECTTCPX_RX_BINDINGS=eth1:22-35", WF_SET_RX_BINDINGS, "eth1:22-35"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *environment[] = {cases[i].variable, NULL};
        const struct wf_value *value = &fixture->config.values[cases[i].id];
        char source[128];

        if (load_environment(fixture, environment) != 0)
            fail_msg("%s", fixture->status.text);
        assert_string_equal(value->text, cases[i].text);
        snprintf(source, sizeof(source), "environment %.*s (alias)", (int)strcspn(cases[i].variable, "="),
                 cases[i].variable);
        assert_string_equal(value->source, source);
        source[strlen(source) - strlen(" (alias)")] = '\0';
        assert_string_equal(wf_config_alias(&fixture->config, cases[i].id), source + strlen("environment "));
    }
    assert_string_equal(logged(fixture), "");
}

static void test_own_names_are_no_aliases(void **state)
{
    static const char *const environment[] = {"WEFT_RAILS=eth0", "NCCL_SOCKET_IFNAME=eth", NULL};
    struct fixture *fixture = *state;

    assert_int_equal(load_environment(fixture, environment), 0);
    assert_null(wf_config_alias(&fixture->config, WF_SET_RAILS));
    assert_null(wf_config_alias(&fixture->config, WF_SET_CHUNK));
}

static void test_what_a_child_is_not_given(void **state)
{
    static const struct {
        const char *entry;
        bool is_setting;
    } cases[] = {
        {"WEFT_CHUNK=64K", true},
        {"WEFT_CHUNK=", true},
        {"WEFT_CONFIG=weft.conf", true},
        {"WEFT_NONSENSE=1", true},
        {"UCCL_TCPX_NUM_CHANNELS=4", true},
        {"GPU_LIST=0,1", true},
        {"LOG_DIR=logs", true},
        {"NCCL_SOCKET_IFNAME=eth0", false},
        {"NCCL_GPUDIRECTTCPX_TX_BINDINGS=eth0:1", false},
        {"NCCL_DEBUG=INFO", false},
        {"WEFT_RAILS=eth0", false},
        {"WEFT_FAMILY=ipv4", false},
        {"WEFT_TX_BINDINGS=eth0:1", false},
        {"WEFT_RAILS_MORE=1", true},
        {"WEFT_EMULATED_GPUS=2", false},
        {"LOG_DIRECTORY=logs", false},
        {"MY_LOG_DIR=logs", false},
        {"PATH=/bin", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(wf_environment_is_setting(cases[i].entry), cases[i].is_setting);
}

static void test_alias_list(void **state)
{
    int count = 0;

    (void)state;
    for (const struct wf_alias *alias = wf_config_aliases(); alias->variable; alias++, count++)
        assert_non_null(wf_setting(alias->id));
    assert_int_equal(count, 13);
}

static void test_more_specific_alias_wins(void **state)
{
    static const char *const environment[] = {"NCCL_GPUDIRECTTCPX_SOCKET_IFNAME=eth1", "NCCL_SOCKET_IFNAME=eth0", NULL};
    struct fixture *fixture = *state;

    assert_int_equal(load_environment(fixture, environment), 0);
    assert_string_equal(wf_config_text(&fixture->config, WF_SET_RAILS), "eth1*");
}

static void test_long_alias(void **state)
{
    static char variable[WF_VALUE_MAX + 64] = "NCCL_SOCKET_IFNAME=";
    const char *environment[] = {variable, NULL};
    struct fixture *fixture = *state;
    size_t name = strlen(variable);

    /* With its '*' it just fits, then no more. */
    memset(variable + name, 'e', WF_VALUE_MAX - 2);
    assert_int_equal(load_environment(fixture, environment), 0);
    assert_int_equal(strlen(wf_config_text(&fixture->config, WF_SET_RAILS)), WF_VALUE_MAX - 1);
    variable[name + WF_VALUE_MAX - 2] = 'e';
    assert_int_equal(load_environment(fixture, environment), -EINVAL);
    expect_text(fixture->status.text, "NCCL_SOCKET_IFNAME: the list is too long");
}

static void test_unknown_variables(void **state)
{
    static const struct {
        const char *variable, *said;
    } cases[] = {
        {"WEFT_CHANELS=4", "weft[warn] unknown variable WEFT_CHANELS: did you mean WEFT_CHANNELS?\n"},
        {"WEFT_CONECT_TIMEOUT=4",
         "weft[warn] unknown variable WEFT_CONECT_TIMEOUT: did you mean WEFT_CONNECT_TIMEOUT?\n"},
        {"WEFT_chunk=4", "weft[warn] unknown variable WEFT_chunk: did you mean WEFT_CHUNK?\n"},
        {"WEFT_CONFG=x", "weft[warn] unknown variable WEFT_CONFG: did you mean WEFT_CONFIG?\n"},
        {"WEFT_FROBNICATOR=1", "weft[warn] unknown variable WEFT_FROBNICATOR: see 'weft config'\n"},
        {"WEFT_=1", "weft[warn] unknown variable WEFT_: see 'weft config'\n"},
        {"WEFT_CHUNKS=", "weft[warn] unknown variable WEFT_CHUNKS: did you mean WEFT_CHUNK?\n"},
        {"WEFT_CHUNK=4K", ""},
        {"WEFT_SETUP=off", ""},
        {"WEFT_WERROR=ON", ""},
        {"WEFT_GPUS=all", ""},
        {"WEFT_BUILD=build", ""},
        {"WEFT_CONFIG=", ""},
        {"WEFTCHUNK=4", ""},
        {"UCCL_TCPX_UNKNOWN=4", ""},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *environment[] = {"HOME=/", cases[i].variable, NULL};
        assert_int_equal(load_environment(fixture, environment), 0);
        assert_string_equal(logged(fixture), cases[i].said);
    }
}

static void test_process_environment(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(setenv("WEFT_WINDOW", "9", 1), 0);
    assert_int_equal(load_environment(fixture, NULL), 0);
    unsetenv("WEFT_WINDOW");
    assert_int_equal(wf_config_number(&fixture->config, WF_SET_WINDOW), 9);
}

struct seen {
    int count;
    char text[128];
};

static void note(void *context, const char *name, const char *value)
{
    struct seen *seen = context;

    seen->count++;
    snprintf(seen->text + strlen(seen->text), sizeof(seen->text) - strlen(seen->text), "%s=%s;", name, value);
}

static void test_variables_of_others(void **state)
{
    struct seen seen = {0};

    (void)state;
    assert_int_equal(setenv("OTHERS_ONE", "1=2", 1) | setenv("OTHERS_EMPTY", "", 1) | setenv("OTHER", "3", 1), 0);
    assert_int_equal(wf_environment_list("OTHERS_", note, &seen), 2);
    assert_int_equal(seen.count, 2);
    assert_non_null(strstr(seen.text, "OTHERS_ONE=1=2;"));
    assert_non_null(strstr(seen.text, "OTHERS_EMPTY=;"));
    assert_string_equal(wf_environment_value("OTHERS_ONE"), "1=2");
    assert_null(wf_environment_value("OTHERS_EMPTY"));
    assert_null(wf_environment_value("OTHERS_NONE"));
    /* What a user has set stays, also where it is set to nothing. */
    assert_int_equal(wf_environment_offer("OTHERS_ONE", "9"), 0);
    assert_int_equal(wf_environment_offer("OTHERS_EMPTY", "9"), 0);
    assert_int_equal(wf_environment_offer("OTHERS_NONE", "9"), 1);
    assert_string_equal(wf_environment_value("OTHERS_ONE"), "1=2");
    assert_null(wf_environment_value("OTHERS_EMPTY"));
    assert_string_equal(wf_environment_value("OTHERS_NONE"), "9");
    assert_int_equal(wf_environment_set("OTHERS_ONE", "9"), 0);
    assert_string_equal(wf_environment_value("OTHERS_ONE"), "9");
    unsetenv("OTHERS_ONE");
    unsetenv("OTHERS_EMPTY");
    unsetenv("OTHERS_NONE");
    unsetenv("OTHER");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_table_is_complete),
        TEST(test_defaults),
        TEST(test_find),
        TEST(test_accepted),
        TEST(test_refused),
        TEST(test_long_values),
        TEST(test_set_to_itself),
        TEST(test_file),
        TEST(test_bad_files),
        TEST(test_line_length),
        TEST(test_byte_order_mark),
        TEST(test_no_regular_file),
        TEST(test_unreadable_files),
        TEST(test_long_path),
        TEST(test_precedence),
        TEST(test_a_preset_is_above_a_default_alone),
        TEST(test_later_loading_keeps_the_rank),
        TEST(test_bad_environment),
        TEST(test_aliases),
        TEST(test_own_names_are_no_aliases),
        TEST(test_what_a_child_is_not_given),
        TEST(test_alias_list),
        TEST(test_more_specific_alias_wins),
        TEST(test_long_alias),
        TEST(test_unknown_variables),
        TEST(test_process_environment),
        TEST(test_variables_of_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
