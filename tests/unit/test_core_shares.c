/* The share that a session has of a GPU, with memory for it and without. */
#include "core_scene.h"

#include <errno.h>
#include <string.h>

static bool no_memory;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    return no_memory ? NULL : __real_malloc(size);
}

/* Messages would wait for slots that nobody gives back: the session fails instead, and says for what. */
static void none_without_memory(void **state)
{
    struct scene *scene = *state;
    struct wf_device device = {.index = 3};
    no_memory = true;
    struct wf_device_share *share = wf_device_share(&scene->shares, &device);
    no_memory = false;
    assert_null(share);
    assert_int_equal(scene->failures, 1);
    assert_int_equal(scene->guard.state, WF_SESSION_FAILED);
    assert_int_equal(scene->guard.error.code, -ENOMEM);
    assert_non_null(strstr(scene->guard.error.text, "GPU 3"));
}

static void made_once(void **state)
{
    struct scene *scene = *state;
    struct wf_device *device = test_calloc(1, sizeof *device);
    for (int way = 0; way < WF_SLOT_WAYS; way++)
        for (int size = 0; size < WF_SLOT_SIZES; size++)
            pthread_mutex_init(&device->pools[way][size].lock, NULL);
    struct wf_device_share *share = wf_device_share(&scene->shares, device);
    assert_non_null(share);
    assert_ptr_equal(share->device, device);
    no_memory = true; /* none is asked for */
    assert_ptr_equal(wf_device_share(&scene->shares, device), share);
    no_memory = false;
    assert_int_equal(scene->failures, 0);
    wf_shares_give_back(&scene->shares);
    assert_null(scene->shares.each[0]);
    test_free(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(none_without_memory, scene_set_up_locked, scene_tear_down_locked),
        cmocka_unit_test_setup_teardown(made_once, scene_set_up_locked, scene_tear_down_locked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
