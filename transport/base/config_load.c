/* Settings from the environment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config_parts.h"

#define ALIAS_MARK " (alias)" /* at the end of a value's source */

/* The value of a variable. Empty counts as not set: that is how a shell line takes a variable back. */
static const char *look_up(char *const *environment, const char *variable)
{
    size_t length = strlen(variable);

    for (; environment && *environment; environment++)
        if (strncmp(*environment, variable, length) == 0 && (*environment)[length] == '=')
            return (*environment)[length + 1] ? *environment + length + 1 : NULL;
    return NULL;
}

/* "WEFT_CHUNK" for "chunk". */
static const char *variable_name(const char *name, char *out, size_t room)
{
    static const char prefix[] = "WEFT_";

    memcpy(out, prefix, sizeof(prefix));
    wf_text_changed(out + sizeof(prefix) - 1, room - (sizeof(prefix) - 1), name, wf_upper);
    return out;
}

/* NCCL's list of interfaces in our words: see the row of `rails`. False when it does not fit. */
static bool translate_rails(const char *list, char *out, size_t room)
{
    const char *before = *list == '^' ? "^" : "";
    bool exact;
    size_t used = 0;

    list += strlen(before);
    exact = *list == '=';
    list += exact;
    out[0] = '\0';
    for (list += strspn(list, ","); *list; list += strspn(list, ",")) {
        int length = (int)strcspn(list, ",");
        int wrote = snprintf(out + used, room - used, "%s%.*s%s", before, length, list, exact ? "" : "*");
        if ((size_t)wrote >= room - used)
            return false;
        used += (size_t)wrote;
        list += length;
        before = ",";
    }
    return true;
}

/* NCCL's word for a family of addresses in ours. NCCL takes no notice of any other word. */
static const char *translate_family(const char *text)
{
    if (strcmp(text, "AF_INET") == 0)
        return "ipv4";
    return strcmp(text, "AF_INET6") == 0 ? "ipv6" : "auto";
}

static const char *alias_source(const struct wf_alias *alias, char *out, size_t room)
{
    (void)snprintf(out, room, "environment %s" ALIAS_MARK, alias->variable);
    return out;
}

static int import_alias(struct wf_config *config, const struct wf_alias *alias, const char *text,
                        struct wf_status *status)
{
    char translated[WF_VALUE_MAX], source[sizeof(config->values[0].source)];
    int rc = 0;

    if (alias->id == WF_SET_RAILS) {
        if (!translate_rails(text, translated, sizeof(translated)))
            rc = wf_fail(status, -EINVAL, "the list is too long: at most %d characters fit", WF_VALUE_MAX - 1);
        text = translated;
    }
    if (alias->id == WF_SET_FAMILY)
        text = translate_family(text);
    if (rc == 0)
        rc = wf_config_offer(config, alias->id, text, WF_ORIGIN_ENVIRONMENT,
                             alias_source(alias, source, sizeof(source)), status);
    if (rc)
        (void)wf_fail_prefix(status, "%s", alias->variable);
    return rc;
}

bool wf_config_is_alias(const struct wf_config *config, enum wf_setting_id id)
{
    const struct wf_value *value = &config->values[id];

    return value->origin == WF_ORIGIN_ENVIRONMENT && strstr(value->source, ALIAS_MARK);
}

const char *wf_config_alias(const struct wf_config *config, enum wf_setting_id id)
{
    const struct wf_value *value = &config->values[id];
    char source[sizeof(value->source)];

    for (const struct wf_alias *alias = wf_config_aliases(); alias->variable && wf_config_is_alias(config, id); alias++)
        if (alias->id == id && strcmp(alias_source(alias, source, sizeof(source)), value->source) == 0)
            return alias->variable;
    return NULL;
}

static int load_aliases(struct wf_config *config, char *const *environment, struct wf_status *status)
{
    char variable[WF_NAME_ROOM + 8];
    int rc = 0;

    for (const struct wf_alias *alias = wf_config_aliases(); alias->variable && rc == 0; alias++) {
        const char *text = look_up(environment, alias->variable);
        /* Beaten, it is not even checked: it speaks to another program. */
        if (text && !look_up(environment, variable_name(wf_setting(alias->id)->name, variable, sizeof(variable))))
            rc = import_alias(config, alias, text, status);
    }
    return rc;
}

static int load_variables(struct wf_config *config, char *const *environment, struct wf_status *status)
{
    char variable[WF_NAME_ROOM + 8], source[sizeof(config->values[0].source)];

    for (int id = 0; id < WF_SETTING_COUNT; id++) {
        const char *text =
            look_up(environment, variable_name(wf_setting((enum wf_setting_id)id)->name, variable, sizeof(variable)));
        int rc;

        if (!text)
            continue;
        (void)snprintf(source, sizeof(source), "environment %s", variable);
        rc = wf_config_offer(config, (enum wf_setting_id)id, text, WF_ORIGIN_ENVIRONMENT, source, status);
        if (rc) {
            (void)wf_fail_prefix(status, "%s", variable);
            return rc;
        }
    }
    return 0;
}

static void warn_of_name(const struct wf_log *log, const char *name)
{
    char plain[WF_NAME_ROOM + 1], variable[WF_NAME_ROOM + 8];
    const char *near;

    wf_text_changed(plain, sizeof(plain), name, wf_lower);
    near = wf_config_nearest(plain, WF_SETTING_COUNT + WF_SCRIPT_NAMES);
    if (near)
        wf_log(log, WF_LOG_WARN, "unknown variable WEFT_%.60s: did you mean %s?", name,
               variable_name(near, variable, sizeof(variable)));
    else
        wf_log(log, WF_LOG_WARN, "unknown variable WEFT_%.60s: see 'weft config'", name);
}

static bool is_known_variable(const char *name)
{
    static const char emulated[] = "EMULATED_"; /* the driver of the tests is told by these, and no setting begins so */
    char plain[WF_NAME_ROOM + 1];

    if (strncmp(name, emulated, sizeof(emulated) - 1) == 0)
        return true;
    for (size_t i = 0; i < WF_SETTING_COUNT + WF_SCRIPT_NAMES; i++) {
        wf_text_changed(plain, sizeof(plain), wf_config_name(i), wf_upper);
        if (strcmp(plain, name) == 0)
            return true;
    }
    return false;
}

static void warn_of_unknown(char *const *environment, const struct wf_log *log)
{
    static const char prefix[] = "WEFT_";

    for (; environment && *environment; environment++) {
        char name[WF_NAME_ROOM * 2];
        const char *entry = *environment;

        if (strncmp(entry, prefix, sizeof(prefix) - 1) != 0)
            continue;
        entry += sizeof(prefix) - 1;
        (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(entry, "="), entry);
        if (!is_known_variable(name))
            warn_of_name(log, name);
    }
}

int wf_config_load_environment(struct wf_config *config, char *const *environment, const struct wf_log *log,
                               struct wf_status *status)
{
    const char *path;
    int rc = 0;

    if (!environment)
        environment = environ;
    if (log)
        warn_of_unknown(environment, log);
    path = look_up(environment, "WEFT_CONFIG");
    if (path)
        rc = wf_config_load_file(config, path, status);
    if (rc == 0)
        rc = load_aliases(config, environment, status);
    if (rc == 0)
        rc = load_variables(config, environment, status);
    return rc;
}

/* ------------------------------------------------------------------------------------------- other programs */

int wf_environment_list(const char *prefix, wf_variable_seen *seen, void *context)
{
    size_t length = strlen(prefix);
    char name[128];
    int count = 0;

    for (char *const *entry = environ; entry && *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        if (!equals || strncmp(*entry, prefix, length) != 0)
            continue;
        (void)snprintf(name, sizeof(name), "%.*s", (int)(equals - *entry), *entry);
        seen(context, name, equals + 1);
        count++;
    }
    return count;
}

const char *wf_environment_value(const char *name)
{
    return look_up(environ, name);
}

static bool begins(const char *entry, const char *prefix)
{
    return strncmp(entry, prefix, strlen(prefix)) == 0;
}

bool wf_environment_is_setting(const char *entry)
{
    char variable[WF_NAME_ROOM + 8];

    for (const struct wf_alias *alias = wf_config_aliases(); alias->variable; alias++) {
        bool of_nccl = begins(alias->variable, "NCCL_");
        const char *name =
            of_nccl ? variable_name(wf_setting(alias->id)->name, variable, sizeof(variable)) : alias->variable;
        if (begins(entry, name) && entry[strlen(name)] == '=')
            return !of_nccl;
    }
    return begins(entry, "WEFT_") && !begins(entry, "WEFT_EMULATED_");
}

int wf_environment_offer(const char *name, const char *value)
{
    /* Empty is a value to other programs. */
    if (getenv(name))
        return 0;
    return setenv(name, value, 0) == 0 ? 1 : -ENOMEM;
}

int wf_environment_set(const char *name, const char *value)
{
    return setenv(name, value, 1) == 0 ? 0 : -ENOMEM;
}
