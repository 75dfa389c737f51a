/* test_coll_reach.c: a member that could not be reached, and who hears of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collective/group/group.h"

/* Two members. Of the other one no address is known: each dial comes to nothing at once. */
struct two {
    struct wf_coll_hub hub;
    struct wf_coll_member members[2];
    struct wf_coll_place places[2];
};

static void set_up(struct two *two)
{
    memset(two, 0, sizeof *two);
    two->hub.members = two->members;
    two->hub.size = two->hub.session_limit = 2;
    two->hub.phase = WF_COLL_MADE;
    two->hub.whole = (struct weft_group){.hub = &two->hub, .size = 2, .places = two->places};
    two->members[1].addresses = "";
    two->places[1].member = 1;
    strcpy(two->places[1].name, "rank 1");
}

static void fail_earlier(struct two *two)
{
    two->members[1].failure = -ETIMEDOUT;
    two->members[1].failed_ns = wf_coll_now_ns();
    strcpy(two->members[1].text, "the other day");
}

static void a_failure_is_told_to_all_who_wait(void **state)
{
    struct two two;
    (void)state;
    set_up(&two);
    int64_t since_ns = wf_coll_now_ns();
    fail_earlier(&two);
    for (int waits = 0; waits < 2; waits++) {
        struct weft_error err = {0};
        assert_int_equal(wf_coll_reach(&two.hub.whole, 1, since_ns, WF_COLL_NEVER, &err), -ETIMEDOUT);
        assert_non_null(strstr(err.text, "rank 1 cannot be reached: the other day"));
    }
}

static void who_asks_later_has_a_dial_of_his_own(void **state)
{
    struct two two;
    struct weft_error err = {0};
    (void)state;
    set_up(&two);
    fail_earlier(&two);
    int64_t since_ns = two.members[1].failed_ns + 1;
    assert_int_equal(wf_coll_reach(&two.hub.whole, 1, since_ns, WF_COLL_NEVER, &err), 0);
    assert_int_equal(wf_coll_reach(&two.hub.whole, 1, since_ns, WF_COLL_NEVER, &err), -EINVAL);
    assert_non_null(strstr(err.text, "no address is known"));
    assert_null(two.hub.sessions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_is_told_to_all_who_wait),
        cmocka_unit_test(who_asks_later_has_a_dial_of_his_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
