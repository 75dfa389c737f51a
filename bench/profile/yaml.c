#include "yaml.h"

#include <float.h>
#include <stdbool.h>
#include <string.h>

#define STEP 2

static void put_block(const json_t *value, int indent, FILE *file);

static bool is_block(const json_t *value)
{
    return (json_is_object(value) && json_object_size(value)) || (json_is_array(value) && json_array_size(value));
}

/* A point, and a sign in the exponent: YAML 1.1 takes a number without them for a text. %g leaves out the point only.
 */
static void put_real(double value, FILE *file)
{
    char text[32];

    snprintf(text, sizeof text, "%.*g", DBL_DIG, value);
    int mantissa = (int)strcspn(text, "e");
    fprintf(file, "%.*s%s%s", mantissa, text, strchr(text, '.') ? "" : ".0", text + mantissa);
}

/* Texts, integers, and what is empty, as in JSON. */
static void put_plain(const json_t *value, FILE *file)
{
    if (json_is_real(value))
        put_real(json_real_value(value), file);
    else
        json_dumpf(value, file, JSON_ENCODE_ANY);
}

static void put_line(const json_t *list, FILE *file)
{
    const json_t *entry;
    size_t index;

    json_array_foreach(list, index, entry)
    {
        fputs(index ? ", " : "[", file);
        put_plain(entry, file);
    }
    fputc(']', file);
}

/* A key of ours is a word; others are texts. */
static void put_key(const char *key, FILE *file)
{
    bool word = key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0' && key[0] >= 'a';
    json_t *text = json_string(key);

    if (word)
        fputs(key, file);
    else
        put_plain(text, file);
    json_decref(text);
    fputc(':', file);
}

/* A short list of numbers stands in its line. An empty one is plain. */
static bool is_line(const json_t *value)
{
    const json_t *entry;
    size_t index;

    if (!json_is_array(value) || json_array_size(value) == 0 || json_array_size(value) > 16)
        return false;
    json_array_foreach(value, index, entry)
    {
        if (!json_is_number(entry))
            return false;
    }
    return true;
}

/* What follows "key:" or "-": `indent` is that of the blocks below. */
static void put_value(const json_t *value, int indent, FILE *file)
{
    if (is_block(value) && !is_line(value)) {
        fputc('\n', file);
        put_block(value, indent, file);
        return;
    }
    fputc(' ', file);
    if (is_line(value))
        put_line(value, file);
    else
        put_plain(value, file);
    fputc('\n', file);
}

static void put_block(const json_t *value, int indent, FILE *file)
{
    const json_t *entry;
    const char *key;
    size_t index;

    json_object_foreach((json_t *)value, key, entry)
    {
        fprintf(file, "%*s", indent, "");
        put_key(key, file);
        put_value(entry, indent + STEP, file);
    }
    json_array_foreach(value, index, entry)
    {
        fprintf(file, "%*s-", indent, "");
        put_value(entry, indent + STEP, file);
    }
}

void bench_put_yaml(const json_t *root, FILE *file)
{
    put_block(root, 0, file);
}
