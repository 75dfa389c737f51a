/*
 * list.h: an intrusive doubly linked list. A link is in at most one list; `wf_link_init` makes it "in none", and
 * removing a link that is in no list does nothing.
 */
#ifndef WF_BASE_LIST_H
#define WF_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct wf_link {
    struct wf_link *next, *prev; /* both point to the link itself when it is in no list */
};

/* The list's head is a link that no entry owns. */
struct wf_list {
    struct wf_link head;
};

#define WF_CONTAINER(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

/* The body may remove `link` from the list, but not `following`, the entry behind `link`. */
#define WF_LIST_EACH(link, following, list)                                                                            \
    for (struct wf_link *link = (list)->head.next, *following = link->next; link != &(list)->head;                     \
         link = following, following = link->next)

static inline void wf_link_init(struct wf_link *link)
{
    link->next = link->prev = link;
}

static inline void wf_list_init(struct wf_list *list)
{
    wf_link_init(&list->head);
}

static inline bool wf_link_in_list(const struct wf_link *link)
{
    return link->next != link;
}

static inline bool wf_list_empty(const struct wf_list *list)
{
    return list->head.next == &list->head;
}

static inline void wf_link_insert_before(struct wf_link *link, struct wf_link *place)
{
    link->prev = place->prev;
    link->next = place;
    place->prev->next = link;
    place->prev = link;
}

static inline void wf_list_push_back(struct wf_list *list, struct wf_link *link)
{
    wf_link_insert_before(link, &list->head);
}

static inline void wf_list_push_front(struct wf_list *list, struct wf_link *link)
{
    wf_link_insert_before(link, list->head.next);
}

static inline void wf_link_remove(struct wf_link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    wf_link_init(link);
}

static inline struct wf_link *wf_list_first(const struct wf_list *list)
{
    return wf_list_empty(list) ? NULL : list->head.next;
}

static inline struct wf_link *wf_list_pop_front(struct wf_list *list)
{
    struct wf_link *link = wf_list_first(list);
    if (link)
        wf_link_remove(link);
    return link;
}

#endif
