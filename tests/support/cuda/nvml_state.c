/* What tests say of a GPU while a program runs, and what they see of it: a folder of small files. */
#include "nvml_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* False: there is no folder. */
static bool path_of(int index, const char *what, char *path, size_t size)
{
    const char *folder = getenv("WEFT_EMULATED_NVML_STATE");

    return folder && *folder && snprintf(path, size, "%s/gpu%d.%s", folder, index, what) < (int)size;
}

static FILE *open_file(int index, const char *what)
{
    char path[512];

    return path_of(index, what, path, sizeof(path)) ? fopen(path, "re") : NULL;
}

unsigned int emu_nvml_numbers(int index, const char *what, unsigned int *numbers, unsigned int max)
{
    FILE *file = open_file(index, what);
    unsigned int count = 0;
    int number;

    while (file && count < max && fscanf(file, "%i", &number) == 1)
        numbers[count++] = (unsigned int)number;
    if (file)
        fclose(file);
    return count;
}

bool emu_nvml_number(int index, const char *what, unsigned long long *number)
{
    FILE *file = open_file(index, what);
    long long read;
    bool found = file && fscanf(file, "%lli", &read) == 1;

    if (found)
        *number = (unsigned long long)read;
    if (file)
        fclose(file);
    return found;
}

/* EMU_NVML_OK: the clocks may be changed. */
static emu_nvml_result may_change(int index)
{
    char path[512];

    if (!path_of(index, "refuse", path, sizeof(path)))
        return EMU_NVML_NOT_SUPPORTED;
    return access(path, F_OK) == 0 ? EMU_NVML_NO_PERMISSION : EMU_NVML_OK;
}

/* Under its name the file is there as a whole, or not at all. */
emu_nvml_result emu_nvml_lock(int index, unsigned int least_mhz, unsigned int most_mhz)
{
    char path[512], made[600];
    emu_nvml_result result = may_change(index);

    if (result != EMU_NVML_OK || !path_of(index, "locked", path, sizeof(path)))
        return result;
    snprintf(made, sizeof(made), "%s.%d", path, getpid());
    FILE *file = fopen(made, "we");
    if (!file)
        return EMU_NVML_UNKNOWN;
    fprintf(file, "%u %u\n", least_mhz, most_mhz);
    return fclose(file) == 0 && rename(made, path) == 0 ? EMU_NVML_OK : EMU_NVML_UNKNOWN;
}

emu_nvml_result emu_nvml_unlock(int index)
{
    char path[512];
    emu_nvml_result result = may_change(index);

    if (result == EMU_NVML_OK && path_of(index, "locked", path, sizeof(path)))
        unlink(path);
    return result;
}

bool emu_nvml_locked(int index, unsigned int *least_mhz, unsigned int *most_mhz)
{
    unsigned int numbers[2];

    if (emu_nvml_numbers(index, "locked", numbers, 2) != 2)
        return false;
    *least_mhz = numbers[0];
    *most_mhz = numbers[1];
    return true;
}
