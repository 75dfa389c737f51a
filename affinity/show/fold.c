#include "affinity/show/fold.h"

#include <string.h>

void wf_show_unfold(struct wf_show_folded *folded)
{
    char name[40], line[WF_SHOW_TEXT + 64];
    if (!folded->first[0])
        return;
    if (strcmp(folded->first, folded->last) == 0)
        snprintf(name, sizeof name, "%s", folded->first);
    else
        snprintf(name, sizeof name, "%s to %s", folded->first, folded->last);
    snprintf(line, sizeof line, "%-*s  %s", WF_SHOW_NAMES, name, folded->body);
    wf_show_wrapped(folded->out, folded->column, WF_SHOW_NAMES + 2, line);
    folded->first[0] = '\0';
}

void wf_show_fold(struct wf_show_folded *folded, const char *name, const char *body)
{
    if (!folded->first[0] || strcmp(folded->body, body) != 0) {
        wf_show_unfold(folded);
        snprintf(folded->first, sizeof folded->first, "%s", name);
        snprintf(folded->body, sizeof folded->body, "%s", body);
    }
    snprintf(folded->last, sizeof folded->last, "%s", name);
}
