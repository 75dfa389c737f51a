/* A rank that measures for long is not taken for one that hangs. The time is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/collective/ranks/rank.h"
#include "bench/collective/run.h"

#define TIMEOUT_S 30
#define OPERATION_S 10

static int64_t now_s, heard_s, silence_s; /* the longest silence */
static off_t heard_bytes;

/* Stands before the C library's. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = (int)syscall(SYS_clock_gettime, clock, out);

    if (clock == CLOCK_MONOTONIC)
        *out = (struct timespec){.tv_sec = now_s};
    return result;
}

/* What has been written by now is what the other side has heard. */
static void listen(void)
{
    struct stat file;

    assert_int_equal(fstat(STDOUT_FILENO, &file), 0);
    if (file.st_size > heard_bytes)
        heard_s = now_s;
    heard_bytes = file.st_size;
    if (now_s - heard_s > silence_s)
        silence_s = now_s - heard_s;
}

static int open_alone(const struct rank_asked *asked, uint32_t *rank, uint32_t *ranks, struct wf_status *status)
{
    (void)asked, (void)status;
    *rank = 0;
    *ranks = 1;
    return 0;
}

static void say_nothing(FILE *out)
{
    fprintf(out, "\"library\": \"none\"");
}

static const char *lack_nothing(const struct rank_call *call)
{
    (void)call;
    return NULL;
}

static int run_slowly(struct rank_call *call, struct wf_status *status)
{
    (void)call, (void)status;
    listen();
    now_s += OPERATION_S;
    listen();
    return 0;
}

static int wait_for_nobody(struct wf_status *status)
{
    (void)status;
    return 0;
}

static int gather_own(const double *own, int count, double *all, struct wf_status *status)
{
    (void)status;
    memcpy(all, own, (size_t)count * sizeof *all);
    return 0;
}

static void close_nothing(void)
{
}

static const struct rank_backend slow = {
    .name = "slow",
    .open = open_alone,
    .facts = say_nothing,
    .lacks = lack_nothing,
    .run = run_slowly,
    .barrier = wait_for_nobody,
    .gather = gather_own,
    .close = close_nothing,
};

/* Runs it with standard output in a file. What it has written; the caller's. */
static char *run_rank(const struct rank_asked *asked)
{
    FILE *file = tmpfile();
    int kept = dup(STDOUT_FILENO);
    char *text = calloc(1, 65536);

    assert_non_null(file);
    assert_non_null(text);
    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    int status = rank_run(&slow, asked);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    assert_int_equal(status, 0);
    rewind(file);
    assert_true(fread(text, 1, 65535, file) > 0);
    fclose(file);
    return text;
}

static bool take_line(void *context, uint32_t ranks, json_t *line)
{
    int *samples = context;

    assert_int_equal(ranks, 1);
    assert_int_equal(json_integer_value(json_object_get(line, "iters")), 20);
    ++*samples;
    return true;
}

static void is_heard_in_warm_up_and_between_iterations(void **state)
{
    struct rank_asked asked = {
        .ops = {BENCH_ALL_REDUCE},
        .op_count = 1,
        .type = RANK_FLOAT32,
        .sizes = {1024},
        .size_count = 1,
        .iters = 20,
        .warmup = 20,
        .in_place = true,
        .timeout_s = TIMEOUT_S,
    };
    struct wf_status status;
    json_t *facts;
    uint32_t ranks;
    int samples = 0;

    (void)state;
    char *text = run_rank(&asked);
    assert_true(silence_s <= TIMEOUT_S + OPERATION_S);
    assert_int_equal(coll_read_lines(text, "slow", take_line, &samples, &facts, &ranks, &status), 0);
    assert_int_equal(samples, 1);
    json_decref(facts);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_heard_in_warm_up_and_between_iterations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
