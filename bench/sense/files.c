/* Files of /sys and /proc: opened once, and read again and again. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/words/words.h"
#include "sense_parts.h"

static int open_path(const char *root, const char *format, va_list arguments)
{
    char path[512];
    int used = snprintf(path, sizeof path, "%s", root);

    if (used < 0 || (size_t)used >= sizeof path)
        return -1;
    int more = vsnprintf(path + used, sizeof path - (size_t)used, format, arguments);
    if (more < 0 || (size_t)more >= sizeof path - (size_t)used)
        return -1;
    return open(path, O_RDONLY | O_CLOEXEC);
}

int bench_sense_open(const char *root, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int fd = open_path(root, format, arguments);
    va_end(arguments);
    return fd;
}

void bench_sense_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

ssize_t bench_sense_text(int fd, char *text, size_t room)
{
    ssize_t length = 0, more = 1;

    if (fd < 0)
        return -1;
    /* The kernel gives long files in parts. */
    while (more > 0 && (size_t)length + 1 < room) {
        more = pread(fd, text + length, room - 1 - (size_t)length, length);
        length += more > 0 ? more : 0;
    }
    if (more < 0)
        return -1;
    while (length > 0 && text[length - 1] == '\n')
        length--;
    text[length] = '\0';
    return length;
}

bool bench_sense_number(int fd, int64_t *number)
{
    char text[32], *end;

    if (bench_sense_text(fd, text, sizeof text) <= 0)
        return false;
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    if (errno || end == text)
        return false;
    *number = value;
    return true;
}

uint64_t bench_sense_count(int fd)
{
    int64_t number;

    return bench_sense_number(fd, &number) && number >= 0 ? (uint64_t)number : BENCH_SENSE_COUNT_UNKNOWN;
}

static bool read_path(const char *root, char *text, size_t room, const char *format, va_list arguments)
{
    int fd = open_path(root, format, arguments);
    ssize_t length = bench_sense_text(fd, text, room);

    bench_sense_close(&fd);
    return length >= 0;
}

bool bench_sense_read(const char *root, char *text, size_t room, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    bool there = read_path(root, text, room, format, arguments);
    va_end(arguments);
    return there;
}

/* --- tasks --- */

enum { FIELD_STATE = 3, FIELD_FLAGS = 9, FIELD_USER = 14, FIELD_SYSTEM = 15, FIELD_CPU = 39 }; /* as in proc(5) */

#define FLAG_KERNEL 0x00200000UL

/* "17 (a name) R 1 17 ...": a name may have blanks and brackets, so fields are counted from the last bracket on. */
static bool parse_task(char *text, struct bench_sense_task *task)
{
    char *open = strchr(text, '('), *close = strrchr(text, ')'), *rest, *word;

    if (!open || !close || close < open || close[1] != ' ')
        return false;
    *close = '\0';
    *task = (struct bench_sense_task){.cpu = -1};
    bench_copy_text(task->name, sizeof task->name, open + 1);
    rest = close + 2;
    for (int field = FIELD_STATE; field <= FIELD_CPU && (word = bench_next_word(&rest, ' ')) != NULL; field++)
        if (field == FIELD_STATE)
            task->state = word[0];
        else if (field == FIELD_FLAGS)
            task->kernel = (strtoul(word, NULL, 10) & FLAG_KERNEL) != 0;
        else if (field == FIELD_USER || field == FIELD_SYSTEM)
            task->ticks += strtoull(word, NULL, 10);
        else if (field == FIELD_CPU)
            task->cpu = atoi(word);
    return task->cpu >= 0;
}

bool bench_sense_read_task(struct bench_sense_task *task, const char *root, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    bool there = read_path(root, text, sizeof text, format, arguments);
    va_end(arguments);
    return there && parse_task(text, task);
}
