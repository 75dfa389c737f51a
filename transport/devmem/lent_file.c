/* The folder of records, and a record as a file. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "lent.h"

#define HEAD "weft-lease 1"
#define FILE_NAME 80
#define RECORD_BYTES (WF_LENT_RULES_MAX * 128 + 512)
#define ANY "any"    /* instead of an address */
#define LOCK ".lock" /* that of 'weft nic', too */
#define TRIES 500
#define BETWEEN_TRIES_NS 10000000

/* --- the folder --- */

/* What holds it for longer than this is no change of a card, but a process that has stopped. */
static int wait_for_lock(int lock)
{
    static const struct timespec pause = {.tv_nsec = BETWEEN_TRIES_NS};

    for (int tries = 0; flock(lock, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (tries == TRIES)
            return -EAGAIN;
        nanosleep(&pause, NULL);
    }
    return 0;
}

int wf_lent_look(const char *path, struct wf_lent_folder *held, struct wf_status *status)
{
    *held = (struct wf_lent_folder){.folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), .lock = -1};
    if (held->folder >= 0 || errno == ENOENT)
        return held->folder >= 0 ? 0 : -ENOENT;
    return wf_fail(status, -errno, "%s cannot be read: %s", path, wf_strerror(errno));
}

int wf_lent_hold(const char *path, struct wf_lent_folder *held, struct wf_status *status)
{
    struct stat there;
    int result = mkdir(path, 0755) == 0 || errno == EEXIST ? 0 : -errno;

    *held = (struct wf_lent_folder){.folder = -1, .lock = -1};
    if (result == 0)
        held->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (result == 0 && (held->folder < 0 || fstat(held->folder, &there) != 0))
        result = -errno;
    else if (result == 0 && (there.st_uid != geteuid() || (there.st_mode & (S_IWGRP | S_IWOTH))))
        result = -EACCES;
    if (result == 0) {
        held->lock = openat(held->folder, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
        result = held->lock < 0 ? -errno : wait_for_lock(held->lock);
    }
    if (result == 0)
        return 0;
    wf_lent_let_go(held);
    if (result == -EAGAIN)
        return wf_fail(status, result, "another 'weft nic' holds %s/" LOCK " for long: try again when it has ended",
                       path);
    return wf_fail(status, result, "no queue is lent without a record in %s, a folder of this user alone: %s", path,
                   wf_strerror(result));
}

void wf_lent_let_go(struct wf_lent_folder *held)
{
    if (held->lock >= 0)
        close(held->lock);
    if (held->folder >= 0)
        close(held->folder);
    *held = (struct wf_lent_folder){.folder = -1, .lock = -1};
}

/* --- names --- */

static uint64_t network_of_thread(void)
{
    struct stat there;

    return stat("/proc/thread-self/ns/net", &there) == 0 ? (uint64_t)there.st_ino : 0;
}

static size_t name_prefix(char name[FILE_NAME])
{
    return (size_t)snprintf(name, FILE_NAME, "lease.%" PRIu64 ".", network_of_thread());
}

static const char *name_of(int ifindex, uint32_t queue, char name[FILE_NAME])
{
    size_t used = name_prefix(name);

    snprintf(name + used, FILE_NAME - used, "%d.%u", ifindex, queue);
    return name;
}

/* --- what kinds of rules a card takes --- */

static const char *note_of(int ifindex, char name[FILE_NAME])
{
    snprintf(name, FILE_NAME, "by-port.%" PRIu64 ".%d", network_of_thread(), ifindex);
    return name;
}

void wf_lent_note_by_port(int folder, int ifindex, bool by_port)
{
    char name[FILE_NAME];

    if (!by_port) {
        unlinkat(folder, note_of(ifindex, name), 0);
        return;
    }
    int fd = openat(folder, note_of(ifindex, name), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd >= 0)
        close(fd);
}

bool wf_lent_is_by_port(int folder, int ifindex)
{
    char name[FILE_NAME];

    return faccessat(folder, note_of(ifindex, name), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- writing --- */

static void put_address(FILE *file, const struct sockaddr_storage *at)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)at;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)at;
    char text[INET6_ADDRSTRLEN];
    bool is_six = at->ss_family == AF_INET6;

    if (at->ss_family == AF_UNSPEC) {
        fprintf(file, " " ANY " 0");
        return;
    }
    inet_ntop(at->ss_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr, text, sizeof text);
    fprintf(file, " %s %u", text, ntohs(is_six ? six->sin6_port : four->sin_port));
}

static int put_record(FILE *file, const void *what)
{
    const struct wf_lent *lent = what;

    fprintf(file, HEAD "\ninterface %d queue %u binding %u buffer %u\nholder %u %d %s\n", lent->ifindex, lent->queue,
            lent->binding, lent->buffer, lent->holder.user, lent->holder.process, lent->holder.command);
    for (int i = 0; i < WF_LENT_RULES_MAX; i++)
        if (lent->rules[i].to.ss_family != AF_UNSPEC) {
            fprintf(file, "rule %d", i);
            put_address(file, &lent->rules[i].from);
            put_address(file, &lent->rules[i].to);
            fprintf(file, "\n");
        }
    fprintf(file, "end\n");
    return 0;
}

/* What a process has written survives it; what a machine forgets when it stops, its cards forget, too. */
int wf_lent_write(int folder, const struct wf_lent *lent, struct wf_status *status)
{
    char name[FILE_NAME];
    struct wf_whole_file whole = {.folder = folder, .name = name_of(lent->ifindex, lent->queue, name), .mode = 0644};
    int result = wf_whole_file_write(&whole, put_record, lent);

    return result == 0 ? 0 : wf_fail(status, result, "the record %s cannot be written: %s", name, wf_strerror(result));
}

void wf_lent_remove(int folder, int ifindex, uint32_t queue)
{
    char name[FILE_NAME];

    unlinkat(folder, name_of(ifindex, queue, name), 0);
}

/* --- reading --- */

static bool read_address(const char *text, unsigned port, struct sockaddr_storage *at)
{
    struct sockaddr_in *four = (struct sockaddr_in *)at;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)at;

    if (port > UINT16_MAX)
        return false;
    if (strcmp(text, ANY) == 0)
        return true;
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        return true;
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    return inet_pton(AF_INET6, text, &six->sin6_addr) == 1;
}

static bool read_rule(const char *line, struct wf_lent *lent)
{
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    unsigned from_port, to_port;
    int rule;

    return sscanf(line, "rule %d %45s %u %45s %u", &rule, from, &from_port, to, &to_port) == 5 && rule >= 0 &&
           rule < WF_LENT_RULES_MAX && read_address(from, from_port, &lent->rules[rule].from) &&
           read_address(to, to_port, &lent->rules[rule].to) && lent->rules[rule].to.ss_family != AF_UNSPEC;
}

/* All lines in their order, or it is none. */
static bool read_text(char *text, struct wf_lent *lent)
{
    const char *head = strsep(&text, "\n"), *card = text ? strsep(&text, "\n") : NULL,
               *holder = text ? strsep(&text, "\n") : NULL, *line = NULL;

    if (!holder || strcmp(head, HEAD) != 0 ||
        sscanf(card, "interface %d queue %u binding %u buffer %u", &lent->ifindex, &lent->queue, &lent->binding,
               &lent->buffer) < 3 || /* older versions have no buffer */
        sscanf(holder, "holder %u %d %15[^\n]", &lent->holder.user, &lent->holder.process, lent->holder.command) != 3)
        return false;
    wf_text_plain(lent->holder.command);
    while (text && (line = strsep(&text, "\n")) != NULL && strcmp(line, "end") != 0)
        if (!read_rule(line, lent))
            return false;
    return line && strcmp(line, "end") == 0;
}

/* One that another user could have written is none. */
static bool read_file(int folder, const char *name, struct wf_lent *lent)
{
    char text[RECORD_BYTES] = "";
    struct stat of_folder, there;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    bool good = fd >= 0 && fstat(folder, &of_folder) == 0 && fstat(fd, &there) == 0 && S_ISREG(there.st_mode) &&
                there.st_uid == of_folder.st_uid && there.st_size < RECORD_BYTES &&
                read(fd, text, RECORD_BYTES - 1) == there.st_size;

    if (fd >= 0)
        close(fd);
    memset(lent, 0, sizeof *lent);
    return good && read_text(text, lent);
}

int wf_lent_read(int folder, int ifindex, uint32_t queue, struct wf_lent *lent, struct wf_status *status)
{
    char name[FILE_NAME];

    name_of(ifindex, queue, name);
    if (faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        return -ENOENT;
    if (read_file(folder, name, lent) && lent->ifindex == ifindex && lent->queue == queue)
        return 0;
    return wf_fail(status, -EINVAL, "%s is no record of a queue that is lent: look at it, and remove it", name);
}

/* What is no record is passed over: nothing is known of it. */
int wf_lent_each(int folder, wf_lent_see *see, void *data)
{
    struct wf_lent *lent = malloc(sizeof *lent);
    char prefix[FILE_NAME], name[FILE_NAME];
    size_t length = name_prefix(prefix);
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = lent ? 0 : -ENOMEM;
    DIR *all = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    while (all && result == 0 && (entry = readdir(all)) != NULL)
        if (strncmp(entry->d_name, prefix, length) == 0 && read_file(folder, entry->d_name, lent) &&
            strcmp(entry->d_name, name_of(lent->ifindex, lent->queue, name)) == 0)
            result = see(lent, data);
    if (all)
        closedir(all);
    else if (fd >= 0)
        close(fd);
    free(lent);
    return result;
}
