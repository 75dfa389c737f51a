#include "heard.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* C0 and DEL are one byte of UTF-8, C1 is two. */
static bool is_control(const unsigned char *at)
{
    return *at < ' ' || *at == 0x7f || (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0);
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if (is_control((const unsigned char *)text))
            return true;
    return false;
}

static int clean_text(json_t *text, bool lines)
{
    if (!has_control(json_string_value(text)))
        return 0;
    char *copy = strdup(json_string_value(text));
    if (!copy)
        return -1;
    for (char *at = copy; *at; at++) {
        if (!is_control((unsigned char *)at) || (lines && (*at == '\n' || *at == '\t')))
            continue;
        if ((unsigned char)*at == 0xc2) /* stays UTF-8 */
            *at++ = '?';
        *at = '?';
    }
    int result = json_string_set(text, copy);
    free(copy);
    return result;
}

static int clean(json_t *json, bool lines, int depth)
{
    const char *name;
    json_t *value;
    size_t index;
    int result = json_is_string(json) ? clean_text(json, lines) : 0;

    if (depth == 0 && (json_is_object(json) || json_is_array(json)))
        return -1;
    json_object_foreach(json, name, value)
    {
        if (result == 0)
            result = has_control(name) ? -1 : clean(value, strcmp(name, "text") == 0, depth - 1);
    }
    json_array_foreach(json, index, value)
    {
        if (result == 0)
            result = clean(value, false, depth - 1);
    }
    return result;
}

json_t *bench_heard(const char *bytes, size_t length)
{
    json_t *json = json_loadb(bytes, length, 0, NULL);

    if (json_is_object(json) && clean(json, false, BENCH_HEARD_DEPTH) == 0)
        return json;
    json_decref(json);
    return NULL;
}

void bench_heard_plain(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

json_t *bench_heard_string(const char *text)
{
    json_t *json = json_string(text);
    char *plain = json ? NULL : strdup(text);

    if (plain) {
        wf_text_utf8(plain);
        json = json_string(plain);
    }
    free(plain);
    return json;
}

const char *bench_heard_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "?";
}

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, c) : NULL;

    return found ? (int)(found - digits) : -1;
}

int bench_heard_bytes(const json_t *text, unsigned char *bytes, int most)
{
    const char *digits = json_string_value(text);
    size_t length = digits ? strlen(digits) : 1;

    if (length % 2 != 0 || length / 2 > (size_t)most)
        return -1;
    for (size_t i = 0; i < length / 2; i++) {
        int high = digit_of(digits[2 * i]), low = digit_of(digits[2 * i + 1]);
        if (high < 0 || low < 0)
            return -1;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return (int)(length / 2);
}
