/* NCCL moves the memory of GPUs only: it is measured where there are some. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "peer.h"

static bool has_gpu(void)
{
    void *driver = access("/dev/nvidia0", F_OK) == 0 ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) : NULL;

    if (driver)
        dlclose(driver);
    return driver != NULL;
}

static int variants(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    (void)asked;
    (void)place;
    snprintf(why, 200, "%s", has_gpu() ? "the NCCL backend of weft pair is not built yet" : "no GPU here");
    return 0;
}

/* There is no variant to ask for. */
static int commands(const struct peer_case *asked, const struct peer_place *place, int index, struct peer_commands *out)
{
    (void)asked;
    (void)place;
    (void)index;
    (void)out;
    return -EINVAL;
}

static int read_output(const struct peer_case *asked, const struct peer_output *server,
                       const struct peer_output *client, struct peer_reading *out, struct wf_status *status)
{
    (void)asked;
    (void)server;
    (void)client;
    (void)out;
    return wf_fail(status, -EPROTO, "nothing of NCCL is run");
}

const struct peer_tool peer_nccl = {
    .name = "nccl",
    .program = "weft",
    .package = NULL,
    .many_buffers = true,
    .variants = variants,
    .commands = commands,
    .read = read_output,
};
