/* The setting `rails`, resolved without opening anything: of this machine by the library, of another one by its names.
 */
#include "topo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/nodes/link.h"
#include "bench/words/words.h"
#include "weft.h"

#define INTERFACES 256 /* more are counted, and not shown */

static int add(struct wf_plan_request *request, const char *name, const char *device, const char *address,
               struct wf_status *status)
{
    for (int i = 0; i < request->rail_count; i++)
        if (strcmp(request->rails[i].name, name) == 0)
            return wf_fail(status, -EINVAL, "rails names '%.60s' twice", name);
    if (request->rail_count == WF_PLAN_RAILS)
        return wf_fail(status, -EINVAL, "rails names more than %d rails: name fewer", WF_PLAN_RAILS);
    struct wf_plan_rail_request *rail = &request->rails[request->rail_count++];
    bench_copy_text(rail->name, sizeof rail->name, name);
    bench_copy_text(rail->device, sizeof rail->device, device);
    bench_copy_text(rail->address, sizeof rail->address, address);
    return 0;
}

/* --- this machine --- */

static int ask_library(const char *setting, struct weft_interface_info *list, struct wf_status *status)
{
    struct weft_config *settings;
    struct weft_error err = {0};

    if (weft_config_create(&settings, &err) != 0)
        return bench_weft_failed(status, &err, NULL);
    int count = 0;
    /* What the library has read by itself keeps its origin: it is lenient with variables of other programs. */
    if (strcmp(weft_config_get(settings, "rails"), setting) != 0)
        count = weft_config_set(settings, "rails", setting, &err);
    if (count == 0)
        count = weft_interfaces(settings, list, INTERFACES, &err);
    weft_config_destroy(settings);
    if (count < 0)
        return wf_fail(status, err.code == -ENODEV ? -EINVAL : err.code, "%s", err.text);
    return count < INTERFACES ? count : INTERFACES;
}

static void leave_out(const struct weft_interface_info *one, struct wf_left_out *out)
{
    bench_copy_text(out->interface, sizeof out->interface, one->interface);
    bench_copy_text(out->address, sizeof out->address, one->address);
    bench_copy_text(out->why, sizeof out->why, one->why);
    bench_copy_text(out->remedy, sizeof out->remedy, one->remedy);
}

static int own_rails(const char *setting, struct wf_plan_request *request, struct wf_left_out *left_out,
                     int *left_count, struct wf_status *status)
{
    struct weft_interface_info *list = calloc(INTERFACES, sizeof *list);
    int result = 0;

    if (!list)
        return wf_fail(status, -ENOMEM, "no memory for the interfaces");
    int count = ask_library(setting, list, status);
    for (int i = 0; i < count && result == 0; i++)
        if (list[i].is_rail)
            result = add(request, list[i].name, list[i].interface, list[i].address, status);
        else if (*left_count < WF_LEFT_OUT_MAX)
            leave_out(&list[i], &left_out[(*left_count)++]);
    free(list);
    return count < 0 ? count : result;
}

/* --- another machine --- */

static bool item_matches(const char *item, const char *name)
{
    size_t length = strlen(item);

    if (length && item[length - 1] == '*')
        return strncmp(name, item, length - 1) == 0;
    return strcmp(name, item) == 0;
}

static bool excluded(const char *list, const char *name)
{
    char copy[WF_VALUE_MAX], *rest = copy;

    bench_copy_text(copy, sizeof copy, list);
    for (char *item; (item = bench_next_word(&rest, ','));)
        if (item_matches(item, name))
            return true;
    return false;
}

static int not_there(const struct wf_machine *machine, const char *item, struct wf_status *status)
{
    char there[160] = "none";
    size_t used = 0;

    for (int i = 0; i < machine->nic_count && used < sizeof there; i++)
        used += (size_t)snprintf(there + used, sizeof there - used, "%s%s", i ? ", " : "", machine->nics[i].name);
    return wf_fail(status, -EINVAL, "rail '%.60s' (setting rails) is not a NIC of that machine; there are: %s", item,
                   there);
}

static int add_item(const struct wf_machine *machine, const char *item, struct wf_plan_request *request,
                    struct wf_status *status)
{
    int before = request->rail_count, result = 0;

    for (int i = 0; i < machine->nic_count && result == 0; i++)
        if (item_matches(item, machine->nics[i].name))
            result = add(request, machine->nics[i].name, machine->nics[i].name, "", status);
    return result || request->rail_count > before ? result : not_there(machine, item, status);
}

static int named_there(const struct wf_machine *machine, const char *setting, struct wf_plan_request *request,
                       struct wf_status *status)
{
    char copy[WF_VALUE_MAX], *rest = copy;
    int result = 0;

    bench_copy_text(copy, sizeof copy, setting);
    for (char *item; result == 0 && (item = bench_next_word(&rest, ','));)
        result = add_item(machine, item, request, status);
    return result;
}

/* Those that are up, but for the ones that the setting excludes. */
static int rest_there(const struct wf_machine *machine, const char *exclusions, struct wf_plan_request *request,
                      struct wf_status *status)
{
    int result = 0;

    for (int i = 0; i < machine->nic_count && result == 0 && request->rail_count < WF_PLAN_RAILS; i++)
        if (machine->nics[i].up && !excluded(exclusions, machine->nics[i].name))
            result = add(request, machine->nics[i].name, machine->nics[i].name, "", status);
    return result;
}

int bench_topo_rails(const struct wf_machine *machine, const char *setting, struct wf_plan_request *request,
                     struct wf_left_out *left_out, int *left_count, struct wf_status *status)
{
    *left_count = 0;
    if (!machine->foreign)
        return own_rails(setting, request, left_out, left_count, status);
    if (!setting[0])
        return 0;
    return setting[0] == '^' ? rest_there(machine, setting + 1, request, status)
                             : named_there(machine, setting, request, status);
}
