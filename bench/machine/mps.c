#include "mps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/config.h"

#define USUAL_FOLDER "/tmp/nvidia-mps"

/* A socket of another type than the daemon's is refused for that, but only where somebody listens: so nothing of ours
 * ever reaches the daemon. */
static enum bench_mps ask_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    enum bench_mps mps = BENCH_MPS_DEAD;

    if (fd < 0 || snprintf(address.sun_path, sizeof address.sun_path, "%s", path) >= (int)sizeof address.sun_path)
        mps = BENCH_MPS_OFF;
    else if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EPROTOTYPE || errno == EACCES)
        mps = BENCH_MPS_ON;
    if (fd >= 0)
        close(fd);
    return mps;
}

/* A pipe can be opened for writing while somebody reads. */
static enum bench_mps ask_pipe(const char *path)
{
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return errno == EACCES ? BENCH_MPS_ON : BENCH_MPS_DEAD;
    close(fd);
    return BENCH_MPS_ON;
}

enum bench_mps bench_mps_look(char *folder, size_t room)
{
    const char *given = wf_environment_value("CUDA_MPS_PIPE_DIRECTORY");
    struct stat there;
    char path[512];

    snprintf(folder, room, "%s", given ? given : USUAL_FOLDER);
    if (snprintf(path, sizeof path, "%s/control", folder) >= (int)sizeof path || stat(path, &there) != 0)
        return BENCH_MPS_OFF;
    if (S_ISSOCK(there.st_mode))
        return ask_socket(path);
    return S_ISFIFO(there.st_mode) ? ask_pipe(path) : BENCH_MPS_OFF;
}

const char *bench_mps_name(enum bench_mps mps)
{
    return mps == BENCH_MPS_ON ? "on" : mps == BENCH_MPS_DEAD ? "dead" : "off";
}
