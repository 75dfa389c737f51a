/* A file on a folder that all share: written whole beside its place, then renamed, so nobody reads half of it. */
#include "collective/rendezvous/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK "weft-rendezvous 1 "

int wf_meet_file_write(const char *path, const char *line, struct weft_error *err)
{
    char beside[WF_MEET_PLACE_BYTES + 8];
    snprintf(beside, sizeof beside, "%s.XXXXXX", path);
    int fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        return wf_meet_fail(err, -errno, "the rendezvous file:%s cannot be written: %s", path, strerror(errno));
    char text[WF_MEET_LINE_BYTES + sizeof MARK];
    int length = snprintf(text, sizeof text, MARK "%s\n", line);
    ssize_t wrote = write(fd, text, (size_t)length);
    int result = wrote == length ? 0 : wrote < 0 ? -errno : -ENOSPC;
    if (result == 0 && fsync(fd) < 0)
        result = -errno;
    if (close(fd) < 0 && result == 0)
        result = -errno;
    if (result == 0 && rename(beside, path) < 0)
        result = -errno;
    if (result < 0)
        unlink(beside);
    return result == 0
               ? 0
               : wf_meet_fail(err, result, "the rendezvous file:%s cannot be written: %s", path, strerror(-result));
}

int wf_meet_file_read(const char *path, char *line, uint32_t room, struct weft_error *err)
{
    char text[WF_MEET_LINE_BYTES + sizeof MARK];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ESTALE))
        return 0;
    if (fd < 0)
        return wf_meet_fail(err, -errno, "the rendezvous file:%s cannot be read: %s", path, strerror(errno));
    ssize_t length = read(fd, text, sizeof text - 1);
    int failed = errno;
    close(fd);
    if (length < 0 && failed == ESTALE) /* replaced at the server meanwhile */
        return 0;
    if (length < 0)
        return wf_meet_fail(err, -failed, "the rendezvous file:%s cannot be read: %s", path, strerror(failed));
    text[length] = '\0';
    char *end = strchr(text, '\n');
    if (!end || strncmp(text, MARK, strlen(MARK)) != 0)
        return 0;
    *end = '\0';
    int needs = snprintf(line, room, "%s", text + strlen(MARK));
    return (uint32_t)needs < room;
}

void wf_meet_file_remove(const char *path)
{
    unlink(path);
}
