#include "mem/cuda_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"
#define EMULATED_MARK "weft_emulated_driver"

/* The first driver with cuGetProcAddress_v2; older drivers have another major version. */
#define OLDEST_VERSION "12.0"

enum need { OPTIONAL, REQUIRED };

static const struct entry {
    const char *name;
    size_t offset; /* in struct wf_cuda_api */
    int version;
    enum need need;
} entries[] = {
#define ENTRY(name, version, need, parameters) {#name, offsetof(struct wf_cuda_api, name), version, need},
    WF_CUDA_FUNCTIONS(ENTRY)
#undef ENTRY
};

enum { ENTRIES = sizeof(entries) / sizeof(*entries) };

bool wf_cuda_is_loaded(void)
{
    /* Without loading it, which would cost a second and a file where there is none. */
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);

    if (!library)
        return false;
    dlclose(library);
    return true;
}

const char *wf_cuda_error(const struct wf_cuda_api *api, wf_cu_result result, char text[WF_CUDA_ERROR_TEXT])
{
    const char *name = NULL;

    if (!api->cuGetErrorName || api->cuGetErrorName(result, &name) || !name)
        name = "unknown CUDA error";
    snprintf(text, WF_CUDA_ERROR_TEXT, "%s (%u)", name, result);
    return text;
}

/* What the loader says repeats the name of the library, and a person has read it by then. */
static int no_library(struct wf_status *status)
{
    const char *text = dlerror();
    size_t name = sizeof(LIBRARY ": ") - 1;

    if (text && strncmp(text, LIBRARY ": ", name) == 0)
        text += name;
    return wf_fail(status, -ENODEV, "no " LIBRARY ": %s", text ? text : "no reason given");
}

/* For a driver that is not used: its version is all that is asked of it. */
static void version_text(void *library, char *text, size_t size)
{
    wf_cu_result (*get_version)(int *version) = NULL;
    int version = 0;

    *(void **)&get_version = dlsym(library, "cuDriverGetVersion");
    if (get_version && get_version(&version) == WF_CU_SUCCESS)
        snprintf(text, size, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    else
        snprintf(text, size, "an unknown version of CUDA");
}

static int too_old(void *library, const char *name, struct wf_status *status)
{
    char version[48];

    version_text(library, version, sizeof(version));
    return wf_fail(status, -ENODEV,
                   "the GPU driver is too old: it is made for %s and has no %s; install one for CUDA " OLDEST_VERSION
                   " or later",
                   version, name);
}

static int look_up_cuda(void *library, struct wf_cuda_api *api, struct wf_status *status)
{
    wf_cu_get_proc_address get_address = NULL;

    *(void **)&get_address = dlsym(library, WF_CUDA_GET_PROC_ADDRESS);
    if (!get_address)
        return too_old(library, WF_CUDA_GET_PROC_ADDRESS, status);
    for (int i = 0; i < ENTRIES; i++) {
        void *function = NULL;
        unsigned int found = 0;
        /* A driver that is older than the prototype answers with an error or with no function, as it likes. */
        if (get_address(entries[i].name, &function, entries[i].version, 0, &found) || found)
            function = NULL;
        if (!function && entries[i].need == REQUIRED)
            return too_old(library, entries[i].name, status);
        memcpy((char *)api + entries[i].offset, &function, sizeof(function));
    }
    return 0;
}

static int initialize(struct wf_cuda_driver *driver, struct wf_status *status)
{
    const struct wf_cuda_api *api = &driver->api;
    char error[WF_CUDA_ERROR_TEXT];
    wf_cu_result result = api->cuInit(0);
    const char *text = NULL;

    if (result && result != WF_CU_NO_DEVICE) {
        if (api->cuGetErrorString(result, &text) || !text)
            text = "no reason given";
        return wf_fail(status, -ENODEV, "cuInit: %s: %s", wf_cuda_error(api, result, error), text);
    }
    if (!result)
        result = api->cuDeviceGetCount(&driver->devices);
    if (result && result != WF_CU_NO_DEVICE)
        return wf_fail(status, -ENODEV, "cuDeviceGetCount: %s", wf_cuda_error(api, result, error));
    if (result || driver->devices <= 0)
        return wf_fail(status, -ENODEV, "the GPU driver has no device (is CUDA_VISIBLE_DEVICES empty?)");
    if (api->cuDriverGetVersion(&driver->version))
        driver->version = 0;
    return 0;
}

int wf_cuda_driver_open(struct wf_cuda_driver *out, struct wf_status *status)
{
    /* Filled apart from `out`: another thread never reads half a table. */
    struct wf_cuda_driver driver = {0};
    int result;

    driver.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!driver.library)
        return no_library(status);
    result = look_up_cuda(driver.library, &driver.api, status);
    if (!result)
        result = initialize(&driver, status);
    if (result) {
        dlclose(driver.library);
        return result;
    }
    driver.emulated = dlsym(driver.library, EMULATED_MARK) != NULL;
    *out = driver;
    return 0;
}

void wf_cuda_driver_close(struct wf_cuda_driver *driver)
{
    if (driver->library)
        dlclose(driver->library);
    *driver = (struct wf_cuda_driver){0};
}

wf_cu_result wf_cuda_context_enter(const struct wf_cuda_api *api, int ordinal, wf_cu_device *device,
                                   wf_cu_context *context)
{
    wf_cu_result result = api->cuDeviceGet(device, ordinal);

    if (result == WF_CU_SUCCESS)
        result = api->cuDevicePrimaryCtxRetain(context, *device);
    return result == WF_CU_SUCCESS ? api->cuCtxPushCurrent(*context) : result;
}
