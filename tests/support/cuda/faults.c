/* Which call or copy fails: a list of what is to happen, each with how many more it lets pass. */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAULTS_MAX 64
#define ANY (-1)

struct fault {
    enum emu_fault_kind kind;
    int device, way; /* or ANY */
    uint64_t at;     /* 1: the next that matches; 0: now */
    emu_result code;
};

static const struct {
    const char *word;
    enum emu_fault_kind kind;
    emu_result code;
} kinds[] = {
    {"alloc", EMU_FAULT_ALLOC, EMU_OUT_OF_MEMORY},   {"register", EMU_FAULT_REGISTER, EMU_OUT_OF_MEMORY},
    {"launch", EMU_FAULT_LAUNCH, EMU_LAUNCH_FAILED}, {"lost", EMU_FAULT_LOST, EMU_UNKNOWN},
    {"copy", EMU_FAULT_COPY, EMU_ECC_UNCORRECTABLE}, {"refuse", EMU_FAULT_REFUSE, EMU_OUT_OF_MEMORY},
};

static struct fault faults[FAULTS_MAX]; /* under the lock of the world */
static int fault_count;

/* Of those that match, each counts; the first that is due is taken. */
static enum emu_fault_kind due_locked(bool copy, enum emu_fault_kind kind, int device, int way, emu_result *code)
{
    enum emu_fault_kind taken = EMU_FAULT_NONE;

    for (int i = 0; i < fault_count; i++) {
        struct fault *fault = &faults[i];
        bool about = copy ? fault->kind >= EMU_FAULT_LAUNCH : fault->kind == kind;
        if (!about || (fault->device != ANY && fault->device != device) || (fault->way != ANY && fault->way != way))
            continue;
        if (fault->at > 1) {
            fault->at--;
            continue;
        }
        if (taken != EMU_FAULT_NONE)
            continue; /* one at a time: this one is for the next */
        taken = fault->kind;
        *code = fault->code;
        *fault = faults[--fault_count];
        i--;
    }
    return taken;
}

emu_result emu_fault_call_locked(enum emu_fault_kind kind, int device)
{
    emu_result code = EMU_OK;

    due_locked(false, kind, device, ANY, &code);
    return code;
}

enum emu_fault_kind emu_fault_copy_locked(int device, enum emu_way way, emu_result *code)
{
    return due_locked(true, EMU_FAULT_NONE, device, (int)way, code);
}

static bool others_move_locked(int device)
{
    for (int i = 0; i < emu.device_count; i++)
        if (emu.devices[i].moving >> device & 1)
            return true;
    return false;
}

void emu_lose_locked(struct emu_device *device, emu_result code)
{
    device->lost = true; /* first: nothing new begins while the rest is waited for */
    device->lost_code = code;
    while (others_move_locked(device->index))
        pthread_cond_wait(&emu.changed, &emu.lock);
    emu_context_drop_locked(&device->context, code);
}

int weft_emulated_lost(int device)
{
    bool lost = false;

    pthread_mutex_lock(&emu.lock);
    if (device >= 0 && device < emu.device_count)
        lost = emu.devices[device].lost;
    pthread_mutex_unlock(&emu.lock);
    return lost;
}

/* --- reading a specification --- */

static bool read_value(struct fault *fault, const char *key, const char *value)
{
    static const char *const ways[] = {"out", "in", "peer"};
    uint64_t number;

    if (strcmp(key, "way") == 0) {
        for (int i = 0; i < EMU_WAYS; i++)
            if (strcmp(value, ways[i]) == 0)
                fault->way = i;
        return fault->way != ANY && fault->kind >= EMU_FAULT_LAUNCH;
    }
    if (!emu_read_size(value, &number))
        return false;
    if (strcmp(key, "device") == 0 && number < (uint64_t)emu.device_count)
        fault->device = (int)number;
    else if (strcmp(key, "at") == 0 && number > 0)
        fault->at = number;
    else if (strcmp(key, "code") == 0 && number > 0 && number < 1000)
        fault->code = (emu_result)number;
    else
        return false;
    return true;
}

/* `item` is taken apart. */
static bool read_item(char *item, struct fault *out)
{
    char *values = strchr(item, ':'), *place = NULL;
    struct fault fault = {.device = ANY, .way = ANY};

    if (values)
        *values++ = '\0';
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(item, kinds[i].word) == 0) {
            fault.kind = kinds[i].kind;
            fault.code = kinds[i].code;
        }
    if (fault.kind == EMU_FAULT_NONE)
        return false;
    for (char *key = values ? strtok_r(values, ",", &place) : NULL; key; key = strtok_r(NULL, ",", &place)) {
        char *value = strchr(key, '=');
        if (!value)
            return false;
        *value++ = '\0';
        if (!read_value(&fault, key, value))
            return false;
    }
    if (fault.at == 0 && fault.kind != EMU_FAULT_LOST)
        fault.at = 1;
    if (fault.at == 0 && fault.device == ANY)
        return false; /* which one is to be lost now? */
    *out = fault;
    return true;
}

static void heal_locked(void)
{
    for (int i = 0; i < emu.device_count; i++) {
        emu.devices[i].lost = false;
        emu.devices[i].context.error = EMU_OK;
    }
}

int weft_emulated_fault(const char *spec)
{
    struct fault read[FAULTS_MAX];
    int count = 0;
    bool clear = false, heal = false, good = atomic_load(&emu.ready);
    char *text = strdup(spec), *place = NULL;

    for (char *item = text ? strtok_r(text, ";", &place) : NULL; good && item; item = strtok_r(NULL, ";", &place)) {
        bool heals = strcmp(item, "heal") == 0;
        if (heals || strcmp(item, "clear") == 0) {
            clear = true;
            heal = heal || heals;
        } else {
            good = count < FAULTS_MAX && read_item(item, &read[count]);
            count++;
        }
    }
    free(text);
    pthread_mutex_lock(&emu.lock);
    good = good && count + (clear ? 0 : fault_count) <= FAULTS_MAX;
    if (good) {
        fault_count = clear ? 0 : fault_count;
        if (heal)
            heal_locked();
        for (int i = 0; i < count; i++) {
            if (read[i].at == 0)
                emu_lose_locked(&emu.devices[read[i].device], read[i].code);
            else
                faults[fault_count++] = read[i];
        }
    }
    pthread_mutex_unlock(&emu.lock);
    if (good)
        return 0;
    fprintf(stderr,
            "emulated CUDA driver: fault '%s': expected items as tests/support/cuda/emulated.h describes them\n", spec);
    return -EINVAL;
}
