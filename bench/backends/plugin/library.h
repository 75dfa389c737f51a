/*
 * library.h: the file of a net plugin, its table of version 11, and what it has said in the log that NCCL would have
 * given it.
 */
#ifndef WF_BENCH_PLUGIN_LIBRARY_H
#define WF_BENCH_PLUGIN_LIBRARY_H

#include <jansson.h>

#include "base/status.h"
#include "plugins/nccl/abi.h"

#define NET_TABLE "ncclNetPlugin_v11"
#define NET_VERSION "v11"

/* Owner: the backend, or what only looks. All zero is one that is not open. */
struct net_library {
    void *handle;
    const struct nccl_net_v11 *net;
    char path[256];
};

/* `where` "": the one that was built with this program's library, else the loader's. -EOPNOTSUPP: there is none, or it
 * is not a plugin with this table. */
int net_library_open(struct net_library *library, const char *where, struct wf_status *status);
/* Also of one that is not open. */
void net_library_close(struct net_library *library);

/* --- the log (log.c) --- */

/* For init(). Lines go to standard error as the library's do; `level` is the setting `log`. A logger of NCCL's is told
 * nothing of its owner: what it has heard is one for the program. */
nccl_logger net_log_open(const char *level);
/* What was said of devices, a line each: a new reference. */
json_t *net_log_lines(void);

/* 0, or a negative errno with the last warning, for what `what` has returned. */
int net_failed(enum nccl_result result, const char *what, struct wf_status *status);

#endif
