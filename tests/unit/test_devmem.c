/* Device-memory TCP with a kernel that is played: what a card is, bindings, settings, and the kernel's refusals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "devmem_fixture.h"

static struct fake_kernel fake;
static struct wf_devmem *devmem;
static struct wf_devmem_card card;
static struct wf_devmem_obstacle obstacle;
static struct wf_status status;

static int start(void **state)
{
    (void)state;
    fake_kernel_init(&fake);
    return wf_devmem_open(&fake.kernel, &devmem, &status);
}

static int end(void **state)
{
    (void)state;
    wf_devmem_close(devmem);
    devmem = NULL;
    return fake.opened;
}

static void restart(void)
{
    wf_devmem_close(devmem);
    assert_int_equal(wf_devmem_open(&fake.kernel, &devmem, &status), 0);
}

/* --- what a card is --- */

static void a_card_is_seen(void **state)
{
    (void)state;
    fake.hds_thresh = 256;
    fake.used[2] = true;
    assert_int_equal(wf_devmem_look(devmem, FAKE_NAME, &card, &status), 0);
    assert_string_equal(card.driver, "bnxt_en");
    assert_int_equal(card.ifindex, FAKE_INDEX);
    assert_int_equal(card.mtu, 4148);
    assert_int_equal(card.bind_rx, 1);
    assert_int_equal(card.bind_tx, 1);
    assert_int_equal(card.split, WF_DEVMEM_SPLIT_ON);
    assert_int_equal(card.split_settable, 1);
    assert_int_equal(card.hds_thresh, 256);
    assert_int_equal(card.rx_queues, 4);
    assert_int_equal(card.queues_most, 8);
    assert_int_equal(card.ntuple, 1);
    assert_false(card.ntuple_fixed);
    assert_int_equal(card.rules_most, 4);
    assert_int_equal(card.rules_used, 1);
    assert_true(card.rules_anywhere);
    assert_int_equal(card.rss_entries, FAKE_RSS);
    assert_int_equal(fake.writes, 0);
}

static void what_is_not_told_is_unknown(void **state)
{
    (void)state;
    fake.split = WF_DEVMEM_SPLIT_UNKNOWN;
    fake.hds_thresh = -1;
    fake.size_told_late = true;
    fake.ioctl_command = ETHTOOL_GSSET_INFO;
    fake.ioctl_result = -EOPNOTSUPP;
    assert_int_equal(wf_devmem_look(devmem, FAKE_NAME, &card, &status), 0);
    assert_int_equal(card.split, WF_DEVMEM_SPLIT_UNKNOWN);
    assert_int_equal(card.split_settable, -1);
    assert_int_equal(card.hds_thresh, -1);
    assert_int_equal(card.ntuple, -1);
    assert_int_equal(card.rules_most, 4);
    fake.refusal = -EOPNOTSUPP; /* a device without rings is no failure */
    assert_int_equal(wf_devmem_look(devmem, FAKE_NAME, &card, &status), 0);
    assert_int_equal(card.split, WF_DEVMEM_SPLIT_UNKNOWN);
}

static void an_interface_that_is_not_there(void **state)
{
    static const char *const names[] = {"", "eth8", "a_name_longer_than_any"};

    (void)state;
    card.mtu = -7;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(wf_devmem_look(devmem, names[i], &card, &status), -ENODEV);
    assert_int_equal(card.mtu, -7);
    assert_int_equal(wf_devmem_set_split(devmem, names[2], WF_DEVMEM_SPLIT_ON, 0, &status), -ENODEV);
    assert_int_equal(wf_devmem_set_ntuple(devmem, names[2], true, &status), -ENODEV);
}

static void an_old_kernel_knows_no_bindings(void **state)
{
    uint32_t queue = 1, id = 9;

    (void)state;
    fake.old = true;
    restart();
    assert_int_equal(wf_devmem_look(devmem, FAKE_NAME, &card, &status), 0);
    assert_int_equal(card.bind_rx, 0);
    assert_int_equal(wf_devmem_bind_rx(devmem, &(struct wf_devmem_rx){FAKE_INDEX, &queue, 1, 5, 0}, &id, &status),
                     -EOPNOTSUPP);
    assert_non_null(strstr(status.text, "6.12"));
    assert_int_equal(wf_devmem_bind_tx(devmem, FAKE_INDEX, 5, &id, &status), -EOPNOTSUPP);
    assert_non_null(strstr(status.text, "6.16"));
    assert_int_equal(id, 9);
}

/* --- obstacles --- */

static void expect(enum wf_devmem_remedy remedy, const char *why, const char *change)
{
    assert_int_equal(wf_devmem_look(devmem, FAKE_NAME, &card, &status), 0);
    wf_devmem_first_obstacle(&card, 1, &obstacle);
    assert_int_equal(obstacle.remedy, remedy);
    assert_non_null(strstr(obstacle.why, why));
    assert_string_equal(obstacle.change, change);
    start(NULL);
}

/* As expect(), and the handle before is closed. */
#define EXPECT(...)                                                                                                    \
    do {                                                                                                               \
        struct wf_devmem *before = devmem;                                                                             \
        expect(__VA_ARGS__);                                                                                           \
        wf_devmem_close(before);                                                                                       \
        fake.opened = 1;                                                                                               \
    } while (0)

static void each_obstacle_has_its_remedy(void **state)
{
    (void)state;
    EXPECT(WF_DEVMEM_READY, "", "");
    fake.loopback = true;
    EXPECT(WF_DEVMEM_NEVER, "loopback", "");
    fake.old = true;
    restart();
    EXPECT(WF_DEVMEM_NEVER, "6.12", "");
    fake.split = WF_DEVMEM_SPLIT_UNKNOWN;
    fake.hds_thresh = -1;
    fake.driver = "virtio_net";
    EXPECT(WF_DEVMEM_NEVER, "its driver virtio_net tells of no header split", "");
    fake.ntuple = false;
    fake.ntuple_fixed = true;
    EXPECT(WF_DEVMEM_NEVER, "ntuple", "");
    fake.rss_entries = 0;
    EXPECT(WF_DEVMEM_NEVER, "RSS", "");
    fake.rss_entries = WF_DEVMEM_RSS_MAX + 1;
    EXPECT(WF_DEVMEM_NEVER, "more than 4096 entries", "");
    fake.queues = fake.queues_most = 1;
    EXPECT(WF_DEVMEM_NEVER, "1 receive queue,", "");
    fake.queues = 1;
    EXPECT(WF_DEVMEM_BY_HAND, "1 receive queue,", "ethtool -L eth7 combined 2");
    memset(fake.used, 1, sizeof fake.used);
    EXPECT(WF_DEVMEM_BY_HAND, "full: 4 of 4", "ethtool -N eth7 delete N");
    fake.split = WF_DEVMEM_SPLIT_OFF;
    EXPECT(WF_DEVMEM_BY_SET, "header split is off", "ethtool -G eth7 tcp-data-split on");
    fake.hds_thresh = 1;
    EXPECT(WF_DEVMEM_BY_SET, "stay whole", "ethtool -G eth7 hds-thresh 0");
    fake.ntuple = false;
    EXPECT(WF_DEVMEM_BY_SET, "are off", "ethtool -K eth7 ntuple on");
}

static void what_nobody_can_change_is_told_first(void **state)
{
    (void)state;
    fake.split = WF_DEVMEM_SPLIT_OFF;
    fake.queues = 1;
    fake.rss_entries = 0;
    EXPECT(WF_DEVMEM_NEVER, "RSS", "");
    fake.split = WF_DEVMEM_SPLIT_OFF;
    fake.queues = 1;
    EXPECT(WF_DEVMEM_BY_HAND, "1 receive queue,", "ethtool -L eth7 combined 2");
}

/* --- bindings --- */

static void queues_are_bound(void **state)
{
    uint32_t queues[] = {3, 1, 2}, id = 0, other = 0;

    (void)state;
    assert_int_equal(wf_devmem_bind_rx(devmem, &(struct wf_devmem_rx){FAKE_INDEX, queues, 3, 5, 0}, &id, &status), 0);
    assert_int_equal(id, 1);
    assert_int_equal(fake.bound_index, FAKE_INDEX);
    assert_int_equal(fake.bound_fd, 5);
    assert_int_equal(fake.bound_count, 3);
    assert_memory_equal(fake.bound, queues, sizeof queues);
    assert_int_equal(wf_devmem_bind_tx(devmem, FAKE_INDEX, 6, &other, &status), 0);
    assert_int_equal(other, 2);
    assert_int_equal(fake.bound_count, 0);
    assert_int_equal(fake.opened, 1);
}

static void as_many_queues_as_are_promised(void **state)
{
    uint32_t queues[WF_DEVMEM_QUEUES_MAX + 1] = {0}, id;

    (void)state;
    assert_int_equal(
        wf_devmem_bind_rx(devmem, &(struct wf_devmem_rx){FAKE_INDEX, queues, WF_DEVMEM_QUEUES_MAX, 5, 0}, &id, &status),
        0);
    assert_int_equal(fake.bound_count, WF_DEVMEM_QUEUES_MAX);
    assert_int_equal(wf_devmem_bind_rx(devmem,
                                       &(struct wf_devmem_rx){FAKE_INDEX, queues, WF_DEVMEM_QUEUES_MAX + 1, 5, 0}, &id,
                                       &status),
                     -EINVAL);
    assert_int_equal(wf_devmem_bind_rx(devmem, &(struct wf_devmem_rx){FAKE_INDEX, queues, 0, 5, 0}, &id, &status),
                     -EINVAL);
    assert_int_equal(wf_devmem_bind_rx(devmem, &(struct wf_devmem_rx){FAKE_INDEX, queues, 1, -1, 0}, &id, &status),
                     -EINVAL);
}

/* What is not the size's fault keeps its own code. */
static void larger_buffers_are_asked_for(void **state)
{
    uint32_t queues[] = {3}, id = 77;
    struct wf_devmem_rx rx = {FAKE_INDEX, queues, 1, 5, 16384};

    (void)state;
    assert_int_equal(wf_devmem_bind_rx(devmem, &rx, &id, &status), -ERANGE);
    assert_int_equal(status.code, -ERANGE);
    assert_string_equal(status.text,
                        "bind-rx of queue 3 of interface 7, buffers of 16384 bytes: Unknown attribute type "
                        "(Invalid argument)");
    fake.buffer_most = 8192;
    assert_int_equal(wf_devmem_bind_rx(devmem, &rx, &id, NULL), -ERANGE);
    assert_int_equal(id, 77);
    rx.buffer = 8192;
    assert_int_equal(wf_devmem_bind_rx(devmem, &rx, &id, &status), 0);
    assert_int_equal(fake.bound_buffer, 8192);
    assert_int_equal(wf_devmem_bind_rx(devmem, &rx, &id, &status), -EEXIST);
    fake.refusal = -EPERM;
    assert_int_equal(wf_devmem_bind_rx(devmem, &rx, &id, &status), -EPERM);
    rx.buffer = 0;
    queues[0] = 2;
    assert_int_equal(wf_devmem_bind_rx(devmem, &rx, &id, &status), 0);
    assert_int_equal(fake.bound_buffer, 0);
}

static void refuse(int code, const char *words)
{
    uint32_t queue = 1, id = 77;

    fake.refusal = code;
    assert_int_equal(wf_devmem_bind_rx(devmem, &(struct wf_devmem_rx){FAKE_INDEX, &queue, 1, 5, 0}, &id, &status),
                     code);
    assert_int_equal(status.code, code);
    if (!strstr(status.text, words))
        fail_msg("'%s' lacks '%s'", status.text, words);
    assert_int_equal(id, 77);
}

static void the_kernels_words_are_told(void **state)
{
    char long_words[400];

    (void)state;
    refuse(-EINVAL, "bind-rx of queue 1 of interface 7: Invalid argument");
    fake.words = "tcp-data-split is disabled";
    refuse(-EINVAL, "interface 7: tcp-data-split is disabled (Invalid argument)");
    fake.capped = true;
    refuse(-EEXIST, "tcp-data-split is disabled");
    fake.words = "two\nlines\033[31m";
    refuse(-EINVAL, "two?lines?[31m");
    memset(long_words, 'x', sizeof long_words - 1);
    long_words[sizeof long_words - 1] = '\0';
    fake.words = long_words;
    refuse(-EINVAL, "xxxx");
    fake.words = NULL;
    fake.missing = 3;
    refuse(-EINVAL, "it wants attribute 3");
    fake.missing = 0;
    refuse(-EPERM, "CAP_NET_ADMIN");
}

/* --- answers that no kernel gives --- */

/* Each kind of request once, whatever comes of it. False: it has not come back with an answer, nor with a refusal. */
static bool converse(void)
{
    struct wf_devmem *talk = NULL;
    uint32_t queue = 1, id;
    struct wf_status words = {0};

    fake.requests = 0;
    int result = wf_devmem_open(&fake.kernel, &talk, &words);
    if (result == 0)
        result = wf_devmem_look(talk, FAKE_NAME, &card, &words);
    if (result == 0)
        result = wf_devmem_bind_rx(talk, &(struct wf_devmem_rx){FAKE_INDEX, &queue, 1, 5, 0}, &id, &words);
    wf_devmem_close(talk);
    return result == 0 || (result == words.code && words.text[0] && memchr(words.text, '\0', sizeof words.text));
}

static void answers_of_any_length_and_content_do_no_harm(void **state)
{
    static const int values[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 0x7f, 0x80, 0xff};

    (void)state;
    for (fake.answer_to = 1; fake.answer_to <= 4; fake.answer_to++) {
        for (int at = 0; at < 700; at++)
            for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
                fake.at = at;
                fake.value = values[i];
                assert_true(converse());
            }
        fake.at = -1;
        for (fake.cut = 0; fake.cut < 700; fake.cut++)
            assert_true(converse());
        fake.cut = -1;
    }
}

static void refusals_of_any_length_and_content_do_no_harm(void **state)
{
    uint32_t queue = 1, id;

    (void)state;
    fake.words = "words";
    for (int capped = 0; capped < 2; capped++)
        for (int at = 0; at < 200; at++)
            for (int value = 0; value < 256; value += 5) {
                fake.capped = capped;
                fake.refusal = -EINVAL;
                fake.answer_to = fake.requests + 1;
                fake.at = at;
                fake.value = value;
                int result =
                    wf_devmem_bind_rx(devmem, &(struct wf_devmem_rx){FAKE_INDEX, &queue, 1, 5, 0}, &id, &status);
                assert_true(result < 0 && status.text[0]);
            }
}

static void an_answer_without_sense_is_told(void **state)
{
    (void)state;
    fake.answer_to = fake.requests + 1;
    fake.cut = 3;
    assert_int_equal(wf_devmem_look(devmem, FAKE_NAME, &card, &status), -EBADMSG);
    assert_non_null(strstr(status.text, "makes no sense"));
}

/* --- settings --- */

static void header_split_is_set(void **state)
{
    (void)state;
    fake.split = WF_DEVMEM_SPLIT_OFF;
    fake.hds_thresh = 256;
    assert_int_equal(wf_devmem_set_split(devmem, FAKE_NAME, WF_DEVMEM_SPLIT_ON, -1, &status), 0);
    assert_true(fake.split == WF_DEVMEM_SPLIT_ON && fake.hds_thresh == 256);
    assert_int_equal(wf_devmem_set_split(devmem, FAKE_NAME, WF_DEVMEM_SPLIT_UNKNOWN, 0, &status), 0);
    assert_true(fake.split == WF_DEVMEM_SPLIT_ON && fake.hds_thresh == 0);
    fake.admin = false;
    assert_int_equal(wf_devmem_set_split(devmem, FAKE_NAME, WF_DEVMEM_SPLIT_ON, 0, &status), -EPERM);
    assert_non_null(strstr(status.text, "CAP_NET_ADMIN"));
}

static void ntuple_is_set(void **state)
{
    (void)state;
    assert_int_equal(wf_devmem_set_ntuple(devmem, FAKE_NAME, true, &status), 0);
    assert_int_equal(fake.writes, 0);
    assert_int_equal(wf_devmem_set_ntuple(devmem, FAKE_NAME, false, &status), 0);
    assert_false(fake.ntuple);
    fake.admin = false;
    assert_int_equal(wf_devmem_set_ntuple(devmem, FAKE_NAME, true, &status), -EPERM);
    assert_non_null(strstr(status.text, "CAP_NET_ADMIN"));
}

static void packets_are_kept_off_a_queue(void **state)
{
    struct wf_devmem_rss before, now;

    (void)state;
    assert_int_equal(wf_devmem_rss_read(devmem, FAKE_NAME, &before, &status), 0);
    assert_true(before.usual && before.count == FAKE_RSS);
    now = before;
    assert_true(wf_devmem_rss_reaches(&now, 3));
    wf_devmem_rss_first(&now, 3);
    assert_false(wf_devmem_rss_reaches(&now, 3));
    assert_int_equal(wf_devmem_rss_write(devmem, FAKE_NAME, &now, &status), 0);
    for (uint32_t i = 0; i < FAKE_RSS; i++)
        assert_int_equal(fake.rss[i], i % 3);
    assert_int_equal(wf_devmem_rss_write(devmem, FAKE_NAME, &before, &status), 0);
    assert_int_equal(fake.rss_resets, 1); /* as if nobody had set it */
    for (uint32_t i = 0; i < FAKE_RSS; i++)
        assert_int_equal(fake.rss[i], i % 4);
}

static void a_table_of_the_users_own_comes_back_as_it_was(void **state)
{
    struct wf_devmem_rss before, now;

    (void)state;
    fake.rss[5] = 0;
    assert_int_equal(wf_devmem_rss_read(devmem, FAKE_NAME, &before, &status), 0);
    assert_false(before.usual);
    now = before;
    wf_devmem_rss_first(&now, 1);
    assert_int_equal(wf_devmem_rss_write(devmem, FAKE_NAME, &now, &status), 0);
    assert_int_equal(wf_devmem_rss_write(devmem, FAKE_NAME, &before, &status), 0);
    assert_int_equal(fake.rss_resets, 0);
    assert_true(fake.rss[5] == 0 && fake.rss[6] == 2);

    fake.rss_entries = 0;
    assert_int_equal(wf_devmem_rss_read(devmem, FAKE_NAME, &now, &status), -EOPNOTSUPP);
    fake.rss_entries = WF_DEVMEM_RSS_MAX + 1;
    assert_int_equal(wf_devmem_rss_read(devmem, FAKE_NAME, &now, &status), -E2BIG);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        TEST(a_card_is_seen),
        TEST(what_is_not_told_is_unknown),
        TEST(an_interface_that_is_not_there),
        TEST(an_old_kernel_knows_no_bindings),
        TEST(each_obstacle_has_its_remedy),
        TEST(what_nobody_can_change_is_told_first),
        TEST(queues_are_bound),
        TEST(as_many_queues_as_are_promised),
        TEST(larger_buffers_are_asked_for),
        TEST(the_kernels_words_are_told),
        TEST(answers_of_any_length_and_content_do_no_harm),
        TEST(refusals_of_any_length_and_content_do_no_harm),
        TEST(an_answer_without_sense_is_told),
        TEST(header_split_is_set),
        TEST(ntuple_is_set),
        TEST(packets_are_kept_off_a_queue),
        TEST(a_table_of_the_users_own_comes_back_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
