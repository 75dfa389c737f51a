/* From paths to runs. Of a folder, what is in it and is ours is taken; what is named by itself has to be a result. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "contents.h"

#define PROBLEMS_MOST 100 /* that are told one by one */

static int keep(struct report_contents *contents, struct report_run *run, struct wf_status *status)
{
    struct report_run **wider = realloc(contents->runs, (contents->run_count + 1) * sizeof(struct report_run *));

    if (!wider) {
        report_run_destroy(run);
        return wf_fail(status, -ENOMEM, "no memory for so many files");
    }
    contents->runs = wider;
    contents->runs[contents->run_count++] = run;
    return 0;
}

/* What cannot be read is told, and does not stop the others. */
static int read_file(struct report_contents *contents, const char *path, bool named, struct wf_status *status)
{
    struct report_run *run = NULL;
    struct wf_status why = {0};
    int result = report_run_read(path, contents->progress, &run, &why);

    if (result == 0)
        return keep(contents, run, status);
    if (result == -ENOMEM)
        return wf_fail(status, result, "%s: %s", path, why.text);
    /* In a folder, what is of others and folders are passed over. */
    if (named || (result != -EPROTO && result != -EISDIR))
        report_say(&contents->problems, REPORT_BAD, "%s: %s", path, why.text);
    return 0;
}

static int is_candidate(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    if (entry->d_name[0] == '.' || !dot)
        return 0;
    return strcmp(dot, ".json") == 0 || strcmp(dot, ".svg") == 0 || strcmp(entry->d_name, "temperatures.csv") == 0;
}

static int read_folder(struct report_contents *contents, const char *path, struct wf_status *status)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_candidate, versionsort), result = 0;
    size_t before = contents->run_count, told = contents->problems.count;
    char file[4096];

    if (count < 0) {
        report_say(&contents->problems, REPORT_BAD, "%s: cannot read this folder: %s", path, strerror(errno));
        return 0;
    }
    for (int i = 0; i < count; i++) {
        int length = snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        if (result == 0 && length > 0 && (size_t)length < sizeof file)
            result = read_file(contents, file, false, status);
        free(entries[i]);
    }
    free(entries);
    if (contents->run_count == before && contents->problems.count == told)
        report_say(&contents->problems, REPORT_BAD,
                   "%s: there is no result in this folder; folders in it are not looked at", path);
    return result;
}

/* Many files that are none would hide what is said of the rest. */
static void shorten_problems(struct report_verdict *problems)
{
    if (problems->count <= PROBLEMS_MOST)
        return;
    size_t more = problems->count - PROBLEMS_MOST;
    while (problems->count > PROBLEMS_MOST)
        free(problems->list[--problems->count].text);
    report_say(problems, REPORT_BAD, "%zu more files could not be read.", more);
}

int report_contents_read(struct report_contents *contents, const char *const *paths, size_t count,
                         struct wf_status *status)
{
    struct stat about;
    int result = 0;

    for (size_t i = 0; result == 0 && i < count; i++)
        result = stat(paths[i], &about) == 0 && S_ISDIR(about.st_mode) ? read_folder(contents, paths[i], status)
                                                                       : read_file(contents, paths[i], true, status);
    if (result)
        return result;
    shorten_problems(&contents->problems);
    if (contents->run_count == 0)
        return wf_fail(status, -EPROTO, "%s%s",
                       contents->problems.count > 1 ? "none of these is a result" : "no file is a result: ",
                       contents->problems.count == 0   ? "none was named"
                       : contents->problems.count == 1 ? contents->problems.list[0].text
                                                       : "");
    return 0;
}
