/* Who may come in, and where. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "devmem/helper.h"
#include "serve.h"

/* --- users --- */

static int add_user(const char *name, struct serve_desk *desk, struct wf_status *status)
{
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    bool digits = name[0] >= '0' && name[0] <= '9' && *end == '\0';
    const struct passwd *known = digits ? NULL : getpwnam(name);

    if (digits ? number >= UINT32_MAX : !known)
        return wf_fail(status, -EINVAL, "--allow '%.40s': there is no such user", name);
    if (desk->user_count == SERVE_USERS_MAX)
        return wf_fail(status, -EINVAL, "--allow: up to %d users", SERVE_USERS_MAX);
    desk->users[desk->user_count++] = digits ? (uint32_t)number : known->pw_uid;
    return 0;
}

int serve_read_users(const char *text, struct serve_desk *desk, struct wf_status *status)
{
    char *copy = strdup(text), *rest = copy, *name;
    int result = copy ? 0 : wf_fail(status, -ENOMEM, "no memory for the names of users");

    while (result == 0 && (name = strsep(&rest, ",")) != NULL)
        result = add_user(name, desk, status);
    free(copy);
    return result;
}

/* --- the socket --- */

static int put_path(const char *folder, struct sockaddr_un *at, struct wf_status *status)
{
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (snprintf(at->sun_path, sizeof at->sun_path, "%s/" WF_HELPER_SOCKET, folder) < (int)sizeof at->sun_path)
        return 0;
    return wf_fail(status, -ENAMETOOLONG, "the path %.40s... is too long for a socket", folder);
}

/* A socket whose helper has ended refuses; one that does not is another helper's. */
static int check_free(int fd, const struct sockaddr_un *at, struct wf_status *status)
{
    struct ucred other = {0};
    socklen_t length = sizeof other;
    struct stat there;

    if (lstat(at->sun_path, &there) != 0)
        return errno == ENOENT ? 0 : wf_fail(status, -errno, "%s: %s", at->sun_path, wf_strerror(errno));
    if (!S_ISSOCK(there.st_mode))
        return wf_fail(status, -EEXIST, "%s is no socket: look at it, and remove it", at->sun_path);
    if (connect(fd, (const struct sockaddr *)at, sizeof *at) != 0) {
        if (errno == ECONNREFUSED)
            return unlink(at->sun_path) == 0 ? 0 : wf_fail(status, -errno, "%s: %s", at->sun_path, wf_strerror(errno));
        return wf_fail(status, -errno, "%s: %s", at->sun_path, wf_strerror(errno));
    }
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &length);
    return wf_fail(status, -EADDRINUSE, "another helper, process %d, listens at %s: end it first", other.pid,
                   at->sun_path);
}

/* Everybody may knock; who is let in is decided then. */
static int listen_at(int fd, const struct sockaddr_un *at, struct wf_status *status)
{
    mode_t before = umask(0111);
    int result = bind(fd, (const struct sockaddr *)at, sizeof *at) == 0 ? 0 : -errno;

    umask(before);
    if (result == 0 && listen(fd, SOMAXCONN) != 0)
        result = -errno;
    return result ? wf_fail(status, result, "cannot listen at %s: %s", at->sun_path, wf_strerror(result)) : 0;
}

static int new_socket(struct wf_status *status)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd >= 0 ? fd : wf_fail(status, -errno, "no socket: %s", wf_strerror(errno));
}

/* The folder is held meanwhile, so that of two helpers that start one is the first. */
int serve_open(const char *folder, struct wf_status *status)
{
    struct wf_lent_folder held = {.folder = -1, .lock = -1};
    struct sockaddr_un at;
    int trial = -1, listener = -1, result = put_path(folder, &at, status);

    if (result == 0)
        result = wf_lent_hold(folder, &held, status);
    if (result == 0)
        result = (trial = new_socket(status)) < 0 ? trial : check_free(trial, &at, status);
    if (result == 0)
        result = (listener = new_socket(status)) < 0 ? listener : listen_at(listener, &at, status);
    if (trial >= 0)
        close(trial);
    if (result && listener >= 0)
        close(listener);
    wf_lent_let_go(&held);
    return result ? result : listener;
}

/* Only where it is this one's still. */
void serve_close(const char *folder, int listener)
{
    struct sockaddr_un at;
    struct wf_status ignored;
    int fd = put_path(folder, &at, &ignored) == 0 ? new_socket(&ignored) : -1;

    shutdown(listener, SHUT_RDWR); /* the process of a client may not have closed its copy yet */
    close(listener);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) != 0 && errno == ECONNREFUSED)
        unlink(at.sun_path);
    if (fd >= 0)
        close(fd);
}
