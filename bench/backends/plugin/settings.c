#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/words/heard.h"

static char *variable_of(const struct wf_setting *setting, char *name, size_t room)
{
    snprintf(name, room, "WEFT_%s", setting->name);
    for (char *at = name; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    return name;
}

/* Of this program's own session: one peer, at a known port. */
static bool is_own(int id)
{
    return id == WF_SET_PEERS || id == WF_SET_PORT;
}

int net_settings_pass(struct net_settings *settings, const struct weft_config *from, struct wf_status *status)
{
    char name[64];

    for (int id = 0; id < WF_SETTING_COUNT; id++) {
        const struct wf_setting *setting = wf_setting(id);
        if (setting->group != WF_GROUP_LIBRARY || is_own(id))
            continue;
        const char *value = weft_config_get(from, setting->name);
        const char *there = wf_environment_value(variable_of(setting, name, sizeof name));
        if (there ? strcmp(value, there) == 0 : weft_config_is_set(from, setting->name) == 0)
            continue;
        if (wf_environment_set(name, value) != 0)
            return wf_fail(status, -ENOMEM, "no memory for the variable %s", name);
        settings->set_by_us[id] = true;
    }
    return 0;
}

json_t *net_settings_to_json(const struct net_settings *settings)
{
    json_t *all = json_object();
    char name[64];

    for (int id = 0; id < WF_SETTING_COUNT; id++) {
        const struct wf_setting *setting = wf_setting(id);
        if (setting->group != WF_GROUP_LIBRARY)
            continue;
        const char *value = wf_environment_value(variable_of(setting, name, sizeof name));
        if (value)
            json_object_set_new(all, name,
                                json_pack("{s:o, s:s}", "value", bench_heard_string(value), "set_by",
                                          settings->set_by_us[id] ? "weft" : "user"));
    }
    return all;
}
