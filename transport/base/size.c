/* Sizes as text: read exactly, printed shortly, and what somebody who wrote one otherwise should have written. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/config_parts.h"

static const char units[] = "KMGT";

/* The power of two that a letter of `units` stands for, in either case; -1: it is none. */
static int shift_of(char letter)
{
    const char *unit = letter ? strchr(units, wf_upper(letter)) : NULL;
    return unit ? (int)(unit - units + 1) * 10 : -1;
}

/* Reads digits up to the first other character. NULL: there are none, or the number is too large. */
static const char *read_digits(const char *text, uint64_t *value)
{
    const char *at = text;
    *value = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, (unsigned)(*at - '0'), value))
            return NULL;
    return at == text ? NULL : at;
}

int wf_parse_size(const char *text, uint64_t *bytes)
{
    uint64_t value;
    const char *at = read_digits(text, &value);
    int shift = at && *at ? shift_of(*at) : 0;
    /* No size passes 2^63 - 1: messages do not, and settings hold an int64_t. */
    if (!at || shift < 0 || (*at && at[1]) || value > (uint64_t)INT64_MAX >> shift)
        return -EINVAL;
    *bytes = value << shift;
    return 0;
}

char *wf_format_size(uint64_t bytes, char *buffer, size_t room)
{
    int unit = -1;
    while (bytes != 0 && bytes % 1024 == 0 && unit < 3) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(buffer, room, "%" PRIu64 "%.1s", bytes, unit < 0 ? "" : units + unit);
    return buffer;
}

/* Adds `digits` / 10^n of 2^shift to `bytes`, where that is a whole number. */
static int add_fraction(const char *digits, const char *end, int shift, uint64_t *bytes)
{
    uint64_t part, scale = 1;
    if (end == digits || end - digits > 12 || read_digits(digits, &part) != end)
        return -EINVAL;
    for (const char *at = digits; at < end; at++)
        scale *= 10;
    unsigned __int128 whole = (unsigned __int128)part << shift;
    if (whole % scale != 0)
        return -EINVAL;
    *bytes += (uint64_t)(whole / scale);
    return 0;
}

/* What follows the number: blanks, a unit, "b" or "ib", blanks. */
static int read_unit(const char *at, int *shift)
{
    at += strspn(at, " \t");
    *shift = *at ? shift_of(*at) : 0;
    at += *shift > 0;
    if (*shift > 0 && wf_lower(*at) == 'i' && wf_lower(at[1]) == 'b')
        at++;
    at += wf_lower(*at) == 'b';
    *shift = *shift < 0 ? 0 : *shift;
    return at[strspn(at, " \t")] == '\0' ? 0 : -EINVAL;
}

bool wf_size_meant(const char *text, char *buffer, size_t room)
{
    uint64_t value;
    int shift;
    text += strspn(text, " \t");
    const char *at = read_digits(text, &value);
    const char *fraction = at && *at == '.' ? at + 1 : NULL;
    if (fraction)
        at = fraction + strspn(fraction, "0123456789");
    if (!at || read_unit(at, &shift) != 0 || value > (uint64_t)INT64_MAX >> shift)
        return false;
    uint64_t bytes = value << shift;
    if (fraction && add_fraction(fraction, at, shift, &bytes) != 0)
        return false;
    if (bytes > INT64_MAX)
        return false;
    wf_format_size(bytes, buffer, room);
    return true;
}
