/* NCCL, through the backend of `weft pair`. It moves the memory of GPUs only: it is measured where Weft is measured
 * with that, too, and never beside figures of host memory. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "pair.h"

/* The driver of the tests stands for GPUs, as it does in the program that is run. */
static bool has_gpu(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    /* Not the device of a GPU: a container may have any of them. The second is that of a Linux inside Windows. */
    bool devices = access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
    bool found = driver && (devices || dlsym(driver, "weft_emulated_driver"));

    if (driver)
        dlclose(driver);
    return found;
}

static int nccl_variants(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    (void)asked;
    if (!has_gpu())
        snprintf(why, 200, "no GPU here");
    else if (!place->memory)
        snprintf(why, 200, "moves GPU memory only, and this is host memory: use --memory cuda");
    else
        return 1;
    return 0;
}

static int nccl_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                         struct peer_commands *out)
{
    (void)index;
    if (place->one_machine)
        snprintf(out->note, sizeof out->note, "one GPU for both: time-sliced without MPS");
    return peer_pair_commands("nccl", asked, place, out);
}

const struct peer_tool peer_nccl = {
    .name = "nccl",
    .program = "weft",
    .package = NULL,
    .many_buffers = true,
    .gpu_memory = true,
    .variants = nccl_variants,
    .commands = nccl_commands,
    .read = peer_pair_read,
};
