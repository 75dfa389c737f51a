/* What there is one of: the world, its beginning, and what is counted in it. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int weft_emulated_driver = 1;

struct emu_world emu = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct emu_counter *_Atomic counters;

emu_result emu_enter(struct emu_counter *counter)
{
    atomic_fetch_add_explicit(&counter->calls, 1, memory_order_relaxed);
    if (!atomic_exchange(&counter->listed, true)) {
        counter->next = atomic_load(&counters);
        while (!atomic_compare_exchange_weak(&counters, &counter->next, counter))
            ;
    }
    return atomic_load(&emu.ready) ? EMU_OK : EMU_NOT_INITIALIZED;
}

/* A child of fork() has none of the threads, and no driver either, as with a real one. The lock is taken across it: no
 * thread of the driver's is there any more to give it back. */
static void before_fork(void)
{
    pthread_mutex_lock(&emu.lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&emu.lock);
}

static void in_child(void)
{
    atomic_store(&emu.ready, false);
    emu.device_count = 0;
    pthread_mutex_unlock(&emu.lock);
}

emu_result cuInit(unsigned int flags)
{
    static bool used;
    emu_result result = EMU_OK;

    (void)EMU_ENTER();
    if (flags != 0)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    if (!atomic_load(&emu.ready)) {
        result = used ? EMU_NOT_INITIALIZED : emu_settings_read(&emu);
        if (result == EMU_OK && emu.device_count == 0)
            result = EMU_NO_DEVICE;
        for (int i = 0; i < emu.device_count; i++)
            emu.devices[i].context.device = i;
        if (result == EMU_OK) {
            used = true;
            pthread_atfork(before_fork, in_parent, in_child);
            atomic_store(&emu.ready, true);
        }
    }
    pthread_mutex_unlock(&emu.lock);
    const char *faults = getenv("WEFT_EMULATED_FAULT");
    static atomic_bool taken;
    if (result == EMU_OK && faults && !atomic_exchange(&taken, true) && weft_emulated_fault(faults) != 0)
        return EMU_INVALID_VALUE;
    return result;
}

/* "cuMemAlloc_v2" is called "cuMemAlloc" by everyone. */
static bool is_named(const char *function, const char *name)
{
    size_t length = strlen(name);

    return strncmp(function, name, length) == 0 && (function[length] == '\0' || strcmp(function + length, "_v2") == 0);
}

static uint64_t calls_of(const char *name)
{
    uint64_t calls = 0;

    for (struct emu_counter *counter = atomic_load(&counters); counter; counter = counter->next)
        if (is_named(counter->name, name))
            calls += atomic_load_explicit(&counter->calls, memory_order_relaxed);
    return calls;
}

static uint64_t sum(const uint64_t *ways)
{
    return ways[EMU_OUT] + ways[EMU_IN] + ways[EMU_PEER];
}

uint64_t weft_emulated_count(const char *what)
{
    uint64_t result = UINT64_MAX;

    if (strncmp(what, "cu", 2) == 0)
        return emu_is_symbol(what) ? calls_of(what) : UINT64_MAX;
    pthread_mutex_lock(&emu.lock);
    const struct {
        const char *name;
        uint64_t value;
    } values[] = {
        {"copies", sum(emu.copies)},
        {"copies out", emu.copies[EMU_OUT]},
        {"copies in", emu.copies[EMU_IN]},
        {"copies peer", emu.copies[EMU_PEER]},
        {"bytes", sum(emu.bytes)},
        {"bytes out", emu.bytes[EMU_OUT]},
        {"bytes in", emu.bytes[EMU_IN]},
        {"bytes peer", emu.bytes[EMU_PEER]},
        {"synchronise", emu.synchronised},
        {"operations", emu.operations},
        {"failed", emu.failed},
        {"pending", emu.pending},
        {"allocated", emu.allocated},
        {"registered", emu.registered_bytes},
        {"streams", emu.streams},
        {"events", emu.events},
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (strcmp(what, values[i].name) == 0)
            result = values[i].value;
    pthread_mutex_unlock(&emu.lock);
    return result;
}
