/* Command lines, word by word. */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "peer.h"

/* Makes everything that is added later fail, too: check only the last. */
static int overflow(struct peer_command *command)
{
    command->used = sizeof command->text;
    return -ENOBUFS;
}

static int append(struct peer_command *command, const char **list, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
static int append(struct peer_command *command, const char **list, const char *format, va_list arguments)
{
    size_t room = sizeof command->text - command->used;
    int count = 0;

    while (list[count])
        count++;
    if (count >= PEER_WORDS_MAX - 1)
        return overflow(command);
    int length = vsnprintf(command->text + command->used, room, format, arguments);
    if (length < 0 || (size_t)length >= room)
        return overflow(command);
    list[count] = command->text + command->used;
    command->used += (uint32_t)length + 1;
    return 0;
}

int peer_word(struct peer_command *command, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int result = append(command, command->words, format, arguments);
    va_end(arguments);
    return result;
}

int peer_setting(struct peer_command *command, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int result = append(command, command->settings, format, arguments);
    va_end(arguments);
    return result;
}

/* --- congestion control --- */

#define ON_ONE_MACHINE "reno" /* Weft's own choice there */

/* NULL: none is set. */
static const char *congestion_set(const struct peer_place *place)
{
    static const char name[] = "congestion=";
    const char *found = NULL;

    for (int i = 0; place->settings[i]; i++)
        if (strncmp(place->settings[i], name, sizeof name - 1) == 0)
            found = place->settings[i] + sizeof name - 1;
    return found && found[0] ? found : NULL;
}

int peer_congestion_count(const struct peer_place *place)
{
    return place->one_machine && !congestion_set(place) ? 2 : 1;
}

const char *peer_congestion(const struct peer_place *place, int index)
{
    const char *set = congestion_set(place);

    return set ? set : index > 0 ? ON_ONE_MACHINE : "";
}

/* --- processors --- */

bool peer_two_processors(const struct peer_place *place, int cores[2])
{
    cpu_set_t set;
    int found = 0;

    if (!place->one_machine || sched_getaffinity(0, sizeof set, &set) != 0)
        return false;
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &set))
            cores[found++] = i;
    return found == 2;
}

/* --- as text --- */

struct text {
    char *at;
    size_t left; /* the final '\0' among them */
};

static void put(struct text *text, const char *bytes, size_t length)
{
    if (length >= text->left)
        length = text->left - 1;
    memcpy(text->at, bytes, length);
    text->at += length;
    text->left -= length;
    *text->at = '\0';
}

/* A word in quotation marks where a shell would take it for something else. */
static void put_word(struct text *text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%^";

    if (word[0] && word[strspn(word, plain)] == '\0') {
        put(text, word, strlen(word));
        return;
    }
    put(text, "'", 1);
    for (; *word; word++)
        put(text, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    put(text, "'", 1);
}

char *peer_command_text(const struct peer_command *command, char *buffer, size_t room)
{
    struct text text = {buffer, room};

    put(&text, "", 0);
    for (int i = 0; command->words[0] && command->settings[i]; i++) {
        const char *equals = strchr(command->settings[i], '=');
        size_t name = equals ? (size_t)(equals - command->settings[i]) + 1 : 0;
        put(&text, command->settings[i], name);
        put_word(&text, command->settings[i] + name);
        put(&text, " ", 1);
    }
    for (int i = 0; command->words[i]; i++) {
        if (i)
            put(&text, " ", 1);
        put_word(&text, command->words[i]);
    }
    return buffer;
}
