/*
 * table.h: an intrusive hash table: as many lists as entries, at least, so that a search looks at few of them.
 *
 * Entries of one key stay in the order in which they were inserted. An entry leaves by wf_link_remove(): the table
 * counts only when it looks whether to grow. It never shrinks, and never fails: without memory it keeps the size that
 * it has.
 */
#ifndef WF_BASE_TABLE_H
#define WF_BASE_TABLE_H

#include <stdint.h>

#include "base/list.h"

#define WF_TABLE_LEAST 8 /* lists, before there are many entries; a power of two */

/* Owner: whoever has the lock of its entries. */
struct wf_table {
    uint64_t (*hash)(const struct wf_link *link); /* of an entry's key; the lower bits choose its list */
    struct wf_list *lists;
    uint32_t size;    /* lists: a power of two */
    uint32_t inserts; /* before the next look whether to grow; at least 1 */
    struct wf_list least[WF_TABLE_LEAST];
};

void wf_table_init(struct wf_table *table, uint64_t (*hash)(const struct wf_link *link));
/* Frees the lists, not the entries. Accepts an object of zeroes. */
void wf_table_fini(struct wf_table *table);

/* The list that has the entries with this hash, others among them. It is good until the next insert. */
static inline struct wf_list *wf_table_list(const struct wf_table *table, uint64_t hash)
{
    return &table->lists[hash & (table->size - 1)];
}

/* Grows the table if it has more entries than lists. */
void wf_table_review(struct wf_table *table);

/* Adds an entry behind those of its key; `hash` is that of its key. */
static inline void wf_table_insert(struct wf_table *table, uint64_t hash, struct wf_link *link)
{
    wf_list_push_back(wf_table_list(table, hash), link);
    if (--table->inserts == 0)
        wf_table_review(table);
}

#endif
