#include "affinity/bindings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define EXAMPLE "as in eth1:8-21,112-125;eth2:22-35"

/* A piece of a text. Owner of the text: the caller. */
struct piece {
    const char *at;
    size_t length;
};

static struct piece trimmed(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at))
        at += 1;
    while (end > at && isspace((unsigned char)end[-1]))
        end -= 1;
    return (struct piece){at, (size_t)(end - at)};
}

/* Texts are quoted up to here: they may be of any length. */
static int quoted_length(struct piece piece)
{
    return piece.length > 80 ? 80 : (int)piece.length;
}

static const char *last_colon(struct piece item)
{
    for (size_t i = item.length; i > 0; i--)
        if (item.at[i - 1] == ':')
            return item.at + i - 1;
    return NULL;
}

/* Long enough for any list that has no number twice. */
#define LIST_ROOM (WF_CPUS_MAX * 5)

static int parse_list(struct piece list, struct piece item, struct wf_cpus *out, char *why, size_t why_room)
{
    char text[LIST_ROOM], reason[192];
    if (list.length >= sizeof text) {
        snprintf(why, why_room, "'%.*s…': its list of processors is too long", quoted_length(item), item.at);
        return -EINVAL;
    }
    memcpy(text, list.at, list.length);
    text[list.length] = '\0';
    if (wf_cpus_parse(text, out, reason, sizeof reason) == 0)
        return 0;
    snprintf(why, why_room, "'%.*s': %s", quoted_length(item), item.at, reason);
    return -EINVAL;
}

static int parse_item(struct piece item, struct wf_bindings *all, char *why, size_t why_room)
{
    const char *colon = last_colon(item);
    struct piece rail = colon ? trimmed(item.at, colon) : (struct piece){item.at, 0};
    struct wf_binding *binding;

    if (rail.length == 0) {
        snprintf(why, why_room, "'%.*s' is not a rail, a colon and its processors, " EXAMPLE, quoted_length(item),
                 item.at);
        return -EINVAL;
    }
    if (rail.length >= sizeof binding->rail) {
        snprintf(why, why_room, "'%.*s…' is too long for the name of a rail", quoted_length(rail), rail.at);
        return -EINVAL;
    }
    for (int i = 0; i < all->count; i++)
        if (strlen(all->of[i].rail) == rail.length && memcmp(all->of[i].rail, rail.at, rail.length) == 0) {
            snprintf(why, why_room, "rail '%s' stands there twice", all->of[i].rail);
            return -EINVAL;
        }
    if (all->count == WF_PLAN_RAILS) {
        snprintf(why, why_room, "'%.*s' is one rail too many: there can be %d", quoted_length(item), item.at,
                 WF_PLAN_RAILS);
        return -EINVAL;
    }
    binding = &all->of[all->count];
    memcpy(binding->rail, rail.at, rail.length);
    binding->rail[rail.length] = '\0';
    int status = parse_list(trimmed(colon + 1, item.at + item.length), item, &binding->cpus, why, why_room);
    all->count += status == 0;
    return status;
}

int wf_bindings_parse(const char *text, struct wf_bindings *out, char *why, size_t why_room)
{
    struct wf_bindings all = {0};
    for (const char *at = text ? text : ""; *at;) {
        const char *end = at + strcspn(at, ";");
        struct piece item = trimmed(at, end);
        int status = item.length ? parse_item(item, &all, why, why_room) : 0;
        if (status)
            return status;
        at = *end ? end + 1 : end;
    }
    *out = all;
    return 0;
}
