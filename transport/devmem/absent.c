/* A build without libmnl: nothing of this can be done, and whoever asks is told so. */
#include <errno.h>

#include "devmem.h"
#include "kernel.h"

static int absent(struct wf_status *status)
{
    return wf_fail(status, -EOPNOTSUPP, "device-memory TCP is not available: built without libmnl");
}

const struct wf_devmem_kernel *wf_devmem_system(void)
{
    return NULL;
}

int wf_devmem_open(const struct wf_devmem_kernel *kernel, struct wf_devmem **devmem, struct wf_status *status)
{
    (void)kernel, (void)devmem;
    return absent(status);
}

void wf_devmem_close(struct wf_devmem *devmem)
{
    (void)devmem;
}

/* There is no handle, so none of these is ever called. */

bool wf_devmem_may_change(const struct wf_devmem *devmem)
{
    (void)devmem;
    return false;
}

int wf_devmem_socket(const struct wf_devmem *devmem)
{
    (void)devmem;
    return -1;
}

int wf_devmem_bindings(struct wf_devmem *devmem, int ifindex, uint32_t *ids, uint32_t most, struct wf_status *status)
{
    (void)devmem, (void)ifindex, (void)ids, (void)most;
    return absent(status);
}

int wf_devmem_find_rule(struct wf_devmem *devmem, const char *name, const struct wf_devmem_flow *flow, uint32_t queue,
                        uint32_t *location, struct wf_status *status)
{
    (void)devmem, (void)name, (void)flow, (void)queue, (void)location;
    return absent(status);
}

int wf_devmem_look(struct wf_devmem *devmem, const char *name, struct wf_devmem_card *card, struct wf_status *status)
{
    (void)devmem, (void)name, (void)card;
    return absent(status);
}

int wf_devmem_name(struct wf_devmem *devmem, int ifindex, char name[IFNAMSIZ], struct wf_status *status)
{
    (void)devmem, (void)ifindex, (void)name;
    return absent(status);
}

int wf_devmem_bind_rx(struct wf_devmem *devmem, const struct wf_devmem_rx *rx, uint32_t *id, struct wf_status *status)
{
    (void)devmem, (void)rx, (void)id;
    return absent(status);
}

int wf_devmem_is_bound(struct wf_devmem *devmem, int ifindex, struct wf_status *status)
{
    (void)devmem, (void)ifindex;
    return absent(status);
}

int wf_devmem_bind_tx(struct wf_devmem *devmem, int ifindex, int dmabuf, uint32_t *id, struct wf_status *status)
{
    (void)devmem, (void)ifindex, (void)dmabuf, (void)id;
    return absent(status);
}

int wf_devmem_set_split(struct wf_devmem *devmem, const char *name, enum wf_devmem_split split, int64_t hds_thresh,
                        struct wf_status *status)
{
    (void)devmem, (void)name, (void)split, (void)hds_thresh;
    return absent(status);
}

int wf_devmem_set_ntuple(struct wf_devmem *devmem, const char *name, bool on, struct wf_status *status)
{
    (void)devmem, (void)name, (void)on;
    return absent(status);
}

int wf_devmem_rss_read(struct wf_devmem *devmem, const char *name, struct wf_devmem_rss *rss, struct wf_status *status)
{
    (void)devmem, (void)name, (void)rss;
    return absent(status);
}

int wf_devmem_rss_write(struct wf_devmem *devmem, const char *name, const struct wf_devmem_rss *rss,
                        struct wf_status *status)
{
    (void)devmem, (void)name, (void)rss;
    return absent(status);
}

int wf_devmem_steer(struct wf_devmem *devmem, const char *name, const struct wf_devmem_flow *flow, uint32_t queue,
                    uint32_t *location, struct wf_status *status)
{
    (void)devmem, (void)name, (void)flow, (void)queue, (void)location;
    return absent(status);
}

int wf_devmem_unsteer(struct wf_devmem *devmem, const char *name, const struct wf_devmem_flow *flow, uint32_t queue,
                      uint32_t location, struct wf_status *status)
{
    (void)devmem, (void)name, (void)flow, (void)queue, (void)location;
    return absent(status);
}
