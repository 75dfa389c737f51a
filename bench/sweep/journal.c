#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/words/words.h"

#define SCHEMA "weft.sweep-journal/1"
#define HEAD "{\"schema\":\"" SCHEMA "\"" /* as write_line() writes it */
#define JOURNAL_MOST (1l << 30)

/* --- reading --- */

static int read_whole(const struct bench_journal *journal, char **text, size_t *length, struct wf_status *status)
{
    struct stat there;

    if (fstat(journal->fd, &there) != 0 || !S_ISREG(there.st_mode) || there.st_size > JOURNAL_MOST)
        return wf_fail(status, -EEXIST, "%.200s is no journal of a sweep: name another folder with --out",
                       journal->path);
    *length = (size_t)there.st_size;
    *text = malloc(*length + 1);
    if (!*text)
        return wf_fail(status, -ENOMEM, "no memory for the journal");
    for (size_t got = 0; got < *length;) {
        ssize_t more = pread(journal->fd, *text + got, *length - got, (off_t)got);
        if (more <= 0)
            return wf_fail(status, more < 0 ? -errno : -EIO, "cannot read %.200s: %s", journal->path,
                           wf_strerror(more < 0 ? errno : EIO));
        got += (size_t)more;
    }
    (*text)[*length] = '\0';
    return 0;
}

/* The first thing in which two sweeps differ. */
static int check_same(const struct bench_journal *journal, const json_t *head, const json_t *sweep,
                      struct wf_status *status)
{
    const char *schema = json_string_value(json_object_get(head, "schema")), *key;
    const json_t *other = json_object_get(head, "sweep");
    json_t *value;

    if (!schema || strcmp(schema, SCHEMA) != 0)
        return wf_fail(status, -EEXIST, "%.200s is no journal of a sweep: name another folder with --out",
                       journal->path);
    json_object_foreach((json_t *)sweep, key, value)
    {
        if (json_equal(value, json_object_get(other, key)))
            continue;
        char *mine = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY),
             *theirs = json_dumps(json_object_get(other, key), JSON_COMPACT | JSON_ENCODE_ANY);
        wf_fail(status, -EEXIST,
                "%.120s is the journal of another sweep: its %s is %.80s, and that of this one %.80s: name another "
                "folder with --out",
                journal->path, key, theirs ? theirs : "not there", mine ? mine : "?");
        free(mine);
        free(theirs);
        return status->code;
    }
    return 0;
}

/* Takes the lines that are whole; returns how many bytes they are. */
static int read_lines(struct bench_journal *journal, const char *text, size_t length, const json_t *sweep,
                      size_t *whole, struct wf_status *status)
{
    const char *line = text, *end;
    int result = 0;

    for (int number = 1; result == 0 && (end = memchr(line, '\n', length - (size_t)(line - text))) != NULL; number++) {
        json_t *object = json_loadb(line, (size_t)(end - line), 0, NULL);
        if (!object)
            result = wf_fail(status, -EEXIST, "%.200s:%d: this is no run of a sweep: name another folder with --out",
                             journal->path, number);
        else if (number == 1)
            result = check_same(journal, object, sweep, status);
        else
            json_array_append(journal->runs, object);
        json_decref(object);
        line = end + 1;
    }
    *whole = (size_t)(line - text);
    /* Only the beginning of a journal may be cut off before its first line has ended. */
    size_t known = length < sizeof HEAD - 1 ? length : sizeof HEAD - 1;
    if (result == 0 && *whole == 0 && memcmp(text, HEAD, known) != 0)
        result =
            wf_fail(status, -EEXIST, "%.200s is no journal of a sweep: name another folder with --out", journal->path);
    return result;
}

/* --- writing --- */

static int write_line(struct bench_journal *journal, const json_t *object, struct wf_status *status)
{
    char *text = json_dumps(object, JSON_COMPACT);
    size_t length = text ? strlen(text) : 0, done = 0;

    if (!text)
        return wf_fail(status, -ENOMEM, "no memory for a line of the journal");
    text[length++] = '\n'; /* in place of the closing zero */
    while (done < length) {
        ssize_t written = write(journal->fd, text + done, length - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            bench_cannot_write(journal->path, written < 0 ? -errno : -ENOSPC, status);
            free(text);
            return status->code;
        }
        done += (size_t)written;
    }
    free(text);
    return 0;
}

static int begin(struct bench_journal *journal, const json_t *sweep, struct wf_status *status)
{
    json_t *head = json_pack("{s:s, s:O}", "schema", SCHEMA, "sweep", (json_t *)sweep);
    int result = write_line(journal, head, status);

    json_decref(head);
    return result;
}

int bench_journal_open(struct bench_journal *journal, const char *folder, const json_t *sweep, struct wf_status *status)
{
    char *text = NULL;
    size_t length = 0, whole = 0;

    *journal = (struct bench_journal){.fd = -1, .runs = json_array()};
    if (!folder[0])
        return 0;
    if ((size_t)snprintf(journal->path, sizeof journal->path, "%s/sweep.jsonl", folder) >= sizeof journal->path)
        return wf_fail(status, -ENAMETOOLONG, "the folder name '%.40s...' is too long", folder);
    journal->fd = open(journal->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (journal->fd < 0)
        return bench_cannot_write(journal->path, -errno, status);
    /* No child has such a lock, so it ends with this process. File systems that know none do without. */
    const struct flock whole_file = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int result = 0;
    if (fcntl(journal->fd, F_SETLK, &whole_file) != 0 && (errno == EAGAIN || errno == EACCES))
        result = wf_fail(status, -EEXIST, "another weft sweep is writing %.200s: name another folder with --out",
                         journal->path);
    if (result == 0)
        result = read_whole(journal, &text, &length, status);
    if (result == 0)
        result = read_lines(journal, text, length, sweep, &whole, status);
    free(text);
    if (result == 0 && whole < length && ftruncate(journal->fd, (off_t)whole) != 0)
        result = bench_cannot_write(journal->path, -errno, status);
    return result == 0 && whole == 0 ? begin(journal, sweep, status) : result;
}

void bench_journal_close(struct bench_journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    json_decref(journal->runs);
    *journal = (struct bench_journal){.fd = -1};
}

const json_t *bench_journal_next(struct bench_journal *journal)
{
    return json_array_get(journal->runs, journal->next++);
}

int bench_journal_add(struct bench_journal *journal, const json_t *run, struct wf_status *status)
{
    return journal->fd < 0 ? 0 : write_line(journal, run, status);
}
