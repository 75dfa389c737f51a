#include "whole.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "words.h"

static int put_stream(bench_put *put, const void *what, FILE *file)
{
    errno = 0;
    int result = put(what, file);
    if (result == 0 && (fflush(file) != 0 || ferror(file)))
        result = errno ? -errno : -EIO;
    return result;
}

/* Where the file is written until it is whole; empty: in its place, which is a device, a pipe or a link. */
static void choose_temporary(struct bench_whole *whole)
{
    struct stat there;

    whole->temporary[0] = '\0';
    if (lstat(whole->path, &there) != 0 || S_ISREG(there.st_mode))
        snprintf(whole->temporary, sizeof whole->temporary, "%.*s.part", BENCH_WHOLE_PATH - 6, whole->path);
}

static int open_whole(struct bench_whole *whole, const char *path)
{
    *whole = (struct bench_whole){0};
    if (strlen(path) > BENCH_WHOLE_PATH - sizeof ".part")
        return -ENAMETOOLONG;
    bench_copy_text(whole->path, sizeof whole->path, path);
    choose_temporary(whole);
    whole->file = fopen(whole->temporary[0] ? whole->temporary : whole->path, "we");
    return whole->file ? 0 : -errno;
}

static int close_whole(struct bench_whole *whole, int result)
{
    bool beside = whole->temporary[0] != '\0';

    if (fclose(whole->file) != 0 && result == 0)
        result = -errno;
    whole->file = NULL;
    if (beside && result == 0 && rename(whole->temporary, whole->path) != 0)
        result = -errno;
    if (beside && result < 0)
        unlink(whole->temporary);
    return result;
}

static int put_file(const char *path, bench_put *put, const void *what)
{
    struct bench_whole whole;
    int result = open_whole(&whole, path);

    return result < 0 ? result : close_whole(&whole, put_stream(put, what, whole.file));
}

int bench_whole_open(struct bench_whole *whole, const char *path, struct wf_status *status)
{
    int result = open_whole(whole, path);

    return result < 0 ? bench_cannot_write(path, result, status) : 0;
}

int bench_whole_close(struct bench_whole *whole, int result, struct wf_status *status)
{
    if (!whole->file)
        return 0;
    errno = 0;
    if (result == 0 && (fflush(whole->file) != 0 || ferror(whole->file)))
        result = errno ? -errno : -EIO;
    result = close_whole(whole, result);
    return result < 0 ? bench_cannot_write(whole->path, result, status) : 0;
}

int bench_write_whole(const char *path, bench_put *put, const void *what, struct wf_status *status)
{
    int result = strcmp(path, "-") == 0 ? put_stream(put, what, stdout) : put_file(path, put, what);

    return result < 0 ? bench_cannot_write(path, result, status) : 0;
}
