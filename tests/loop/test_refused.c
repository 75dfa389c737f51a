/*
 * test_refused.c: what a context says where the system lets no thread be bound, as a container's filter may.
 */
#include "loop_support.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int count(const char *text, const char *word)
{
    int found = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        found += 1;
    return found;
}

/* For this thread and all that it starts. */
static bool refuse_binding(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof steps / sizeof steps[0], .filter = steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* Sixteen threads, and the word of all of them would leave no room for any other. */
static void one_line_for_all_threads(void)
{
    struct weft_context *context = loop_context("workers=split", LOOP_RAILS_MAX);
    const char *fallbacks = weft_context_fallbacks(context);

    LOOP_CHECK(count(fallbacks, "pin: thread ") == 1, "%s", fallbacks);
    LOOP_CHECK(strstr(fallbacks, "--cap-add SYS_NICE)"), "not to its end: %s", fallbacks);
    weft_context_destroy(context);
}

static void require_is_an_error(void)
{
    struct weft_config *config = loop_config("workers=split pin=require", 1);
    struct weft_context *context = NULL;
    struct weft_error err = {0};
    int threads = loop_threads();

    LOOP_CHECK(weft_context_create(config, &context, &err) == -EPERM, "code %d, %s", err.code, err.text);
    LOOP_CHECK(!context && strstr(err.text, "pin = require"), "%s", err.text);
    LOOP_CHECK(weft_context_create(config, &context, NULL) == -EPERM, "not refused where no text is wanted");
    LOOP_CHECK(loop_threads() == threads, "%d threads, %d before", loop_threads(), threads);
    weft_config_destroy(config);
}

/* Off is not a reason to say nothing of what the user has written. */
static void bindings_that_are_not_used_are_named(void)
{
    struct weft_context *context = loop_context("pin=off tx_bindings=lo:0", 1);

    LOOP_CHECK(count(weft_context_fallbacks(context), "pin is off") == 1, "%s", weft_context_fallbacks(context));
    weft_context_destroy(context);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOOP_CASE(one_line_for_all_threads, 20),
        LOOP_CASE(require_is_an_error, 20),
        LOOP_CASE(bindings_that_are_not_used_are_named, 20),
    };
    loop_begin(argc, argv);
    if (!refuse_binding()) {
        print_message("skipped: no filter of system calls can be set here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
