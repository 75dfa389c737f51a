/* test_gpu_memory.c: device memory that is not as it must be, and that of programs without CUDA. */
#include "gpu.h"

#include <errno.h>
#include <string.h>

#define SMALL 1000
#define LARGE (1024 * 1024 + 3)
#define SETTINGS "chunk=64K"

static struct wf_sim_memory *devices;

static void refused(int rc, int expected, const char *what)
{
    LOOP_CHECK(rc == expected, "%s: %d, expected %d", what, rc, expected);
}

/* Device memory that nobody has registered, or not all of it. */
static void unregistered_memory(void)
{
    struct weft_registration *part = NULL, *host = NULL;
    struct weft_error err = {0};
    struct weft_request *request = NULL;
    struct weft_piece piece = {.local = 0, .remote = 0, .length = 10};
    static unsigned char there[1000];

    loop_pair_create(&astray_pair, SETTINGS, NULL, 1);
    unsigned char *memory = wf_sim_memory_take(devices, 0, LARGE);
    struct weft_context *context = astray_pair.node[0].context;
    gpu_exchange(0, 0, SMALL, 1);
    LOOP_CALL(weft_register(astray_pair.node[1].context, there, sizeof there, &host, &err), &err);
    uint64_t key = weft_registration_key(host);
    refused(weft_send(LEFT, memory, 10, 1, NULL, &request), -EFAULT, "a send");
    refused(weft_send(LEFT, memory + 5, LARGE - 5, 1, NULL, &request), -EFAULT, "a large send");
    refused(weft_recv(LEFT, memory, 10, 1, NULL, &request), -EFAULT, "a receive");
    refused(weft_write(LEFT, memory, 10, key, 0, NULL, &request), -EFAULT, "a write");
    refused(weft_read(LEFT, memory, 10, key, 0, NULL, &request), -EFAULT, "a read");
    refused(weft_write_list(LEFT, memory, &piece, 1, key, NULL, &request), -EFAULT, "a list");
    refused(weft_recv_notification(LEFT, memory, 10, NULL, &request), -EFAULT, "a notification");
    LOOP_CALL(weft_register(context, memory + 100, 1000, &part, &err), &err);
    LOOP_CHECK(weft_registration_kind(part) == WEFT_MEMORY_CUDA, "kind %d", weft_registration_kind(part));
    refused(weft_send(LEFT, memory + 99, 10, 1, NULL, &request), -EFAULT, "a byte before the registration");
    refused(weft_send(LEFT, memory + 100, 1001, 1, NULL, &request), -EFAULT, "a byte behind it");
    struct weft_options options = {.registration = part};
    refused(weft_send(LEFT, memory + 99, 10, 1, &options, &request), -EINVAL, "not in the registration it names");
    LOOP_CHECK(weft_send(LEFT, memory + 100, 1000, 1, &options, &request) == 0, "what is registered");
    loop_done(loop_recv(RIGHT, there, sizeof there, 1), 0, sizeof there);
    loop_done(request, 0, sizeof there);
    loop_world_deregister(part);
    refused(weft_send(LEFT, memory + 100, 10, 1, NULL, &request), -EFAULT, "what was registered");
    options = (struct weft_options){.flags = WEFT_ON_STREAM};
    refused(weft_send(LEFT, there, 10, 1, &options, &request), -EINVAL, "host memory in a stream's order");
    loop_world_deregister(host);
    wf_sim_memory_give(devices, memory);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

/* Memory that the program has from its driver, before we have asked that for anything. */
static void copies_what_is_not_ours(void)
{
    struct weft_error err = {0};
    unsigned char there[100], back[100];

    loop_pair_create(&astray_pair, SETTINGS, NULL, 1);
    struct weft_context *context = astray_pair.node[0].context;
    for (int device = 0; device < 2; device++) {
        unsigned char *memory = wf_sim_memory_take(devices, device, sizeof there);
        loop_fill(there, sizeof there, 4 + (uint64_t)device);
        LOOP_CALL(weft_gpu_copy(context, memory, there, sizeof there, &err), &err);
        LOOP_CALL(weft_gpu_copy(context, back, memory, sizeof there, &err), &err);
        LOOP_CHECK(loop_wrong(back, sizeof back, 4 + (uint64_t)device) < 0, "wrong bytes");
        wf_sim_memory_give(devices, memory);
    }
    LOOP_CALL(weft_gpu_copy(context, back, there, sizeof there, &err), &err);
    loop_pair_destroy(&astray_pair);
}

/* A program that forks shares no page with its child that a GPU writes, or reads, by its physical address. */
static void staging_is_not_inherited(void)
{
    loop_pair_create(&astray_pair, SETTINGS, NULL, 1);
    gpu_exchange(0, 0, LARGE, 1);
    for (int side = 0; side < 2; side++)
        LOOP_CHECK(gpu_staging_is_ours(astray_pair.node[side].context), "a child would get the staging of side %d",
                   side);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

static void registered_over_two_allocations(void)
{
    enum { COUNT = 20, SIZE = 512 };
    struct weft_registration *registration = NULL;
    struct weft_error err = {0};
    unsigned char *parts[COUNT];
    int spans = 0;

    loop_pair_create(&astray_pair, SETTINGS, NULL, 1);
    for (int i = 0; i < COUNT; i++)
        parts[i] = wf_sim_memory_take(devices, 1, SIZE);
    for (int i = 1; i < COUNT; i++) {
        int rc = weft_register(astray_pair.node[0].context, parts[i - 1] + 10, SIZE, &registration, &err);
        LOOP_CHECK(rc == -EINVAL && registration == NULL, "%d: %s", rc, err.text);
        spans += strstr(err.text, "two allocations") != NULL;
    }
    LOOP_CHECK(spans > 0, "no two allocations touch: nothing was tested");
    for (int i = 0; i < COUNT; i++)
        wf_sim_memory_give(devices, parts[i]);
    loop_pair_destroy(&astray_pair);
}

/* A GPU that cannot be made ready, and a program that wants no text. */
static void registered_on_a_lost_gpu(void)
{
    struct weft_registration *registration = NULL;

    loop_pair_create(&astray_pair, SETTINGS, NULL, 1);
    unsigned char *memory = wf_sim_memory_take(devices, 2, SMALL);
    wf_sim_memory_lose(devices, 2);
    refused(weft_register(astray_pair.node[0].context, memory, SMALL, &registration, NULL), -ENODEV, "a lost GPU");
    LOOP_CHECK(!registration, "a registration of what was refused");
    wf_sim_memory_give(devices, memory);
    loop_pair_destroy(&astray_pair);
}

/* The public calls of those who have no CUDA of their own. */
static void memory_without_cuda(void)
{
    struct weft_gpu_info gpus[8];
    struct weft_error err = {0};
    unsigned char there[100], back[100];
    void *memory = NULL;

    loop_pair_create(&astray_pair, SETTINGS, NULL, 1);
    struct weft_context *context = astray_pair.node[0].context;
    LOOP_CHECK(weft_gpu_alloc(context, 77, 100, &memory, &err) == -ENODEV && err.text[0] && !memory, "%s", err.text);
    wf_sim_memory_fail_alloc(devices, 1, 1);
    LOOP_CHECK(weft_gpu_alloc(context, 1, 100, &memory, &err) == -ENOMEM && err.text[0] && !memory, "%s", err.text);
    LOOP_CALL(weft_gpu_alloc(context, 1, 100, &memory, &err), &err);
    loop_fill(there, sizeof there, 3);
    LOOP_CALL(weft_gpu_copy(context, memory, there, sizeof there, &err), &err);
    LOOP_CALL(weft_gpu_copy(context, back, memory, sizeof there, &err), &err);
    LOOP_CHECK(loop_wrong(back, sizeof back, 3) < 0, "wrong bytes");
    int count = weft_context_gpus(context, gpus, 8);
    LOOP_CHECK(count == 3 && gpus[1].index == 1 && gpus[1].in_use && !gpus[2].in_use, "%d GPUs", count);
    LOOP_CHECK(strstr(weft_context_memory(context), "cuda"), "%s", weft_context_memory(context));
    weft_gpu_free(context, 1, memory);
    weft_gpu_free(context, 1, NULL);
    loop_pair_destroy(&astray_pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    devices = loop_sim_memory();
    const struct CMUnitTest tests[] = {
        LOOP_CASE(unregistered_memory, 10),     LOOP_CASE(registered_over_two_allocations, 10),
        LOOP_CASE(memory_without_cuda, 10),     LOOP_CASE(staging_is_not_inherited, 10),
        LOOP_CASE(copies_what_is_not_ours, 10), LOOP_CASE(registered_on_a_lost_gpu, 10),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
