/* The plugin in one process: the devices, from the first init() to the last finalize(). */
#include "plugins/nccl/plugin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

/* What atexit() calls in a library, without a sanitizer in between, which would forget whose function it is. */
extern void *__dso_handle __attribute__((visibility("hidden")));
extern int __cxa_atexit(void (*function)(void *), void *argument, void *library);

static struct {
    pthread_mutex_t lock;
    int users;
    pid_t process; /* that has made the devices: a child of fork() has none of their threads */
    uint64_t number;
    struct plugin_device *devices;
    int device_count;
    bool ends_with_library; /* end() is registered */
    bool unloads;           /* the library does, not the process */
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t plugin_process(void)
{
    return plugin.number;
}

int plugin_class(const struct nccl_net_config *config)
{
    int value = config ? config->traffic_class : NCCL_NET_TRAFFIC_CLASS_UNDEF;
    if (value == NCCL_NET_TRAFFIC_CLASS_UNDEF)
        return PLUGIN_CLASS_UNSET;
    if (value >= 0 && value <= 3)
        return value;
    plugin_warn("traffic class %d is not one of 0 to 3 (WEFT_DSCP has their marks): class 0 is taken", value);
    return PLUGIN_CLASS_UNSET;
}

/* --- devices --- */

static void close_devices(void)
{
    for (int i = 0; i < plugin.device_count; i++)
        plugin_device_close(&plugin.devices[i]);
    free(plugin.devices);
    plugin.devices = NULL;
    plugin.device_count = 0;
}

/* Comes before end() when the library is unloaded, and after it when the process exits. */
static void __attribute__((destructor)) unload(void)
{
    plugin.unloads = true;
}

/* Waits for no lock: the thread that exits may hold it, when a signal has come in a call. */
static bool is_used(void)
{
    bool used = false;
    for (int i = 0; i < plugin.device_count && !used; i++)
        used = plugin_comms_open(&plugin.devices[i]);
    return used;
}

/* The library is unloaded, or the process exits: NCCL never finalises versions up to 10. A process that exits in the
 * middle of things has threads of NCCL's in calls, whose devices must stay: the kernel closes the sockets. Before it
 * unloads the library, NCCL has ended its threads, though perhaps not every listener and connect(). */
static void end(void *unused)
{
    (void)unused;
    if (plugin.process != getpid() || pthread_mutex_trylock(&plugin.lock) != 0)
        return;
    if (plugin.users > 0 && (plugin.unloads || !is_used())) {
        plugin.users = 0;
        plugin_log_to(NULL);
        close_devices();
    }
    pthread_mutex_unlock(&plugin.lock);
}

static enum nccl_result open_device(const struct weft_interface_info *rails, int rail_count, int rail)
{
    enum nccl_result result =
        plugin_device_open(&plugin.devices[plugin.device_count], plugin.device_count, rails, rail_count, rail);
    plugin.device_count += result == NCCL_SUCCESS;
    return result;
}

static int count_rails(const struct weft_interface_info *list, int count)
{
    int rails = 0;
    while (rails < count && rails < PLUGIN_RAILS_MAX && list[rails].is_rail)
        rails++;
    return rails;
}

static enum nccl_result open_devices(const struct weft_config *config)
{
    struct weft_interface_info rails[PLUGIN_RAILS_MAX];
    struct weft_error err = {0};
    int listed = weft_interfaces(config, rails, PLUGIN_RAILS_MAX, &err);
    if (listed < 0) {
        plugin_warn("%s", err.text);
        return plugin_result(listed);
    }
    int rail_count = count_rails(rails, listed);
    const char *wish = weft_config_get(config, "nccl_devices");
    bool all = strcmp(wish, "rails") != 0, each = strcmp(wish, "all") != 0;
    plugin.devices = calloc((size_t)rail_count + 1, sizeof *plugin.devices);
    enum nccl_result result = plugin.devices ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
    if (result == NCCL_SUCCESS && all)
        result = open_device(rails, rail_count, -1);
    for (int i = 0; i < rail_count && each && result == NCCL_SUCCESS; i++)
        result = open_device(rails, rail_count, i);
    if (result != NCCL_SUCCESS)
        close_devices();
    return result;
}

/* Whether NCCL's list of protocols ("Simple", "^LL,LL128") leaves Simple alone. */
static bool leaves_simple(const char *list)
{
    bool ll = false, ll128 = false;
    if (*list != '^')
        return strcasecmp(list, "Simple") == 0;
    for (const char *at = list + 1; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t length = strcspn(at, ",");
        ll |= length == 2 && strncasecmp(at, "LL", length) == 0;
        ll128 |= length == 5 && strncasecmp(at, "LL128", length) == 0;
    }
    return ll && ll128;
}

/* NCCL's kernels of the protocols LL and LL128 use what a receive brings as it comes. With checksums or encryption it
 * is there before it is proven, copies into GPU memory have no order, and only LL gets by with the order of the
 * processor's copies (docs/decisions/0048-whole-words.md). NCCL reads these variables later, as it does those of its
 * configuration file, which it sets in this way, too. */
static void choose_protocols(const struct weft_config *config)
{
    const char *chosen = getenv("NCCL_PROTO");
    bool proves =
        strcmp(weft_config_get(config, "crc"), "on") == 0 || strcmp(weft_config_get(config, "encrypt"), "on") == 0;
    bool gpu = plugin.devices[0].ptr_support & NCCL_PTR_CUDA;
    if (proves || gpu) /* of send and receive, for which NCCL_PROTO does not count */
        setenv("NCCL_P2P_LL_THRESHOLD", "0", 0);
    if (!proves && !gpu) {
        setenv("NCCL_LL128_C2C", "0", 0); /* else Grace takes LL128 over a network by itself */
    } else if (!chosen) {
        setenv("NCCL_PROTO", "Simple", 0);
        plugin_info(NCCL_INIT | NCCL_NET, "NCCL_PROTO is set to Simple: %s",
                    proves ? "with the settings crc and encrypt nothing may be used before it is proven"
                           : "copies into GPU memory bring bytes in no order");
    } else if (!leaves_simple(chosen)) {
        plugin_warn("NCCL_PROTO is %s: %s", chosen,
                    proves ? "with the settings crc and encrypt only Simple uses nothing before it is proven"
                           : "only Simple is safe with copies into GPU memory, which bring bytes in no order");
    }
}

static enum nccl_result begin(void)
{
    if (getrandom(&plugin.number, sizeof plugin.number, 0) != sizeof plugin.number)
        return NCCL_SYSTEM_ERROR;
    struct weft_config *config;
    struct weft_error err = {0};
    int result = weft_config_create_logged(plugin_take_line, NULL, &config, &err);
    if (result < 0) {
        plugin_warn("%s", err.text);
        return plugin_result(result);
    }
    enum nccl_result opened = open_devices(config);
    if (opened == NCCL_SUCCESS)
        choose_protocols(config);
    weft_config_destroy(config);
    /* After the devices: what OpenSSL has registered meanwhile runs later than end(). */
    if (opened == NCCL_SUCCESS && !plugin.ends_with_library)
        plugin.ends_with_library = __cxa_atexit(end, NULL, &__dso_handle) == 0;
    return opened;
}

/* --- users --- */

/* What a parent process has made is its own: the child leaves it where it is. */
static void forget_parent(void)
{
    if (plugin.process == getpid())
        return;
    plugin.users = 0;
    plugin.devices = NULL;
    plugin.device_count = 0;
    plugin.process = getpid();
}

static enum nccl_result take_user(void)
{
    forget_parent();
    enum nccl_result result = plugin.users > 0 ? NCCL_SUCCESS : begin();
    if (result != NCCL_SUCCESS)
        return result;
    plugin.users++;
    for (int i = 0; i < plugin.device_count; i++)
        plugin_device_ready_gpu(&plugin.devices[i]);
    return NCCL_SUCCESS;
}

enum nccl_result plugin_init(struct plugin_user *user, const struct nccl_net_config *config, nccl_logger logger,
                             nccl_profiler profiler)
{
    plugin_log_to(logger);
    *user = (struct plugin_user){.traffic_class = plugin_class(config), .profiler = profiler};
    pthread_mutex_lock(&plugin.lock);
    enum nccl_result result = take_user();
    pthread_mutex_unlock(&plugin.lock);
    return result;
}

void plugin_finalize(const struct plugin_user *user)
{
    pthread_mutex_lock(&plugin.lock);
    if (plugin.process == getpid() && --plugin.users == 0)
        close_devices();
    else if (plugin.process == getpid())
        for (int i = 0; i < plugin.device_count; i++)
            plugin_connects_end(&plugin.devices[i], user);
    pthread_mutex_unlock(&plugin.lock);
}

enum nccl_result plugin_devices(int *count)
{
    pthread_mutex_lock(&plugin.lock);
    *count = plugin.device_count;
    pthread_mutex_unlock(&plugin.lock);
    return NCCL_SUCCESS;
}

/* Devices stay where they are as long as there are users. */
struct plugin_device *plugin_device(int index)
{
    pthread_mutex_lock(&plugin.lock);
    struct plugin_device *found = index >= 0 && index < plugin.device_count ? &plugin.devices[index] : NULL;
    pthread_mutex_unlock(&plugin.lock);
    if (!found)
        plugin_warn("there is no device %d", index);
    return found;
}
