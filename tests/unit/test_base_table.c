/* The table against a plain array: what is found, in which order, and how long the lists are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/table.h"

#define ENTRIES 5000

struct entry {
    struct wf_link link;
    uint64_t key;
    int serial;
};

static uint64_t hash(const struct wf_link *link)
{
    return WF_CONTAINER(link, struct entry, link)->key;
}

static struct entry entries[ENTRIES];
static struct wf_table table;

static int set_up(void **state)
{
    (void)state;
    wf_table_init(&table, hash);
    for (int i = 0; i < ENTRIES; i++) {
        wf_link_init(&entries[i].link);
        entries[i].serial = i;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wf_table_fini(&table);
    return 0;
}

static void insert(int index, uint64_t key)
{
    entries[index].key = key;
    wf_table_insert(&table, key, &entries[index].link);
}

/* The entries of the key, in their order; returns how many, and how many others were looked at. */
static int look(uint64_t key, int *serials, int *others)
{
    int count = 0;
    *others = 0;
    WF_LIST_EACH (link, following, wf_table_list(&table, key)) {
        const struct entry *entry = WF_CONTAINER(link, struct entry, link);
        if (entry->key == key)
            serials[count++] = entry->serial;
        else
            *others += 1;
    }
    return count;
}

static void it_grows_with_its_entries(void **state)
{
    int serials[4], others, most = 0;
    (void)state;
    for (int i = 0; i < ENTRIES; i++)
        insert(i, (uint64_t)i);
    for (int i = 0; i < ENTRIES; i++) {
        assert_int_equal(look((uint64_t)i, serials, &others), 1);
        assert_int_equal(serials[0], i);
        most = others > most ? others : most;
    }
    assert_in_range(most, 0, 2); /* consecutive keys: as many lists as entries, but for those since the last look */
    assert_int_equal(look(ENTRIES, serials, &others), 0);
}

static void entries_of_one_key_keep_their_order(void **state)
{
    static int serials[ENTRIES];
    int others;
    (void)state;
    for (int i = 0; i < ENTRIES; i++)
        insert(i, (uint64_t)(i % 7));
    for (int key = 0; key < 7; key++) {
        int count = look((uint64_t)key, serials, &others);
        assert_int_equal(count, (ENTRIES - key + 6) / 7);
        for (int i = 0; i < count; i++)
            assert_int_equal(serials[i], key + 7 * i);
    }
}

/* As many come as go: there is nothing to grow for. */
static void it_stays_small_where_few_are_in_it(void **state)
{
    (void)state;
    for (int i = 0; i < ENTRIES; i++) {
        insert(i, (uint64_t)i);
        if (i >= 4)
            wf_link_remove(&entries[i - 4].link);
    }
    assert_int_equal(table.size, WF_TABLE_LEAST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_grows_with_its_entries, set_up, tear_down),
        cmocka_unit_test_setup_teardown(entries_of_one_key_keep_their_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_stays_small_where_few_are_in_it, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
