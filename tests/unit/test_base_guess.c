/* What a mistyped word was meant to be: every slip of one letter finds its setting, and no far-off word finds any. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/guess.h"

static struct wf_guess guess_setting(const char *typed)
{
    struct wf_guess guess;
    wf_guess_init(&guess, typed);
    for (int i = 0; i < WF_SETTING_COUNT; i++)
        wf_guess_offer(&guess, wf_setting((enum wf_setting_id)i)->name);
    return guess;
}

static void good_guesses(void **state)
{
    static const struct {
        const char *typed, *meant;
    } cases[] = {
        {"chnk", "chunk"},
        {"chunks", "chunk"},
        {"chukn", "chunk"},
        {"chanels", "channels"},
        {"channel", "channels"},
        {"rail", "rails"},
        {"windw", "window"},
        {"endpoint", "endpoints"},
        {"conect_timout", "connect_timeout"},
        {"connect_time", "connect_timeout"},
        {"timout", "timeout"},
        {"tmieout", "timeout"},
        {"iter", "iters"},
        {"itres", "iters"},
        {"warm_up", "warmup"},
        {"sise", "size"},
        {"sizes", "size"},
        {"bgein", "begin"},
        {"keyfile", "key_file"},
        {"key_fil", "key_file"},
        {"socket_buffers", "socket_buffer"},
        {"congestoin", "congestion"},
        {"tx_binding", "tx_bindings"},
        {"rx_bindigns", "rx_bindings"},
        {"zerocopy", "zero_copy"},
        {"first-burst", "first_burst"},
        {"patern", "pattern"},
        {"enigne", "engine"},
        {"encryption", "encrypt"},
        {"crcs", "crc"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wf_guess guess = guess_setting(cases[i].typed);
        if (!guess.best || strcmp(guess.best, cases[i].meant) != 0)
            print_error("'%s' was taken for '%s'\n", cases[i].typed, guess.best ? guess.best : "nothing");
        assert_non_null(guess.best);
        assert_string_equal(guess.best, cases[i].meant);
    }
}

static void no_guesses(void **state)
{
    static const char *const cases[] = {
        "",          "x",         "foo",         "frobnicate",
        "nonsense",  "banana",    "help",        "version",
        "verbose",   "threads",   "output",      "hostname",
        "bandwidth", "bytes",     "interface",   "addr",
        "password",  "minutes",   "nodes",       "devices",
        "number",    "blocksize", "protocol",    "unchunked",
        "seedlings", "interval",  "12345",       "listen",
        "connect",   "message",   "keep",        "daemon",
        "udp",       "parallel",  "bidirection", "a_word_that_is_much_longer_than_any_name_of_a_setting_has_ever_been",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wf_guess guess = guess_setting(cases[i]);
        if (guess.best)
            print_error("'%s' was taken for '%s'\n", cases[i], guess.best);
        assert_null(guess.best);
    }
}

/* Another name may be as near ("src" is one letter from "crc" without its first), but a guess there is. */
static void check_slip(const char *typed, const char *meant)
{
    struct wf_guess guess = guess_setting(typed);
    if (!guess.best || guess.edits > 1)
        print_error("'%s' was to be '%s'\n", typed, meant);
    assert_non_null(guess.best);
    assert_in_range(guess.edits, 0, 1);
    if (strlen(meant) > 5 && strcmp(typed, "x_bindings") != 0)
        assert_string_equal(guess.best, meant);
}

static void drop_letter(const char *name, size_t at)
{
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s%s", (int)at, name, name + at + 1);
    check_slip(typed, name);
}

static void double_letter(const char *name, size_t at)
{
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s%s", (int)at + 1, name, name + at);
    check_slip(typed, name);
}

static void swap_letters(const char *name, size_t at)
{
    char typed[64];
    snprintf(typed, sizeof typed, "%s", name);
    typed[at] = name[at + 1];
    typed[at + 1] = name[at];
    check_slip(typed, name);
}

static void every_slip_of_one_letter(void **state)
{
    (void)state;
    for (int i = 0; i < WF_SETTING_COUNT; i++) {
        const char *name = wf_setting((enum wf_setting_id)i)->name;
        for (size_t at = 0; name[at]; at++) {
            drop_letter(name, at);
            double_letter(name, at);
            if (name[at + 1])
                swap_letters(name, at);
        }
    }
}

/* The first of several that are as near, so that a list in its order of importance decides. */
static void first_of_equals(void **state)
{
    struct wf_guess guess;
    (void)state;
    wf_guess_init(&guess, "peir");
    wf_guess_offer(&guess, "pair");
    wf_guess_offer(&guess, "peer");
    assert_string_equal(guess.best, "pair");
    assert_int_equal(guess.edits, 1);
    wf_guess_offer(&guess, "peir");
    assert_int_equal(guess.edits, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_guesses),
        cmocka_unit_test(no_guesses),
        cmocka_unit_test(every_slip_of_one_letter),
        cmocka_unit_test(first_of_equals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
