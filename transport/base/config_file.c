/* Settings from a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/config_parts.h"

#define LINE_BYTES WF_VALUE_MAX        /* of a line */
#define FILE_BYTES (1024L * 1024)      /* of a file: more than all settings need, with many comments */
#define BYTE_ORDER_MARK "\xEF\xBB\xBF" /* some editors begin UTF-8 with it */

/* A file as it is read. Owner: wf_config_load_file(). */
struct reader {
    FILE *file;
    char *line; /* of getline() */
    size_t room;
    int number; /* of the line */
};

/* Without blanks around it; changes `text`. */
static char *trim(char *text)
{
    text += strspn(text, " \t");
    for (size_t length = strlen(text); length > 0 && strchr(" \t\r", text[length - 1]); length--)
        text[length - 1] = '\0';
    return text;
}

/* "64K" in quotation marks. */
static bool is_quoted(const char *value)
{
    size_t length = strlen(value);
    return length >= 2 && (*value == '"' || *value == '\'') && value[length - 1] == *value;
}

static int load_line(struct wf_config *config, char *line, const char *source, struct wf_status *status)
{
    line[strcspn(line, "#")] = '\0';
    char *name = trim(line);
    if (*name == '\0')
        return 0;
    char *equals = strchr(name, '=');
    if (!equals)
        return wf_fail(status, -EINVAL, "'%.60s': expected NAME = VALUE", name);
    *equals = '\0';
    int id = wf_setting_find(trim(name), status);
    if (id < 0) {
        /* To callers -ENOENT is a file that is not there. */
        if (status)
            status->code = -EINVAL;
        return -EINVAL;
    }
    char *value = trim(equals + 1);
    if (is_quoted(value))
        return wf_fail(status, -EINVAL, "%s = %.60s: write the value without quotation marks",
                       wf_setting((enum wf_setting_id)id)->name, value);
    return wf_config_offer(config, (enum wf_setting_id)id, value, WF_ORIGIN_FILE, source, status);
}

/* "file PATH:LINE"; of a long path the end, which tells more. */
static void file_source(char *out, size_t room, const char *path, int line)
{
    size_t length = strlen(path), most = 96;
    if (length > most)
        (void)snprintf(out, room, "file ...%s:%d", path + length - most, line);
    else
        (void)snprintf(out, room, "file %s:%d", path, line);
}

/* 1 and the line without its newline, 0 at the end, or -EINVAL where it is no text; else what reading failed with. */
static int read_line(struct reader *reader, char **line, struct wf_status *status)
{
    errno = 0;
    ssize_t length = getline(&reader->line, &reader->room, reader->file);
    if (length < 0 && errno)
        return wf_fail(status, -errno, "cannot read it: %s", wf_strerror(errno));
    if (length < 0)
        return 0;
    if (length > 0 && reader->line[length - 1] == '\n')
        reader->line[--length] = '\0';
    if (strlen(reader->line) != (size_t)length)
        return wf_fail(status, -EINVAL, "the line has a null byte in it: settings are text");
    *line = reader->line;
    if (reader->number == 1 && strncmp(*line, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        *line += strlen(BYTE_ORDER_MARK);
    if (strlen(*line) > LINE_BYTES)
        return wf_fail(status, -EINVAL, "the line has more than %d bytes", LINE_BYTES);
    return 1;
}

/* Checks the open file, not its name. A pipe could keep the caller waiting, and a device has no end; /dev/null is for
 * those who want no settings. */
static int check_kind(int fd, const char *path, struct wf_status *status)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return wf_fail(status, -errno, "settings file '%s': %s", path, wf_strerror(errno));
    if (S_ISDIR(about.st_mode))
        return wf_fail(status, -EISDIR, "settings file '%s': Is a directory: name a file with lines NAME = VALUE",
                       path);
    if (S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3))
        return 0;
    if (!S_ISREG(about.st_mode))
        return wf_fail(status, -EINVAL, "settings file '%s' is no regular file: name one with lines NAME = VALUE",
                       path);
    if (about.st_size > FILE_BYTES)
        return wf_fail(status, -EINVAL,
                       "settings file '%s' has %lld bytes, and at most %ld are read: is it the right one?", path,
                       (long long)about.st_size, FILE_BYTES);
    return 0;
}

static int open_file(const char *path, FILE **out, struct wf_status *status)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* whatever has that name: nothing waits */
    if (fd < 0)
        return wf_fail(status, -errno, "cannot open the settings file '%s': %s", path, wf_strerror(errno));
    int result = check_kind(fd, path, status);
    *out = result == 0 ? fdopen(fd, "r") : NULL;
    if (result == 0 && !*out)
        result = wf_fail(status, -ENOMEM, "no memory to read the settings file '%s'", path);
    if (result < 0)
        close(fd);
    return result;
}

int wf_config_load_file(struct wf_config *config, const char *path, struct wf_status *status)
{
    char source[sizeof config->values[0].source];
    struct reader reader = {0};
    int result = open_file(path, &reader.file, status);
    if (result < 0)
        return result;
    do {
        char *line = NULL;
        file_source(source, sizeof source, path, ++reader.number);
        result = read_line(&reader, &line, status);
        if (result > 0) {
            result = load_line(config, line, source, status);
            result = result ? result : 1;
        }
    } while (result > 0);
    free(reader.line);
    (void)fclose(reader.file);
    if (result)
        (void)wf_fail_prefix(status, "%s", source + strlen("file "));
    return result;
}
