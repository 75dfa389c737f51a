#include "base/table.h"

#include <stdlib.h>

static void init_lists(struct wf_list *lists, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        wf_list_init(&lists[i]);
}

void wf_table_init(struct wf_table *table, uint64_t (*hash)(const struct wf_link *link))
{
    table->hash = hash;
    table->lists = table->least;
    table->size = table->inserts = WF_TABLE_LEAST;
    init_lists(table->least, WF_TABLE_LEAST);
}

void wf_table_fini(struct wf_table *table)
{
    if (table->lists != table->least)
        free(table->lists);
    *table = (struct wf_table){0};
}

static uint32_t count_entries(const struct wf_table *table)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->size; i++)
        WF_LIST_EACH (link, following, &table->lists[i])
            count += 1;
    return count;
}

/* Entries of one key are in one list, so they keep their order. */
static void move_entries(struct wf_table *table, struct wf_list *lists, uint32_t size)
{
    struct wf_link *link;
    for (uint32_t i = 0; i < table->size; i++)
        while ((link = wf_list_pop_front(&table->lists[i])))
            wf_list_push_back(&lists[table->hash(link) & (size - 1)], link);
}

/* Four times the lists, so that growing is rare. */
static void grow(struct wf_table *table)
{
    uint32_t size = 4 * table->size;
    struct wf_list *lists = size > table->size ? malloc(size * sizeof *lists) : NULL;
    if (!lists)
        return;
    init_lists(lists, size);
    move_entries(table, lists, size);
    if (table->lists != table->least)
        free(table->lists);
    table->lists = lists;
    table->size = size;
}

void wf_table_review(struct wf_table *table)
{
    if (count_entries(table) > table->size)
        grow(table);
    table->inserts = table->size; /* so the look costs each insert no more than a list or two */
}
