/* Which GPUs weft topo asks whether network cards could write to their memory, and what it makes of the answers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/topo/topo.h"
#include "mem/memory.h"

#define GPUS 2 /* that the driver has; the first one exports its memory */

/* --- a driver --- */

static int opened; /* times */

static int fake_open(void *host, struct wf_memory **memory, struct wf_status *status)
{
    (void)host, (void)status;
    opened++;
    *memory = (struct wf_memory *)&opened;
    return 0;
}

static void fake_close(struct wf_memory *memory)
{
    assert_ptr_equal(memory, &opened);
}

static int fake_devices(const struct wf_memory *memory, struct wf_device_info *infos, int max)
{
    (void)memory;
    for (int i = 0; i < GPUS && i < max; i++)
        infos[i] = (struct wf_device_info){.index = i};
    return GPUS;
}

static int fake_exports(struct wf_memory *memory, int device, struct wf_status *status)
{
    (void)memory;
    return device > 0 ? wf_fail(status, -ENOTSUP, "GPU %d: its driver offers no dma-buf", device) : 0;
}

const struct wf_memory_ops wf_memory_cuda = {
    .open = fake_open, .close = fake_close, .devices = fake_devices, .exports = fake_exports};

/* --- a machine with a card, and a GPU more than the driver has --- */

struct scene {
    struct wf_machine machine;
    struct wf_plan plan;
    struct wf_show show;
};

static int start(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);

    *state = scene;
    assert_non_null(scene);
    scene->machine.gpu_count = GPUS + 1;
    scene->machine.nic_count = scene->plan.rail_count = 1;
    snprintf(scene->machine.nics[0].name, sizeof scene->machine.nics[0].name, "eth7");
    snprintf(scene->plan.rails[0].device, sizeof scene->plan.rails[0].device, "eth7");
    scene->show = (struct wf_show){.machine = &scene->machine, .plan = &scene->plan};
    scene->show.paths[0].device.asked = true;
    for (int i = 0; i <= GPUS; i++)
        scene->show.gpu_ways[i].dmabuf = -1;
    opened = 0;
    return 0;
}

static int stop(void **state)
{
    free(*state);
    return 0;
}

static void expect(const struct wf_gpu_way *way, int dmabuf, const char *why)
{
    assert_int_equal(way->dmabuf, dmabuf);
    assert_string_equal(way->why, why);
}

static void each_gpu_says_whether_its_memory_can_be_reached(void **state)
{
    struct wf_show *show = &((struct scene *)*state)->show;

    bench_topo_ask_gpus(show, GPUS);
    expect(&show->gpu_ways[0], 1, "");
    expect(&show->gpu_ways[1], 0, "its driver offers no dma-buf");
    expect(&show->gpu_ways[2], 0, "Weft does not use this GPU, as said above");
    assert_int_equal(opened, 1);
}

/* It costs time, and says nothing then. */
static void none_is_asked_where_no_card_could(void **state)
{
    struct wf_show *show = &((struct scene *)*state)->show;

    show->paths[0].device.never = true;
    bench_topo_ask_gpus(show, GPUS);
    expect(&show->gpu_ways[0], -1, "");
    assert_int_equal(opened, 0);
}

static void none_is_asked_where_none_is_to_be_used(void **state)
{
    struct wf_show *show = &((struct scene *)*state)->show;

    bench_topo_ask_gpus(show, 0);
    expect(&show->gpu_ways[0], 0, "Weft does not use this GPU, as said above");
    assert_int_equal(opened, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_gpu_says_whether_its_memory_can_be_reached, start, stop),
        cmocka_unit_test_setup_teardown(none_is_asked_where_no_card_could, start, stop),
        cmocka_unit_test_setup_teardown(none_is_asked_where_none_is_to_be_used, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
