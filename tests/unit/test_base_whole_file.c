/* Files that nobody ever sees half. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/whole_file.h"

static char path[64];
static int folder;

static int start(void **state)
{
    (void)state;
    strcpy(path, "/tmp/weft-whole.XXXXXX");
    folder = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    return folder < 0;
}

static int end(void **state)
{
    char command[96];
    (void)state;
    close(folder);
    snprintf(command, sizeof command, "rm -r -- '%s'", path);
    return system(command);
}

static int put_text(FILE *file, const void *what)
{
    fputs(what, file);
    return 0;
}

static int put_half(FILE *file, const void *what)
{
    fputs(what, file);
    return -EDOM;
}

/* The stream fails, and nobody says so. */
static int put_nowhere(FILE *file, const void *what)
{
    close(fileno(file));
    fputs(what, file);
    return 0;
}

static void expect_text(const char *name, const char *wanted)
{
    char text[64] = "";
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof text - 1) >= 0);
    close(fd);
    assert_string_equal(text, wanted);
}

static int files(void)
{
    DIR *list = opendir(path);
    int count = -2;
    assert_non_null(list);
    while (readdir(list))
        count += 1;
    closedir(list);
    return count;
}

static void test_it_takes_the_place_of_the_one_before(void **state)
{
    struct wf_whole_file whole = {.folder = folder, .name = "record", .mode = 0600};
    struct stat there;
    (void)state;
    for (int lasting = 0; lasting < 2; lasting++) {
        whole.lasting = lasting;
        assert_int_equal(wf_whole_file_write(&whole, put_text, lasting ? "two" : "one and more"), 0);
        expect_text("record", lasting ? "two" : "one and more");
        assert_int_equal(files(), 1);
    }
    assert_int_equal(fstatat(folder, "record", &there, 0), 0);
    assert_int_equal(there.st_mode & 07777, 0600);
}

static void test_the_one_before_stays_where_it_fails(void **state)
{
    struct wf_whole_file whole = {.folder = folder, .name = "record", .mode = 0644};
    (void)state;
    assert_int_equal(wf_whole_file_write(&whole, put_text, "one"), 0);
    assert_int_equal(wf_whole_file_write(&whole, put_half, "two"), -EDOM);
    assert_int_equal(wf_whole_file_write(&whole, put_nowhere, "three"), -EBADF);
    expect_text("record", "one");
    assert_int_equal(files(), 1);
}

static void test_what_cannot_be_there(void **state)
{
    char name[300];
    struct wf_whole_file whole = {.folder = folder, .name = name, .mode = 0644};
    (void)state;
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(wf_whole_file_write(&whole, put_text, "one"), -ENAMETOOLONG);
    assert_int_equal(mkdirat(folder, "taken", 0755), 0);
    whole.name = "taken";
    assert_int_equal(wf_whole_file_write(&whole, put_text, "one"), -EISDIR);
    assert_int_equal(symlinkat("elsewhere", folder, ".linked.part"), 0); /* somebody has laid a trap */
    whole.name = "linked";
    assert_int_equal(wf_whole_file_write(&whole, put_text, "one"), -ELOOP);
    assert_int_equal(files(), 1); /* the folder */
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, start, end)
    const struct CMUnitTest tests[] = {
        TEST(test_it_takes_the_place_of_the_one_before),
        TEST(test_the_one_before_stays_where_it_fails),
        TEST(test_what_cannot_be_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
