/*
 * The benchmark on GPUs that are none: which of them are endpoints, what is needed of each, and buffers that the
 * processor cannot touch: what lies at an address of theirs is mapped without access, so a stray one ends the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "affinity/pin.h"
#include "bench/buffers/arena.h"
#include "bench/backends/backend.h"
#include "bench/buffers/memory.h"
#include "bench/plan/names.h"
#include "mem/memory.h"
#include "bench/buffers/pattern.h"
#include "bench/topo/topo.h"

/* ------------------------------------------------------------------------------------------- a world without GPUs */

static const struct bench_backend_ops backend = {.name = "weft", .moves_data = true};
static const struct bench_backend_choice backends[] = {{"weft", &backend}, {NULL, NULL}};

int bench_control_check(struct bench_control *control, struct wf_status *status)
{
    (void)control, (void)status;
    return 0;
}

int wf_place_of_device(const char *pci)
{
    return pci[0] == '0' ? 1 : -1;
}

#define BLOCKS 16

/* Two views of the same bytes: [0] as the program sees them, [1] as the device does. */
static struct block {
    uint8_t *view[2];
    uint64_t bytes;
    int gpu;
} blocks[BLOCKS];

static uint64_t allocated(int gpu)
{
    uint64_t sum = 0;

    for (int i = 0; i < BLOCKS; i++)
        sum += blocks[i].view[0] && blocks[i].gpu == gpu ? blocks[i].bytes : 0;
    return sum;
}

/* Where the device finds what the program calls `at`: the same place for host memory. */
static uint8_t *seen_by_device(const void *at)
{
    for (int i = 0; i < BLOCKS; i++) {
        const struct block *block = &blocks[i];
        if (block->view[0] && (const uint8_t *)at >= block->view[0] &&
            (const uint8_t *)at < block->view[0] + block->bytes)
            return block->view[1] + ((const uint8_t *)at - block->view[0]);
    }
    return (uint8_t *)(uintptr_t)at;
}

int weft_gpu_alloc(struct weft_context *context, int gpu, uint64_t bytes, void **out, struct weft_error *err)
{
    int at = 0;

    (void)context, (void)err;
    while (blocks[at].view[0])
        assert_true(++at < BLOCKS);
    blocks[at].view[0] = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    blocks[at].view[1] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    blocks[at].bytes = bytes;
    blocks[at].gpu = gpu;
    *out = blocks[at].view[0];
    return 0;
}

void weft_gpu_free(struct weft_context *context, int gpu, void *memory)
{
    (void)context;
    for (int i = 0; memory && i < BLOCKS; i++) {
        if (blocks[i].view[0] != memory)
            continue;
        assert_int_equal(blocks[i].gpu, gpu);
        for (int view = 0; view < 2; view++)
            munmap(blocks[i].view[view], blocks[i].bytes);
        memset(&blocks[i], 0, sizeof(blocks[i]));
        return;
    }
    assert_null(memory);
}

int weft_gpu_copy(struct weft_context *context, void *to, const void *from, uint64_t bytes, struct weft_error *err)
{
    (void)context, (void)err;
    memcpy(seen_by_device(to), seen_by_device(from), bytes);
    return 0;
}

/* ------------------------------------------------------------------------------------------- a driver */

static int driver_gpus; /* -1: no driver; 0: one that does not work */
static int was_opened;

static bool fake_present(void *host)
{
    (void)host;
    return driver_gpus >= 0;
}

static int fake_open(void *host, struct wf_memory **out, struct wf_status *status)
{
    (void)host;
    was_opened++;
    if (driver_gpus < 1)
        return wf_fail(status, -19, driver_gpus < 0 ? "no library" : "no device");
    *out = (struct wf_memory *)&driver_gpus;
    return 0;
}

static void fake_close(struct wf_memory *memory)
{
    assert_non_null(memory);
}

static const char *fake_name(const struct wf_memory *memory)
{
    (void)memory;
    return "cuda (emulated)";
}

static int fake_devices(const struct wf_memory *memory, struct wf_device_info *infos, int max)
{
    (void)memory;
    for (int i = 0; i < driver_gpus && i < max; i++)
        infos[i] = (struct wf_device_info){.index = i, .name = "none", .pci = "0000:01:00.0", .bytes = 1 << 20};
    return driver_gpus;
}

const struct wf_memory_ops wf_memory_cuda = {.kind = "cuda",
                                             .present = fake_present,
                                             .open = fake_open,
                                             .close = fake_close,
                                             .name = fake_name,
                                             .devices = fake_devices};

/* ------------------------------------------------------------------------------------------- what is chosen */

struct setting {
    enum wf_setting_id id;
    const char *text;
};

/* Settings end with an empty text. */
static int choose(const struct setting *settings, int gpus, enum bench_command command, struct bench_gpus *out,
                  struct wf_status *status)
{
    static struct wf_config config;
    struct bench_options options = {.command = command, .config = &config};

    wf_config_init(&config);
    for (int i = 0; settings[i].text; i++)
        assert_int_equal(wf_config_set(&config, settings[i].id, settings[i].text, WF_ORIGIN_COMMAND, "test", status),
                         0);
    driver_gpus = gpus;
    was_opened = 0;
    status->text[0] = '\0';
    return bench_gpus_choose(out, &options, 0, status);
}

/* "0,2" */
static char *list_of(const struct bench_gpus *gpus, char *buffer, size_t room)
{
    size_t used = 0;

    buffer[0] = '\0';
    for (uint32_t i = 0; i < gpus->count && used < room; i++)
        used += (size_t)snprintf(buffer + used, room - used, i ? ",%d" : "%d", gpus->infos[i].index);
    return buffer;
}

static void gpus_are_chosen_by_settings_and_by_what_there_is(void **state)
{
    static const struct {
        struct setting settings[4];
        int gpus; /* that the driver has */
        enum bench_command command;
        int rc;
        const char *list, *text; /* the list that is chosen; what the error says */
        bool fallback;
    } table[] = {
        {{{0}}, -1, BENCH_MESH, 0, "", "", false},
        {{{0}}, 0, BENCH_MESH, 0, "", "", true},
        {{{0}}, 3, BENCH_MESH, 0, "0,1,2", "", false},
        {{{WF_SET_MEMORY, "host"}}, 3, BENCH_MESH, 0, "", "", false},
        {{{WF_SET_CUDA, "off"}}, 3, BENCH_MESH, 0, "", "", false},
        {{{WF_SET_GPUS, "2,0-1"}}, 3, BENCH_MESH, 0, "2,0,1", "", false},
        {{{WF_SET_GPUS, "all"}}, 2, BENCH_MESH, 0, "0,1", "", false},
        {{{WF_SET_GPUS, "3"}}, 3, BENCH_MESH, -22, "", "GPUs 0, 1 and 2", false},
        {{{WF_SET_GPUS, "1"}}, 1, BENCH_MESH, -22, "", "this machine has GPU 0", false},
        {{{WF_SET_GPUS, "1,0,1"}}, 3, BENCH_MESH, -22, "", "twice", false},
        {{{WF_SET_GPUS, "1-0"}}, 3, BENCH_MESH, -22, "", "'1-0'", false},
        {{{WF_SET_GPUS, "0"}}, -1, BENCH_MESH, -95, "", "no library", false},
        {{{WF_SET_MEMORY, "cuda"}}, -1, BENCH_MESH, -95, "", "no library", false},
        {{{WF_SET_MEMORY, "cuda"}}, 0, BENCH_MESH, -95, "", "no device", false},
        {{{WF_SET_CUDA, "require"}}, -1, BENCH_MESH, -95, "", "cuda = require", false},
        {{{WF_SET_CUDA, "require"}, {WF_SET_MEMORY, "host"}}, -1, BENCH_MESH, -95, "", "cuda = require", false},
        {{{WF_SET_CUDA, "require"}, {WF_SET_MEMORY, "host"}}, 2, BENCH_MESH, 0, "", "", false},
        {{{WF_SET_CUDA, "off"}, {WF_SET_MEMORY, "cuda"}}, 2, BENCH_MESH, -95, "", "cuda = off", false},
        {{{WF_SET_SRC, "node0:host1"}}, 2, BENCH_PAIR, 0, "", "", false},
        {{{WF_SET_SRC, "node1:host1"}}, 2, BENCH_PAIR, 0, "0,1", "", false},
        {{{WF_SET_SRC, "node0:gpu1"}}, 2, BENCH_PAIR, 0, "0,1", "", false},
        {{{WF_SET_DST, "node0:gpu1"}}, -1, BENCH_PAIR, -95, "", "--src, --dst", false},
        {{{WF_SET_SRC, "node0:gpu1"}, {WF_SET_MEMORY, "host"}}, 2, BENCH_PAIR, -22, "", "--memory is host", false},
        {{{WF_SET_SRC, "node0:host1"}, {WF_SET_MEMORY, "cuda"}}, 2, BENCH_PAIR, -22, "", "--memory is cuda", false},
        {{{WF_SET_SRC, "node0:gpu0"}, {WF_SET_DST, "node0:host1"}}, 2, BENCH_PAIR, -22, "", "one kind", false},
        {{{WF_SET_SRC, "node0:host1"}}, 2, BENCH_MESH, 0, "0,1", "", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct bench_gpus gpus;
        struct wf_status status = {0};
        char list[64];
        int rc = choose(table[i].settings, table[i].gpus, table[i].command, &gpus, &status);
        if (rc != table[i].rc || !strstr(status.text, table[i].text))
            fail_msg("row %zu: %d, '%s'", i, rc, status.text);
        if (rc)
            continue;
        assert_string_equal(list_of(&gpus, list, sizeof(list)), table[i].list);
        assert_int_equal(gpus.memory, list[0] ? BENCH_EMULATED : BENCH_HOST);
        assert_int_equal(gpus.fallback[0] != '\0', table[i].fallback);
    }
}

static void no_driver_is_loaded_for_host_memory(void **state)
{
    static const struct setting host[] = {{WF_SET_MEMORY, "host"}, {0}}, off[] = {{WF_SET_CUDA, "off"}, {0}};
    struct bench_gpus gpus;
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(choose(host, 4, BENCH_MESH, &gpus, &status), 0);
    assert_int_equal(was_opened, 0);
    assert_int_equal(choose(off, 4, BENCH_MESH, &gpus, &status), 0);
    assert_int_equal(was_opened, 0);
}

static void endpoints_that_share_gpus_are_told(void **state)
{
    static const struct setting all[] = {{WF_SET_MEMORY, "auto"}, {0}}, some[] = {{WF_SET_GPUS, "2,0"}, {0}};
    struct bench_gpus gpus;
    struct wf_status status = {0};
    char text[300];

    (void)state;
    assert_int_equal(choose(all, 1, BENCH_MESH, &gpus, &status), 0);
    assert_string_equal(bench_gpus_sharing(&gpus, 1, text, sizeof(text)), "");
    assert_string_equal(bench_gpus_sharing(&gpus, 4, text, sizeof(text)), "4 endpoints on 1 GPU (GPU 0)");
    assert_int_equal(choose(some, 3, BENCH_MESH, &gpus, &status), 0);
    assert_string_equal(bench_gpus_sharing(&gpus, 2, text, sizeof(text)),
                        "2 endpoints on 2 GPUs (GPUs 2 and 0, in turn)");
    assert_int_equal(bench_gpu_of(&gpus, 0)->index, 2);
    assert_int_equal(bench_gpu_of(&gpus, 3)->index, 0);
}

/* ------------------------------------------------------------------------------------------- buffers */

static int plan_of(struct bench_plan *plan, const struct setting *settings, uint32_t endpoints,
                   struct wf_status *status)
{
    static struct wf_config config;
    struct bench_options options = {
        .command = BENCH_MESH, .config = &config, .default_endpoints = endpoints, .backends = backends};

    wf_config_init(&config);
    for (int i = 0; settings[i].text; i++)
        assert_int_equal(wf_config_set(&config, settings[i].id, settings[i].text, WF_ORIGIN_COMMAND, "test", status),
                         0);
    return bench_plan_init(plan, &options, status);
}

static const struct setting mesh_of_1m[] = {{WF_SET_SIZE, "1M"}, {WF_SET_ITERS, "2"}, {0}};

/* Whether node0 misses memory of a GPU that has so much, and of no other. */
static bool lacks(const struct bench_plan *plan, const struct bench_gpus *gpus, int gpu, uint64_t bytes)
{
    struct bench_limits unknown = {.count = 0};
    struct bench_gpus small = *gpus;
    struct bench_parties parties = {.all = {{0, &small, &unknown}}, .count = 1, .met = true};
    struct bench_lack lack;

    for (uint32_t i = 0; i < small.count; i++)
        small.infos[i].bytes = (int)i == gpu ? bytes : UINT64_MAX;
    return !bench_memory_suffices(plan, &parties, &lack) && lack.nodes == 1 && lack.gpu == &small.infos[gpu];
}

static void what_a_gpu_needs_is_what_it_gets(void **state)
{
    static const struct setting all[] = {{WF_SET_MEMORY, "auto"}, {0}};
    struct bench_gpus gpus;
    struct bench_arena arena;
    struct bench_plan plan;
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(choose(all, 2, BENCH_MESH, &gpus, &status), 0);
    assert_int_equal(plan_of(&plan, mesh_of_1m, 3, &status), 0);
    assert_int_equal(plan.endpoints, 3);
    assert_int_equal(bench_arena_init(&arena, &plan, 0, &gpus, NULL, NULL, &status), 0);
    assert_int_equal(arena.place_count, 2);
    /* Endpoints 0 and 2 are on GPU 0: each receives from the three of the other node at once. */
    for (int gpu = 0; gpu < 2; gpu++) {
        uint64_t receivers = gpu == 0 ? 6 : 3;
        assert_int_equal(allocated(gpu), bench_memory_need_at(&plan, 0, 2, (uint32_t)gpu));
        assert_true(arena.places[gpu].landing_bytes >= receivers << 20);
        assert_true(arena.places[gpu].landing_bytes < (receivers + 1) << 20);
        assert_true(lacks(&plan, &gpus, gpu, allocated(gpu) - 1));
        assert_false(lacks(&plan, &gpus, gpu, allocated(gpu)));
    }
    bench_arena_free_gpus(&arena);
    assert_int_equal(allocated(0) + allocated(1), 0);
    bench_arena_fini(&arena);
    bench_plan_fini(&plan);
}

static void only_gpus_of_some_pair_get_buffers(void **state)
{
    static const struct setting all[] = {{WF_SET_MEMORY, "auto"}, {0}};
    static const struct setting incast[] = {{WF_SET_SIZE, "64K"}, {WF_SET_ITERS, "2"}, {WF_SET_PATTERN, "incast"}, {0}};
    struct bench_gpus gpus;
    struct bench_arena arena;
    struct bench_plan plan;
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(choose(all, 3, BENCH_MESH, &gpus, &status), 0);
    assert_int_equal(plan_of(&plan, incast, 3, &status), 0);
    assert_int_equal(bench_arena_init(&arena, &plan, 0, &gpus, NULL, NULL, &status), 0);
    assert_null(arena.places[0].stream);
    assert_non_null(arena.places[0].landings);
    assert_int_equal(allocated(1) + allocated(2), 0);
    bench_arena_free_gpus(&arena);
    bench_arena_fini(&arena);
    bench_plan_fini(&plan);
}

/* Compares as the benchmark does; the wrong bytes. */
static void compare(const struct bench_arena *arena, uint32_t place, const uint8_t *landing, const uint8_t *expected,
                    uint64_t size, struct bench_wrong *wrong)
{
    uint64_t end = size + BENCH_GUARD, bytes;
    struct wf_status status;

    memset(wrong, 0, sizeof(*wrong));
    for (uint64_t at = 0; at < end; at += bytes) {
        const uint8_t *found;
        bytes = end - at;
        assert_int_equal(bench_arena_look(arena, place, landing + at, &bytes, &found, &status), 0);
        assert_true(bytes <= BENCH_BOUNCE);
        bench_verify(found, expected, size, at, bytes, 7, wrong);
    }
}

static void landings_are_poisoned_and_verified_from_afar(void **state)
{
    static const struct setting all[] = {{WF_SET_MEMORY, "auto"}, {0}};
    static const struct setting large[] = {{WF_SET_SIZE, "20000001"}, {WF_SET_ITERS, "2"}, {0}};
    const uint64_t size = 20000001; /* several pieces, and no multiple of anything */
    static const uint64_t spots[] = {0, BENCH_BOUNCE - 1, BENCH_BOUNCE, 20000000, 20000001, 20000001 + BENCH_GUARD - 1};
    struct bench_origin origin = {.pair = 1, .size = 20000001, .iteration = 3};
    struct bench_gpus gpus;
    struct bench_arena arena;
    struct bench_plan plan;
    struct wf_status status = {0};
    struct bench_wrong wrong;

    (void)state;
    assert_int_equal(choose(all, 2, BENCH_MESH, &gpus, &status), 0);
    assert_int_equal(plan_of(&plan, large, 2, &status), 0);
    assert_int_equal(bench_arena_init(&arena, &plan, 0, &gpus, NULL, NULL, &status), 0);
    const uint8_t *data = bench_arena_data(&arena, &plan, &origin);
    const uint8_t *source = bench_arena_source(&arena, 1, data);
    uint8_t *landing = bench_arena_landing(&arena, 1, size, 1);

    assert_memory_equal(seen_by_device(source), data, size);
    assert_int_equal(bench_arena_poison(&arena, 1, landing, size + BENCH_GUARD, NULL, &status), 0);
    compare(&arena, 1, landing, data, size, &wrong);
    assert_true(wrong.bytes > size - size / 100);
    weft_gpu_copy(NULL, landing, source, size, NULL);
    compare(&arena, 1, landing, data, size, &wrong);
    assert_int_equal(wrong.bytes, 0);
    for (size_t i = 0; i < sizeof(spots) / sizeof(spots[0]); i++) {
        *seen_by_device(landing + spots[i]) ^= 1;
        compare(&arena, 1, landing, data, size, &wrong);
        assert_int_equal(wrong.bytes, 1);
        assert_int_equal(wrong.first, spots[i]);
        *seen_by_device(landing + spots[i]) ^= 1;
    }
    bench_arena_free_gpus(&arena);
    bench_arena_fini(&arena);
    bench_plan_fini(&plan);
}

static void names_say_what_memory_it_is(void **state)
{
    struct bench_plan plan;
    struct wf_status status = {0};
    char name[32], memory[48];

    (void)state;
    assert_int_equal(plan_of(&plan, mesh_of_1m, 1, &status), 0);
    bench_plan_set_memory(&plan, 1, BENCH_EMULATED, 1);
    for (uint32_t i = 0; i < plan.pair_count; i++) {
        bool from_host = plan.pairs[i].src_node == 0;
        assert_string_equal(bench_src_name(&plan.pairs[i], name, sizeof(name)),
                            from_host ? "node0:host0" : "node1:gpu0");
        assert_string_equal(
            bench_both_memories(plan.pairs[i].src_memory, plan.pairs[i].dst_memory, memory, sizeof(memory)),
            from_host ? "host/cuda (emulated)" : "cuda (emulated)/host");
    }
    assert_true(bench_plan_emulated(&plan));
    bench_plan_set_memory(&plan, 1, BENCH_CUDA, 1);
    assert_false(bench_plan_emulated(&plan));
    assert_int_equal(bench_memory_named("cuda (emulated)"), BENCH_EMULATED);
    assert_int_equal(bench_memory_named("cud"), BENCH_MEMORIES);
    bench_plan_fini(&plan);
}

/* ------------------------------------------------------------------------------------------- weft topo */

static int topo(struct wf_machine *machine, struct setting setting, int gpus, char *text, size_t room,
                struct wf_status *status)
{
    static struct wf_config config;
    struct bench_options options = {.command = BENCH_TOPO, .config = &config};

    wf_config_init(&config);
    assert_int_equal(wf_config_set(&config, setting.id, setting.text, WF_ORIGIN_COMMAND, "test", status), 0);
    driver_gpus = gpus;
    return bench_topo_gpus(machine, &options, text, room, status);
}

#define REMEDY "leave it out, or use a machine with GPUs and their driver"

static void topo_says_which_gpu_is_which_or_why_none_is(void **state)
{
    static const struct {
        int gpus; /* that the driver has */
        struct setting setting;
        bool foreign;
        int rc; /* GPUs that a run could take, or an error */
        const char *text;
    } table[] = {
        {-1, {WF_SET_CUDA, "auto"}, false, 0, "GPUs: none usable: no library."},
        {-1, {WF_SET_CUDA, "require"}, false, -95, "cuda = require: no GPU memory here: no library: " REMEDY},
        {-1, {WF_SET_MEMORY, "cuda"}, false, -95, "memory = cuda: no GPU memory here: no library: " REMEDY},
        {-1, {WF_SET_GPUS, "0"}, false, -95, "gpus: no GPU memory here: no library: " REMEDY},
        {0, {WF_SET_CUDA, "auto"}, false, 0, "GPUs: none usable: no device."},
        {2, {WF_SET_CUDA, "off"}, false, 0, "GPUs: none used: cuda = off."},
        {2, {WF_SET_MEMORY, "host"}, false, 0, "GPUs: none used: memory = host."},
        {2, {WF_SET_GPUS, "2"}, false, -22, "--gpus 2: there is no such GPU: this machine has GPUs 0 and 1"},
        {1, {WF_SET_CUDA, "require"}, true, 3, "GPU memory: staged through pinned host memory near each GPU."},
        {1, {WF_SET_CUDA, "off"}, true, 0, "GPUs: none used: cuda = off."},
        {1,
         {WF_SET_CUDA, "auto"},
         false,
         1,
         "GPUs: 1, memory cuda (emulated), staged through pinned host memory; gpu1 and up are not the driver's."},
    };
    struct wf_machine *machine = calloc(1, sizeof(*machine));

    (void)state;
    assert_non_null(machine);
    machine->gpu_count = 3;
    for (int i = 0; i < 3; i++)
        snprintf(machine->gpus[i].pci, sizeof(machine->gpus[i].pci), "0000:0%d:00.0", 3 - i);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct wf_status status = {0};
        char text[512] = "";
        int rc;
        machine->foreign = table[i].foreign;
        rc = topo(machine, table[i].setting, table[i].gpus, text, sizeof(text), &status);
        if (rc != table[i].rc)
            fail_msg("row %zu: %d, '%s'", i, rc, status.text);
        assert_string_equal(rc < 0 ? status.text : text, table[i].text);
    }
    free(machine);
}

/* Numbers are the driver's, as in a run: its GPUs come first, the others stay in their order behind them. */
static void topo_has_the_numbers_of_a_run(void **state)
{
    static const struct setting none = {WF_SET_CUDA, "auto"};
    struct wf_machine *machine = calloc(1, sizeof(*machine));
    struct wf_status status = {0};
    char text[512];

    (void)state;
    assert_non_null(machine);
    machine->gpu_count = 3;
    for (int i = 0; i < 3; i++) {
        snprintf(machine->gpus[i].pci, sizeof(machine->gpus[i].pci), "0000:0%d:00.0", 3 - i);
        machine->gpus[i].node = i;
    }
    assert_int_equal(topo(machine, none, 1, text, sizeof(text), &status), 1);
    assert_int_equal(machine->gpu_count, 3);
    assert_string_equal(machine->gpus[0].pci, "0000:01:00.0");
    assert_string_equal(machine->gpus[0].name, "none");
    assert_int_equal(machine->gpus[0].node, 2);
    assert_string_equal(machine->gpus[1].pci, "0000:03:00.0");
    assert_string_equal(machine->gpus[2].pci, "0000:02:00.0");

    machine->gpu_count = 1; /* without the driver's among them */
    machine->gpus[0] = machine->gpus[1];
    assert_int_equal(topo(machine, none, 1, text, sizeof(text), &status), 1);
    assert_non_null(strstr(text, "; 1 of them is not among the PCI devices here; gpu1 and up are not the driver's."));
    assert_int_equal(machine->gpu_count, 2);
    assert_string_equal(machine->gpus[0].pci, "0000:01:00.0");
    assert_int_equal(machine->gpus[0].node, wf_place_of_device("0000:01:00.0"));
    assert_string_equal(machine->gpus[1].pci, "0000:03:00.0");

    machine->gpu_count = WF_GPUS_MAX; /* nor room for it */
    snprintf(machine->gpus[0].pci, sizeof(machine->gpus[0].pci), "0000:04:00.0");
    assert_int_equal(topo(machine, none, 1, text, 60, &status), 1); /* nor for the words */
    assert_int_equal(strlen(text), 59);
    assert_int_equal(machine->gpu_count, WF_GPUS_MAX);
    assert_string_equal(machine->gpus[0].pci, "0000:01:00.0");
    assert_string_equal(machine->gpus[1].pci, "0000:04:00.0");
    free(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_are_chosen_by_settings_and_by_what_there_is),
        cmocka_unit_test(no_driver_is_loaded_for_host_memory),
        cmocka_unit_test(endpoints_that_share_gpus_are_told),
        cmocka_unit_test(what_a_gpu_needs_is_what_it_gets),
        cmocka_unit_test(only_gpus_of_some_pair_get_buffers),
        cmocka_unit_test(landings_are_poisoned_and_verified_from_afar),
        cmocka_unit_test(names_say_what_memory_it_is),
        cmocka_unit_test(topo_says_which_gpu_is_which_or_why_none_is),
        cmocka_unit_test(topo_has_the_numbers_of_a_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
