#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The GPUs of configs/topologies/dgx-8nic.xml. */
static const char *const usual[] = {"0000:18:00.0", "0000:3a:00.0", "0000:4b:00.0", "0000:5c:00.0",
                                    "0000:9a:00.0", "0000:ba:00.0", "0000:ca:00.0", "0000:da:00.0"};
#define USUAL ((int)(sizeof(usual) / sizeof(usual[0])))

bool emu_read_size(const char *text, uint64_t *out)
{
    static const char suffixes[] = "KMGT";
    char *end;
    unsigned int shift = 0;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    const char *suffix = *end != '\0' ? strchr(suffixes, *end) : NULL;
    if (suffix) {
        shift = 10 * (unsigned int)(suffix - suffixes + 1);
        end++;
    }
    if (*end != '\0' || number > UINT64_MAX >> shift)
        return false;
    *out = (uint64_t)number << shift;
    return true;
}

static bool refused(const char *name, const char *text, const char *wanted)
{
    fprintf(stderr, "emulated CUDA driver: %s='%s': expected %s\n", name, text, wanted);
    return false;
}

/* `out` stays what it is where the environment says nothing. */
static bool read_number(const char *name, uint64_t least, uint64_t most, uint64_t *out)
{
    const char *text = getenv(name);
    uint64_t number;
    char wanted[96];

    if (!text || *text == '\0')
        return true;
    if (emu_read_size(text, &number) && number >= least && number <= most) {
        *out = number;
        return true;
    }
    snprintf(wanted, sizeof(wanted), "a number from %llu to %llu, with K, M, G or T behind it or not",
             (unsigned long long)least, (unsigned long long)most);
    return refused(name, text, wanted);
}

static bool is_address(const char *text, size_t length)
{
    unsigned int domain, bus, device, function;
    int used = 0;
    char copy[16];

    if (length != strlen("0000:00:00.0"))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return sscanf(copy, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) == 4 && used == (int)length;
}

static bool add_address(struct emu_world *world, int *count, const char *text, size_t length)
{
    if (!is_address(text, length))
        return false;
    if (*count < EMU_DEVICES_MAX)
        snprintf(world->devices[(*count)++].address, sizeof(world->devices[0].address), "%.*s", (int)length, text);
    return true;
}

static bool addresses_of_list(struct emu_world *world, const char *list, int *count)
{
    while (*list != '\0') {
        size_t length = strcspn(list, ",");
        if (!add_address(world, count, list, length))
            return refused("WEFT_EMULATED_PCI", list, "addresses such as 0000:18:00.0, separated by commas");
        list += length + (list[length] == ',');
    }
    return true;
}

/* hwloc writes an object's attributes in one line: the address, then "class [vendor:device] ...". */
static bool addresses_of_file(struct emu_world *world, const char *path, int *count)
{
    FILE *file = fopen(path, "re");
    char line[1024];

    if (!file)
        return refused("WEFT_EMULATED_TOPOLOGY", path, "an hwloc XML file that can be read");
    while (fgets(line, sizeof(line), file)) {
        const char *bus = strstr(line, "pci_busid=\"");
        const char *type = strstr(line, "pci_type=\"03");
        if (bus && type && strstr(type, "[10de:"))
            add_address(world, count, bus + strlen("pci_busid=\""), strlen("0000:00:00.0"));
    }
    fclose(file);
    return *count > 0 || refused("WEFT_EMULATED_TOPOLOGY", path, "a topology with NVIDIA GPUs");
}

static bool read_devices(struct emu_world *world)
{
    const char *list = getenv("WEFT_EMULATED_PCI"), *path = getenv("WEFT_EMULATED_TOPOLOGY");
    int known = 0;
    uint64_t count;

    if (list && *list != '\0') {
        if (!addresses_of_list(world, list, &known))
            return false;
    } else if (path && *path != '\0') {
        if (!addresses_of_file(world, path, &known))
            return false;
    } else {
        for (int i = 0; i < USUAL; i++)
            add_address(world, &known, usual[i], strlen(usual[i]));
    }
    count = (uint64_t)known;
    if (!read_number("WEFT_EMULATED_GPUS", 0, EMU_DEVICES_MAX, &count))
        return false;
    world->device_count = (int)count;
    for (int i = 0; i < world->device_count; i++) {
        struct emu_device *device = &world->devices[i];
        device->index = i;
        if (i >= known)
            snprintf(device->address, sizeof(device->address), "f000:%02x:00.0", (unsigned int)i);
        snprintf(device->name, sizeof(device->name), "Weft emulated GPU %d", i);
    }
    return true;
}

emu_result emu_settings_read(struct emu_world *world)
{
    struct emu_settings *settings = &world->settings;
    uint64_t old = 0, coherent = 0, udmabuf = 0;

    *settings = (struct emu_settings){.memory = 4ULL << 30, .guard = 65536, .latency_us = 5, .seed = 1};
    if (!read_devices(world) || !read_number("WEFT_EMULATED_MEMORY", 1 << 20, 1ULL << 38, &settings->memory) ||
        !read_number("WEFT_EMULATED_GUARD", 0, 1ULL << 30, &settings->guard) ||
        !read_number("WEFT_EMULATED_LATENCY_US", 0, 1000000, &settings->latency_us) ||
        !read_number("WEFT_EMULATED_RATE", 0, 1ULL << 50, &settings->rate) ||
        !read_number("WEFT_EMULATED_CLOCK_PPM", 0, 100000, &settings->clock_ppm) ||
        !read_number("WEFT_EMULATED_SEED", 0, UINT64_MAX, &settings->seed) ||
        !read_number("WEFT_EMULATED_COHERENT", 0, 1, &coherent) ||
        !read_number("WEFT_EMULATED_UDMABUF", 0, 2, &udmabuf) || !read_number("WEFT_EMULATED_OLD", 0, 1, &old))
        return EMU_INVALID_VALUE;
    settings->coherent = coherent == 1;
    settings->old = old == 1;
    settings->udmabuf = udmabuf > 0;
    settings->huge = udmabuf == 2;
    return EMU_OK;
}
