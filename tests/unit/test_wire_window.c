/* Credit totals that arrive late or twice, and 32-bit acknowledgements around every wrap. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/window.h"

#define WRAP (UINT64_C(1) << 32)
#define HALF (UINT64_C(1) << 31)

static void totals_only_grow(void **state)
{
    static const struct {
        uint64_t frames, bytes, frames_after, bytes_after;
    } steps[] = {
        {8, 1000, 8, 1000},
        {8, 1000, 8, 1000},
        {7, 900, 8, 1000},
        {9, 900, 9, 1000},
        {8, 2000, 9, 2000},
        {0, 0, 9, 2000},
        {UINT64_MAX, 5, UINT64_MAX, 2000},
        {1, UINT64_MAX, UINT64_MAX, UINT64_MAX},
    };
    struct wf_window window = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        wf_window_grant(&window, steps[i].frames, steps[i].bytes);
        assert_true(window.granted_frames == steps[i].frames_after);
        assert_true(window.granted_bytes == steps[i].bytes_after);
    }
}

static void open_exactly_up_to_the_promise(void **state)
{
    struct wf_window window = {0};

    (void)state;
    assert_false(wf_window_open(&window, 0));
    wf_window_grant(&window, 3, 100);
    assert_true(wf_window_open(&window, 100));
    assert_false(wf_window_open(&window, 101));
    assert_false(wf_window_open(&window, UINT64_MAX));
    wf_window_spend(&window, 60);
    assert_true(wf_window_open(&window, 40));
    assert_false(wf_window_open(&window, 41));
    wf_window_spend(&window, 40);
    assert_true(wf_window_open(&window, 0));
    assert_false(wf_window_open(&window, 1));
    wf_window_spend(&window, 0);
    assert_false(wf_window_open(&window, 0));
}

/* An old grant that comes after its bytes were spent must not let `granted - spent` run under 0. */
static void an_old_grant_does_not_reopen(void **state)
{
    struct wf_window window = {0};

    (void)state;
    wf_window_grant(&window, 4, 4096);
    wf_window_spend(&window, 4096);
    wf_window_grant(&window, 2, 1024);
    assert_false(wf_window_open(&window, 1));
    assert_true(wf_window_open(&window, 0));
}

static void unwrap_table(void **state)
{
    static const struct {
        uint64_t known;
        uint32_t low;
        uint64_t total;
    } cases[] = {
        {0, 0, 0},
        {0, 1, 1},
        {0, 0x7fffffff, HALF - 1},
        {0, 0x80000000, HALF},     /* nothing lies before 0 */
        {0, 0xffffffff, WRAP - 1}, /* a lie, and still no total near 2^64 */
        {5, 4, 4},
        {5, 0, 0},
        {HALF, 0, 0}, /* exactly half way counts as behind */
        {WRAP - 1, 0xffffffff, WRAP - 1},
        {WRAP - 1, 0, WRAP},
        {WRAP - 1, 5, WRAP + 5},
        {WRAP - 1, 0xfffffffe, WRAP - 2},
        {WRAP, 0xffffffff, WRAP - 1},
        {WRAP, 0, WRAP},
        {WRAP, 1, WRAP + 1},
        {WRAP, 0x7fffffff, WRAP + HALF - 1},
        {WRAP, 0x80000001, HALF + 1},
        {WRAP + 3, 0xfffffffd, WRAP - 3},
        {7 * WRAP + 9, 8, 7 * WRAP + 8},
        {7 * WRAP - 1, 8, 7 * WRAP + 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t total = wf_window_unwrap(cases[i].known, cases[i].low);
        if (total != cases[i].total)
            print_error("known %#llx low %#x\n", (unsigned long long)cases[i].known, cases[i].low);
        assert_true(total == cases[i].total);
    }
}

/* For totals on both sides of several wraps: whatever lies less than 2^31 away comes back from its low bits. */
static void unwrap_is_exact_near_the_wraps(void **state)
{
    static const int64_t distances[] = {0, 1, 2, 255, 65536, 0x7ffffffe, 0x7fffffff};

    (void)state;
    for (uint64_t wrap = 1; wrap < 6; wrap++) {
        for (int64_t near = -300; near <= 300; near++) {
            uint64_t known = wrap * WRAP + (uint64_t)near;
            for (size_t i = 0; i < sizeof(distances) / sizeof(distances[0]); i++) {
                uint64_t ahead = known + (uint64_t)distances[i], behind = known - (uint64_t)distances[i];
                assert_true(wf_window_unwrap(known, (uint32_t)ahead) == ahead);
                assert_true(wf_window_unwrap(known, (uint32_t)behind) == behind);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_only_grow),
        cmocka_unit_test(open_exactly_up_to_the_promise),
        cmocka_unit_test(an_old_grant_does_not_reopen),
        cmocka_unit_test(unwrap_table),
        cmocka_unit_test(unwrap_is_exact_near_the_wraps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
