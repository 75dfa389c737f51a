/* Whether an MPS server is in force: a pipe or a socket counts only while somebody is behind it. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/machine/mps.h"

static char folder[64], control[80];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/weft-mps-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(control, sizeof(control), "%s/control", folder);
    return setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(control);
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    return rmdir(folder);
}

static void assert_mps(enum bench_mps expected)
{
    char where[64];

    assert_int_equal(bench_mps_look(where, sizeof(where)), expected);
    assert_string_equal(where, folder);
}

static void without_a_pipe_it_is_off(void **state)
{
    (void)state;
    assert_mps(BENCH_MPS_OFF);
}

static void a_file_of_that_name_is_no_pipe(void **state)
{
    int fd = open(control, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_mps(BENCH_MPS_OFF);
}

static void a_pipe_needs_a_reader(void **state)
{
    int reader;

    (void)state;
    assert_int_equal(mkfifo(control, 0600), 0);
    assert_mps(BENCH_MPS_DEAD);
    reader = open(control, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_mps(BENCH_MPS_ON);
    close(reader);
    assert_mps(BENCH_MPS_DEAD);
}

/* And the listener hears nothing of the question. */
static void a_socket_needs_a_listener(void **state)
{
    static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)state;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", control);
    for (int i = 0; i < 2; i++) {
        int listener = socket(AF_UNIX, types[i] | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        assert_true(listener >= 0);
        assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(listener, 4), 0);
        assert_mps(BENCH_MPS_ON);
        assert_int_equal(accept(listener, NULL, NULL), -1);
        close(listener);
        assert_mps(BENCH_MPS_DEAD);
        unlink(control);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_pipe_it_is_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_of_that_name_is_no_pipe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pipe_needs_a_reader, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_socket_needs_a_listener, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
