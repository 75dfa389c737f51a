#include "plots.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/words/folder.h"
#include "bench/words/whole.h"
#include "gnuplot.h"
#include "markdown.h"

extern char **environ;

/* One figure and where its files go: PATH.dat, PATH.gp, PATH.svg. */
struct plot {
    const struct report_figure *figure;
    char path[4096];
    const char *name; /* the last part of `path` */
};

static int put_data(const void *what, FILE *file)
{
    report_gnuplot_data(file, ((const struct plot *)what)->figure);
    return 0;
}

static int put_script(const void *what, FILE *file)
{
    const struct plot *plot = what;

    report_gnuplot_script(file, plot->figure, plot->name);
    return 0;
}

static int put_svg(const void *what, FILE *file)
{
    return fputs(((const struct plot *)what)->figure->svg, file) == EOF ? -EIO : 0;
}

static int put_beside(const struct plot *plot, const char *suffix, bench_put *put, struct wf_status *status)
{
    char path[4200];

    snprintf(path, sizeof path, "%s%s", plot->path, suffix);
    return bench_write_whole(path, put, plot, status);
}

/* Runs gnuplot in the folder of the script. 0, -ENOENT where there is no gnuplot, or -EIO where it could not draw it.
 */
static int draw(const char *folder, const struct plot *plot)
{
    char script[4200], program[] = "gnuplot";
    char *words[] = {program, script, NULL};
    posix_spawn_file_actions_t actions;
    int ended = 0;
    pid_t child;

    snprintf(script, sizeof script, "%s.gp", plot->name);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    /* It warns of much that is no fault. */
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int code = posix_spawnp(&child, program, &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (code)
        return -ENOENT;
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(ended) && WEXITSTATUS(ended) == 0 ? 0 : -EIO;
}

static int plot_figure(const char *folder, const char *prefix, const struct report_figure *figure,
                       struct report_drawn *drawn, struct wf_status *status)
{
    struct plot plot = {.figure = figure};
    int length = snprintf(plot.path, sizeof plot.path, "%s/%s%s", folder, prefix, figure->id);

    if (length < 0 || (size_t)length >= sizeof plot.path)
        return wf_fail(status, -ENAMETOOLONG, "--plots %.100s...: the name is too long", folder);
    plot.name = plot.path + strlen(folder) + 1;
    if (figure->kind == REPORT_IMAGE)
        return put_beside(&plot, ".svg", put_svg, status);
    int result = put_beside(&plot, ".dat", put_data, status);
    if (result || figure->kind == REPORT_TABLE)
        return result;
    result = put_beside(&plot, ".gp", put_script, status);
    if (result || !drawn->gnuplot)
        return result;
    int code = draw(folder, &plot);
    drawn->gnuplot = code != -ENOENT;
    drawn->failed += code == -EIO;
    return 0;
}

static int plot_all(const char *folder, const char *prefix, const struct report_figures *figures,
                    struct bench_progress *progress, struct report_drawn *drawn, struct wf_status *status)
{
    char doing[96];
    int result = 0;

    for (size_t i = 0; result == 0 && i < figures->count; i++) {
        snprintf(doing, sizeof doing, "figures, drawing %.20s%.40s", prefix, figures->list[i]->id);
        bench_progress_now(progress, doing);
        result = plot_figure(folder, prefix, figures->list[i], drawn, status);
        bench_progress_step(progress, 1, 1, doing);
    }
    return result;
}

/* The chapters whose figures are drawn: all, or none of too many. */
static size_t chapters_drawn(const struct report_contents *contents)
{
    return contents->chapter_count <= REPORT_PLOTS_RUNS ? contents->chapter_count : 0;
}

int report_plots_write(const struct report_contents *contents, const char *folder, struct report_drawn *drawn,
                       struct wf_status *status)
{
    char path[4096], prefix[32] = "";
    struct bench_progress *progress = contents->progress;
    size_t count = contents->figures.count, chapters = chapters_drawn(contents);
    int result = bench_make_folder(folder, status);

    for (size_t i = 0; i < chapters; i++)
        count += contents->chapters[i].figures.count;
    bench_progress_start(progress, count, count, 0);
    *drawn = (struct report_drawn){.gnuplot = true};
    if (result == 0)
        result = plot_all(folder, "all-", &contents->figures, progress, drawn, status);
    for (size_t i = 0; result == 0 && i < chapters; i++) {
        if (contents->chapter_count > 1)
            snprintf(prefix, sizeof prefix, "run%zu-", i + 1);
        result = plot_all(folder, prefix, &contents->chapters[i].figures, progress, drawn, status);
    }
    snprintf(path, sizeof path, "%s/report.md", folder);
    return result == 0 ? bench_write_whole(path, report_markdown_put, contents, status) : result;
}
