/* tray.c: when the descriptor shows what the list holds, and who sees to it where a put does not. */
#include "core/request/tray.h"

#include <errno.h>
#include <poll.h>

#include "core_scene.h"

static bool readable(const struct wf_tray *tray)
{
    struct pollfd event = {.fd = tray->fd, .events = POLLIN};
    return poll(&event, 1, 0) == 1;
}

/* As a thread does that has put something. */
static void put(struct scene *scene, struct wf_tray *tray, struct wf_link *link, bool quietly)
{
    if (quietly ? wf_tray_put_quietly(tray, link) : wf_tray_put(tray, link))
        wf_wait_wake(&scene->waiting);
}

static int take(struct wf_tray *tray, int max)
{
    struct wf_list taken;
    bool watched;
    wf_list_init(&taken);
    int count = wf_tray_take(tray, &taken, max, &watched), moved = 0;
    assert_true(watched);
    while (wf_list_pop_front(&taken))
        moved += 1;
    assert_int_equal(moved, count);
    return count;
}

static void init_links(struct wf_link *links, int count)
{
    for (int i = 0; i < count; i++)
        wf_link_init(&links[i]);
}

static struct wf_tray *watched_tray(struct scene *scene)
{
    struct wf_tray *tray;
    assert_int_equal(wf_tray_create(&scene->waiting, &tray), 0);
    assert_int_equal(wf_tray_watch(tray), tray->fd);
    assert_false(readable(tray));
    return tray;
}

static void test_follows_the_list(void **state)
{
    struct scene *scene = *state;
    struct wf_tray *tray;
    struct wf_link links[3];
    init_links(links, 3);
    assert_int_equal(wf_tray_create(&scene->waiting, &tray), 0);
    put(scene, tray, &links[0], false);
    assert_false(readable(tray)); /* nobody watches */
    wf_tray_watch(tray);
    assert_true(readable(tray));
    put(scene, tray, &links[1], false);
    put(scene, tray, &links[2], true); /* nobody has been given anything: nobody looks again */
    assert_int_equal(take(tray, 2), 2);
    assert_true(readable(tray));
    assert_int_equal(take(tray, 2), 1);
    assert_false(readable(tray));
    assert_false(wf_tray_holds(tray));
    assert_int_equal(take(tray, 2), 0);
    wf_tray_destroy(tray);
}

/* Who drives takes what it has put, and leaves to the descriptor what it has no room for. */
static void test_a_driver_is_not_told(void **state)
{
    struct scene *scene = *state;
    struct wf_tray *tray = watched_tray(scene);
    struct wf_link links[3];
    init_links(links, 3);
    wf_tray_drive(tray, true);
    for (int i = 0; i < 3; i++) {
        put(scene, tray, &links[i], false);
        assert_false(readable(tray));
    }
    wf_tray_settle(tray); /* of others: it still drives */
    assert_false(readable(tray));
    wf_tray_drive(tray, false);
    assert_int_equal(take(tray, 2), 2);
    assert_true(readable(tray));
    assert_int_equal(take(tray, 2), 1);
    assert_false(readable(tray));
    put(scene, tray, &links[0], false);
    assert_true(readable(tray));
    assert_int_equal(take(tray, 1), 1);
    wf_tray_destroy(tray);
}

static void test_quiet_puts_wait_for_the_next_look(void **state)
{
    struct scene *scene = *state;
    struct wf_tray *tray = watched_tray(scene);
    struct wf_link links[4];
    init_links(links, 4);
    put(scene, tray, &links[0], false);
    assert_int_equal(take(tray, 1), 1);
    put(scene, tray, &links[0], true);
    assert_true(readable(tray)); /* nobody settles: each put shows */
    wf_tray_let_settle(tray, true);
    assert_int_equal(take(tray, 1), 1);
    put(scene, tray, &links[0], true);
    assert_false(readable(tray)); /* the look before found something: another one comes */
    assert_int_equal(take(tray, 1), 1);
    put(scene, tray, &links[0], true);
    put(scene, tray, &links[1], false); /* news, for which the user may sleep */
    assert_true(readable(tray));
    assert_int_equal(take(tray, 4), 2);
    put(scene, tray, &links[0], true);
    assert_false(readable(tray));
    wf_tray_settle(tray); /* no look has come */
    assert_true(readable(tray));
    assert_int_equal(take(tray, 4), 1);
    assert_int_equal(take(tray, 4), 0);
    put(scene, tray, &links[0], true);
    assert_true(readable(tray)); /* that look found nothing: the user may sleep */
    assert_int_equal(take(tray, 4), 1);
    put(scene, tray, &links[0], true);
    wf_tray_let_settle(tray, false);
    assert_true(readable(tray));
    assert_int_equal(take(tray, 4), 1);
    wf_tray_destroy(tray);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_follows_the_list, scene_set_up, scene_tear_down),
        cmocka_unit_test_setup_teardown(test_a_driver_is_not_told, scene_set_up, scene_tear_down),
        cmocka_unit_test_setup_teardown(test_quiet_puts_wait_for_the_next_look, scene_set_up, scene_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
