/*
 * The line of progress: on a terminal alone, with the time that is left, and out of the way of what else is printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "bench/words/progress.h"
#include "terminal_fixture.h"

#define TEXT_MOST 8192

static bool hurried; /* where nothing is drawn, nobody has to wait for it */

static void rest_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    if (!hurried)
        nanosleep(&time, NULL);
}

/* Until the thread that redraws the line has done so. */
static void await_redraw(struct bench_progress *progress)
{
    int64_t before = 0, now = 0;

    for (int i = 0; progress->opened && i < 6000 && now == before; i++) {
        pthread_mutex_lock(&progress->lock);
        now = progress->next_ns;
        pthread_mutex_unlock(&progress->lock);
        before = i == 0 ? now : before;
        rest_ms(10);
    }
}

static void draw_on(int descriptor, void *act)
{
    struct bench_progress progress;

    dup2(descriptor, STDERR_FILENO);
    bench_progress_open(&progress, true);
    (*(void (**)(struct bench_progress *))act)(&progress);
    bench_progress_close(&progress);
}

static void read_pipe(void (*act)(struct bench_progress *progress), char text[TEXT_MOST])
{
    int ends[2];
    size_t length = 0;
    ssize_t got;

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        draw_on(ends[1], &act);
        _exit(0);
    }
    close(ends[1]);
    while (length < TEXT_MOST - 1 && (got = read(ends[0], text + length, TEXT_MOST - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    close(ends[0]);
    waitpid(child, NULL, 0);
}

/* What a process that calls `act` writes to its standard error: a terminal, or a pipe. */
static void run(void (*act)(struct bench_progress *progress), bool terminal, char text[TEXT_MOST])
{
    hurried = !terminal;
    if (terminal)
        terminal_show(0, draw_on, &act, text, TEXT_MOST);
    else
        read_pipe(act, text);
}

static void wait_for_something(struct bench_progress *progress)
{
    bench_progress_begin(progress, "clocks", 30 * WF_NS_PER_S);
    await_redraw(progress);
    await_redraw(progress);
    bench_progress_wipe(progress);
    fputs("a line\n", stderr);
    rest_ms(600); /* nothing is drawn meanwhile */
    fputs("another line\n", stderr);
    bench_progress_begin(progress, "memory", 0);
    await_redraw(progress);
}

static void a_call_that_takes_long_has_a_line(void **state)
{
    char text[TEXT_MOST];

    (void)state;
    run(wait_for_something, true, text);
    assert_int_equal(strncmp(text, "\r\033[Kclocks  ", 12), 0);
    assert_int_equal(strncmp(text + 12 + strspn(text + 12, "0123456789"), " s left\r\033[K", 11), 0);
    assert_non_null(strstr(text, "\r\033[Ka line\nanother line\n\r\033[Kmemory  "));
    assert_null(strstr(strstr(text, "memory"), "left"));
    assert_string_equal(text + strlen(text) - 4, "\r\033[K"); /* at the end it is gone */
    run(wait_for_something, false, text);
    assert_string_equal(text, "a line\nanother line\n");
}

static void count(struct bench_progress *progress)
{
    bench_progress_start(progress, 10, 1000, 500 * WF_NS_PER_S);
    bench_progress_now(progress, "weft isolated 1K");
    await_redraw(progress);
    bench_progress_step(progress, 5, 990, "weft isolated 1K");
    await_redraw(progress);
    bench_progress_step(progress, 5, 10, "weft isolated 64M");
    await_redraw(progress);
    bench_progress_end(progress);
    fputs("over\n", stderr);
    bench_progress_step(progress, 5, 10, "too late");
    rest_ms(600);
}

static void what_is_counted_has_a_time_left(void **state)
{
    char text[TEXT_MOST];

    (void)state;
    run(count, true, text);
    assert_non_null(strstr(text, "\r\033[K0/10  weft isolated 1K  8 min left\r\033[K"));
    assert_non_null(strstr(text, "\r\033[K5/10  weft isolated 1K  0 s left\r\033[K"));
    assert_non_null(strstr(text, "\r\033[K10/10  weft isolated 64M  0 s left\r\033[K"));
    assert_string_equal(strstr(text, "over"), "over\n");
    run(count, false, text);
    assert_string_equal(text, "over\n");
}

static void say_much(struct bench_progress *progress)
{
    bench_progress_start(progress, 10, 1000, 0);
    bench_progress_step(progress, 1, 1,
                        "a text that is longer than a line of any terminal, which would break it, and "
                        "then it could not be wiped");
}

static void a_line_is_never_broken(void **state)
{
    char text[TEXT_MOST];

    (void)state;
    run(say_much, true, text);
    assert_int_equal(strncmp(text, "\r\033[K1/10  a text that is longer", 31), 0);
    assert_true(strcspn(text + 4, "\r") < 80);
    assert_non_null(strstr(text, " s left\r\033[K"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_takes_long_has_a_line),
        cmocka_unit_test(what_is_counted_has_a_time_left),
        cmocka_unit_test(a_line_is_never_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
