#include "collective/rendezvous/source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 1048576u

static const char *from_environment(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

struct wf_meet_env wf_meet_environment(void)
{
    return (struct wf_meet_env){.get = from_environment};
}

int wf_meet_fail(struct weft_error *err, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    err->code = code;
    vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    return code;
}

const char *wf_meet_get(const struct wf_meet_env *env, const char *name)
{
    const char *value = env->get(env->user, name);
    return value && value[0] ? value : NULL;
}

int wf_meet_number(const struct wf_meet_env *env, const char *name, uint32_t most, uint32_t *out,
                   struct weft_error *err)
{
    const char *text = wf_meet_get(env, name);
    if (!text)
        return 0;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value > most)
        return wf_meet_fail(err, -EINVAL, "%s='%.40s' in the environment: must be a number from 0 to %u", name, text,
                            most);
    *out = (uint32_t)value;
    return 1;
}

int wf_meet_numbers(const struct wf_meet_env *env, const char *rank, const char *size, const char *local,
                    struct wf_found *found, struct weft_error *err)
{
    uint32_t number;
    found->local_rank = -1;
    int result = wf_meet_number(env, rank, RANKS_MAX, &found->rank, err);
    if (result == 1)
        result = wf_meet_number(env, size, RANKS_MAX, &found->size, err);
    if (result <= 0)
        return result;
    if (found->rank >= found->size)
        return wf_meet_fail(err, -EINVAL,
                            "%s=%u and %s=%u in the environment: ranks go from 0 to one less than the size", rank,
                            found->rank, size, found->size);
    result = wf_meet_number(env, local, RANKS_MAX, &number, err);
    if (result < 0)
        return result;
    if (result == 1)
        found->local_rank = (int)number;
    return 1;
}

bool wf_meet_place(struct wf_found *found, const char *host, uint32_t port)
{
    bool bare = strchr(host, ':') && host[0] != '[';
    int length = snprintf(found->place, sizeof found->place, bare ? "[%s]:%u" : "%s:%u", host, port);
    return length > 0 && (size_t)length < sizeof found->place;
}
