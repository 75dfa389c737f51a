/* Files that hold a key: which are taken, and that no message tells any of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/key_file.h"

#define DIGITS "00112233445566778899aabbccddeeff0F1E2D3C4B5A69788796A5B4C3D2E1F0"

static char folder[64], path[96];

static int begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "weft_key_XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/key", folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void put(const char *bytes, size_t length, mode_t mode)
{
    unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void well_formed(void **state)
{
    static const char *const texts[] = {DIGITS, DIGITS "\n", "# a key\n\n  " DIGITS "  # ours\n# end\n", DIGITS "\r\n"};
    uint8_t key[WF_KEY_FILE_BYTES], again[WF_KEY_FILE_BYTES];
    char text[WF_KEY_FILE_DIGITS + 1];
    struct wf_status status = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put(texts[i], strlen(texts[i]), i % 2 ? 0400 : 0600);
        if (wf_key_file_read(path, key, &status) != 0)
            fail_msg("%s", status.text);
        assert_int_equal(key[1], 0x11);
        assert_int_equal(key[31], 0xf0);
    }
    wf_key_file_text(key, text);
    assert_int_equal(strcasecmp(text, DIGITS), 0);
    put(text, strlen(text), 0600);
    assert_int_equal(wf_key_file_read(path, again, NULL), 0);
    assert_memory_equal(key, again, sizeof(key));
}

static void malformed(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "has no key"},
        {"# nothing\n\n", "has no key"},
        {"# one\n" DIGITS "0\n", ":2: 65 digits"},
        {"00112233", ":1: 8 digits"},
        {"\n\n  0011g233445566778899aabbccddeeff0F1E2D3C4B5A69788796A5B4C3D2E1F0", ":3: character 7 is no"},
        {DIGITS " " DIGITS, ":1: character 65 is no"},
        {DIGITS "\n# more\n" DIGITS "\n", ":3: a second key"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wf_status status = {0};
        uint8_t key[WF_KEY_FILE_BYTES] = {7};
        put(rows[i].text, strlen(rows[i].text), 0600);
        assert_int_equal(wf_key_file_read(path, key, &status), -EINVAL);
        if (!strstr(status.text, rows[i].words) || !strstr(status.text, path))
            fail_msg("'%s' does not say '%s' of %s", status.text, rows[i].words, path);
        assert_null(strstr(status.text, "0011"));
        assert_int_equal(key[0], 7);
    }
    struct wf_status status = {0};
    uint8_t key[WF_KEY_FILE_BYTES];
    put(DIGITS "\0\n", WF_KEY_FILE_DIGITS + 2, 0600);
    assert_int_equal(wf_key_file_read(path, key, &status), -EINVAL);
    char large[WF_KEY_FILE_MOST + 1];
    memset(large, '\n', sizeof(large));
    memcpy(large, DIGITS, WF_KEY_FILE_DIGITS);
    put(large, sizeof(large), 0600);
    assert_int_equal(wf_key_file_read(path, key, &status), -EINVAL);
    assert_non_null(strstr(status.text, "4096 bytes"));
    put(large, sizeof(large) - 1, 0600);
    assert_int_equal(wf_key_file_read(path, key, &status), 0);
}

static void readable_by_others(void **state)
{
    static const mode_t modes[] = {0640, 0604, 0660, 0644, 0610, 0602, 0601, 0777};
    uint8_t key[WF_KEY_FILE_BYTES];
    char command[128], mode[8];

    (void)state;
    snprintf(command, sizeof(command), "chmod 600 %s", path);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct wf_status status = {0};
        put(DIGITS, WF_KEY_FILE_DIGITS, modes[i]);
        snprintf(mode, sizeof(mode), "%04o", (unsigned)modes[i]);
        assert_int_equal(wf_key_file_read(path, key, &status), -EACCES);
        assert_non_null(strstr(status.text, mode));
        assert_non_null(strstr(status.text, command));
    }
}

/* Another user's file is not ours to trust, even where we can read it. */
static void of_another_user(void **state)
{
    struct wf_status status = {0};
    uint8_t key[WF_KEY_FILE_BYTES];

    (void)state;
    put(DIGITS, WF_KEY_FILE_DIGITS, 0600);
    if (geteuid() != 0 || chown(path, 12345, 0) != 0) {
        print_message("skipped: only root can give files away\n");
        skip();
    }
    assert_int_equal(wf_key_file_read(path, key, &status), -EACCES);
    assert_non_null(strstr(status.text, "12345"));
}

static void no_file(void **state)
{
    struct wf_status status = {0};
    uint8_t key[WF_KEY_FILE_BYTES];

    (void)state;
    unlink(path);
    assert_int_equal(wf_key_file_read(path, key, &status), -ENOENT);
    assert_non_null(strstr(status.text, path));
    assert_int_equal(wf_key_file_read(folder, key, &status), -EINVAL);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(wf_key_file_read(path, key, &status), -EINVAL);
    assert_non_null(strstr(status.text, "no regular file"));
}

/* Who gives the key instead of its file is told so, without repeating it, and the setting keeps its value. */
static void a_key_is_no_name(void **state)
{
    static struct wf_config config;
    struct wf_status status = {0};

    (void)state;
    wf_config_init(&config);
    assert_int_equal(wf_config_set(&config, WF_SET_KEY_FILE, DIGITS, WF_ORIGIN_COMMAND, "test", &status), -EINVAL);
    assert_null(strstr(status.text, "0011"));
    assert_non_null(strstr(status.text, "key_file"));
    assert_string_equal(wf_config_text(&config, WF_SET_KEY_FILE), "");
    assert_int_equal(wf_config_set(&config, WF_SET_KEY_FILE, "a.key", WF_ORIGIN_COMMAND, "test", &status), 0);
    assert_string_equal(wf_config_text(&config, WF_SET_KEY_FILE), "a.key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed),     cmocka_unit_test(malformed),        cmocka_unit_test(readable_by_others),
        cmocka_unit_test(of_another_user), cmocka_unit_test(a_key_is_no_name), cmocka_unit_test(no_file),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
