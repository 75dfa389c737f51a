#include "program.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP 16384

/* --- start and end --- */

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* `ours`, the end that this process reads, does not block. */
static int make_pipe(int *ours, int *theirs)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    *ours = ends[0];
    *theirs = ends[1];
    return fcntl(*ours, F_SETFL, O_NONBLOCK) == 0 ? 0 : -errno;
}

int peer_program_start(struct peer_program *program, const struct peer_command *command, struct wf_status *status)
{
    struct peer_pipes theirs = {-1, -1, -1};

    memset(program, 0, sizeof *program);
    program->name = command->words[0];
    program->out = program->err = program->report = -1;
    int result = make_pipe(&program->out, &theirs.out);
    if (result == 0)
        result = make_pipe(&program->err, &theirs.err);
    if (result == 0)
        result = make_pipe(&program->report, &theirs.report);
    if (result == 0) {
        pid_t pid = peer_keeper_start(command, &theirs);
        program->keeper = pid > 0 ? pid : 0;
        result = pid > 0 ? 0 : (int)pid;
    }
    close_end(&theirs.out);
    close_end(&theirs.err);
    close_end(&theirs.report);
    return result ? wf_fail(status, result, "cannot start %.60s: %s", program->name, wf_strerror(result)) : 0;
}

void peer_program_end(const struct peer_program *program)
{
    if (program->keeper)
        kill(program->keeper, PEER_KEEPER_END);
}

void peer_program_fini(struct peer_program *program)
{
    if (program->keeper) {
        peer_program_end(program);
        while (waitpid(program->keeper, NULL, 0) < 0 && errno == EINTR)
            ;
        program->keeper = 0;
    }
    close_end(&program->out);
    close_end(&program->err);
    close_end(&program->report);
    free(program->text);
    program->text = NULL;
}

/* --- what it says --- */

/* Room for `more` bytes and the '\0'. */
static bool make_room(struct peer_program *program, size_t more)
{
    size_t room = program->room ? program->room : STEP;

    while (room < program->used + more + 1)
        room *= 2;
    if (room == program->room)
        return true;
    char *grown = realloc(program->text, room);
    if (!grown)
        return false;
    program->text = grown;
    program->room = room;
    return true;
}

static void keep_text(struct peer_program *program, const char *bytes, size_t length)
{
    if (program->used + length > PEER_TEXT_MAX || !make_room(program, length)) {
        program->flooded = true;
        return;
    }
    memcpy(program->text + program->used, bytes, length);
    program->used += length;
    program->text[program->used] = '\0';
}

static void keep_tail(struct peer_program *program, const char *bytes, size_t length)
{
    size_t room = sizeof program->tail - 1, old = program->tail_used;

    if (length > room) {
        bytes += length - room;
        length = room;
    }
    if (old + length > room) {
        memmove(program->tail, program->tail + old + length - room, room - length);
        old = room - length;
    }
    memcpy(program->tail + old, bytes, length);
    program->tail_used = old + length;
    program->tail[program->tail_used] = '\0';
}

static void drain(struct peer_program *program, int *fd, void (*keep)(struct peer_program *, const char *, size_t))
{
    char bytes[STEP];
    ssize_t length = 0;

    while (*fd >= 0 && (length = read(*fd, bytes, sizeof bytes)) > 0)
        keep(program, bytes, (size_t)length);
    if (length == 0 || errno != EAGAIN)
        close_end(fd);
}

/* The keeper speaks once all have ended, so the pipes hold the last of what they said. */
static void look_for_end(struct peer_program *program)
{
    ssize_t length = program->report >= 0 ? read(program->report, &program->how, sizeof program->how) : 0;

    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    program->told = length == (ssize_t)sizeof program->how;
    program->ended = true;
    drain(program, &program->out, keep_text);
    drain(program, &program->err, keep_tail);
}

void peer_program_pump(struct peer_program *const *programs, int count, int timeout_ms)
{
    struct pollfd fds[3 * PEER_PUMP_MAX];
    int used = 0;

    for (int i = 0; i < count && used + 3 <= 3 * PEER_PUMP_MAX; i++)
        if (programs[i] && !programs[i]->ended) {
            fds[used++] = (struct pollfd){programs[i]->out, POLLIN, 0};
            fds[used++] = (struct pollfd){programs[i]->err, POLLIN, 0};
            fds[used++] = (struct pollfd){programs[i]->report, POLLIN, 0};
        }
    if (used)
        poll(fds, (nfds_t)used, timeout_ms);
    for (int i = 0; i < count; i++)
        if (programs[i] && !programs[i]->ended) {
            drain(programs[i], &programs[i]->out, keep_text);
            drain(programs[i], &programs[i]->err, keep_tail);
            look_for_end(programs[i]);
        }
}

/* --- how it ended --- */

/* Not what a result in JSON begins with. */
static bool readable(const char *line, size_t length)
{
    if (length && line[0] == '{')
        return false;
    for (size_t i = 0; i < length; i++)
        if (isalnum((unsigned char)line[i]))
            return true;
    return false;
}

/* The last readable line of `text`; its length, 0 if there is none. */
static size_t last_line(const char *text, size_t length, const char **line)
{
    while (length > 0) {
        size_t start = length;
        while (start > 0 && text[start - 1] != '\n')
            start--;
        *line = text + start;
        if (readable(*line, length - start))
            return length - start;
        length = start > 0 ? start - 1 : 0;
    }
    return 0;
}

char *peer_program_last_line(const struct peer_program *program, char *line, size_t room)
{
    const char *found = "";
    size_t length = last_line(program->tail, program->tail_used, &found);

    if (length == 0)
        length = last_line(program->text ? program->text : "", program->used, &found);
    while (length > 0 && isspace((unsigned char)*found)) {
        found++;
        length--;
    }
    if (length >= room)
        length = room - 1;
    memcpy(line, found, length);
    line[length] = '\0';
    return line;
}

int peer_program_verdict(const struct peer_program *program, struct wf_status *status)
{
    int how = program->how.wait_status;
    char line[160];

    if (!program->told)
        return wf_fail(status, -ECHILD, "%.60s: its keeper was killed", program->name);
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
        return 0;
    peer_program_last_line(program, line, sizeof line);
    if (WIFSIGNALED(how))
        return wf_fail(status, -ECHILD, "%.40s was ended by signal %d%s%s", program->name, WTERMSIG(how),
                       line[0] ? ": " : "", line);
    if (WEXITSTATUS(how) == 127 && strncmp(line, "cannot run", 10) == 0)
        return wf_fail(status, -ECHILD, "%s", line);
    return wf_fail(status, -ECHILD, "%.40s ended with status %d%s%s", program->name, WEXITSTATUS(how),
                   line[0] ? ": " : "", line);
}
