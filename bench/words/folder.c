#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"

int bench_make_folder(const char *path, struct wf_status *status)
{
    char part[1024];
    size_t length = strlen(path);

    if (length >= sizeof part)
        return wf_fail(status, -ENAMETOOLONG, "the folder name '%.40s...' is too long", path);
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return wf_fail(status, -errno, "cannot create the folder %.150s: %s", part, wf_strerror(errno));
    }
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISDIR(there.st_mode))
        return wf_fail(status, -ENOTDIR, "cannot write %.150s/: that is a file, and no folder", path);
    if (access(path, W_OK) != 0)
        return wf_fail(status, -errno, "cannot write into the folder %.150s: %s", path, wf_strerror(errno));
    return 0;
}

int bench_probe_folder(const char *folder)
{
    char name[WF_VALUE_MAX + 32];

    snprintf(name, sizeof name, "%s/.weft-probe-XXXXXX", folder);
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    unlink(name);
    return fd;
}
