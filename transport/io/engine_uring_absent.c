/* Stands in for the io_uring engine in a build without liburing: it is known, and says why it cannot be had. */
#include <errno.h>

#include "io/engine.h"

static int absent_probe(void *host, struct wf_status *status)
{
    (void)host;
    return wf_fail(status, -EOPNOTSUPP, "this build has no io_uring: liburing was not there when it was configured");
}

static int absent_open(void *host, const struct wf_engine_limits *limits, struct wf_engine **out,
                       struct wf_status *status)
{
    (void)limits;
    (void)out;
    return absent_probe(host, status);
}

const struct wf_engine_ops wf_engine_uring = {.name = "uring", .probe = absent_probe, .open = absent_open};
