/* A device: a context of the library on one rail or on all of them, and what NCCL is told of it. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugins/nccl/comm.h"

#define SPEED_UNKNOWN_MBIT 10000 /* as NCCL's own sockets say of an interface that tells no rate */
#define PEERS_MOST "65536"       /* NCCL decides how many peers there are */
#define REQUESTS_MOST "16777216"

int64_t plugin_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- what NCCL is told --- */

/* The PCI device of an interface below /sys; NULL: it has none. A virtio card is a child of it. The caller frees it. */
static char *pci_path_of(const char *interface)
{
    char link[PATH_MAX], path[PATH_MAX];
    snprintf(link, sizeof link, "/sys/class/net/%s/device", interface);
    if (!realpath(link, path))
        return NULL;
    char *last = strrchr(path, '/');
    if (last && strncmp(last, "/virtio", 7) == 0)
        *last = '\0';
    return strdup(path);
}

/* FNV-1a: https://datatracker.ietf.org/doc/html/draft-eastlake-fnv */
static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* The same in every process of this machine, another one for another card. */
static uint64_t guid_of(const struct weft_rail_info *rail, uint64_t hash)
{
    char path[96], address[32] = "";
    snprintf(path, sizeof path, "/sys/class/net/%.31s/address", rail->interface);
    FILE *file = fopen(path, "re");
    if (file && !fgets(address, sizeof address, file))
        address[0] = '\0';
    if (file)
        fclose(file);
    return mix(mix(mix(hash, rail->interface), address), rail->address);
}

static void describe(struct plugin_device *device)
{
    device->guid = UINT64_C(0xcbf29ce484222325) + (uint64_t)(device->rail + 1);
    for (int i = 0; i < device->rail_count; i++) {
        const struct weft_rail_info *rail = &device->rails[i];
        device->speed_mbit += rail->speed_mbit > 0 ? rail->speed_mbit : SPEED_UNKNOWN_MBIT;
        device->guid = guid_of(rail, device->guid);
    }
    const struct weft_rail_info *first = &device->rails[0];
    if (device->rail_count == 1)
        device->pci_path = pci_path_of(first->interface);
    if (device->rail >= 0)
        snprintf(device->name, sizeof device->name, "weft-%s", first->name);
    else
        snprintf(device->name, sizeof device->name, "weft-all");
}

/* --- settings --- */

static bool takes_gpu_memory(const struct weft_config *config)
{
    const char *wish = weft_config_get(config, "nccl_ptr");
    return strcmp(wish, "cuda") == 0 ||
           (strcmp(wish, "auto") == 0 && strcmp(weft_config_get(config, "devmem"), "require") == 0);
}

/* Another default than the library's. */
static int prefer(struct weft_config *config, const char *name, const char *value, struct weft_error *err)
{
    return weft_config_is_set(config, name) == 0 ? weft_config_set(config, name, value, err) : 0;
}

/* The environment's settings, changed where NCCL has decided already. */
static int make_settings(struct plugin_device *device, const struct weft_interface_info *rails, int rail_count,
                         struct weft_config **out, struct weft_error *err)
{
    struct weft_config *config;
    int result = weft_config_create_logged(plugin_take_line, NULL, &config, err);
    if (result < 0)
        return result;
    bool gpu = takes_gpu_memory(config);
    device->ptr_support = NCCL_PTR_HOST | (gpu ? NCCL_PTR_CUDA : 0);
    if (gpu && strcmp(weft_config_get(config, "devmem"), "require") == 0)
        device->ptr_support |= NCCL_PTR_DMABUF;
    device->connect_timeout_ms = atoi(weft_config_get(config, "connect_timeout")) * 1000;
    result = weft_config_set(config, "cuda", gpu ? "require" : "off", err);
    if (result == 0 && !gpu)
        result = weft_config_set(config, "devmem", "off", err);
    if (result == 0 && !gpu)
        result = weft_config_set(config, "gpus", "", err);
    if (result == 0)
        result = weft_config_set(config, "peers", PEERS_MOST, err);
    if (result == 0)
        result = weft_config_set(config, "requests", REQUESTS_MOST, err);
    if (result == 0) /* NCCL's log knows its own level */
        result = prefer(config, "log", "info", err);
    if (result == 0) /* what LL and small sends and receives post (docs/decisions/0049-nccl-eager.md) */
        result = prefer(config, "eager", "64K", err);
    if (result == 0) /* a killed peer that has dialled is given up after this time; a lost SYN comes again after 1 s */
        result = prefer(config, "rail_timeout_ms", "1500", err);
    if (result == 0 && device->rail >= 0 && device->rail < rail_count)
        result = weft_config_set(config, "rails", rails[device->rail].name, err);
    if (result < 0)
        weft_config_destroy(config);
    else
        *out = config;
    return result;
}

/* --- life --- */

/* Listens on every rail: the library takes the port of the first one for the others. */
static int listen_on_rails(struct plugin_device *device, struct weft_error *err)
{
    const char *first = device->rails[0].address;
    char address[80];
    snprintf(address, sizeof address, strchr(first, ':') ? "[%s]:0" : "%s:0", first);
    return weft_listen(device->context, address, err);
}

/* Who this side is, for the sessions between two processes (session.c). */
static int introduce(struct plugin_device *device, struct weft_error *err)
{
    char greeting[64];
    int length =
        snprintf(greeting, sizeof greeting, "nccl 1 %016llx %d", (unsigned long long)plugin_process(), device->index);
    return weft_greeting_set(device->context, greeting, (uint32_t)length, err);
}

static int open_context(struct plugin_device *device, const struct weft_config *config, struct weft_error *err)
{
    int result = weft_context_create(config, &device->context, err);
    if (result < 0)
        return result;
    device->rail_count = weft_context_rails(device->context, device->rails, PLUGIN_RAILS_MAX);
    result = introduce(device, err);
    if (result == 0)
        result = listen_on_rails(device, err);
    if (result == 0)
        result = weft_queue_create(device->context, &device->closing, err);
    if (result == 0)
        result = weft_endpoint_create(device->context, 0, &device->sender, err);
    return result;
}

static void say_what_is_used(const struct plugin_device *device)
{
    char rails[512] = "";
    size_t used = 0;
    for (int i = 0; i < device->rail_count && used < sizeof rails; i++)
        used += (size_t)snprintf(rails + used, sizeof rails - used, "%s%s", i ? "," : "", device->rails[i].name);
    plugin_info(NCCL_INIT | NCCL_NET, "version %s, device %d %s: rails %s, engine %s, %s memory", weft_version(),
                device->index, device->name, rails, weft_context_engine(device->context),
                device->ptr_support & NCCL_PTR_DMABUF ? "host and GPU (devmem)"
                : device->ptr_support & NCCL_PTR_CUDA ? "host and GPU (staged)"
                                                      : "host");
    for (const char *line = weft_context_fallbacks(device->context); *line;) {
        int length = (int)strcspn(line, "\n");
        plugin_info(NCCL_INIT | NCCL_NET, "%s: %.*s", device->name, length, line);
        line += length + (line[length] == '\n');
    }
}

enum nccl_result plugin_device_open(struct plugin_device *device, int index, const struct weft_interface_info *rails,
                                    int rail_count, int rail)
{
    *device = (struct plugin_device){.index = index, .rail = rail, .next_endpoint = 1, .next_joining = 1};
    pthread_mutex_init(&device->lock, NULL);
    struct weft_error err = {0};
    struct weft_config *config = NULL;
    int result = make_settings(device, rails, rail_count, &config, &err);
    if (result == 0)
        result = open_context(device, config, &err);
    weft_config_destroy(config);
    if (result < 0) {
        plugin_warn("%s", err.text);
        plugin_device_close(device);
        return plugin_result(result);
    }
    describe(device);
    say_what_is_used(device);
    return NCCL_SUCCESS;
}

void plugin_device_close(struct plugin_device *device)
{
    plugin_comms_forget(device);
    weft_context_destroy(device->context);
    device->context = NULL;
    plugin_sessions_free(device);
    free(device->pci_path);
    device->pci_path = NULL;
    pthread_mutex_destroy(&device->lock);
}

void plugin_device_ready_gpu(struct plugin_device *device)
{
    int gpu;
    void *driver = device->ptr_support & NCCL_PTR_CUDA ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    int (*current)(int *) = driver ? (int (*)(int *))dlsym(driver, "cuCtxGetDevice") : NULL;
    struct weft_error err;
    void *memory;
    if (current && current(&gpu) == 0) {
        if (weft_gpu_alloc(device->context, gpu, 4096, &memory, &err) == 0)
            weft_gpu_free(device->context, gpu, memory);
        else
            plugin_warn("%s", err.text);
    }
    if (driver)
        dlclose(driver);
}
