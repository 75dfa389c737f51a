/*
 * config_parts.h: what the three sources behind config.h share. No other file includes it.
 */
#ifndef WF_BASE_CONFIG_PARTS_H
#define WF_BASE_CONFIG_PARTS_H

#include "base/config.h"

#define WF_NAME_ROOM 40   /* of a setting's name; what is longer resembles none */
#define WF_SCRIPT_NAMES 5 /* names that scripts read: WEFT_CONFIG, WEFT_SETUP, ...; they stand after the settings' */

/* The name of setting `index`, or beyond WF_SETTING_COUNT of a script's variable. */
const char *wf_config_name(size_t index);

/* The nearest of the first `count` names, or NULL when none is so near that it may have been meant. */
const char *wf_config_nearest(const char *name, size_t count);

/* Copies with every byte passed through `change`; a longer text is cut. */
void wf_text_changed(char *out, size_t room, const char *text, char (*change)(char));

/* Not tolower() and toupper(): the names are ASCII whatever the locale. */
char wf_lower(char c);
char wf_upper(char c);

#endif
