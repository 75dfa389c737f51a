/*
 * Drivers that cannot be used, each in its own way: built once for every FAULT, all under the name libcuda.so.1. Has
 * the functions that a loader meets first; every other name it is asked for is one function that nobody may call.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_LOOK_UP = 1, NO_FUNCTION, NO_INIT, NO_DEVICE, NO_DEVICE_COUNT };

#define EXPORT __attribute__((visibility("default")))

EXPORT unsigned int cuDriverGetVersion(int *version);
EXPORT unsigned int cuDriverGetVersion(int *version)
{
    *version = FAULT == NO_LOOK_UP ? 11040 : 12020;
    return 0;
}

static unsigned int init(unsigned int flags)
{
    return FAULT == NO_INIT ? 803 : FAULT == NO_DEVICE ? 100 : flags;
}

static unsigned int error_name(unsigned int error, const char **name)
{
    *name = error == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : NULL;
    return *name ? 0 : 1;
}

static unsigned int error_string(unsigned int error, const char **text)
{
    *text = error == 803 ? "system has unsupported display driver / cuda driver combination" : NULL;
    return *text ? 0 : 1;
}

static unsigned int device_count(int *count)
{
    *count = 0;
    return 0;
}

static unsigned int never(void)
{
    fputs("a driver that was refused is used\n", stderr);
    abort();
}

#if FAULT == 1 /* as it was called before it told why it found nothing */
#define cuGetProcAddress_v2 cuGetProcAddress
#endif
EXPORT unsigned int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                                        unsigned int *found);
EXPORT unsigned int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                                        unsigned int *found)
{
    static const struct {
        const char *name;
        void *function;
    } known[] = {
        {"cuInit", (void *)init},
        {"cuDriverGetVersion", (void *)cuDriverGetVersion},
        {"cuGetErrorName", (void *)error_name},
        {"cuGetErrorString", (void *)error_string},
        {"cuDeviceGetCount", (void *)device_count},
    };

    (void)version, (void)flags;
    *found = 0;
    *function = (void *)never;
    /* In the midst of the list: what was found before it must not be used. */
    if (FAULT == NO_FUNCTION && strcmp(name, "cuMemHostRegister") == 0) {
        *found = 1;
        *function = NULL;
        return 0;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(name, known[i].name) == 0)
            *function = known[i].function;
    return 0;
}
