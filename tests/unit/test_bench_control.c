/* What a node makes of the other one's words: the test is the library between them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/nodes/control.h"
#include "bench/words/heard.h"
#include "bench/words/interrupt.h"
#include "bench/plan/options.h"

/* --- the library, of which one receive is under way at a time for each tag --- */

enum { TEXT = 2, FAREWELL = 3, TAGS };

static struct arrival {
    void *buffer; /* of the receive */
    const void *bytes;
    size_t length;
    bool here;
} arrivals[TAGS];

int weft_recv(struct weft_connection *connection, void *buffer, uint64_t capacity, uint64_t tag,
              const struct weft_options *options, struct weft_request **request)
{
    (void)connection, (void)options;
    assert_true(tag < TAGS && arrivals[tag].length <= capacity);
    arrivals[tag].buffer = buffer;
    *request = (struct weft_request *)&arrivals[tag];
    return 0;
}

int weft_test(struct weft_request *request, struct weft_completion *completion)
{
    struct arrival *arrival = (struct arrival *)request;
    if (!arrival->here)
        return 0;
    memcpy(arrival->buffer, arrival->bytes, arrival->length);
    *completion = (struct weft_completion){.bytes = arrival->length};
    return 1;
}

int weft_wait(struct weft_request *request, int timeout_ms, struct weft_completion *completion)
{
    (void)timeout_ms;
    return weft_test(request, completion) ? 0 : -110;
}

int weft_send(struct weft_connection *connection, const void *buffer, uint64_t length, uint64_t tag,
              const struct weft_options *options, struct weft_request **request)
{
    (void)connection, (void)buffer, (void)length, (void)tag, (void)options, (void)request;
    fail();
    return -1;
}

void weft_cancel(struct weft_request *request)
{
    (void)request;
}

int weft_peer_status(const struct weft_peer *peer, struct weft_error *err)
{
    (void)peer, (void)err;
    return 0;
}

const char *weft_peer_name(const struct weft_peer *peer)
{
    (void)peer;
    return "other";
}

int bench_interrupted(struct wf_status *status)
{
    (void)status;
    return 0;
}

static void arrives(int tag, const void *bytes, size_t length)
{
    arrivals[tag].bytes = bytes;
    arrivals[tag].length = length;
    arrivals[tag].here = true;
}

static struct bench_control *begin(void)
{
    struct bench_control *control;
    struct wf_status status = {0};
    memset(arrivals, 0, sizeof arrivals);
    assert_int_equal(bench_control_create(NULL, NULL, 0, &control, &status), 0);
    return control;
}

/* --- the end that the other node tells --- */

struct farewell {
    uint32_t exit_status, signal;
    char reason[240];
};

/* Whatever it is, this node's run was given up: it does not pass, and its terminal is its own. */
static void farewells(void **state)
{
    (void)state;
    static const struct {
        uint32_t exit_status, signal;
        int told_status, told_signal;
    } rows[] = {
        {BENCH_FAILED, 0, BENCH_FAILED, 0}, {BENCH_USAGE, 0, BENCH_USAGE, 0},     {BENCH_UNAVAILABLE, 0, 77, 0},
        {BENCH_FAILED, 2, BENCH_FAILED, 2}, {BENCH_FAILED, 15, BENCH_FAILED, 15}, {BENCH_PASSED, 0, BENCH_FAILED, 0},
        {256, 0, BENCH_FAILED, 0},          {UINT32_MAX, 11, BENCH_FAILED, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench_control *control = begin();
        struct farewell farewell = {rows[i].exit_status, rows[i].signal, ""};
        struct wf_status status = {0};
        int exit_status = -1, signal = -1;
        memset(farewell.reason, 'x', sizeof farewell.reason);
        memcpy(farewell.reason, "gone\n\x1b[2J\x9b\xc2", 11);
        assert_false(bench_control_aborted(control, &exit_status, &signal));
        arrives(FAREWELL, &farewell, sizeof farewell);
        assert_int_equal(bench_control_check(control, &status), -ECONNABORTED);
        assert_true(bench_control_aborted(control, &exit_status, &signal));
        assert_int_equal(exit_status, rows[i].told_status);
        assert_int_equal(signal, rows[i].told_signal);
        assert_non_null(strstr(status.text, "gone??[2J??xxx"));
        bench_control_destroy(control);
    }
}

/* --- texts --- */

static json_t *heard(const char *text)
{
    return bench_heard(text, strlen(text));
}

static void no_control_characters(void **state)
{
    (void)state;
    json_t *json = heard(
        "{\"a\": \"\\u001b[2J \\u007f \\u009b \\u00a0\\n\", \"list\": [\"\\r\"], \"text\": \"one\\n\\ttwo\\u0007\"}");
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "a")), "?[2J ? ?? \xc2\xa0?");
    assert_string_equal(json_string_value(json_array_get(json_object_get(json, "list"), 0)), "?");
    assert_string_equal(json_string_value(json_object_get(json, "text")), "one\n\ttwo?");
    json_decref(json);
    assert_null(heard("{\"a\\u001b\": 1}"));
    assert_null(heard("{\"a\": {\"b\\n\": 1}}"));
}

static void not_too_deep(void **state)
{
    (void)state;
    char text[2 * BENCH_HEARD_DEPTH + 32];
    for (int depth = 1; depth <= BENCH_HEARD_DEPTH + 1; depth++) { /* of lists; the object is one more */
        size_t used = (size_t)snprintf(text, sizeof text, "{\"a\":");
        memset(text + used, '[', (size_t)depth);
        memset(text + used + depth, ']', (size_t)depth);
        strcpy(text + used + 2 * depth, "}");
        json_t *json = heard(text);
        assert_true(depth < BENCH_HEARD_DEPTH ? json != NULL : json == NULL);
        json_decref(json);
    }
}

static void no_objects(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "[]", "1", "\"a\"", "{", "{} {}", "{\"a\": \"\\u0000\"}", "{\"a\": \"\xff\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_null(heard(texts[i]));
}

static void hexadecimal_digits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int count;
    } rows[] = {{"\"\"", 0},    {"\"00ff\"", 2}, {"\"0\"", -1}, {"\"00f\"", -1},   {"\"0x\"", -1},
                {"\" 1\"", -1}, {"\"AB\"", -1},  {"7", -1},     {"\"000102\"", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned char bytes[2];
        json_t *json = json_loads(rows[i].text, JSON_DECODE_ANY, NULL);
        assert_non_null(json);
        assert_int_equal(bench_heard_bytes(json, bytes, 2), rows[i].count);
        json_decref(json);
    }
    assert_int_equal(bench_heard_bytes(NULL, NULL, 0), -1);
}

static void what_is_heard_is_looked_at(void **state)
{
    (void)state;
    static const char good[] = "{\"name\": \"\\u001b]0;\"}", bad[] = "{\"name\": ";
    struct bench_control *control = begin();
    struct wf_status status = {0};
    json_t *json = NULL;
    arrives(TEXT, good, sizeof good - 1);
    assert_int_equal(bench_control_hear(control, &json, &status), 0);
    assert_string_equal(bench_heard_text(json, "name"), "?]0;");
    assert_string_equal(bench_heard_text(json, "none"), "?");
    json_decref(json);
    arrives(TEXT, bad, sizeof bad - 1);
    assert_int_equal(bench_control_hear(control, &json, &status), -EPROTO);
    assert_non_null(strstr(status.text, "no JSON"));
    bench_control_destroy(control);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(farewells),          cmocka_unit_test(no_control_characters),
        cmocka_unit_test(not_too_deep),       cmocka_unit_test(no_objects),
        cmocka_unit_test(hexadecimal_digits), cmocka_unit_test(what_is_heard_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
