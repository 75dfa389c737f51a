/* PMI-1 as MPICH's launchers speak it: a line of words `key=value` each way, over a socket that the process inherits.
 */
#include "collective/rendezvous/source.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define OPEN_MS 10000
#define CLOSE_MS 1000
#define LINE 2048

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* The next whole line, without its end: 0; or -ETIMEDOUT, or how the socket failed. */
static int read_line(struct wf_pmi *pmi, char line[LINE], int64_t until_ms)
{
    for (;;) {
        char *end = memchr(pmi->read, '\n', pmi->have);
        if (end) {
            uint32_t length = (uint32_t)(end - pmi->read);
            memcpy(line, pmi->read, length);
            line[length] = '\0';
            pmi->have -= length + 1;
            memmove(pmi->read, end + 1, pmi->have);
            return 0;
        }
        if (pmi->have == sizeof pmi->read)
            return -EMSGSIZE;
        int64_t left_ms = until_ms - now_ms();
        struct pollfd ready = {.fd = pmi->fd, .events = POLLIN};
        int count = poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
        if (count == 0)
            return -ETIMEDOUT;
        ssize_t got = count < 0 ? -1 : read(pmi->fd, pmi->read + pmi->have, sizeof pmi->read - pmi->have);
        if (got == 0)
            return -ECONNRESET;
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        if (got > 0)
            pmi->have += (uint32_t)got;
    }
}

static int write_line(struct wf_pmi *pmi, const char *line)
{
    size_t length = strlen(line);
    while (length > 0) {
        ssize_t wrote = send(pmi->fd, line, length, MSG_NOSIGNAL);
        if (wrote < 0 && errno == ENOTSOCK)
            wrote = write(pmi->fd, line, length);
        if (wrote < 0 && errno != EINTR)
            return -errno;
        if (wrote > 0) {
            line += wrote;
            length -= (size_t)wrote;
        }
    }
    return 0;
}

/* The value of a word of an answer. False: it has none, or it is too long. */
static bool value_of(const char *line, const char *key, char *out, size_t room)
{
    size_t length = strlen(key);
    for (const char *at = line; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, key, length) == 0 && at[length] == '=') {
            at += length + 1;
            size_t size = strcspn(at, " ");
            if (size >= room)
                return false;
            memcpy(out, at, size);
            out[size] = '\0';
            return true;
        }
    }
    return false;
}

/* Says a line, and takes the answer, which must be `answer` with rc=0 or none. */
static int ask(struct wf_pmi *pmi, const char *line, const char *answer, char said[LINE], int timeout_ms,
               struct weft_error *err)
{
    char command[64] = "", rc[16] = "0", words[64];
    snprintf(words, sizeof words, "%.*s", (int)strcspn(line, " \n"), line);
    int result = write_line(pmi, line);
    if (result == 0)
        result = read_line(pmi, said, now_ms() + timeout_ms);
    if (result == -ETIMEDOUT)
        return wf_meet_fail(err, result, "PMI-1 (PMI_FD): no answer to %s within %d ms", words, timeout_ms);
    if (result < 0)
        return wf_meet_fail(err, result, "PMI-1 (PMI_FD): %s: %s", words, strerror(-result));
    value_of(said, "cmd", command, sizeof command);
    value_of(said, "rc", rc, sizeof rc);
    if (strcmp(command, answer) != 0 || strcmp(rc, "0") != 0)
        return wf_meet_fail(err, -EPROTO, "PMI-1 (PMI_FD): %s was answered '%.120s'", words, said);
    return 0;
}

int wf_pmi_open(struct wf_pmi *pmi, int fd, int timeout_ms, struct weft_error *err)
{
    char said[LINE];
    *pmi = (struct wf_pmi){.fd = fd};
    int result = ask(pmi, "cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", said, timeout_ms, err);
    if (result == 0)
        result = ask(pmi, "cmd=get_my_kvsname\n", "my_kvsname", said, timeout_ms, err);
    if (result == 0 && !value_of(said, "kvsname", pmi->space, sizeof pmi->space))
        result = wf_meet_fail(err, -EPROTO, "PMI-1 (PMI_FD): no space of names in '%.120s'", said);
    return result;
}

int wf_pmi_put(struct wf_pmi *pmi, const char *key, const char *value, int timeout_ms, struct weft_error *err)
{
    char line[LINE], said[LINE];
    snprintf(line, sizeof line, "cmd=put kvsname=%s key=%s value=%s\n", pmi->space, key, value);
    return ask(pmi, line, "put_result", said, timeout_ms, err);
}

int wf_pmi_barrier(struct wf_pmi *pmi, int timeout_ms, struct weft_error *err)
{
    char said[LINE];
    int result = ask(pmi, "cmd=barrier_in\n", "barrier_out", said, timeout_ms, err);
    if (result == -ETIMEDOUT)
        return wf_meet_fail(err, result,
                            "not all processes have come to the barrier of PMI-1, which names none, for %d ms",
                            timeout_ms);
    return result;
}

int wf_pmi_get(struct wf_pmi *pmi, const char *key, char *value, uint32_t room, int timeout_ms, struct weft_error *err)
{
    char line[LINE], said[LINE];
    snprintf(line, sizeof line, "cmd=get kvsname=%s key=%s\n", pmi->space, key);
    int result = ask(pmi, line, "get_result", said, timeout_ms, err);
    if (result == 0 && !value_of(said, "value", value, room))
        result = wf_meet_fail(err, -EPROTO, "PMI-1 (PMI_FD): no value in '%.120s'", said);
    return result;
}

void wf_pmi_close(struct wf_pmi *pmi)
{
    char said[LINE];
    struct weft_error err;
    if (pmi->fd >= 0)
        ask(pmi, "cmd=finalize\n", "finalize_ack", said, CLOSE_MS, &err);
    pmi->fd = -1;
}

int wf_find_pmi(struct wf_meet *meet, const struct wf_meet_env *env, struct wf_found *found, struct weft_error *err)
{
    uint32_t fd;
    int result = wf_meet_numbers(env, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", found, err);
    if (result <= 0)
        return result;
    result = wf_meet_number(env, "PMI_FD", 1048576, &fd, err);
    if (result < 0)
        return result;
    snprintf(found->lacks, sizeof found->lacks, "PMI_FD is not set: name a rendezvous: HOST:PORT or file:PATH");
    if (result == 0 || meet->way != WF_MEET_NOWHERE)
        return 1;
    struct weft_error failed = {0};
    if (wf_pmi_open(&meet->pmi, (int)fd, OPEN_MS, &failed) < 0) {
        meet->pmi.fd = -1;
        snprintf(found->lacks, sizeof found->lacks, "%.100s; name a rendezvous", failed.text);
        return 1;
    }
    found->way = WF_MEET_PMI;
    snprintf(found->where, sizeof found->where, "PMI_FD");
    return 1;
}
