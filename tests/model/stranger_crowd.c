/*
 * Strangers who know nothing, few and many, while two friends have a message under way on the simulated network. Each
 * kind costs lines that are limited in number, descriptors and memory that are bounded and come back, and nobody else
 * anything.
 */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/join/door.h"
#include "scene.h"
#include "wire/frame.h"

#define MESSAGE (4 << 20)
#define LOG_INTERVAL_NS (5 * WF_NS_PER_S)  /* of door.stranger_log */
#define AT_ONCE_MAX (WF_VISITORS_MAX + 16) /* one poll of the door brings up to 16 before the older ones are gone */

static struct scene scene;
static int log_fd, descriptors;
static int64_t begun_ns;
static uint8_t *source, *sink;
static struct weft_request *sending, *receiving;

static void begin(const char *settings)
{
    log_fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(log_fd > 0);
    scene_open(&scene, &(struct scene_options){.seed = 3, .settings = settings, .log = log_fd});
    scene_exchange(&scene, 10000, 1);
    descriptors = wf_sim_open_descriptors(scene.sim);
    begun_ns = wf_sim_now(scene.sim);
    source = malloc(MESSAGE);
    sink = calloc(1, MESSAGE);
    assert_true(source && sink);
    for (size_t i = 0; i < MESSAGE; i++)
        source[i] = (uint8_t)(i * 31 + (i >> 9));
    assert_int_equal(weft_recv(scene.connections[SCENE_HOST], sink, MESSAGE, 7, NULL, &receiving), 0);
    assert_int_equal(weft_send(scene.connections[SCENE_FRIEND], source, MESSAGE, 7, NULL, &sending), 0);
}

/* The message that was under way arrives, on channels that nobody had to dial again. */
static void end(void)
{
    struct weft_completion completion;
    struct weft_rail_stats stats[4];
    assert_int_equal(weft_wait(receiving, 60000, &completion), 0);
    assert_int_equal(completion.status, 0);
    assert_memory_equal(source, sink, MESSAGE);
    assert_int_equal(weft_wait(sending, 60000, &completion), 0);
    assert_int_equal(completion.status, 0);
    int rails = weft_peer_rails(scene.peers[SCENE_HOST], stats, 4);
    for (int i = 0; i < rails; i++)
        assert_int_equal(stats[i].failures, 0);
    scene_exchange(&scene, 10000, 2);
    for (int i = 0; i < 1000 && wf_sim_open_descriptors(scene.sim) > descriptors; i++)
        scene_pass(&scene, 20 * WF_NS_PER_MS);
    assert_int_equal(wf_sim_open_descriptors(scene.sim), descriptors);
    assert_int_equal(scene.contexts[SCENE_HOST]->door->visitors, 0);
    assert_int_equal(scene.contexts[SCENE_HOST]->sessions.count, 1);
    scene_close(&scene);
    free(source);
    free(sink);
    close(log_fd);
}

/* The log of this scene: not more lines than may be, the first of them with `told` in it, and every one of the
 * `strangers` counted once, in a line or as not shown. */
static void check_log(int strangers, const char *told)
{
    static char text[65536];
    ssize_t length = pread(log_fd, text, sizeof text - 1, 0);
    int64_t passed_ns = wf_sim_now(scene.sim) - begun_ns;
    uint64_t lines = 0, events = scene.contexts[SCENE_HOST]->door->stranger_log.dropped;
    assert_in_range(length, 1, sizeof text - 2);
    text[length] = '\0';
    const char *found = strstr(text, told), *refused = strstr(text, "refused 127.0.");
    assert_non_null(found);
    assert_non_null(refused);
    assert_true(found < strchr(text, '\n') && refused <= found);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        const char *note = strstr(line, " more not shown)");
        lines += 1;
        if (!note || note > strchr(line, '\n'))
            continue;
        while (note[-1] != '(')
            note -= 1;
        events += strtoull(note, NULL, 10);
    }
    assert_in_range(lines, 1, 1 + passed_ns / LOG_INTERVAL_NS);
    assert_int_equal(lines + events, strangers);
}

/* --- kinds of strangers --- */

struct kind {
    const char *what, *said, *told; /* `told`: in the host's line */
    size_t length;                  /* of `said` */
    bool hangs;                     /* stays on the line until it is shown out */
};

static const char a_key_here[] = "the dialling side has a key, the listening side none";

static const struct kind kinds[] = {
    {"a scan of ports", "", "closed the connection before", 0, false},
    {"a browser", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "not a weft peer", 27, false},
    {"garbage", "\xde\xad\xbe\xef\x80\x81\x82\x83\x00\x01\x02\x03", "not a weft peer", 12, true},
    {"a TLS hello", "\x16\x03\x01\x00\x06\x01\x00\x01\xfc\x03\x03", a_key_here, 11, true},
    {"half of a TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "said nothing for too long", 11, true},
    {"an old version", "WEFT\x01\x00\x10\x00", "another version of the protocol", 8, true},
    {"a version to come", "WEFT\x01\xff\x10\x00", "another version of the protocol", 8, true},
    {"an oversized length", "WEFT\x01\x01\xff\xff", "not a weft peer", 8, true},
    {"a message of an unknown type", "WEFT\x7f\x01\x00\x00\x00\x00\x00\x00", "makes no sense", 12, true},
    {"a checksum of nothing", "WEFT\x01\x01\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00", "makes no sense", 16, true},
    {"half a message", "WEFT\x01\x01\x40\x00\x01", "closed the connection before", 9, false},
    {"silence", "", "said nothing for too long", 0, true},
};

/* Each of a kind, one after the other, and what the host's log has of them. */
static void each_kind(void **state)
{
    (void)state;
    enum { TIMES = 40 };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct kind *kind = &kinds[i];
        int fds[TIMES];
        print_message("%s\n", kind->what);
        begin("connect_timeout=1");
        for (int n = 0; n < TIMES; n++) {
            fds[n] = scene_call(&scene);
            assert_true(fds[n] >= 0);
            if (kind->length)
                assert_int_equal(scene_send(&scene, fds[n], kind->said, kind->length), kind->length);
            if (!kind->hangs)
                scene_hang_up(&scene, fds[n]);
        }
        scene_pass(&scene, 2 * WF_NS_PER_S);
        for (int n = 0; n < TIMES && kind->hangs; n++) {
            char answer[WF_SETUP_MAX]; /* at most one, with the reason */
            if (scene_receive(&scene, fds[n], answer, sizeof answer) > 0)
                assert_true(kind->told == a_key_here);
            assert_true(scene_receive(&scene, fds[n], answer, 1) <= 0); /* it was shown out */
            scene_hang_up(&scene, fds[n]);
        }
        check_log(TIMES, kind->told);
        end();
    }
}

/* A message that would be good, one byte a second: patience is for the whole of it, not for each byte. */
static void one_byte_a_second(void **state)
{
    (void)state;
    static const char said[] = "WEFT\x01\x01\x40\x00and so on, and on, and on, for as long as anybody listens";
    begin("connect_timeout=5");
    int fd = scene_call(&scene);
    size_t sent = 0;
    assert_true(fd >= 0);
    while (sent < sizeof said && scene_send(&scene, fd, said + sent, 1) == 1) {
        sent += 1;
        scene_pass(&scene, WF_NS_PER_S);
    }
    assert_in_range(sent, 4, 7); /* connect_timeout, and one that the network took before it knew */
    scene_hang_up(&scene, fd);
    check_log(1, "said nothing for too long");
    end();
}

/* --- a crowd --- */

static size_t used_bytes(void)
{
    return mallinfo2().uordblks; /* 0 with a sanitizer's allocator: nothing is asserted of it there */
}

/* Ten thousand who come and stay until they are shown out; what the host holds of them never grows past its limit. */
static void ten_thousand_stay(void **state)
{
    (void)state;
    enum { CROWD = 10000, HELD = 1000, BACKLOG = 512 };
    struct wf_door *door;
    int fds[HELD];
    char byte;
    begin("connect_timeout=5");
    door = scene.contexts[SCENE_HOST]->door;
    for (int n = 0; n < CROWD; n++) {
        int *fd = &fds[n % HELD];
        if (n >= HELD) { /* long shown out by those who came after it */
            assert_true(n % 100 != 0 || scene_receive(&scene, *fd, &byte, 1) <= 0);
            scene_hang_up(&scene, *fd);
        }
        *fd = scene_call(&scene);
        assert_true(*fd >= 0);
        assert_in_range(door->visitors, 0, AT_ONCE_MAX);
        if (n % 3 == 0)
            scene_send(&scene, *fd, "WEFT", 4);
        if (n % 100 == 99) /* each has a tenth of a second before it is shown out for others */
            scene_pass(&scene, 50 * WF_NS_PER_MS);
        if (n % HELD == HELD - 1) { /* ours are counted, too, and those that nobody has taken from the kernel yet */
            assert_in_range(wf_sim_open_descriptors(scene.sim) - descriptors, HELD, HELD + AT_ONCE_MAX + BACKLOG);
            scene_exchange(&scene, 20000, (uint64_t)n);
        }
    }
    assert_int_equal(scene.contexts[SCENE_HOST]->sessions.count, 1);
    for (int n = 0; n < HELD; n++)
        scene_hang_up(&scene, fds[n]);
    scene_pass(&scene, WF_NS_PER_S);
    check_log(CROWD, "too many unfinished connections");
    end();
}

/* More who come at once than there is room for: some wait in the kernel's queue, and as many are shown out for them as
 * there is no room for, and not one more. */
static void hundreds_at_once(void **state)
{
    (void)state;
    enum { CROWD = WF_VISITORS_MAX + 100 };
    int fds[CROWD];
    begin("connect_timeout=5");
    struct wf_door *door = scene.contexts[SCENE_HOST]->door;
    for (int n = 0; n < CROWD; n++)
        assert_true((fds[n] = scene_call(&scene)) >= 0);
    assert_in_range(door->visitors, WF_VISITORS_MAX, AT_ONCE_MAX);
    scene_pass(&scene, WF_NS_PER_S); /* those behind them have their turn now, and nobody else has to go */
    assert_in_range(door->visitors, WF_VISITORS_MAX, AT_ONCE_MAX);
    check_log(CROWD - door->visitors, "too many unfinished connections");
    for (int n = 0; n < CROWD; n++)
        scene_hang_up(&scene, fds[n]);
    scene_pass(&scene, WF_NS_PER_S);
    check_log(CROWD, "too many unfinished connections");
    end();
}

/* Ten thousand who come, say something and go: as much memory is in use after the last as after the first hundred. */
static void ten_thousand_pass(void **state)
{
    (void)state;
    enum { CROWD = 10000, FIRST = 100 };
    size_t before = 0;
    begin("connect_timeout=1");
    for (int n = 0; n < CROWD; n++) {
        const struct kind *kind = &kinds[n % (sizeof kinds / sizeof kinds[0])];
        int fd = scene_call(&scene);
        assert_true(fd >= 0);
        scene_send(&scene, fd, kind->said, kind->length);
        scene_hang_up(&scene, fd);
        if (n + 1 == FIRST) {
            scene_pass(&scene, 2 * WF_NS_PER_S);
            before = used_bytes();
        }
        if (n % 1000 == 999)
            scene_exchange(&scene, 20000, (uint64_t)n);
    }
    scene_pass(&scene, 2 * WF_NS_PER_S);
    assert_in_range(used_bytes(), 0, before + 256 * 1024); /* of a stranger's conversation, 60 would be that much */
    check_log(CROWD, "refused");
    end();
}

/* Those who know the protocol open sessions, and drop them with a frame against it before anybody has accepted them:
 * the log has a line for a few of them, and a number for the rest. */
static void sessions_that_nobody_knows(void **state)
{
    (void)state;
    enum { SESSIONS = 100 };
    static char text[65536];
    uint64_t lines = 0;
    begin("connect_timeout=1");
    for (int n = 0; n < SESSIONS; n++) {
        struct wf_hello hello;
        scene_introduce(&scene, &hello);
        int fd = scene_join(&scene, &hello, 0, 1, 1);
        assert_true(fd >= 0);
        struct wf_frame frame = {.type = WF_GRANT, .flags = WF_FLAG_PEER, .data_off = WF_FRAME_BYTES, .conn = 77};
        uint8_t bytes[WF_FRAME_BYTES];
        wf_frame_encode(&frame, bytes);
        assert_int_equal(scene_send(&scene, fd, bytes, sizeof bytes), sizeof bytes);
        scene_hang_up(&scene, fd);
        scene_pass(&scene, 10 * WF_NS_PER_MS);
    }
    scene_pass(&scene, 10 * WF_NS_PER_S);
    ssize_t length = pread(log_fd, text, sizeof text - 1, 0);
    assert_true(length >= 0);
    text[length] = '\0';
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines += 1;
    assert_in_range(lines, 1, 1 + (wf_sim_now(scene.sim) - begun_ns) / LOG_INTERVAL_NS);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_that_nobody_knows), cmocka_unit_test(each_kind),
        cmocka_unit_test(one_byte_a_second),          cmocka_unit_test(ten_thousand_stay),
        cmocka_unit_test(hundreds_at_once),           cmocka_unit_test(ten_thousand_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
