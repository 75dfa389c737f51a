#include "affinity/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wf_cpus_unite(struct wf_cpus *set, const struct wf_cpus *other)
{
    for (int i = 0; i < WF_CPUS_WORDS; i++)
        set->words[i] |= other->words[i];
}

void wf_cpus_intersect(struct wf_cpus *set, const struct wf_cpus *other)
{
    for (int i = 0; i < WF_CPUS_WORDS; i++)
        set->words[i] &= other->words[i];
}

void wf_cpus_subtract(struct wf_cpus *set, const struct wf_cpus *other)
{
    for (int i = 0; i < WF_CPUS_WORDS; i++)
        set->words[i] &= ~other->words[i];
}

int wf_cpus_count(const struct wf_cpus *set)
{
    int count = 0;
    for (int i = 0; i < WF_CPUS_WORDS; i++)
        count += __builtin_popcountll(set->words[i]);
    return count;
}

bool wf_cpus_equal(const struct wf_cpus *a, const struct wf_cpus *b)
{
    return memcmp(a->words, b->words, sizeof a->words) == 0;
}

bool wf_cpus_within(const struct wf_cpus *inner, const struct wf_cpus *outer)
{
    for (int i = 0; i < WF_CPUS_WORDS; i++)
        if (inner->words[i] & ~outer->words[i])
            return false;
    return true;
}

int wf_cpus_next(const struct wf_cpus *set, int from)
{
    for (int cpu = from < 0 ? 0 : from; cpu < WF_CPUS_MAX; cpu++) {
        uint64_t rest = set->words[cpu / 64] >> (cpu % 64);
        if (rest)
            return cpu + __builtin_ctzll(rest);
        cpu |= 63;
    }
    return -1;
}

/* --- text --- */

/* A number at `*at`, which moves behind it. -1: none there, or too large. */
static long number(const char **at)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return -1;
    errno = 0;
    long value = strtol(*at, &end, 10);
    if (errno)
        return -1;
    *at = end;
    return value;
}

static int refuse(const char *item, char *why, size_t why_room)
{
    snprintf(why, why_room, "'%.*s' is not a processor or a range of them, as in 8-21,112 (numbers below %d)",
             (int)strcspn(item, ","), item, WF_CPUS_MAX);
    return -EINVAL;
}

bool wf_cpus_range(const char **at, long *first, long *last)
{
    const char *end = *at;
    long from = number(&end), to = from;
    if (from >= 0 && *end == '-') {
        end += 1;
        to = number(&end);
    }
    if (from < 0 || to < from || (*end != ',' && *end != '\0'))
        return false;
    *first = from;
    *last = to;
    *at = end;
    return true;
}

int wf_cpus_parse(const char *text, struct wf_cpus *out, char *why, size_t why_room)
{
    struct wf_cpus set = {0};
    const char *at = text;
    for (;;) {
        const char *item = at;
        long first, last;
        if (!wf_cpus_range(&at, &first, &last) || last >= WF_CPUS_MAX)
            return refuse(item, why, why_room);
        for (long cpu = first; cpu <= last; cpu++)
            wf_cpus_add(&set, (int)cpu);
        if (*at == '\0')
            break;
        at += 1;
    }
    *out = set;
    return 0;
}

#define ELLIPSIS "…"

const char *wf_cpus_text(const struct wf_cpus *set, char *text, size_t room)
{
    size_t used = 0;
    int first = wf_cpus_next(set, 0);
    snprintf(text, room, "%s", first < 0 ? "none" : "");
    while (first >= 0) {
        char item[32];
        int last = first;
        while (wf_cpus_has(set, last + 1))
            last += 1;
        int length = first == last ? snprintf(item, sizeof item, "%s%d", used ? "," : "", first)
                                   : snprintf(item, sizeof item, "%s%d-%d", used ? "," : "", first, last);
        if (used + (size_t)length + sizeof ELLIPSIS > room) {
            snprintf(text + used, room - used, "%s", used + sizeof ELLIPSIS <= room ? ELLIPSIS : "");
            break;
        }
        memcpy(text + used, item, (size_t)length + 1);
        used += (size_t)length;
        first = wf_cpus_next(set, last + 1);
    }
    return text;
}
