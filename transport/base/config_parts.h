/*
 * config_parts.h: shared by config.c, config_load.c, config_table.c and config_words.c. No other file includes it.
 */
#ifndef WF_BASE_CONFIG_PARTS_H
#define WF_BASE_CONFIG_PARTS_H

#include "base/config.h"

#define WF_NAME_ROOM 40   /* bytes of a setting's name; no name is near to a longer text */
#define WF_SCRIPT_NAMES 6 /* names that scripts read: WEFT_CONFIG, WEFT_SETUP, ...; they stand after the settings' */

/* The name of setting `index`; from WF_SETTING_COUNT on, the name of a script's variable. */
const char *wf_config_name(size_t index);

/* The one of the first `count` names that `name` was meant to be (guess.h), or NULL. */
const char *wf_config_nearest(const char *name, size_t count);

/* Copies `text` to `out`, each byte passed through `change`; cuts a text that is longer than `room`. */
void wf_text_changed(char *out, size_t room, const char *text, char (*change)(char));

/* The index of `word` in "auto|uring|epoll", or -1. */
int wf_choice_index(const char *choices, const char *word);

/* The word of the table for a word that means the same: "on" for "yes" where the choices are off|on, "1" for "on" of a
 * flag. Any other text comes back as it is. */
const char *wf_setting_word(const struct wf_setting *setting, const char *text);

/* Used instead of tolower() and toupper(), which depend on the locale: the names are ASCII. */
char wf_lower(char c);
char wf_upper(char c);

#endif
