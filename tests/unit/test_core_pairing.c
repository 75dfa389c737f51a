/* Which rails meet: tables of two lists, and what holds for all lists. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rail/address.h"
#include "core/rail/pairing.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LIST 8

/* "10.0.1.1/24 eth1; …": addresses, subnets (0: none) and names. */
static int read_list(const char *text, struct wf_pairing_rail *rails, char names[LIST][16])
{
    int count = 0;
    char address[64];

    for (const char *at = text; *at; at += strcspn(at, ";"), at += *at == ';') {
        int prefix = 0;
        names[count][0] = '\0';
        assert_true(sscanf(at, " %63[^/; ]/%d %15[^; ]", address, &prefix, names[count]) >= 1);
        assert_int_equal(wf_address_numeric(address, &rails[count].address), 0);
        rails[count].prefix = prefix;
        rails[count].name = names[count];
        count += 1;
    }
    return count;
}

static void lists_meet(void **state)
{
    static const struct {
        const char *what, *ours, *theirs, *pairs;
    } rows[] = {
        {"by order where nothing else is known", "10.0.1.1;10.0.2.1", "10.0.3.1;10.0.4.1", "0-0 1-1"},
        {"by subnet, whatever the order", "10.0.1.1/24;10.0.2.1/24", "10.0.2.2;10.0.1.2", "0-1 1-0"},
        {"by name within a subnet", "10.0.0.1/24 eth1;10.0.0.2/24 eth2", "10.0.0.3/0 eth2;10.0.0.4/0 eth1", "0-1 1-0"},
        {"by name across subnets", "10.0.1.1/24 a;10.0.2.1/24 b", "10.1.1.1/0 b;10.1.2.1/0 a", "0-1 1-0"},
        {"the subnet before the name", "10.0.1.1/24 a;10.0.2.1/24 b", "10.0.1.2/0 b;10.0.2.2/0 a", "0-0 1-1"},
        {"the narrower of two subnets first", "10.0.0.1/8;10.0.1.1/24", "10.0.1.2;10.9.0.2", "0-1 1-0"},
        {"one subnet for all: by order", "127.0.1.1/8;127.0.2.1/8", "127.0.1.1;127.0.2.1", "0-0 1-1"},
        {"two meet four of their subnets", "10.0.1.1/24;10.0.2.1/24", "10.0.2.2;10.0.2.3;10.0.1.2;10.0.1.3",
         "0-2 0-3 1-0 1-1"},
        {"four meet two", "10.0.1.1/24;10.0.1.2/24;10.0.2.1/24;10.0.2.2/24", "10.0.1.9;10.0.2.9", "0-0 1-0 2-1 3-1"},
        {"the longer list goes round the shorter", "10.0.1.1;10.0.2.1;10.0.3.1", "10.9.1.1", "0-0 1-0 2-0"},
        {"and round two", "10.0.1.1;10.0.2.1;10.0.3.1;10.0.4.1", "10.9.1.1;10.9.2.1", "0-0 1-1 2-0 3-1"},
        {"families apart", "10.0.1.1;fd00::1/64", "fd00::2;10.0.2.1", "0-1 1-0"},
        {"no family in common", "10.0.1.1", "fd00::2", ""},
        {"a family on one side only", "10.0.1.1;fd00::1", "10.0.2.1", "0-0"},
        {"link-local ones meet their like", "fd00::1/64;fe80::1%lo/64", "fe80::2%lo;fd00::2", "0-1 1-0"},
        {"a link-local one meets what is left", "fe80::1%lo/64", "fd00::2", "0-0"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct wf_pairing_rail ours[LIST], theirs[LIST];
        struct wf_rail_pair pairs[2 * LIST];
        char our_names[LIST][16], their_names[LIST][16], seen[128] = "";
        int our_count = read_list(rows[i].ours, ours, our_names);
        int their_count = read_list(rows[i].theirs, theirs, their_names);
        int count = wf_pair_rails(ours, our_count, theirs, their_count, pairs, 2 * LIST);
        for (int k = 0; k < count; k++)
            sprintf(seen + strlen(seen), "%s%d-%d", k ? " " : "", pairs[k].ours, pairs[k].theirs);
        if (strcmp(seen, rows[i].pairs) != 0)
            fail_msg("%s: %s instead of %s", rows[i].what, seen, rows[i].pairs);
    }
}

/* Of any two lists of one family every rail is in a pair, and no pair is there twice. */
static void nobody_is_left_out(void **state)
{
    (void)state;
    srand(7);
    for (int round = 0; round < 2000; round++) {
        struct wf_pairing_rail lists[2][LIST];
        struct wf_rail_pair pairs[2 * LIST];
        int counts[2], used[2][LIST] = {{0}};
        for (int side = 0; side < 2; side++) {
            counts[side] = 1 + rand() % LIST;
            for (int i = 0; i < counts[side]; i++) {
                char text[32];
                snprintf(text, sizeof(text), "10.0.%d.%d", rand() % 4, 1 + rand() % 250);
                assert_int_equal(wf_address_numeric(text, &lists[side][i].address), 0);
                lists[side][i].prefix = rand() % 33;
                lists[side][i].name = rand() % 2 ? "eth1" : "eth2";
            }
        }
        int count = wf_pair_rails(lists[0], counts[0], lists[1], counts[1], pairs, 2 * LIST);
        assert_int_equal(count, counts[0] > counts[1] ? counts[0] : counts[1]);
        for (int i = 0; i < count; i++) {
            used[0][pairs[i].ours] += 1;
            used[1][pairs[i].theirs] += 1;
            for (int k = 0; k < i; k++)
                assert_false(pairs[i].ours == pairs[k].ours && pairs[i].theirs == pairs[k].theirs);
        }
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < counts[side]; i++)
                assert_true(used[side][i] > 0);
    }
}

/* More rails than pairs that there is room for: no more than that. */
static void room_is_kept(void **state)
{
    struct wf_pairing_rail ours[LIST], theirs[LIST];
    struct wf_rail_pair pairs[3] = {{0, 0}, {0, 0}, {77, 77}};
    char names[LIST][16];

    (void)state;
    int count = read_list("10.0.1.1;10.0.2.1;10.0.3.1;10.0.4.1", ours, names);
    read_list("10.0.1.2;10.0.2.2;10.0.3.2;10.0.4.2", theirs, names);
    assert_int_equal(wf_pair_rails(ours, count, theirs, count, pairs, 2), 2);
    assert_int_equal(pairs[2].ours, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_meet),
        cmocka_unit_test(nobody_is_left_out),
        cmocka_unit_test(room_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
