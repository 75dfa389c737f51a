/* The public call weft_interfaces(): which interfaces become rails, and why the others do not. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "core/calls/choices.h"
#include "core/calls/context.h"
#include "core/ground/refusal.h"
#include "core/rail/candidate.h"

/* The rails, and the interfaces left out. Too large for the stack. */
struct survey {
    struct wf_rail rails[WF_RAILS_MAX];
    struct wf_candidate *left;
    int rail_count, left_count;
};

static void copy_rail(const struct wf_rail *rail, struct weft_interface_info *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", rail->name);
    snprintf(out->interface, sizeof out->interface, "%s", rail->device);
    snprintf(out->address, sizeof out->address, "%s", rail->text);
}

/* Writes the list that names all rails and this interface, too. */
static void say_addition(const struct survey *survey, const char *device, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "--rails ");
    for (int i = 0; i < survey->rail_count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s,", survey->rails[i].name);
    if (used < room)
        used += (size_t)snprintf(text + used, room - used, "%s", device);
    if (used >= room)
        snprintf(text, room, "name it in --rails, with all the others");
}

/* Writes what the user can do to make a rail of an interface that is left out. */
static void say_remedy(const struct survey *survey, const struct wf_candidate *candidate, char *text, size_t room)
{
    const char *device = candidate->rail.device;
    switch (candidate->rule) {
    case WF_RULE_DOWN:
        snprintf(text, room, "ip link set %s up", device);
        break;
    case WF_RULE_NO_ADDRESS:
        snprintf(text, room, "ip address add ADDRESS/PREFIX dev %s", device);
        break;
    case WF_RULE_EXCLUDED:
        snprintf(text, room, "leave it out of --rails ^...");
        break;
    case WF_RULE_TOO_MANY:
        snprintf(text, room, "name those to use in --rails, at most %d", WF_RAILS_MAX);
        break;
    case WF_RULE_PORT:
        text[0] = '\0';
        break;
    default:
        say_addition(survey, device, text, room);
    }
}

static int survey_all(const struct wf_config *config, struct survey *survey, struct wf_status *status)
{
    const char *setting = wf_config_text(config, WF_SET_RAILS);
    int family = wf_chosen_family(config);
    survey->rail_count =
        wf_rails_find(setting, wf_config_alias(config, WF_SET_RAILS), family, survey->rails, WF_RAILS_MAX, status);
    if (survey->rail_count < 0)
        return survey->rail_count;
    survey->left_count = wf_rails_left_out(setting, family, survey->rails, survey->rail_count, &survey->left);
    return survey->left_count < 0
               ? wf_fail(status, survey->left_count, "cannot read the interfaces of this machine: %s",
                         wf_strerror(survey->left_count))
               : 0;
}

int weft_interfaces(const struct weft_config *config, struct weft_interface_info *list, int max, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), config) || (max > 0 && WF_IS_NULL(wf_status_of(err), list)))
        return -EINVAL;
    struct survey *survey = calloc(1, sizeof *survey);
    int count = 0, result = survey ? survey_all(&config->values, survey, wf_status_of(err))
                                   : wf_fail(wf_status_of(err), -ENOMEM, "no memory to look at the interfaces");
    for (int i = 0; result == 0 && i < survey->rail_count; i++, count++) {
        if (count < max)
            copy_rail(&survey->rails[i], &list[count]);
        if (count < max)
            list[count].is_rail = 1;
    }
    for (int i = 0; result == 0 && i < survey->left_count; i++, count++) {
        if (count >= max)
            continue;
        copy_rail(&survey->left[i].rail, &list[count]);
        snprintf(list[count].why, sizeof list[count].why, "%s", wf_rail_rule_text(survey->left[i].rule));
        say_remedy(survey, &survey->left[i], list[count].remedy, sizeof list[count].remedy);
    }
    if (survey)
        free(survey->left);
    free(survey);
    return result < 0 ? result : count;
}
