#include "variables.h"

#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "bench/nodes/link.h"
#include "bench/words/heard.h"

static int offer(struct nccl_variables *variables, const char *name, const char *value, struct wf_status *status)
{
    int result = wf_environment_offer(name, value);

    if (result < 0)
        return wf_fail(status, result, "no memory for the variable %s", name);
    if (result > 0)
        snprintf(variables->set_by_us[variables->count++], sizeof variables->set_by_us[0], "%s", name);
    return 0;
}

/* "=eth0,eth1": exactly these, each once. Rails of one interface are one to NCCL, which takes its first address. */
static void list_interfaces(struct weft_context *context, char *list, size_t room)
{
    struct weft_rail_info rails[BENCH_RAILS_MAX];
    int count = weft_context_rails(context, rails, BENCH_RAILS_MAX);
    size_t used = 0;

    for (int i = 0; i < count && i < BENCH_RAILS_MAX; i++) {
        bool known = !rails[i].interface[0];
        for (int k = 0; k < i && !known; k++)
            known = strcmp(rails[i].interface, rails[k].interface) == 0;
        if (!known && used < room)
            used += (size_t)snprintf(list + used, room - used, "%s%s", used ? "," : "=", rails[i].interface);
    }
    if (used >= room)
        list[0] = '\0';
}

int nccl_variables_set(struct nccl_variables *variables, struct weft_context *context, const char *host,
                       struct wf_status *status)
{
    char interfaces[512] = "";
    int result = offer(variables, "NCCL_NET", "Socket", status);

    if (result == 0)
        result = offer(variables, "NCCL_IB_DISABLE", "1", status);
    if (result == 0)
        result = offer(variables, "NCCL_MNNVL_ENABLE", "0", status);
    list_interfaces(context, interfaces, sizeof interfaces);
    if (result == 0 && interfaces[0])
        result = offer(variables, "NCCL_SOCKET_IFNAME", interfaces, status);
    if (result == 0 && host)
        result = offer(variables, "NCCL_HOSTID", host, status);
    return result;
}

struct echo {
    const struct nccl_variables *variables;
    json_t *all;
};

static void echo_variable(void *context, const char *name, const char *value)
{
    struct echo *echo = context;
    bool ours = false;

    for (int i = 0; i < echo->variables->count; i++)
        ours |= strcmp(echo->variables->set_by_us[i], name) == 0;
    json_object_set_new(echo->all, name,
                        json_pack("{s:o, s:s}", "value", bench_heard_string(value), "set_by", ours ? "weft" : "user"));
}

json_t *nccl_variables_to_json(const struct nccl_variables *variables)
{
    struct echo echo = {variables, json_object()};

    wf_environment_list("NCCL_", echo_variable, &echo);
    return echo.all;
}
