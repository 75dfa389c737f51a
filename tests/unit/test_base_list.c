/* The list: written-down sequences, each compared as a word of letters forwards and backwards. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/list.h"

#define ENTRIES 4

struct entry {
    char letter;
    struct wf_link link;
};

/* The letters in order; the links backwards must say the same. */
static void check_list(const struct wf_list *list, const char *expected)
{
    size_t length = strlen(expected);
    const struct wf_link *link = list->head.next;

    for (size_t i = 0; i < length; i++, link = link->next) {
        assert_ptr_not_equal(link, &list->head);
        assert_int_equal(WF_CONTAINER(link, struct entry, link)->letter, expected[i]);
        assert_ptr_equal(link->next->prev, link);
    }
    assert_ptr_equal(link, &list->head);
    assert_ptr_equal(link->next->prev, link);
    assert_int_equal(wf_list_empty(list), length == 0);
    if (length)
        assert_ptr_equal(wf_list_first(list), list->head.next);
    else
        assert_null(wf_list_first(list));
}

static void apply(struct wf_list *list, struct entry *entries, char verb, char letter)
{
    struct entry *entry = &entries[letter - 'a'];

    if (verb == '>')
        wf_list_push_back(list, &entry->link);
    else if (verb == '<')
        wf_list_push_front(list, &entry->link);
    else if (verb == '-')
        wf_link_remove(&entry->link);
    else if (letter == '0')
        assert_null(wf_list_pop_front(list));
    else
        assert_ptr_equal(wf_list_pop_front(list), &entry->link);
    if (letter != '0')
        assert_int_equal(wf_link_in_list(&entry->link), verb == '>' || verb == '<');
}

static void test_sequences(void **state)
{
    /* > push back, < push front, - remove, ^ pop front gives this one (0: none) */
    static const struct {
        const char *steps, *expected;
    } cases[] = {
        {"", ""},           {"^0", ""},          {">a>b>c", "abc"},      {"<a<b<c", "cba"}, {">a<b>c", "bac"},
        {">a>b>c-b", "ac"}, {">a>b>c-a-c", "b"}, {">a-a", ""},           {"-a>a-b", "a"},   {">a-a-a<a", "a"},
        {">a>b^a^b^0", ""}, {">a>b^a>a", "ba"},  {">d<a>b-d<d^d", "ab"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct entry entries[ENTRIES];
        struct wf_list list;

        wf_list_init(&list);
        for (int j = 0; j < ENTRIES; j++) {
            entries[j].letter = (char)('a' + j);
            wf_link_init(&entries[j].link);
        }
        for (const char *step = cases[i].steps; *step; step += 2)
            apply(&list, entries, step[0], step[1]);
        check_list(&list, cases[i].expected);
    }
}

static void test_removal_while_visiting(void **state)
{
    struct entry entries[ENTRIES];
    struct wf_list list;
    int visited = 0;

    (void)state;
    wf_list_init(&list);
    for (int i = 0; i < ENTRIES; i++) {
        entries[i].letter = (char)('a' + i);
        wf_list_push_back(&list, &entries[i].link);
    }
    WF_LIST_EACH (link, following, &list) {
        assert_int_equal(WF_CONTAINER(link, struct entry, link)->letter, 'a' + visited);
        if (visited++ % 2 == 0)
            wf_link_remove(link);
    }
    assert_int_equal(visited, ENTRIES);
    check_list(&list, "bd");
    WF_LIST_EACH (link, following, &list)
        wf_link_remove(link);
    check_list(&list, "");
}

static void test_insert_before(void **state)
{
    struct entry entries[3] = {{.letter = 'a'}, {.letter = 'b'}, {.letter = 'c'}};
    struct wf_list list;

    (void)state;
    wf_list_init(&list);
    wf_list_push_back(&list, &entries[2].link);
    wf_link_insert_before(&entries[0].link, &entries[2].link);
    wf_link_insert_before(&entries[1].link, &entries[2].link);
    check_list(&list, "abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_removal_while_visiting),
        cmocka_unit_test(test_insert_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
