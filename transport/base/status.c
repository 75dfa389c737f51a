#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Removes a UTF-8 character of which only the first bytes are left at the end: JSON writers refuse such text. */
static void drop_half_character(char *text)
{
    size_t length = strlen(text);
    size_t lead = length;
    unsigned char first;
    size_t whole;

    while (lead > 0 && ((unsigned char)text[lead - 1] & 0xC0) == 0x80)
        lead--;
    if (lead == 0)
        return;
    first = (unsigned char)text[lead - 1];
    whole = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
    if (length - (lead - 1) < whole)
        text[lead - 1] = '\0';
}

/* Values at fault come from strangers: no line break and no terminal sequence passes. */
static void keep_one_line(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

/* Formats beside the status, not in it: the arguments may be the text that is about to be replaced. */
static void describe(struct wf_status *status, const char *rest, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
static void describe(struct wf_status *status, const char *rest, const char *format, va_list arguments)
{
    char text[2 * WF_STATUS_TEXT] = "";

    (void)vsnprintf(text, WF_STATUS_TEXT, format, arguments);
    if (rest) {
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof(text) - used, ": %s", rest);
    }
    text[WF_STATUS_TEXT - 1] = '\0';
    drop_half_character(text);
    keep_one_line(text);
    memcpy(status->text, text, WF_STATUS_TEXT);
}

int wf_fail(struct wf_status *status, int code, const char *format, ...)
{
    va_list arguments;

    if (!status)
        return code;
    va_start(arguments, format);
    describe(status, NULL, format, arguments);
    va_end(arguments);
    status->code = code;
    return code;
}

int wf_fail_prefix(struct wf_status *status, const char *format, ...)
{
    va_list arguments;

    if (!status)
        return -EINVAL;
    va_start(arguments, format);
    describe(status, status->text, format, arguments);
    va_end(arguments);
    return status->code;
}

const char *wf_strerror(int code)
{
    /* Unlike strerror() it has no buffer that threads would share, and ignores the locale. -code may overflow. */
    const char *text = strerrordesc_np(code < 0 ? (int)-(unsigned)code : code);

    return text ? text : "unknown error";
}
