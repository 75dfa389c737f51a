/* Which of the events of docs/protocol.md's tables of states have happened. */
#include <stdio.h>
#include <string.h>

#include "core/ground/reached.h"
#include "model.h"

extern struct wf_reached *const __start_wf_reached[], *const __stop_wf_reached[];

static uint64_t count_of(const char *row)
{
    uint64_t count = 0;
    for (struct wf_reached *const *mark = __start_wf_reached; mark < __stop_wf_reached; mark++)
        count += strcmp((*mark)->row, row) == 0 ? (*mark)->count : 0;
    return count;
}

/* Is this the first mark of its row? */
static bool is_first(struct wf_reached *const *mark)
{
    for (struct wf_reached *const *earlier = __start_wf_reached; earlier < mark; earlier++)
        if (strcmp((*earlier)->row, (*mark)->row) == 0)
            return false;
    return true;
}

int model_rows_missed(void)
{
    int missed = 0;
    for (struct wf_reached *const *mark = __start_wf_reached; mark < __stop_wf_reached; mark++) {
        if (!is_first(mark) || count_of((*mark)->row) > 0)
            continue;
        fprintf(stderr, "model: never happened: %s\n", (*mark)->row);
        missed += 1;
    }
    return missed;
}

void model_rows_print(void)
{
    for (struct wf_reached *const *mark = __start_wf_reached; mark < __stop_wf_reached; mark++)
        if (is_first(mark))
            printf("%12llu  %s\n", (unsigned long long)count_of((*mark)->row), (*mark)->row);
}
