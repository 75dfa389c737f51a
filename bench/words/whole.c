#include "whole.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "words.h"

static int put_stream(bench_put *put, const void *what, FILE *file)
{
    errno = 0;
    int result = put(what, file);
    if (result == 0 && (fflush(file) != 0 || ferror(file)))
        result = errno ? -errno : -EIO;
    return result;
}

static int put_path(const char *path, bench_put *put, const void *what)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return -errno;
    int result = put_stream(put, what, file);
    if (fclose(file) != 0 && result == 0)
        result = -errno;
    return result;
}

static int put_file(const char *path, bench_put *put, const void *what)
{
    char temporary[WF_VALUE_MAX + 48];
    struct stat there;

    if (lstat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return put_path(path, put, what);
    snprintf(temporary, sizeof temporary, "%s.part", path);
    int result = put_path(temporary, put, what);
    if (result == 0 && rename(temporary, path) != 0)
        result = -errno;
    if (result < 0)
        unlink(temporary);
    return result;
}

int bench_write_whole(const char *path, bench_put *put, const void *what, struct wf_status *status)
{
    int result = strcmp(path, "-") == 0 ? put_stream(put, what, stdout) : put_file(path, put, what);

    return result < 0 ? bench_cannot_write(path, result, status) : 0;
}
