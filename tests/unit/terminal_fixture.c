/*
 * A terminal whose text a test reads. Linux sometimes loses the last of it once nobody has the terminal open any more
 * (14 of 320,000 times on 6.18, on two cores with eight processes). So the reader keeps it open, and a byte of 0 that
 * follows the process's last one is the end.
 */
#include "terminal_fixture.h"

#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

/* In a process: another one acts, so that the end is marked also where that one crashes. */
static void act_and_mark(int terminal, void (*act)(int terminal, void *context), void *context)
{
    pid_t actor = fork();

    if (actor == 0) {
        act(terminal, context);
        _exit(0);
    }
    if (actor > 0)
        waitpid(actor, NULL, 0);
    _exit(write(terminal, "", 1) != 1);
}

void terminal_show(unsigned short columns, void (*act)(int terminal, void *context), void *context, char *text,
                   size_t most)
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    struct termios raw;
    int reader, terminal;
    size_t length = 0;
    ssize_t got;

    assert_int_equal(openpty(&reader, &terminal, NULL, NULL, &size), 0);
    tcgetattr(terminal, &raw);
    cfmakeraw(&raw);
    tcsetattr(terminal, TCSANOW, &raw);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(reader);
        act_and_mark(terminal, act, context);
    }
    while (length < most && !memchr(text, '\0', length) && (got = read(reader, text + length, most - length)) > 0)
        length += (size_t)got;
    assert_non_null(memchr(text, '\0', length));
    close(terminal);
    close(reader);
    waitpid(child, NULL, 0);
}
