#include "hello.h"

#include <errno.h>
#include <string.h>

/* The command whose first words these are; NULL: none that is known here. Its name is safe to show. */
static const char *speaker(const json_t *hello)
{
    static const char *const names[] = {"mesh", "pair"};
    const char *first = json_string_value(json_object_get(hello, "hello"));
    const char *command = json_string_value(json_object_get(hello, "command"));

    if (first && strcmp(first, BENCH_HELLO_PEERS) == 0)
        return "peers";
    if (first && strcmp(first, BENCH_HELLO_SWEEP) == 0)
        return "sweep";
    if (first && strcmp(first, BENCH_HELLO_DOCTOR) == 0)
        return "doctor";
    for (size_t i = 0; first && command && strcmp(first, BENCH_HELLO) == 0 && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(command, names[i]) == 0)
            return names[i];
    return NULL;
}

int bench_same_command(const json_t *hello, const char *own, int node, struct wf_status *status)
{
    const char *other = speaker(hello);

    if (!other || strcmp(other, own) == 0)
        return 0;
    return wf_fail(status, -ENOEXEC, "node0 runs 'weft %s' and node1 'weft %s': start the same command on both",
                   node == 0 ? own : other, node == 0 ? other : own);
}
