#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
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

int wf_text_control(const char *text)
{
    unsigned char first = (unsigned char)text[0];

    if (first == '\0')
        return 0;
    if (first < ' ' || first == 0x7f)
        return 1;
    return first == 0xC2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xA0 ? 2 : 0;
}

void wf_text_plain(char *text)
{
    while (*text) {
        size_t bytes = (size_t)wf_text_control(text);
        memset(text, '?', bytes);
        text += bytes ? bytes : 1;
    }
}

/* How many bytes the letter has that stands there; 0: it is none. */
static size_t letter_bytes(const unsigned char *at)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = at[0] < 0x80 ? 1 : at[0] < 0xC0 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : at[0] < 0xF8 ? 4 : 0;
    uint32_t letter = bytes > 1 ? at[0] & (0x7Fu >> bytes) : at[0];

    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        letter = letter << 6 | (at[i] & 0x3Fu);
    }
    bool surrogate = letter >= 0xD800 && letter <= 0xDFFF;
    return letter >= least[bytes] && letter <= 0x10FFFF && !surrogate ? bytes : 0;
}

void wf_text_utf8(char *text)
{
    while (*text) {
        size_t bytes = letter_bytes((const unsigned char *)text);
        if (bytes == 0)
            *text = '?';
        text += bytes ? bytes : 1;
    }
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
    wf_text_plain(text); /* values at fault come from strangers */
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
