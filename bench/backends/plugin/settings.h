/*
 * settings.h: a plugin has a library of its own inside, which reads the environment and nothing else. What was said to
 * this program otherwise (command line, file, preset) gets there by the variables WEFT_NAME.
 */
#ifndef WF_BENCH_PLUGIN_SETTINGS_H
#define WF_BENCH_PLUGIN_SETTINGS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/config.h"
#include "base/status.h"
#include "weft.h"

struct net_settings {
    bool set_by_us[WF_SETTING_COUNT];
};

/* Before the plugin is initialised. */
int net_settings_pass(struct net_settings *settings, const struct weft_config *from, struct wf_status *status);

/* The variables of the library's settings, each with its value and who set it; a new reference. */
json_t *net_settings_to_json(const struct net_settings *settings);

#endif
