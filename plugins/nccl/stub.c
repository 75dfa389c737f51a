/* Stands for the plugin until it is written: the exported names, and calls that need all of the library. */
#include <stdint.h>
#include <stdio.h>

#include "weft.h"

#define EXPORTED __attribute__((visibility("default")))
#define PATIENCE_MS 5000

/* The places of ncclNet_v11_t. */
struct stub {
    const char *name;
    int (*init)(void **context, uint64_t id, void *config, void *log, void *profile);
    int (*devices)(int *count);
    int (*properties)(int device, void *properties);
    void *between[16];
    int (*finalize)(void *context);
    void *attributes;
};

/* A session of the process with itself. */
static int reach(struct weft_context *context, struct weft_error *err)
{
    char address[32];
    struct weft_request *request;
    struct weft_peer *peer;
    int result = weft_listen(context, "127.0.0.1:0", err);
    if (result != 0)
        return result;
    snprintf(address, sizeof address, "127.0.0.1:%d", weft_listen_port(context));
    result = weft_connect_start(context, address, NULL, &request, err);
    if (result == 0)
        result = weft_accept(context, PATIENCE_MS, &peer, err);
    if (result == 0)
        result = weft_wait(request, PATIENCE_MS, NULL);
    return result;
}

static int init(void **out, uint64_t id, void *config, void *log, void *profile)
{
    struct weft_context *context;
    struct weft_error err;
    (void)id, (void)config, (void)log, (void)profile;
    int result = weft_context_create(NULL, &context, &err);
    if (result == 0) {
        *out = context;
        result = reach(context, &err);
    }
    if (result < 0)
        fprintf(stderr, "%s\n", err.text);
    return result < 0 ? 3 : 0;
}

static int devices(int *count)
{
    *count = 0;
    return 0;
}

static int finalize(void *context)
{
    weft_context_destroy(context);
    return 0;
}

#define STUB {.name = "Weft", .init = init, .devices = devices, .finalize = finalize}
EXPORTED extern const struct stub ncclNetPlugin_v8, ncclNetPlugin_v9, ncclNetPlugin_v10, ncclNetPlugin_v11, ncclNetPlugin_v12;
const struct stub ncclNetPlugin_v8 = STUB;
const struct stub ncclNetPlugin_v9 = STUB;
const struct stub ncclNetPlugin_v10 = STUB;
const struct stub ncclNetPlugin_v11 = STUB;
const struct stub ncclNetPlugin_v12 = STUB;
