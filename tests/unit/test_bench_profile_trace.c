/* The files of a profile, as the checker of the loopback tests reads them, and that the checker finds what is wrong. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/profile/graph.h"
#include "bench/profile/log.h"
#include "bench/profile/pieces.h"
#include "bench/profile/trace.h"
#include "tests/loop/trace_check.h"

#define WORLD 3
#define BASE 9007199254000000 /* nearly 2^53, from which on a double has no odd numbers */
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const char *const backends[] = {"weft", "nccl"};

/* Three ranks on two nodes, in the order of execution; the third is within a node. */
static const struct bench_profile_row rows[] = {
    {.config = 42, .src = 0, .dst = 2, .size = 1 << 20, .start_ns = BASE + 740993, .end_ns = BASE + 741994},
    {.config = 3, .src = 2, .dst = 0, .size = 1, .start_ns = BASE + 742000, .end_ns = BASE + 750007, .stamps = 0x201},
    {.config = 12345,
     .src = 0,
     .dst = 1,
     .size = 1ull << 30,
     .start_ns = BASE + 800001,
     .end_ns = BASE + 90000000,
     .backend = 1},
    {.config = 42,
     .src = 0,
     .dst = 2,
     .received = 101,
     .sent = 101,
     .size = 1 << 20,
     .repetition = 1,
     .start_ns = BASE + 90000000,
     .end_ns = BASE + 90100000,
     .stamps = 2},
};

struct fixture {
    char folder[64];
    struct wf_status status;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/weft-profile.XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    *state = fixture;
    return 0;
}

static const char *path_of(const struct fixture *fixture, const char *name)
{
    static char path[200];

    snprintf(path, sizeof path, "%s/%s", fixture->folder, name);
    return path;
}

static const char *path_of_rank(const struct fixture *fixture, unsigned rank, const char *ending)
{
    char name[64];

    snprintf(name, sizeof name, "rank_%u%s", rank, ending);
    return path_of(fixture, name);
}

/* A file that is still there under another name fails the test: rmdir() refuses. */
static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    for (unsigned rank = 0; rank < WORLD; rank++) {
        unlink(path_of_rank(fixture, rank, ".pt.trace.json"));
        unlink(path_of_rank(fixture, rank, "_CPU_trace.json"));
    }
    unlink(path_of(fixture, "execution_log.csv"));
    unlink(path_of(fixture, "stamps.csv"));
    int result = rmdir(fixture->folder);
    free(fixture);
    return result;
}

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "r");
    size_t room = 1 << 22, length;
    char *text = malloc(room);

    assert_non_null(file);
    assert_non_null(text);
    length = fread(text, 1, room - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

/* --- a profile --- */

static struct bench_trace_rank rank_of(unsigned rank)
{
    return (struct bench_trace_rank){
        .rank = rank,
        .world = WORLD,
        .pid = 4711 + rank,
        .backend = "weft",
        .name = "rank of \"quotes\" and \\",
        .label = "node",
        .device = "cuda:0",
        .backends = backends,
        .base_ns = BASE,
        .base_unix_ns = 1700000000123456789,
    };
}

/* A hundred chunks on three channels, each acknowledged long after the next has begun; and copies that reach out. */
static void put_spans(struct bench_trace *trace, unsigned rank, const struct bench_profile_row *row, uint32_t index)
{
    bool sends = row->src == rank;
    int64_t step = (row->end_ns - row->start_ns) / 100;

    for (int i = 0; i < 100; i++) {
        struct bench_profile_span span = {
            .begin_ns = row->start_ns + (99 - i) * step,
            .end_ns = row->start_ns + (99 - i) * step + 10 * step,
            .offset = (uint64_t)(99 - i) << 19,
            .bytes = 512 << 10,
            .row = index,
            .rank = rank,
            .rail = (int16_t)(i % 2),
            .channel = (int16_t)(i % 3),
            .gpu = -1,
            .kind = sends ? BENCH_SPAN_SENT : BENCH_SPAN_RECEIVED,
        };
        bench_trace_span(trace, &span);
        span.rank = rank + 1; /* the other end's */
        bench_trace_span(trace, &span);
    }
    bench_trace_span(trace, &(struct bench_profile_span){
                                .begin_ns = row->start_ns - 500,
                                .end_ns = row->end_ns + 500,
                                .bytes = 77,
                                .rank = rank,
                                .rail = -1,
                                .channel = -1,
                                .gpu = 1,
                                .kind = sends ? BENCH_SPAN_COPIED_OUT : BENCH_SPAN_COPIED_IN,
                            });
}

static void write_rank(struct fixture *fixture, unsigned rank)
{
    struct bench_trace_rank facts = rank_of(rank);
    struct bench_trace trace;
    struct bench_graph graph;

    assert_int_equal(bench_trace_open(&trace, path_of_rank(fixture, rank, ".pt.trace.json"), &facts, &fixture->status),
                     0);
    assert_int_equal(
        bench_graph_open(&graph, path_of_rank(fixture, rank, "_CPU_trace.json"), &facts, BASE, &fixture->status), 0);
    for (uint32_t i = 0; i < COUNT(rows); i++) {
        bench_trace_message(&trace, &rows[i]);
        put_spans(&trace, rank, &rows[i], i);
        bench_graph_message(&graph, &rows[i]);
    }
    assert_int_equal(bench_trace_close(&trace, &fixture->status), 0);
    assert_int_equal(bench_graph_close(&graph, BASE + 100000000, &fixture->status), 0);
}

static void write_profile(struct fixture *fixture)
{
    for (unsigned rank = 0; rank < WORLD; rank++)
        write_rank(fixture, rank);
    assert_int_equal(
        bench_profile_write_log(path_of(fixture, "execution_log.csv"), rows, COUNT(rows), &fixture->status), 0);
    assert_int_equal(bench_profile_write_stamps(path_of(fixture, "stamps.csv"), rows, COUNT(rows), &fixture->status),
                     0);
}

static void expect_good(const struct fixture *fixture)
{
    struct check check;

    if (check_folder(&check, fixture->folder, false) < 0)
        fail_msg("%s", check.why);
    assert_int_equal(check.count, COUNT(rows));
    assert_int_equal(check.world, WORLD);
    check_end(&check);
}

/* The message of that name in a rank's trace, and how many spans lie on it. The caller owns the root. */
static json_t *find_message(const struct fixture *fixture, unsigned rank, const char *name, json_t **root, int *spans)
{
    json_t *event, *found = NULL;
    size_t i;

    *root = json_load_file(path_of_rank(fixture, rank, ".pt.trace.json"), 0, NULL);
    assert_non_null(*root);
    *spans = 0;
    json_array_foreach(json_object_get(*root, "traceEvents"), i, event)
    {
        const char *category = json_string_value(json_object_get(event, "cat"));
        if (category && strcmp(category, "user_annotation") == 0) {
            if (found)
                break;
            if (strcmp(json_string_value(json_object_get(event, "name")), name) == 0)
                found = event;
        } else if (category && found) {
            (*spans)++;
        }
    }
    assert_non_null(found);
    return json_object_get(found, "args");
}

/* --- good ones --- */

static void a_profile_is_as_the_checker_wants_it(void **state)
{
    write_profile(*state);
    expect_good(*state);
}

static void the_log_and_the_stamps_are_exact(void **state)
{
    struct fixture *fixture = *state;

    write_profile(fixture);
    char *log = read_all(path_of(fixture, "execution_log.csv")), *stamps = read_all(path_of(fixture, "stamps.csv"));
    assert_string_equal(log, "config_id,src,dst,size,repetition,timestamp_start_ns,timestamp_end_ns,duration_ns\n"
                             "42,0,2,1048576,0,9007199254740993,9007199254741994,1001\n"
                             "3,2,0,1,0,9007199254742000,9007199254750007,8007\n"
                             "12345,0,1,1073741824,0,9007199254800001,9007199344000000,89199999\n"
                             "42,0,2,1048576,1,9007199344000000,9007199344100000,100000\n");
    assert_string_equal(stamps, "config_id,repetition,stamps\n3,0,variance;alignment\n42,1,throttled\n");
    free(log);
    free(stamps);
}

/* With ts 0 at the boot of the machine the sum has more digits than a double. */
static void times_are_exact_to_the_nanosecond(void **state)
{
    struct fixture *fixture = *state;
    struct bench_trace_rank facts = rank_of(0);
    struct bench_trace trace;

    facts.base_ns = 0;
    const char *path = path_of_rank(fixture, 0, ".pt.trace.json");
    assert_int_equal(bench_trace_open(&trace, path, &facts, &fixture->status), 0);
    bench_trace_message(&trace, &rows[0]);
    assert_int_equal(bench_trace_close(&trace, &fixture->status), 0);
    char *text = read_all(path_of_rank(fixture, 0, ".pt.trace.json"));
    assert_non_null(strstr(text, "\"name\": \"p2p_cfg0042_s0d2_sz1048576_r0\""));
    assert_non_null(strstr(text, "\"ts\": 9007199254740.993, \"dur\": 1.001"));
    free(text);
}

static void many_spans_are_thinned_and_that_is_said(void **state)
{
    json_t *root;
    char said[32];
    int spans;

    write_profile(*state);
    const json_t *args = find_message(*state, 0, "p2p_cfg0042_s0d2_sz1048576_r1", &root, &spans);
    assert_in_range(spans, 20, BENCH_PIECES_DRAWN);
    snprintf(said, sizeof said, "%d of 101", spans);
    assert_string_equal(json_string_value(json_object_get(args, "spans")), said);
    assert_string_equal(json_string_value(json_object_get(args, "role")), "send");
    assert_string_equal(json_string_value(json_array_get(json_object_get(args, "stamps"), 0)), "throttled");
    json_decref(root);
    args = find_message(*state, 1, "p2p_cfg12345_s0d1_sz1073741824_r0", &root, &spans);
    assert_string_equal(json_string_value(json_object_get(args, "role")), "recv");
    assert_string_equal(json_string_value(json_object_get(args, "backend")), "nccl");
    json_decref(root);
}

/* Clocks that disagree: the second message begins 600 ns before the first has ended. */
static void messages_that_overlap_are_parted_and_that_is_said(void **state)
{
    struct fixture *fixture = *state;
    struct bench_trace_rank facts = rank_of(0);
    struct bench_profile_row next = rows[1];
    struct bench_trace trace;
    json_t *root;
    int spans;

    next.start_ns = rows[0].end_ns - 600;
    const char *path = path_of_rank(fixture, 0, ".pt.trace.json");
    assert_int_equal(bench_trace_open(&trace, path, &facts, &fixture->status), 0);
    bench_trace_message(&trace, &rows[0]);
    bench_trace_message(&trace, &next);
    assert_int_equal(bench_trace_close(&trace, &fixture->status), 0);
    const json_t *args = find_message(fixture, 0, "p2p_cfg0003_s2d0_sz1_r0", &root, &spans);
    assert_int_equal(json_integer_value(json_object_get(args, "trimmed_ns")), 600);
    json_decref(root);
}

/* --- spans --- */

static struct bench_piece piece(int64_t begin_ns, int64_t end_ns)
{
    return (struct bench_piece){.span = {.begin_ns = begin_ns, .end_ns = end_ns, .gpu = -1}};
}

static void expect_piece(const struct bench_piece *piece, int64_t begin_ns, int64_t end_ns, int64_t cut_ns)
{
    assert_int_equal(piece->span.begin_ns, begin_ns);
    assert_int_equal(piece->span.end_ns, end_ns);
    assert_int_equal(piece->cut_ns, cut_ns);
}

static void spans_nest_or_are_parted(void **state)
{
    /* Two within one, which overlap; a fourth that overlaps the last of them, and the outer one. */
    struct bench_piece pieces[] = {piece(65, 120), piece(0, 100), piece(20, 70), piece(10, 60)};
    assert_int_equal(bench_pieces_fit(pieces, COUNT(pieces), 0, 1000), 4);
    expect_piece(&pieces[0], 0, 65, 35);
    expect_piece(&pieces[1], 10, 20, 40);
    expect_piece(&pieces[2], 20, 65, 5);
    expect_piece(&pieces[3], 65, 120, 0);
    (void)state;
}

static void spans_are_cut_at_their_message(void **state)
{
    struct bench_piece pieces[] = {piece(5, 15), piece(90, 130), piece(140, 150), piece(-20, -10)};
    assert_int_equal(bench_pieces_fit(pieces, COUNT(pieces), 10, 100), 4);
    expect_piece(&pieces[0], 10, 15, 5);
    expect_piece(&pieces[1], 10, 10, 10);
    expect_piece(&pieces[2], 90, 100, 30);
    expect_piece(&pieces[3], 100, 100, 10);
    (void)state;
}

static void more_lanes_than_are_drawn_have_one_span_each(void **state)
{
    struct bench_piece pieces[400];
    for (int i = 0; i < 400; i++) {
        pieces[i] = piece(i, i + 1);
        pieces[i].span.channel = (int16_t)(i % 40);
    }
    assert_int_equal(bench_pieces_fit(pieces, 400, 0, 1000), BENCH_PIECES_DRAWN);
    for (int i = 0; i < BENCH_PIECES_DRAWN; i++)
        assert_int_equal(pieces[i].span.channel, i);
    (void)state;
}

/* --- what the checker finds --- */

/* Member `key` of the first object of `list` that has `name`. */
static void alter(const char *path, const char *list, const char *name, const char *key, json_t *value)
{
    json_t *root = json_load_file(path, 0, NULL), *entry;
    bool done = false;
    size_t i;

    assert_non_null(root);
    json_array_foreach(json_object_get(root, list), i, entry)
    {
        if (done || !strstr(json_string_value(json_object_get(entry, "name")), name))
            continue;
        done = json_object_set_new(entry, key, value) == 0;
    }
    assert_true(done);
    assert_int_equal(json_dump_file(root, path, JSON_REAL_PRECISION(17)), 0);
    json_decref(root);
}

static void expect_refused(const struct fixture *fixture, const char *reason)
{
    struct check check;

    assert_true(check_folder(&check, fixture->folder, false) < 0);
    if (!strstr(check.why, reason))
        fail_msg("'%s' is not in: %s", reason, check.why);
    check_end(&check);
}

static void the_checker_finds_what_is_wrong_with_a_trace(void **state)
{
    static const struct {
        const char *name, *key;
        double number; /* where there is no text */
        const char *text, *reason;
    } cases[] = {
        {"_sz1_r0", "dur", 0.5, NULL, "and in the log"},
        {"_sz1_r0", "ts", 1.5, NULL, "begins before the last event"},
        {"_sz1048576_r0", "dur", 1.500, NULL, "is not within it"},
        {"chunk", "dur", 1e9, NULL, "is not within the message"},
        {"chunk", "ts", 0.5, NULL, "is not within the message"},
        {"_sz1_r0", "name", 0, "p2p_cfg3_s2d0_sz1_r0", "is no name of a message"},
        {"_sz1_r0", "name", 0, "p2p_cfg0003_s2d0_sz2_r0", "is not in the log"},
        {"_sz1_r0", "name", 0, "p2p_cfg0042_s0d2_sz1048576_r1", "another message"},
        {"_sz1_r0", "tid", 0, "one", "has to be an integer"},
        {"_sz1_r0", "ph", 0, "B", "neither M nor X"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        write_profile(*state);
        alter(path_of_rank(*state, 0, ".pt.trace.json"), "traceEvents", cases[i].name, cases[i].key,
              cases[i].text ? json_string(cases[i].text) : json_real(cases[i].number));
        expect_refused(*state, cases[i].reason);
    }
}

static void the_checker_finds_what_is_wrong_with_a_graph(void **state)
{
    static const struct {
        const char *name, *key;
        int number;
        const char *text, *reason;
    } cases[] = {
        {"_sz1_r0", "id", 2, NULL, "is not above the last one"},
        {"_sz1_r0", "ctrl_deps", 99999, NULL, "does not stand before it"},
        {"record_param_comms", "ctrl_deps", 2, NULL, "does not belong"},
        {"c10d::send", "name", 0, "c10d::recv_", "does not belong"},
        {"_sz1_r0", "name", 0, "p2p_cfg0042_s0d2_sz1048576_r1", "rf_id is not"},
        {"c10d::send", "inputs", 0, NULL, "has to be an object"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        write_profile(*state);
        alter(path_of_rank(*state, 0, "_CPU_trace.json"), "nodes", cases[i].name, cases[i].key,
              cases[i].text ? json_string(cases[i].text) : json_integer(cases[i].number));
        expect_refused(*state, cases[i].reason);
    }
}

static void the_checker_finds_what_is_wrong_with_a_log(void **state)
{
    struct fixture *fixture = *state;
    struct bench_profile_row more[COUNT(rows) + 1];

    write_profile(fixture);
    memcpy(more, rows, sizeof rows);
    more[COUNT(rows)] = rows[COUNT(rows) - 1];
    more[COUNT(rows)].repetition = 2;
    assert_int_equal(
        bench_profile_write_log(path_of(fixture, "execution_log.csv"), more, COUNT(more), &fixture->status), 0);
    expect_refused(fixture, "line 6 is not in the trace of rank 0");
    more[1] = rows[2];
    more[2] = rows[1];
    assert_int_equal(
        bench_profile_write_log(path_of(fixture, "execution_log.csv"), more, COUNT(rows), &fixture->status), 0);
    expect_refused(fixture, "line 4 begins before the one above it");
}

/* --- what cannot be written --- */

static void an_error_of_writing_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct bench_trace_rank facts = rank_of(0);
    struct bench_trace trace;
    struct bench_graph graph;

    assert_int_equal(bench_trace_open(&trace, path_of(fixture, "gone/rank_0.pt.trace.json"), &facts, &fixture->status),
                     -ENOENT);
    assert_non_null(strstr(fixture->status.text, "gone/rank_0.pt.trace.json"));
    assert_int_equal(bench_trace_close(&trace, &fixture->status), 0);

    assert_int_equal(bench_trace_open(&trace, "/dev/full", &facts, &fixture->status), 0);
    assert_int_equal(bench_graph_open(&graph, "/dev/full", &facts, BASE, &fixture->status), 0);
    for (int i = 0; i < 100; i++) {
        bench_trace_message(&trace, &rows[0]);
        bench_graph_message(&graph, &rows[0]);
    }
    assert_int_equal(bench_trace_close(&trace, &fixture->status), -ENOSPC);
    assert_int_equal(bench_graph_close(&graph, BASE, &fixture->status), -ENOSPC);
    assert_non_null(strstr(fixture->status.text, "/dev/full"));
    assert_int_equal(bench_profile_write_log("/dev/full", rows, COUNT(rows), &fixture->status), -ENOSPC);
}

/* The file that was there stays; what was written of the new one does not: tear_down() would find it. */
static void a_file_that_grows_too_large_leaves_the_one_before(void **state)
{
    struct fixture *fixture = *state;
    struct bench_trace_rank facts = rank_of(0);
    struct bench_trace trace;
    struct rlimit limit, small;

    write_profile(fixture);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = (struct rlimit){.rlim_cur = 1000, .rlim_max = limit.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const char *path = path_of_rank(fixture, 0, ".pt.trace.json");
    int result = bench_trace_open(&trace, path, &facts, &fixture->status);
    for (int i = 0; result == 0 && i < 100; i++)
        bench_trace_message(&trace, &rows[0]);
    int closed = bench_trace_close(&trace, &fixture->status);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(result, 0);
    assert_int_equal(closed, -EFBIG);
    assert_non_null(strstr(fixture->status.text, "1000 bytes"));
    expect_good(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_profile_is_as_the_checker_wants_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_log_and_the_stamps_are_exact, set_up, tear_down),
        cmocka_unit_test_setup_teardown(times_are_exact_to_the_nanosecond, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_spans_are_thinned_and_that_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(messages_that_overlap_are_parted_and_that_is_said, set_up, tear_down),
        cmocka_unit_test(spans_nest_or_are_parted),
        cmocka_unit_test(spans_are_cut_at_their_message),
        cmocka_unit_test(more_lanes_than_are_drawn_have_one_span_each),
        cmocka_unit_test_setup_teardown(the_checker_finds_what_is_wrong_with_a_trace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_checker_finds_what_is_wrong_with_a_graph, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_checker_finds_what_is_wrong_with_a_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_error_of_writing_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_grows_too_large_leaves_the_one_before, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
