/* A build without libmnl: absent.c stands before the rest of the room, in every build. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "devmem/devmem.h"

static void it_says_why_it_is_not_there(void **state)
{
    struct wf_devmem *devmem = NULL;
    struct wf_status status;

    (void)state;
    assert_int_equal(wf_devmem_open(NULL, &devmem, &status), -EOPNOTSUPP);
    assert_non_null(strstr(status.text, "built without libmnl"));
    wf_devmem_close(devmem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_says_why_it_is_not_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
