#include "base/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Characters that a key could begin with. */
static size_t digits_of(const char *text)
{
    size_t count = 0;

    while (digit_of(text[count]) >= 0)
        count++;
    return count;
}

bool wf_key_file_is_key(const char *text)
{
    return strlen(text) == WF_KEY_FILE_DIGITS && digits_of(text) == WF_KEY_FILE_DIGITS;
}

void wf_key_file_text(const uint8_t key[WF_KEY_FILE_BYTES], char text[WF_KEY_FILE_DIGITS + 1])
{
    for (int i = 0; i < WF_KEY_FILE_BYTES; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", key[i]);
}

/* Checks the open file, not its name: the name may point to another file by now. */
static int check_owner(int fd, const char *path, struct wf_status *status)
{
    struct stat about;

    if (fstat(fd, &about) != 0)
        return wf_fail(status, -errno, "key_file '%s': %s", path, wf_strerror(errno));
    if (!S_ISREG(about.st_mode))
        return wf_fail(status, -EINVAL, "key_file '%s' is no regular file: make one with (umask 077; weft key >FILE)",
                       path);
    if (about.st_uid != geteuid() && about.st_uid != 0)
        return wf_fail(status, -EACCES, "key_file '%s' belongs to user %u, neither to us (%u) nor to root: chown %u %s",
                       path, (unsigned)about.st_uid, (unsigned)geteuid(), (unsigned)geteuid(), path);
    if (about.st_mode & (S_IRWXG | S_IRWXO))
        return wf_fail(status, -EACCES, "key_file '%s' has mode %04o, so that others may get at the key: chmod 600 %s",
                       path, (unsigned)about.st_mode & 07777, path);
    return 0;
}

/* A line without comment and blanks. Positions are told as they are in the file. */
static int take_line(const char *line, const char *path, int number, bool *have, uint8_t *key, struct wf_status *status)
{
    const char *start = line + strspn(line, " \t\r");
    size_t length = strcspn(start, "#"), digits = digits_of(start);

    while (length > 0 && strchr(" \t\r", start[length - 1]))
        length--;
    if (length == 0)
        return 0;
    if (digits < length)
        return wf_fail(status, -EINVAL, "%s:%d: character %zu is no hexadecimal digit", path, number,
                       (size_t)(start - line) + digits + 1);
    if (length != WF_KEY_FILE_DIGITS)
        return wf_fail(status, -EINVAL, "%s:%d: %zu digits, but a key has %d", path, number, length,
                       WF_KEY_FILE_DIGITS);
    if (*have)
        return wf_fail(status, -EINVAL, "%s:%d: a second key; a file holds one", path, number);
    *have = true;
    for (int i = 0; i < WF_KEY_FILE_BYTES; i++)
        key[i] = (uint8_t)(digit_of(start[2 * i]) << 4 | digit_of(start[2 * i + 1]));
    return 0;
}

static int take_text(char *text, const char *path, uint8_t *key, struct wf_status *status)
{
    bool have = false;
    int number = 0, result = 0;

    for (char *line; result == 0 && (line = strsep(&text, "\n"));)
        result = take_line(line, path, ++number, &have, key, status);
    if (result == 0 && !have)
        result = wf_fail(status, -EINVAL, "key_file '%s' has no key in it: make one with weft key >%s", path, path);
    return result;
}

static int read_all(int fd, char *text, const char *path, struct wf_status *status)
{
    size_t have = 0;
    ssize_t got;

    while (have < WF_KEY_FILE_MOST + 1 && (got = read(fd, text + have, WF_KEY_FILE_MOST + 1 - have)) != 0) {
        if (got < 0 && errno != EINTR)
            return wf_fail(status, -errno, "cannot read key_file '%s': %s", path, wf_strerror(errno));
        have += got > 0 ? (size_t)got : 0;
    }
    text[have] = '\0';
    if (have > WF_KEY_FILE_MOST || strlen(text) != have)
        return wf_fail(status, -EINVAL, "key_file '%s' is no key file: more than %d bytes, or a null byte in it", path,
                       WF_KEY_FILE_MOST);
    return 0;
}

int wf_key_file_read(const char *path, uint8_t key[WF_KEY_FILE_BYTES], struct wf_status *status)
{
    char text[WF_KEY_FILE_MOST + 2];
    uint8_t taken[WF_KEY_FILE_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* whatever has that name: nothing waits */

    if (fd < 0)
        return wf_fail(status, -errno, "cannot open key_file '%s': %s", path, wf_strerror(errno));
    int result = check_owner(fd, path, status);
    if (result == 0)
        result = read_all(fd, text, path, status);
    if (result == 0)
        result = take_text(text, path, taken, status);
    if (result == 0)
        memcpy(key, taken, sizeof(taken));
    explicit_bzero(text, sizeof(text));
    explicit_bzero(taken, sizeof(taken));
    close(fd);
    return result;
}
