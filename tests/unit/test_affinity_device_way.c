/* What is said of device-memory TCP, of machines with several cards and GPUs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinity/discover.h"
#include "affinity/show/device_show.h"

#define PAGE 4096

/* --- how packets fill buffers --- */

static void packets_fill_buffers_or_do_not(void **state)
{
    static const struct {
        int mtu, buffer, unused, full;
    } cases[] = {
        {9000, PAGE, 27, 8244},   {8244, PAGE, 0, 8244},   {4148, PAGE, 0, 4148},    {1500, PAGE, 65, 4148},
        {8896, PAGE, 28, 8244},   {8243, PAGE, 0, 4148},   {4149, PAGE, 50, 4148},   {53, PAGE, 100, 4148},
        {52, PAGE, -1, 4148},     {-1, PAGE, -1, 4148},    {0, PAGE, -1, 4148},      {1500, 0, -1, -1},
        {9000, 16384, 45, 16436}, {65536, PAGE, 0, 61492}, {9000, 65536, 86, 65588}, {INT32_MAX, PAGE, 0, 2147479604},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wf_buffer_fit fit = wf_buffer_fit(cases[i].mtu, cases[i].buffer);
        if (fit.unused_percent != cases[i].unused || fit.full_mtu != cases[i].full)
            fail_msg("MTU %d, buffers of %d: %d %%, %d", cases[i].mtu, cases[i].buffer, fit.unused_percent,
                     fit.full_mtu);
    }
}

/* --- machines --- */

struct scene {
    struct wf_machine machine;
    struct wf_plan plan;
    struct wf_show show;
};

/* As if it were this machine, and somebody had asked its cards: nothing is in the way of any. */
static int set_up(void **state)
{
    static const struct wf_device_way ready = {.asked = true,
                                               .header_split = 1,
                                               .hds_thresh = 0,
                                               .queues = 16,
                                               .queues_aside = 2,
                                               .rules = 1,
                                               .rules_most = 512,
                                               .rules_used = 3};
    struct scene *scene = calloc(1, sizeof *scene);
    struct wf_plan_request request = {.pin = WF_PIN_AUTO, .gpus = "0-6"};
    char why[256];

    *state = scene;
    assert_non_null(scene);
    assert_int_equal(wf_machine_discover(TOPOLOGIES "/a3-highgpu-8g.xml", &scene->machine, why, sizeof why), 0);
    assert_int_equal(wf_plan_make(&scene->machine, &request, &scene->plan, why, sizeof why), 0);
    assert_int_equal(scene->plan.rail_count, 5);
    scene->machine.foreign = false;
    scene->show = (struct wf_show){.machine = &scene->machine,
                                   .plan = &scene->plan,
                                   .gpu_path = "",
                                   .system = {.kernel = 618,
                                              .release = "6.18.5",
                                              .gpus = 8,
                                              .net_admin = true,
                                              .buffer_bytes = PAGE,
                                              .zero_copy_bytes = 1}};
    for (int i = 0; i < scene->plan.rail_count; i++) {
        scene->show.paths[i] = (struct wf_rail_path){.sg = 1, .tso = 1, .gro = 1, .queues_most = -1, .device = ready};
        scene->machine.nics[i].mtu = 8244;
    }
    for (int i = 0; i < WF_GPUS_MAX; i++)
        scene->show.gpu_ways[i].dmabuf = 1;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

static void note_obstacles(struct wf_show *show)
{
    for (int i = 0; i < show->plan->rail_count; i++)
        show->obstacle_counts[i] =
            wf_rail_obstacles(&show->system, &show->machine->nics[i], &show->paths[i], show->obstacles[i]);
}

static void expect_text(struct wf_show *show, const char *wanted)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    note_obstacles(show);
    wf_show_device_text(out, show);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, wanted);
    free(text);
}

static const char each_in_another_state[] =
    "\ndevice memory (TCP from the wire into GPUs; Linux 6.18.5)\n"
    "  eth1: gve, header split off, hds-thresh 256, 16 queues, 0 set aside, rules for flows on (3 of\n"
    "    512), by 5-tuple, as its driver's sources say, MTU 9000 (27 % of buffers of 4096 bytes unused)\n"
    "    header split is off: ethtool -G eth1 tcp-data-split on\n"
    "    weft nic prepare eth1 changes this and what else it needs\n"
    "    gpu0 to gpu1        same switch, dma-buf\n"
    "    gpu2 to gpu3        same node, dma-buf\n"
    "    gpu4 to gpu5        other node, dma-buf\n"
    "    gpu6                other node, no dma-buf: its driver offers no dma-buf\n"
    "    gpu7                other node, dma-buf not asked for\n"
    "  eth2: gve, header split on, hds-thresh 0, 16 queues, 2 set aside, rules for flows on (512 of 512),\n"
    "    by port, as it has shown: each GPU has one for its payload, MTU 8244 (0 % of buffers of 4096\n"
    "    bytes unused)\n"
    "    its table of rules is full: 512 of 512: ethtool -N eth2 delete N\n"
    "    gpu0 to gpu1        same node, dma-buf\n"
    "    gpu2 to gpu3        same switch, dma-buf\n"
    "    gpu4 to gpu5        other node, dma-buf\n"
    "    gpu6                other node, no dma-buf: its driver offers no dma-buf\n"
    "    gpu7                other node, dma-buf not asked for\n"
    "  eth3: gve, header split on, hds-thresh 0, 16 queues, 2 set aside, rules for flows on (3 of 512),\n"
    "    by 5-tuple, as its driver's sources say, MTU 8244 (0 % of buffers of 4096 bytes unused)\n"
    "    ready, as far as the card is concerned\n"
    "    gpu0 to gpu3        other node, dma-buf\n"
    "    gpu4 to gpu5        same switch, dma-buf\n"
    "    gpu6                same node, no dma-buf: its driver offers no dma-buf\n"
    "    gpu7                same node, dma-buf not asked for\n"
    "  eth4: no driver, header split unknown, MTU 8244 (0 % of buffers of 4096 bytes unused)\n"
    "    ready, as far as the card is concerned\n"
    "    gpu0 to gpu3        other node, dma-buf\n"
    "    gpu4 to gpu5        same node, dma-buf\n"
    "    gpu6                same switch, no dma-buf: its driver offers no dma-buf\n"
    "    gpu7                same switch, dma-buf not asked for\n";

/* Each rail in another state; a card that never could stands in its one line among the obstacles only. */
static void each_rail_and_gpu_has_its_obstacle(void **state)
{
    struct scene *scene = *state;
    struct wf_show *show = &scene->show;
    struct wf_device_way *way = &show->paths[0].device;

    *way = (struct wf_device_way){.asked = true, .never = true, .why = "its driver tells of no header split"};
    snprintf(scene->machine.nics[0].driver, sizeof scene->machine.nics[0].driver, "virtio_net");
    way = &show->paths[1].device;
    way->header_split = 0;
    way->hds_thresh = 256;
    way->queues_aside = 0;
    way->prepared = true;
    snprintf(way->why, sizeof way->why, "header split is off");
    snprintf(way->change, sizeof way->change, "ethtool -G %%s tcp-data-split on");
    scene->machine.nics[1].mtu = 9000;
    way = &show->paths[2].device;
    way->rules_used = 512;
    way->by_port = true;
    snprintf(way->why, sizeof way->why, "its table of rules is full: 512 of 512");
    snprintf(way->change, sizeof way->change, "ethtool -N eth2 delete N");
    show->paths[4].device = (struct wf_device_way){.asked = true,
                                                   .header_split = -1,
                                                   .hds_thresh = -1,
                                                   .queues = -1,
                                                   .queues_aside = -1,
                                                   .rules = -1,
                                                   .rules_most = -1,
                                                   .rules_used = -1};
    scene->machine.nics[4].driver[0] = '\0';
    show->gpu_ways[6] = (struct wf_gpu_way){.dmabuf = 0, .why = "its driver offers no dma-buf"};
    show->gpu_ways[7].dmabuf = -1;
    expect_text(show, each_in_another_state);
}

static void without_a_gpu_or_a_card_nothing_is_added(void **state)
{
    struct scene *scene = *state;

    scene->machine.foreign = true;
    expect_text(&scene->show, "");
    scene->machine.foreign = false;
    for (int i = 0; i < scene->plan.rail_count; i++)
        scene->show.paths[i].device.never = true;
    expect_text(&scene->show, "");
    for (int i = 0; i < scene->plan.rail_count; i++)
        scene->show.paths[i].device.never = false;
    scene->machine.gpu_count = scene->show.system.gpus = 0;
    expect_text(&scene->show, "");
}

/* --- for programs --- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    assert_non_null(text);
    return text;
}

static void expect_pair(const json_t *root, int at, const char *rail, int gpu, const char *distance, const char *why)
{
    const json_t *pair = json_array_get(json_object_get(root, "pairs"), (size_t)at);

    assert_string_equal(text_of(pair, "rail"), rail);
    assert_int_equal(json_integer_value(json_object_get(pair, "gpu")), gpu);
    assert_string_equal(text_of(pair, "distance"), distance);
    assert_string_equal(text_of(pair, "why"), why);
}

/* What nobody can change goes first: the card's, then the GPU's, then what a setting changes. */
static void programs_get_the_first_obstacle_of_each_pair(void **state)
{
    struct scene *scene = *state;
    struct wf_show *show = &scene->show;

    snprintf(show->paths[0].device.why, sizeof show->paths[0].device.why, "never");
    show->paths[0].device.never = true;
    snprintf(show->paths[1].device.why, sizeof show->paths[1].device.why, "header split is off");
    scene->machine.nics[1].mtu = 9000;
    show->gpu_ways[1] = (struct wf_gpu_way){.dmabuf = 0, .why = "no dma-buf"};
    note_obstacles(show);
    json_t *root = wf_show_device_json(show), *rail = json_array_get(json_object_get(root, "rails"), 1);
    assert_int_equal(json_array_size(json_object_get(root, "pairs")), 5 * 8);
    expect_pair(root, 1, "eth0", 1, "same node", "never");
    expect_pair(root, 8, "eth1", 0, "same switch", "header split is off");
    expect_pair(root, 9, "eth1", 1, "same switch", "no dma-buf");
    expect_pair(root, 8 + 6, "eth1", 6, "other node", "header split is off");
    expect_pair(root, 16, "eth2", 0, "same node", "");
    expect_pair(root, 7, "eth0", 7, "other node", "never"); /* of which the plan has no endpoint */
    assert_string_equal(text_of(root, "kernel"), "6.18.5");
    assert_string_equal(text_of(rail, "why"), "header split is off");
    assert_int_equal(json_integer_value(json_object_get(rail, "buffers_unused_percent")), 27);
    assert_int_equal(json_integer_value(json_object_get(rail, "full_mtu_bytes")), 8244);
    assert_int_equal(json_integer_value(json_object_get(rail, "rx_queues_aside")), 2);
    assert_true(json_is_true(json_object_get(rail, "possible")));
    assert_true(json_is_true(json_object_get(rail, "rules_5_tuple")));
    json_decref(root);
    scene->machine.foreign = true;
    root = wf_show_device_json(show);
    assert_true(json_is_null(root));
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_fill_buffers_or_do_not),
        cmocka_unit_test_setup_teardown(each_rail_and_gpu_has_its_obstacle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_gpu_or_a_card_nothing_is_added, set_up, tear_down),
        cmocka_unit_test_setup_teardown(programs_get_the_first_obstacle_of_each_pair, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
