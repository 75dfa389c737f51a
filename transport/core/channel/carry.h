/*
 * carry.h: which group of channels carries which traffic classes, and in whose turn. A class in use has channels of its
 * own; as long as none of them is up, the lowest class with a channel up carries it, too.
 *
 * All with the session's lock held.
 */
#ifndef WF_CORE_CHANNEL_CARRY_H
#define WF_CORE_CHANNEL_CARRY_H

#include <stdbool.h>

#include "core/channel/lines.h"

/* The group whose channels carry frames of this class and kind. Session lock. */
static inline int wf_lines_carrier(const struct wf_lines *lines, unsigned traffic, enum wf_channel_kind kind)
{
    int own = wf_group(traffic, kind);
    if (lines->carried[own] >> traffic & 1)
        return own;
    for (unsigned other = 0; other < WF_CLASSES; other++)
        if (lines->carried[wf_group(other, kind)] >> traffic & 1)
            return wf_group(other, kind);
    return own;
}

/* Walks classes that are given as bits: the body takes the next one from `left`, which is not empty. */
static inline unsigned wf_classes_next(unsigned *left)
{
    unsigned traffic = (unsigned)__builtin_ctz(*left);
    *left &= *left - 1;
    return traffic;
}

/* Does the group carry its own class, and no other? */
static inline bool wf_lines_carries_one(const struct wf_lines *lines, int group)
{
    return lines->carried[group] == 1u << wf_group_class(group);
}

/* The classes that a group carries, from the one on whose turn it is. */
struct wf_turns {
    unsigned left, first;
};

static inline struct wf_turns wf_lines_turns(const struct wf_lines *lines, int group)
{
    return (struct wf_turns){.left = lines->carried[group], .first = lines->first[group]};
}

static inline unsigned wf_turns_next(struct wf_turns *turns)
{
    unsigned later = turns->left & ~0u << turns->first;
    unsigned traffic = (unsigned)__builtin_ctz(later ? later : turns->left);
    turns->left &= ~(1u << traffic);
    return traffic;
}

#define WF_CLASSES_EACH(traffic, classes)                                                                              \
    for (unsigned left_##traffic = (classes), traffic;                                                                 \
         left_##traffic && (traffic = wf_classes_next(&left_##traffic), 1);)

#endif
