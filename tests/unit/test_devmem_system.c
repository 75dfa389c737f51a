/* The kernel of this machine, whatever it knows of device-memory TCP: it is asked without rights, and nothing changes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "devmem/devmem.h"

static struct wf_devmem *devmem;
static struct wf_status status;

static int start(void **state)
{
    (void)state;
    int result = wf_devmem_open(NULL, &devmem, &status);
    if (result)
        fprintf(stderr, "%s\n", status.text);
    return result;
}

static int end(void **state)
{
    (void)state;
    wf_devmem_close(devmem);
    return 0;
}

static void loopback_is_no_card(void **state)
{
    struct wf_devmem_card card;
    struct wf_devmem_obstacle obstacle;

    (void)state;
    if (access("/sys/class/net/lo", F_OK) != 0)
        skip();
    if (wf_devmem_look(devmem, "lo", &card, &status) != 0)
        fail_msg("%s", status.text);
    assert_true(card.loopback && card.ifindex == 1);
    assert_int_not_equal(card.split, WF_DEVMEM_SPLIT_ON);
    wf_devmem_first_obstacle(&card, 1, &obstacle);
    assert_int_equal(obstacle.remedy, WF_DEVMEM_NEVER);
    assert_string_equal(obstacle.change, "");
}

static void the_kernel_refuses_to_bind_loopback(void **state)
{
    uint32_t queue = 0, id = 0;
    int file = fileno(stdin);

    (void)state;
    assert_true(wf_devmem_bind_rx(devmem, &(struct wf_devmem_rx){1, &queue, 1, file, 0}, &id, &status) < 0);
    assert_true(status.text[0] != '\0' && id == 0);
    assert_true(wf_devmem_bind_tx(devmem, 1, file, &id, &status) < 0);
    assert_true(id == 0);
}

static void nothing_can_be_set_at_loopback(void **state)
{
    struct wf_devmem_rss rss;

    (void)state;
    assert_true(wf_devmem_set_split(devmem, "lo", WF_DEVMEM_SPLIT_ON, 0, &status) < 0);
    assert_true(wf_devmem_set_ntuple(devmem, "lo", true, &status) < 0);
    assert_true(wf_devmem_rss_read(devmem, "lo", &rss, &status) < 0);
    assert_int_equal(wf_devmem_set_ntuple(devmem, "nosuchnic0", true, &status), -ENODEV);
}

/* What a process may in a user namespace of its own counts nothing in a network that is older. */
static void a_namespace_of_ones_own_gives_no_right(void **state)
{
    int ended = 0;

    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(unshare(CLONE_NEWUSER) != 0 ? 77 : wf_devmem_may_change(devmem) ? 1 : 0);
    assert_int_equal(waitpid(child, &ended, 0), child);
    if (WEXITSTATUS(ended) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(ended), 0);
    child = fork();
    if (child == 0)
        _exit(unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 ? 77 : wf_devmem_may_change(devmem) ? 0 : 1);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WEXITSTATUS(ended) == 77 || WEXITSTATUS(ended) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loopback_is_no_card, start, end),
        cmocka_unit_test_setup_teardown(a_namespace_of_ones_own_gives_no_right, start, end),
        cmocka_unit_test_setup_teardown(the_kernel_refuses_to_bind_loopback, start, end),
        cmocka_unit_test_setup_teardown(nothing_can_be_set_at_loopback, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
