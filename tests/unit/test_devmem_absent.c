/* A build without libmnl: absent.c stands before the rest of the room, in every build. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "devmem/devmem.h"
#include "devmem/exports.h"

static void it_says_why_it_is_not_there(void **state)
{
    struct wf_devmem *devmem = NULL;
    struct wf_status status;

    (void)state;
    assert_int_equal(wf_devmem_open(NULL, &devmem, &status), -EOPNOTSUPP);
    assert_non_null(strstr(status.text, "built without libmnl"));
    wf_devmem_close(devmem);
}

static int find_extent(struct wf_memory *memory, const void *address, struct wf_memory_extent *out,
                       struct wf_status *status)
{
    (void)memory, (void)status;
    *out = (struct wf_memory_extent){.base = address, .bytes = 100, .id = 1};
    return 0;
}

static void memory_is_not_bound(void **state)
{
    static const struct wf_memory_ops memory = {.extent = find_extent};
    struct wf_exports *exports;
    struct wf_export found;
    struct wf_status status;

    (void)state;
    assert_int_equal(wf_exports_create(&memory, NULL, NULL, 1, &exports, &status), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wf_exports_use(exports, 1, &found, 1, &found, &status), -EOPNOTSUPP);
        assert_non_null(strstr(status.text, "built without libmnl"));
    }
    wf_exports_destroy(exports);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_why_it_is_not_there),
        cmocka_unit_test(memory_is_not_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
