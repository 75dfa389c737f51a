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

static void fail_dial(struct two *two)
{
    two->members[1].failure = -ETIMEDOUT;
    strcpy(two->members[1].text, "the other day");
}

static int ask(struct two *two, enum wf_coll_asker asker, struct weft_error *err)
{
    return wf_coll_reach(&two->hub.whole, 1, asker, WF_COLL_NEVER, err);
}

static void who_has_waited_is_told_once(void **state)
{
    struct two two;
    struct weft_error err = {0};
    (void)state;
    set_up(&two);
    fail_dial(&two);
    two.places[1].awaited[WF_COLL_USER] = two.places[1].awaited[WF_COLL_COLLECTIVE] = true;
    for (enum wf_coll_asker asker = WF_COLL_USER; asker <= WF_COLL_COLLECTIVE; asker++) {
        assert_int_equal(ask(&two, asker, &err), -ETIMEDOUT);
        assert_non_null(strstr(err.text, "rank 1 cannot be reached: the other day"));
    }
    assert_int_equal(ask(&two, WF_COLL_USER, &err), 0);
}

static void who_has_not_has_a_dial_of_his_own(void **state)
{
    struct two two;
    struct weft_error err = {0};
    (void)state;
    set_up(&two);
    fail_dial(&two);
    two.places[1].awaited[WF_COLL_USER] = true;
    assert_int_equal(ask(&two, WF_COLL_COLLECTIVE, &err), 0);
    assert_int_equal(ask(&two, WF_COLL_COLLECTIVE, &err), -EINVAL);
    assert_non_null(strstr(err.text, "no address is known"));
    assert_null(two.hub.sessions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_waited_is_told_once),
        cmocka_unit_test(who_has_not_has_a_dial_of_his_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
