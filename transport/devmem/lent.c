/* What is in the card, compared with what the records say. */
#include "lent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

int wf_lent_count_rules(const struct wf_lent *lent)
{
    int count = 0;

    for (int i = 0; i < WF_LENT_RULES_MAX; i++)
        count += lent->rules[i].to.ss_family != AF_UNSPEC;
    return count;
}

void wf_lent_name_holder(struct wf_lent_holder *holder, uint32_t user, int32_t process)
{
    char path[32];

    *holder = (struct wf_lent_holder){.user = user, .process = process, .command = "?"};
    snprintf(path, sizeof path, "/proc/%d/comm", process);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(holder->command, 1, sizeof holder->command - 1, file) : 0;
    if (file)
        fclose(file);
    if (length == 0)
        return;
    holder->command[length] = '\0';
    if (holder->command[length - 1] == '\n')
        holder->command[length - 1] = '\0';
    wf_text_plain(holder->command);
}

bool wf_lent_counts(struct wf_devmem *devmem, const struct wf_lent *lent)
{
    uint32_t ids[WF_DEVMEM_RX_MAX];
    char name[IFNAMSIZ];
    struct wf_status ignored;

    if (wf_devmem_name(devmem, lent->ifindex, name, &ignored) == -ENODEV)
        return false;
    int told = wf_devmem_bindings(devmem, lent->ifindex, ids, WF_DEVMEM_RX_MAX, &ignored);
    return told <= 0 || (lent->queue < WF_DEVMEM_RX_MAX && ids[lent->queue] == lent->binding);
}

/* A card that is gone has taken its rules along. */
int wf_lent_take_rule(struct wf_devmem *devmem, const struct wf_lent *lent, int rule, struct wf_status *status)
{
    const struct wf_devmem_flow *flow = &lent->rules[rule];
    char name[IFNAMSIZ];
    uint32_t place;
    int result = wf_devmem_name(devmem, lent->ifindex, name, status);

    if (result == 0)
        result = wf_devmem_find_rule(devmem, name, flow, lent->queue, &place, status);
    if (result == 0)
        result = wf_devmem_unsteer(devmem, name, flow, lent->queue, place, status);
    return result == -ENODEV || result == -ENOENT ? 0 : result;
}

struct sweep {
    struct wf_devmem *devmem;
    int folder, taken;
    struct wf_status *status;
};

static int sweep_one(struct wf_lent *lent, void *data)
{
    struct sweep *sweep = data;
    int result = 0;

    if (wf_lent_counts(sweep->devmem, lent))
        return 0;
    for (int i = 0; i < WF_LENT_RULES_MAX && result == 0; i++)
        if (lent->rules[i].to.ss_family != AF_UNSPEC) {
            result = wf_lent_take_rule(sweep->devmem, lent, i, sweep->status);
            sweep->taken += result == 0;
        }
    if (result == 0)
        wf_lent_remove(sweep->folder, lent->ifindex, lent->queue);
    return result;
}

int wf_lent_sweep(struct wf_devmem *devmem, int folder, struct wf_status *status)
{
    struct sweep sweep = {.devmem = devmem, .folder = folder, .status = status};
    int result = wf_lent_each(folder, sweep_one, &sweep);

    return result ? result : sweep.taken;
}
