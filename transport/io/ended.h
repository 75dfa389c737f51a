/*
 * ended.h: operations that an engine has ended and its user has not polled yet. Owner: the engine.
 */
#ifndef WF_IO_ENDED_H
#define WF_IO_ENDED_H

#include "io/engine.h"

/* An urgent operation goes to the front: its poster handles it before the operations of large calls. */
static inline void wf_ended_add(struct wf_list *ended, struct wf_op *op)
{
    op->finished = true;
    if (op->urgent)
        wf_list_push_front(ended, &op->link);
    else
        wf_list_push_back(ended, &op->link);
}

/* Moves up to `max` operations to `out`; returns their number. */
static inline int wf_ended_take(struct wf_list *ended, struct wf_op **out, int max)
{
    int count = 0;
    struct wf_link *link;
    while (count < max && (link = wf_list_pop_front(ended))) {
        struct wf_op *op = WF_CONTAINER(link, struct wf_op, link);
        op->posted = op->finished = false;
        out[count++] = op;
    }
    return count;
}

#endif
