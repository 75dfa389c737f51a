#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

static int fill(FILE *file, bool lasting, wf_put_file *put, const void *what)
{
    errno = 0;
    int result = put(file, what);
    if (result < 0)
        return result;
    bool good = fflush(file) == 0 && !ferror(file) && (!lasting || fsync(fileno(file)) == 0);
    return good ? 0 : errno ? -errno : -EIO;
}

static int write_beside(const struct wf_whole_file *whole, const char *part, wf_put_file *put, const void *what)
{
    int fd = openat(whole->folder, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, whole->mode);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    int result = file ? fill(file, whole->lasting, put, what) : -errno;
    if (!file && fd >= 0)
        close(fd);
    if (file && fclose(file) != 0 && result == 0)
        result = -errno;
    return result;
}

int wf_whole_file_write(const struct wf_whole_file *whole, wf_put_file *put, const void *what)
{
    char part[NAME_MAX + 1];
    int length = snprintf(part, sizeof part, ".%s.part", whole->name);
    if (length < 0 || (size_t)length >= sizeof part)
        return -ENAMETOOLONG;
    int result = write_beside(whole, part, put, what);
    if (result == 0 && renameat(whole->folder, part, whole->folder, whole->name) != 0)
        result = -errno;
    if (result < 0)
        unlinkat(whole->folder, part, 0);
    else if (whole->lasting && fsync(whole->folder) != 0)
        result = -errno;
    return result;
}
