/* The log: what passes, what a line looks like, and how many lines a stranger can cause. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define TEXT_MAX 8192

/* A log that ends in a pipe. */
struct capture {
    struct wf_log log;
    int ends[2];
    char text[TEXT_MAX];
};

static void capture_init(struct capture *capture, enum wf_log_level level)
{
    wf_log_init(&capture->log, level);
    assert_int_equal(capture->log.fd, 2);
    assert_int_equal(pipe2(capture->ends, O_NONBLOCK | O_CLOEXEC), 0);
    capture->log.fd = capture->ends[1];
}

static void capture_fini(struct capture *capture)
{
    close(capture->ends[0]);
    close(capture->ends[1]);
}

/* What was written since the last call. */
static const char *captured(struct capture *capture)
{
    ssize_t got = read(capture->ends[0], capture->text, TEXT_MAX - 1);

    capture->text[got > 0 ? got : 0] = '\0';
    return capture->text;
}

static void test_levels(void **state)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};

    (void)state;
    for (int level = WF_LOG_ERROR; level <= WF_LOG_DEBUG; level++) {
        struct capture capture;
        capture_init(&capture, (enum wf_log_level)level);
        for (int line = WF_LOG_ERROR; line <= WF_LOG_DEBUG; line++) {
            char expected[64] = "";
            wf_log(&capture.log, (enum wf_log_level)line, "rail %d", line);
            if (line <= level)
                snprintf(expected, sizeof(expected), "weft[%s] rail %d\n", names[line], line);
            assert_string_equal(captured(&capture), expected);
        }
        capture_fini(&capture);
    }
}

static void test_one_line(void **state)
{
    struct capture capture;

    (void)state;
    capture_init(&capture, WF_LOG_INFO);
    wf_log(&capture.log, WF_LOG_INFO, "%s", "GET / HTTP/1.1\r\n\x1b[2J");
    assert_string_equal(captured(&capture), "weft[info] GET / HTTP/1.1???[2J\n");
    capture_fini(&capture);
}

static void test_long_line_is_cut(void **state)
{
    struct capture capture;
    struct wf_log_limit limit = {.interval_ns = 10, .next_ns = 5, .dropped = UINT64_MAX};
    char text[5000];
    size_t length;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    capture_init(&capture, WF_LOG_INFO);
    wf_log(&capture.log, WF_LOG_INFO, "%s", text);
    length = strlen(captured(&capture));
    assert_in_range(length, 500, 1024);
    assert_ptr_equal(strchr(capture.text, '\n'), capture.text + length - 1);
    /* The longest note fits too. */
    wf_log_limited(&capture.log, &limit, 5, WF_LOG_INFO, "%s", text);
    length = strlen(captured(&capture));
    assert_in_range(length, 500, 1024);
    assert_non_null(strstr(capture.text, " (18446744073709551615 more not shown)\n"));
    capture_fini(&capture);
}

static void test_errno_survives(void **state)
{
    struct wf_log log;

    (void)state;
    wf_log_init(&log, WF_LOG_INFO);
    log.fd = -1;
    errno = ECONNRESET;
    wf_log(&log, WF_LOG_ERROR, "lost");
    assert_int_equal(errno, ECONNRESET);
}

static void test_limit(void **state)
{
    static const struct {
        int64_t now;
        enum wf_log_level level;
        const char *expected;
    } steps[] = {
        {0, WF_LOG_WARN, "weft[warn] garbage\n"},
        {1, WF_LOG_WARN, ""},
        {99, WF_LOG_WARN, ""},
        {99, WF_LOG_DEBUG, ""}, /* below the level: neither shown nor counted */
        {100, WF_LOG_WARN, "weft[warn] garbage (2 more not shown)\n"},
        {199, WF_LOG_WARN, ""},
        {500, WF_LOG_WARN, "weft[warn] garbage (1 more not shown)\n"},
        {600, WF_LOG_WARN, "weft[warn] garbage\n"},
    };
    struct wf_log_limit limit = {.interval_ns = 100};
    struct capture capture;

    (void)state;
    capture_init(&capture, WF_LOG_WARN);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        wf_log_limited(&capture.log, &limit, steps[i].now, steps[i].level, "%s", "garbage");
        assert_string_equal(captured(&capture), steps[i].expected);
    }
    capture_fini(&capture);
}

static void test_limit_without_end(void **state)
{
    struct wf_log_limit limit = {.interval_ns = INT64_MAX};
    struct capture capture;

    (void)state;
    capture_init(&capture, WF_LOG_WARN);
    wf_log_limited(&capture.log, &limit, 5, WF_LOG_WARN, "once");
    assert_string_equal(captured(&capture), "weft[warn] once\n");
    wf_log_limited(&capture.log, &limit, INT64_MAX - 1, WF_LOG_WARN, "once");
    assert_string_equal(captured(&capture), "");
    capture_fini(&capture);
}

static void take(void *user, int level, const char *line)
{
    struct capture *capture = user;
    size_t used = strlen(capture->text);

    (void)snprintf(capture->text + used, TEXT_MAX - used, "%d %s;", level, line);
}

/* A taker gets lines, without the mark and the newline, and nothing is written. */
static void test_taker(void **state)
{
    struct capture capture;

    (void)state;
    capture_init(&capture, WF_LOG_INFO);
    capture.text[0] = '\0';
    wf_log_hand_over(&capture.log, take, &capture);
    wf_log(&capture.log, WF_LOG_WARN, "rail %d", 7);
    wf_log(&capture.log, WF_LOG_DEBUG, "not this one");
    wf_log(&capture.log, WF_LOG_INFO, "two\nlines");
    assert_string_equal(capture.text, "1 rail 7;2 two?lines;");
    assert_string_equal(captured(&capture), "");
    capture_fini(&capture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_long_line_is_cut),
        cmocka_unit_test(test_errno_survives),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_limit_without_end),
        cmocka_unit_test(test_taker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
