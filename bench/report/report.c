#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/words/columns.h"
#include "bench/words/words.h"
#include "contents.h"
#include "page.h"
#include "plots.h"
#include "utf8.h"

#define PAGE "report.html"
#define PRINTED_MOST 8 /* runs whose sentences are printed */

extern char **environ;

/* --- what is said on the terminal --- */

static void print_sentences(FILE *out, const struct report_verdict *verdict)
{
    static const char *const marks[] = {"  ", "  ", "? ", "! "};

    for (size_t i = 0; i < verdict->count; i++) {
        /* It comes from files. */
        report_utf8_plain(verdict->list[i].text);
        bench_wrapped(out, bench_columns(out), 4, "%s%s", marks[verdict->list[i].level], verdict->list[i].text);
    }
}

/* A name of a file, which may hold anything. */
static const char *name_of(const char *path, char *name, size_t room)
{
    bench_copy_text(name, room, path);
    report_utf8_plain(name);
    return name;
}

static void print_verdict(FILE *out, const struct report_contents *contents)
{
    char name[300];

    print_sentences(out, &contents->verdict);
    for (size_t i = 0; i < contents->chapter_count && contents->chapter_count <= PRINTED_MOST; i++) {
        if (contents->chapter_count > 1)
            bench_wrapped(out, bench_columns(out), 2,
                          "%s:", name_of(contents->chapters[i].run->path, name, sizeof name));
        print_sentences(out, &contents->chapters[i].verdict);
    }
    print_sentences(out, &contents->problems);
}

static size_t count_figures(const struct report_contents *contents)
{
    size_t count = contents->figures.count;

    for (size_t i = 0; i < contents->chapter_count; i++)
        count += contents->chapters[i].figures.count;
    return count;
}

/* --- a browser --- */

/* What desktops have for it. It outlives us, and says nothing on our terminal. */
static int show(const char *path, struct wf_status *status)
{
    char opener[] = "xdg-open", *words[] = {opener, (char *)path, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t signals;
    sigset_t none, usual;
    pid_t child;

    sigemptyset(&none); /* a run has blocked some, and ignores one (interrupt.c) */
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawnattr_init(&signals);
    posix_spawnattr_setsigmask(&signals, &none);
    posix_spawnattr_setsigdefault(&signals, &usual);
    posix_spawnattr_setflags(&signals, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd <= 2; fd++)
        posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
    int code = posix_spawnp(&child, opener, &actions, &signals, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&signals);
    return code ? wf_fail(status, -code, "--open: cannot start xdg-open (%s): open %s in a browser", strerror(code),
                          path)
                : 0;
}

/* --- the command --- */

static int check(const struct bench_options *options, struct wf_status *status)
{
    if (options->word_count == 0)
        return wf_fail(status, -EINVAL, "which results? Name files or folders: weft report results/latest");
    if (options->open && options->html && strcmp(options->html, "-") == 0)
        return wf_fail(status, -EINVAL, "--open needs a page in a file: give --html another name than '-'");
    return 0;
}

static bool same_file(const char *one, const char *other)
{
    struct stat a, b;

    return one && other && stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool is_page(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && strcmp(dot, ".html") == 0;
}

/* A page in the place of a result would cost the measurement. */
static int check_page(const struct bench_options *options, const struct report_contents *contents,
                      struct wf_status *status)
{
    const char *page = options->html ? options->html : PAGE, *dot = strrchr(page, '.');
    bool is_input = same_file(page, options->baseline) || same_file(page, options->predicted);

    for (size_t i = 0; !is_input && i < contents->run_count; i++)
        is_input = same_file(page, contents->runs[i]->path);
    for (int i = 0; !is_input && i < options->word_count; i++) /* also those that could not be read, but for a page */
        is_input = !is_page(options->words[i]) && same_file(page, options->words[i]);
    if (is_input || (dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".csv") == 0)))
        return wf_fail(status, -EINVAL, "--html %.200s: %s: name another file for the page", page,
                       is_input ? "that is one of the files that are read" : "that is the name of a result");
    return 0;
}

static int write_all(const struct bench_options *options, const struct report_contents *contents, FILE *people,
                     struct wf_status *status)
{
    const char *page = options->html ? options->html : PAGE;
    struct report_drawn drawn;
    bool is_file = strcmp(page, "-") != 0;

    if (is_file)
        bench_progress_begin(contents->progress, "writing the page", 0);
    else
        bench_progress_wipe(contents->progress); /* the page may go to the same terminal */
    int result = report_page_write(contents, page, status);
    bench_progress_wipe(contents->progress);
    if (result == 0 && people && is_file)
        fprintf(people, "report: %s (%zu figures)\n", page, count_figures(contents));
    if (result == 0 && options->plots)
        result = report_plots_write(contents, options->plots, &drawn, status);
    bench_progress_wipe(contents->progress);
    if (result == 0 && options->plots)
        fprintf(people, "plots: %s%s\n", options->plots,
                !drawn.gnuplot ? " (data, scripts and Markdown: gnuplot, which draws them, is not installed)"
                : contents->chapter_count > REPORT_PLOTS_RUNS
                    ? " (what is over all runs: name fewer for figures of each)"
                    : "");
    if (result == 0 && options->plots && drawn.failed)
        result = wf_fail(status, -EIO, "gnuplot could not draw %zu figures: run their scripts in %s to see why",
                         drawn.failed, options->plots);
    return result;
}

/* Last of all: what was found has been said when there is no browser. */
static int show_page(const struct bench_options *options, struct wf_status *status)
{
    return options->open ? show(options->html ? options->html : PAGE, status) : 0;
}

int bench_report_folder(const char *folder, bool open, FILE *people, struct wf_status *status)
{
    struct bench_progress progress = {0};
    struct report_contents contents = {.progress = &progress};
    char page[4096];
    int length = snprintf(page, sizeof page, "%s/%s", folder, PAGE);
    struct bench_options options = {.html = page, .open = open};

    bench_progress_open(&progress, people != NULL);
    int result = length < (int)sizeof page
                     ? report_contents_read(&contents, &folder, 1, status)
                     : wf_fail(status, -ENAMETOOLONG, "--out: the name of the folder is too long");
    bench_progress_begin(&progress, "making figures", 0);
    if (result == 0)
        result = report_contents_make(&contents, &(struct report_wish){0}, status);
    if (result == 0)
        result = write_all(&options, &contents, people, status);
    bench_progress_close(&progress);
    if (result == 0)
        result = show_page(&options, status);
    report_contents_fini(&contents);
    return result;
}

int bench_make_report(struct bench_options *options)
{
    struct bench_progress progress = {0};
    struct report_contents contents = {.progress = &progress};
    struct report_wish wish = {options->baseline, options->predicted};
    struct wf_status status = {0};
    FILE *people = options->html && strcmp(options->html, "-") == 0 ? stderr : stdout;
    int result = check(options, &status);

    bench_progress_open(&progress, true);
    if (result == 0)
        result = report_contents_read(&contents, options->words, (size_t)options->word_count, &status);
    if (result == 0)
        result = check_page(options, &contents, &status);
    bench_progress_begin(&progress, "making figures", 0);
    if (result == 0)
        result = report_contents_make(&contents, &wish, &status);
    bool made = result == 0;
    if (made)
        result = write_all(options, &contents, people, &status);
    bench_progress_close(&progress);
    /* Also where there was no room for a page. */
    if (made)
        print_verdict(people, &contents);
    else if (contents.run_count == 0 && contents.problems.count > 1)
        print_sentences(stderr, &contents.problems);
    if (result == 0)
        result = show_page(options, &status);
    if (result)
        fprintf(stderr, "weft: %s\n", status.text);
    bool incomplete = contents.problems.count > 0;
    report_contents_fini(&contents);
    return result == -EINVAL ? BENCH_USAGE : result || incomplete ? BENCH_FAILED : BENCH_PASSED;
}
