/* What weft nic changes at a card is recorded before, and comes back, wherever the process ends in between. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/nic/change.h"
#include "devmem_fixture.h"

static struct fake_kernel *fake; /* shared with children */
static struct fake_kernel before;
static char folder[64], *said;
static size_t said_bytes;
static struct nic_job job;
static struct wf_status status;

static void join(void)
{
    job.folder = nic_records_hold(folder, &job.held, &status);
    if (job.folder < 0 || wf_devmem_open(&fake->kernel, &job.devmem, &status) != 0)
        fail_msg("%s", status.text);
}

static void part(void)
{
    wf_devmem_close(job.devmem);
    close(job.held);
    close(job.folder);
}

/* A card that is as far from ready as prepare may take it. */
static void set_card(void)
{
    fake_kernel_init(fake);
    fake->split = WF_DEVMEM_SPLIT_OFF;
    fake->hds_thresh = 256;
    fake->ntuple = false;
}

static int start(void **state)
{
    (void)state;
    fake = mmap(NULL, sizeof *fake, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(folder, "/tmp/weft-nic.XXXXXX");
    if (fake == MAP_FAILED || !mkdtemp(folder))
        return -1;
    set_card();
    before = *fake;
    job = (struct nic_job){.queues = 1, .out = open_memstream(&said, &said_bytes)};
    join();
    return 0;
}

static int end(void **state)
{
    char command[96];

    (void)state;
    part();
    fclose(job.out);
    free(said);
    munmap(fake, sizeof *fake);
    snprintf(command, sizeof command, "rm -r -- '%s'", folder);
    return system(command);
}

static int records(void)
{
    char names[4][IFNAMSIZ];

    return nic_record_list(job.folder, names, 4);
}

static void expect_as_before(void)
{
    assert_int_equal(fake->split, before.split);
    assert_int_equal(fake->hds_thresh, before.hds_thresh);
    assert_int_equal(fake->ntuple, before.ntuple);
    assert_memory_equal(fake->rss, before.rss, sizeof before.rss);
    assert_int_equal(records(), 0);
}

static void expect_said(const char *words)
{
    fflush(job.out);
    if (!strstr(said, words))
        fail_msg("'%s' is not in:\n%s", words, said);
}

static void must(int result)
{
    if (result)
        fail_msg("%d: %s", result, status.text);
}

/* --- what is done --- */

static void a_card_is_made_ready_and_comes_back(void **state)
{
    (void)state;
    must(nic_prepare(&job, FAKE_NAME, &status));
    assert_int_equal(fake->split, WF_DEVMEM_SPLIT_ON);
    assert_int_equal(fake->hds_thresh, 0);
    assert_true(fake->ntuple);
    for (int i = 0; i < FAKE_RSS; i++)
        assert_int_equal(fake->rss[i], i % 3);
    assert_int_equal(records(), 1);
    expect_said("eth7: header split off -> on (ethtool -G eth7 tcp-data-split on)\n"
                "eth7: hds-thresh 256 -> 0 (ethtool -G eth7 hds-thresh 0)\n"
                "eth7: rules for flows off -> on (ethtool -K eth7 ntuple on)\n"
                "eth7: other traffic to queues 0-3 -> 0-2 (ethtool -X eth7 equal 3)\n");
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_said("eth7: other traffic to queues 0-2 -> 0-3 (ethtool -X eth7 default)\n");
    expect_as_before();
    assert_int_equal(nic_restore(&job, FAKE_NAME, &status), -ENOENT);
    expect_as_before();
}

static void more_queues_and_a_table_of_the_users_own(void **state)
{
    (void)state;
    fake->rss[3] = 0;
    before = *fake;
    job.queues = 3;
    must(nic_prepare(&job, FAKE_NAME, &status));
    for (int i = 0; i < FAKE_RSS; i++)
        assert_int_equal(fake->rss[i], 0);
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_as_before();
}

static void what_was_there_first_is_what_comes_back(void **state)
{
    (void)state;
    must(nic_prepare(&job, FAKE_NAME, &status));
    int writes = fake->writes;
    must(nic_prepare(&job, FAKE_NAME, &status));
    assert_int_equal(fake->writes, writes + 1);
    expect_said("header split stays on, now as a setting");
    expect_said("nothing else is to be changed");
    job.queues = 2;
    must(nic_prepare(&job, FAKE_NAME, &status));
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_as_before();
}

static void a_dry_run_changes_nothing(void **state)
{
    (void)state;
    job.dry = true;
    must(nic_prepare(&job, FAKE_NAME, &status));
    expect_said("header split off -> on");
    expect_said("equal 3");
    assert_int_equal(fake->writes, 0);
    expect_as_before();
    job.dry = false;
    must(nic_prepare(&job, FAKE_NAME, &status));
    int writes = fake->writes;
    job.dry = true;
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_said("header split on -> off");
    assert_int_equal(fake->writes, writes);
    assert_int_equal(records(), 1);
}

static void a_split_that_is_on_is_made_a_setting(void **state)
{
    (void)state;
    fake->split = WF_DEVMEM_SPLIT_ON;
    fake->hds_thresh = 0;
    fake->ntuple = true;
    before = *fake;
    must(nic_prepare(&job, FAKE_NAME, &status));
    assert_int_equal(fake->writes, 2);
    expect_said("header split stays on, now as a setting");
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_as_before();
}

static void a_split_that_was_no_setting_is_none_again(void **state)
{
    (void)state;
    fake->split = WF_DEVMEM_SPLIT_UNKNOWN;
    before = *fake;
    must(nic_prepare(&job, FAKE_NAME, &status));
    assert_int_equal(fake->split, WF_DEVMEM_SPLIT_ON);
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_said("header split on -> unknown (ethtool -G eth7 tcp-data-split auto)");
    expect_as_before();
    /* What fails half way, too. */
    fake->ioctl_command = ETHTOOL_SFLAGS;
    fake->ioctl_result = -EIO;
    assert_int_equal(nic_prepare(&job, FAKE_NAME, &status), -EIO);
    expect_as_before();
    /* One that is on by itself then is not as it was. */
    fake->ioctl_command = 0;
    must(nic_prepare(&job, FAKE_NAME, &status));
    fake->split_auto = WF_DEVMEM_SPLIT_ON;
    assert_int_equal(nic_restore(&job, FAKE_NAME, &status), -EIO);
    assert_non_null(strstr(status.text, "differs in: header split"));
    assert_int_equal(records(), 1);
}

static void a_split_that_is_off_by_itself_is_no_setting(void **state)
{
    (void)state;
    for (fake->split_auto = WF_DEVMEM_SPLIT_UNKNOWN; fake->split_auto <= 3; fake->split_auto++) {
        must(nic_prepare(&job, FAKE_NAME, &status));
        fake->writes = 0;
        must(nic_restore(&job, FAKE_NAME, &status));
        assert_int_equal(fake->writes, fake->split_auto == WF_DEVMEM_SPLIT_OFF || fake->split_auto == 3 ? 3 : 4);
        expect_as_before();
    }
}

/* --- what is refused --- */

static void expect_refused(const char *words)
{
    int writes = fake->writes;

    assert_int_equal(nic_prepare(&job, FAKE_NAME, &status), -EOPNOTSUPP);
    if (!strstr(status.text, words))
        fail_msg("'%s' is not in '%s'", words, status.text);
    assert_int_equal(fake->writes, writes);
    assert_int_equal(records(), 0);
    set_card();
}

static void a_card_that_cannot_is_left_alone(void **state)
{
    (void)state;
    fake->loopback = true;
    expect_refused("eth7: loopback has no card");
    fake->queues = fake->queues_most = 1;
    for (int i = 0; i < FAKE_RSS; i++)
        fake->rss[i] = 0;
    expect_refused("eth7: it has 1 receive queue, and one has to stay for all other traffic");
    fake->queues = 1;
    expect_refused(": ethtool -L eth7 combined 2");
    job.queues = 4;
    expect_refused("it has 4 receive queues");
    job.queues = 1;
    fake->split_fixed = true; /* which the kernel tells only now */
    expect_refused("header split of eth7: Operation not supported");
    assert_int_equal(nic_prepare(&job, "eth8", &status), -ENODEV);
}

static void what_fails_half_way_is_undone(void **state)
{
    (void)state;
    fake->ioctl_command = ETHTOOL_SFLAGS;
    fake->ioctl_result = -EIO;
    assert_int_equal(nic_prepare(&job, FAKE_NAME, &status), -EIO);
    assert_non_null(strstr(status.text, "rules for flows"));
    expect_as_before();

    /* A card that does not do what it was told. */
    fake->ioctl_command = ETHTOOL_SRXFHINDIR;
    fake->ioctl_result = 0;
    assert_int_equal(nic_prepare(&job, FAKE_NAME, &status), -EIO);
    expect_as_before();
}

static void what_cannot_be_put_back_stays_recorded(void **state)
{
    (void)state;
    must(nic_prepare(&job, FAKE_NAME, &status));
    fake->admin = false;
    assert_int_equal(nic_restore(&job, FAKE_NAME, &status), -EPERM);
    assert_int_equal(records(), 1);
    fake->admin = true;
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_as_before();
}

static void a_driver_that_forgets_its_table_is_put_back(void **state)
{
    (void)state;
    fake->forgets_rss = true;
    fake->rss[3] = 0;
    before = *fake;
    must(nic_prepare(&job, FAKE_NAME, &status));
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_as_before();
}

static void a_table_of_another_size_is_put_back(void **state)
{
    (void)state;
    must(nic_prepare(&job, FAKE_NAME, &status));
    fake->rss_entries = FAKE_RSS / 2;
    fake->queues = 6;
    must(nic_restore(&job, FAKE_NAME, &status));
    for (int i = 0; i < FAKE_RSS / 2; i++)
        assert_int_equal(fake->rss[i], i % 6);
    assert_int_equal(records(), 0);
    /* The user's own cannot be. */
    set_card();
    fake->rss[3] = 0;
    must(nic_prepare(&job, FAKE_NAME, &status));
    fake->rss_entries = FAKE_RSS / 2;
    assert_int_equal(nic_restore(&job, FAKE_NAME, &status), -EINVAL);
    assert_int_equal(records(), 1);
}

static void a_table_that_switching_has_reset_is_set_again(void **state)
{
    (void)state;
    must(nic_prepare(&job, FAKE_NAME, &status));
    fake->split = WF_DEVMEM_SPLIT_OFF;
    fake->forgets_rss = true;
    must(nic_prepare(&job, FAKE_NAME, &status));
    for (int i = 0; i < FAKE_RSS; i++)
        assert_int_equal(fake->rss[i], i % 3);
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_as_before();
}

static void a_failed_undo_is_a_failure(void **state)
{
    (void)state;
    fake->split_fixed = true;
    fake->split_auto = WF_DEVMEM_SPLIT_ON;
    fake->hds_thresh = 0;
    fake->split = WF_DEVMEM_SPLIT_OFF;
    assert_int_equal(nic_prepare(&job, FAKE_NAME, &status), -EOPNOTSUPP); /* nothing was changed */
    fake->split_fixed = false;
    fake->split = WF_DEVMEM_SPLIT_UNKNOWN;
    fake->ioctl_command = ETHTOOL_SFLAGS;
    fake->ioctl_result = -EOPNOTSUPP;
    assert_int_equal(nic_prepare(&job, FAKE_NAME, &status), -EIO);
    assert_non_null(strstr(status.text, "is not all put back"));
    assert_int_equal(records(), 1);
}

static void nothing_is_put_back_while_a_queue_is_bound(void **state)
{
    (void)state;
    must(nic_prepare(&job, FAKE_NAME, &status));
    int writes = fake->writes;
    fake->binding[3] = 1;
    assert_int_equal(nic_restore(&job, FAKE_NAME, &status), -EBUSY);
    assert_non_null(strstr(status.text, "eth7: a receive queue is bound to device memory"));
    assert_int_equal(fake->writes, writes);
    assert_int_equal(records(), 1);
    fake->binding[3] = 0;
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_as_before();
}

/* --- a process that ends in the middle --- */

/* In a child, which ends at that step. False: it came to its end. */
static bool dies(int step, int (*act)(const struct nic_job *, const char *, struct wf_status *))
{
    int result;

    part();
    fflush(job.out);
    fake->steps = 0;
    fake->die_at = step;
    pid_t child = fork();
    if (child == 0) {
        join();
        _exit(act(&job, FAKE_NAME, &status) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && (WEXITSTATUS(result) == 0 || WEXITSTATUS(result) == FAKE_DEATH));
    fake->die_at = 0;
    fake->opened = 0;
    join();
    return WEXITSTATUS(result) == FAKE_DEATH;
}

static void whoever_dies_in_prepare_leaves_what_restore_needs(void **state)
{
    int step;

    (void)state;
    for (step = 1; dies(step, nic_prepare); step++) {
        assert_int_equal(records(), 1);
        must(nic_restore(&job, FAKE_NAME, &status));
        expect_as_before();
    }
    assert_int_equal(step, 7); /* rings, rules, table: before and after each */
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_as_before();
}

static void whoever_dies_in_restore_can_begin_again(void **state)
{
    int step;
    bool died = true;

    (void)state;
    for (step = 1; died; step++) {
        must(nic_prepare(&job, FAKE_NAME, &status));
        died = dies(step, nic_restore);
        if (died) {
            assert_int_equal(records(), 1);
            must(nic_restore(&job, FAKE_NAME, &status));
        }
        expect_as_before();
    }
    assert_int_equal(step, 10); /* the split: no setting, then one */
}

static void prepare_after_a_death_keeps_the_first_record(void **state)
{
    (void)state;
    assert_true(dies(3, nic_prepare));
    must(nic_prepare(&job, FAKE_NAME, &status));
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_as_before();
}

/* --- records --- */

static FILE *open_record(const char *mode)
{
    struct stat there;
    char path[160];

    assert_int_equal(records(), 1);
    assert_int_equal(stat("/proc/self/ns/net", &there), 0);
    snprintf(path, sizeof path, "%s/nic.%llu.%s", folder, (unsigned long long)there.st_ino, FAKE_NAME);
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    return file;
}

static void write_file(const char *text, size_t bytes)
{
    FILE *file = open_record("w");

    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    fclose(file);
}

static size_t read_file(char *text, size_t room)
{
    FILE *file = open_record("r");
    size_t bytes = fread(text, 1, room, file);

    fclose(file);
    return bytes;
}

static void half_a_record_is_none(void **state)
{
    static struct nic_record record, whole = {.name = FAKE_NAME, .ifindex = FAKE_INDEX, .split = 1, .hds_thresh = 9};
    char text[4096];

    (void)state;
    whole.rss.count = 3;
    whole.rss.queue[2] = 77;
    must(nic_record_write(job.folder, &whole, &status));
    must(nic_record_read(job.folder, FAKE_NAME, &record, &status));
    assert_memory_equal(&record, &whole, sizeof whole);
    size_t bytes = read_file(text, sizeof text);
    for (size_t cut = 0; cut < bytes - 1; cut++) { /* the last line may lack its end */
        write_file(text, cut);
        assert_int_equal(nic_record_read(job.folder, FAKE_NAME, &record, &status), -EINVAL);
    }
    for (size_t at = 0; at < bytes; at++) {
        char was = text[at];
        text[at] = 'x';
        write_file(text, bytes);
        int result = nic_record_read(job.folder, FAKE_NAME, &record, &status);
        assert_true(result == -EINVAL || result == -ESTALE || result == 0);
        text[at] = was;
    }
}

/* The card's record becomes one from before the machine has booted, and the card one that has started anew. */
static void boot_anew(void)
{
    char text[4096], *boot;
    size_t bytes = read_file(text, sizeof text - 1);

    text[bytes] = '\0';
    boot = strstr(text, "boot ");
    assert_non_null(boot);
    boot[5] ^= 1; /* another one */
    write_file(text, bytes);
    *fake = before;
}

static void a_record_of_an_earlier_boot_is_none(void **state)
{
    char name[1][IFNAMSIZ] = {FAKE_NAME};

    (void)state;
    must(nic_prepare(&job, FAKE_NAME, &status));
    boot_anew();
    must(nic_show(&job, FAKE_NAME, name, 1, &status));
    expect_said(
        "  the record of 'weft nic prepare' is of an earlier boot of the machine: nothing is prepared any more");
    assert_null(strstr(said, "as 'weft nic prepare' has made it"));
    job.dry = true;
    assert_int_equal(nic_restore(&job, FAKE_NAME, &status), -ESTALE);
    assert_int_equal(records(), 1);
    job.dry = false;
    assert_int_equal(nic_restore(&job, FAKE_NAME, &status), -ESTALE);
    assert_int_equal(fake->writes, 0);
    expect_as_before();
    assert_int_equal(nic_restore(&job, FAKE_NAME, &status), -ENOENT);
    /* One that is made in its place is of this boot. */
    must(nic_prepare(&job, FAKE_NAME, &status));
    boot_anew();
    must(nic_prepare(&job, FAKE_NAME, &status));
    must(nic_show(&job, FAKE_NAME, name, 1, &status));
    expect_said("as 'weft nic prepare' has made it");
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_as_before();
}

static void a_card_that_is_not_here_keeps_its_record(void **state)
{
    static struct nic_record record = {.name = "eth8", .ifindex = 8, .split = WF_DEVMEM_SPLIT_ON, .hds_thresh = 5};

    (void)state;
    must(nic_record_write(job.folder, &record, &status));
    assert_int_equal(nic_restore(&job, "eth8", &status), -ENODEV);
    assert_non_null(strstr(status.text, "eth8: the card with the record /run/weft/nic."));
    assert_int_equal(records(), 1);
    must(nic_record_remove(job.folder, "eth8", &status));
    /* Another card has its name. */
    strcpy(record.name, FAKE_NAME);
    must(nic_record_write(job.folder, &record, &status));
    assert_int_equal(nic_restore(&job, FAKE_NAME, &status), -ENODEV);
    assert_int_equal(nic_prepare(&job, FAKE_NAME, &status), -ENODEV);
    assert_non_null(strstr(status.text, "remove that file if the card is gone"));
    assert_int_equal(fake->writes, 0);
    assert_int_equal(records(), 1);
}

static void a_card_has_one_record_whatever_its_name(void **state)
{
    (void)state;
    must(nic_prepare(&job, FAKE_OTHER, &status));
    must(nic_prepare(&job, FAKE_NAME, &status));
    assert_int_equal(records(), 1);
    must(nic_restore(&job, FAKE_OTHER, &status));
    expect_as_before();
    must(nic_prepare(&job, FAKE_NAME, &status));
    fake->name = "new7"; /* renamed */
    must(nic_prepare(&job, "new7", &status));
    assert_int_equal(records(), 1);
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_as_before();
    must(nic_prepare(&job, "new7", &status));
    fake->name = FAKE_NAME;
    must(nic_restore(&job, FAKE_NAME, &status));
    expect_as_before();
}

static void a_folder_that_others_can_write_to_is_none(void **state)
{
    int held = -1;

    (void)state;
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(nic_records_hold(folder, &held, &status), -EACCES);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(nic_records_hold("/proc/nothing", &held, &status), -ENOENT);
    assert_non_null(strstr(status.text, "nothing is changed without a record in /proc/nothing"));
}

static void one_process_at_a_time_holds_the_records(void **state)
{
    int result;

    (void)state;
    fflush(job.out);
    pid_t child = fork();
    if (child == 0) {
        int held;
        alarm(1);
        if (freopen("/dev/null", "w", stderr))
            nic_records_hold(folder, &held, &status);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGALRM);
    part();
    join();
}

static void queues_are_written_as_ranges(void **state)
{
    static struct wf_devmem_rss rss = {.count = 7, .queue = {3, 1, 0, 65535, 7, 8, 1}};
    char text[64];

    (void)state;
    assert_string_equal(nic_queues_text(&rss, text, sizeof text), "0-1,3,7-8,65535");
    rss.count = 0;
    assert_string_equal(nic_queues_text(&rss, text, sizeof text), "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        TEST(a_card_is_made_ready_and_comes_back),
        TEST(more_queues_and_a_table_of_the_users_own),
        TEST(what_was_there_first_is_what_comes_back),
        TEST(a_dry_run_changes_nothing),
        TEST(a_split_that_is_on_is_made_a_setting),
        TEST(a_split_that_was_no_setting_is_none_again),
        TEST(a_split_that_is_off_by_itself_is_no_setting),
        TEST(a_card_that_cannot_is_left_alone),
        TEST(what_fails_half_way_is_undone),
        TEST(what_cannot_be_put_back_stays_recorded),
        TEST(a_driver_that_forgets_its_table_is_put_back),
        TEST(a_table_of_another_size_is_put_back),
        TEST(a_table_that_switching_has_reset_is_set_again),
        TEST(a_failed_undo_is_a_failure),
        TEST(nothing_is_put_back_while_a_queue_is_bound),
        TEST(whoever_dies_in_prepare_leaves_what_restore_needs),
        TEST(whoever_dies_in_restore_can_begin_again),
        TEST(prepare_after_a_death_keeps_the_first_record),
        TEST(half_a_record_is_none),
        TEST(a_record_of_an_earlier_boot_is_none),
        TEST(a_card_that_is_not_here_keeps_its_record),
        TEST(a_card_has_one_record_whatever_its_name),
        TEST(a_folder_that_others_can_write_to_is_none),
        TEST(one_process_at_a_time_holds_the_records),
        TEST(queues_are_written_as_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
