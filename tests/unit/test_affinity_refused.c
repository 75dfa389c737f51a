/* Where a container's filter refuses what discovery asks of the kernel, it says so, and ends. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "affinity/discover.h"

#define HANGS_AFTER_S 30 /* the test ends, whatever is wrong */
#define NO_FILTER 77

static struct wf_machine machine; /* too large for a stack */

static int refuse(unsigned call)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof(steps) / sizeof(steps[0]), .filter = steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* A filter stays: a process of its own asks. Its exit status. */
static int ask(void)
{
    char why[256] = "";
    alarm(HANGS_AFTER_S);
    if (refuse(SYS_sched_getaffinity))
        return NO_FILTER;
    return wf_machine_discover(NULL, &machine, why, sizeof(why)) == -EIO && strstr(why, "not permitted") ? 0 : 1;
}

static void a_hidden_affinity_is_an_error(void **state)
{
    int status = 0;
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0)
        _exit(ask());
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hidden_affinity_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
