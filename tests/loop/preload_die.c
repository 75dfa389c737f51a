/*
 * preload_die.c: a library to preload that ends the process before its main() where one of its arguments is DIE_IF: by
 * the signal DIE_SIGNAL, or with the status DIE_STATUS.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void die(int argc, char **argv)
{
    const char *wanted = getenv("DIE_IF"), *number = getenv("DIE_SIGNAL"), *status = getenv("DIE_STATUS");

    for (int i = 1; wanted && i < argc; i++)
        if (strcmp(argv[i], wanted) == 0) {
            if (number)
                kill(getpid(), atoi(number));
            _exit(status ? atoi(status) : 1);
        }
}
