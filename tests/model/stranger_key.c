/* The same stranger, and a host with a key: what is worth something without it, and what was, once. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/calls/context.h"
#include "stranger.h"

static char path[] = "weft_key_XXXXXX";
static uint8_t key[WF_KEY_BYTES];

static int make_key(void **state)
{
    int fd = mkstemp(path); /* mode 600 */
    (void)state;
    for (int i = 0; i < WF_KEY_BYTES; i++) {
        key[i] = (uint8_t)(i * 7 + 1);
        if (dprintf(fd, "%02x", key[i]) != 2)
            return -1;
    }
    return close(fd);
}

static int drop_key(void **state)
{
    (void)state;
    return unlink(path);
}

/* --- with the key --- */

/* Sends what there is, then feeds what comes. False: the host has hung up, or what it says is refused. */
static bool step(struct scene *scene, int fd, struct wf_handshake *handshake)
{
    uint8_t bytes[4096];
    size_t length;
    while ((length = wf_handshake_pull(handshake, bytes, sizeof bytes)) > 0)
        send_bytes(scene, fd, bytes, length);
    length = receive_bytes(scene, fd, bytes, sizeof bytes);
    return length > 0 && wf_handshake_feed(handshake, bytes, length, NULL) == 0;
}

/* What is inside of TLS, whole. */
static void hear_inside(struct scene *scene, int fd, struct wf_handshake *handshake, struct wf_setup *setup)
{
    uint8_t bytes[WF_SETUP_MAX];
    size_t have = 0, need = WF_SETUP_PREFIX;
    while (have < need) {
        int got = wf_handshake_read(handshake, bytes + have, need - have, NULL);
        assert_true(got >= 0);
        have += (size_t)got;
        if (have == WF_SETUP_PREFIX)
            need = (size_t)wf_setup_length(bytes);
        if (got == 0)
            assert_true(step(scene, fd, handshake));
    }
    assert_int_equal(wf_setup_decode(bytes, have, setup), 0);
}

static void say_inside(struct wf_handshake *handshake, const struct wf_setup *setup)
{
    uint8_t bytes[WF_SETUP_MAX];
    int length = wf_setup_encode(setup, bytes, sizeof bytes);
    assert_true(length > 0);
    assert_int_equal(wf_handshake_write(handshake, bytes, (size_t)length), 0);
}

/* The longest greetings both ways: what is said inside of TLS before HELLO and beside it leaves room for them. */
static void greet_inside(struct scene *scene, int fd, struct wf_handshake *handshake)
{
    struct wf_setup setup = {.type = WF_SETUP_GREETING, .greeting = {.length = WF_GREETING_MAX}};
    uint8_t ours[WF_GREETING_MAX];
    memset(ours, 0x77, sizeof ours);
    assert_int_equal(weft_greeting_set(scene->host, ours, sizeof ours, NULL), 0);
    memset(setup.greeting.bytes, 0x33, WF_GREETING_MAX);
    say_inside(handshake, &setup);
    hear_inside(scene, fd, handshake, &setup);
    assert_int_equal(setup.type, WF_SETUP_GREETING);
    assert_int_equal(setup.greeting.length, WF_GREETING_MAX);
    assert_memory_equal(setup.greeting.bytes, ours, sizeof ours);
}

/* HELLO and GREETING in a conversation that is done; the session's secret is put where it would travel without a key.
 */
static void introduce_inside(struct scene *scene, int fd, struct wf_handshake *handshake, struct wf_hello *answer)
{
    struct wf_setup setup = {.type = WF_SETUP_HELLO};
    uint8_t number[8];
    wf_session_hello(&scene->host->sessions, NULL, &setup.hello);
    setup.hello.boot_nonce += 1;
    say_inside(handshake, &setup);
    hear_inside(scene, fd, handshake, &setup);
    assert_int_equal(setup.type, WF_SETUP_HELLO);
    *answer = setup.hello;
    for (size_t i = 0; i < sizeof answer->secret; i++)
        assert_int_equal(answer->secret[i], 0); /* it does not travel, not even sealed */
    for (int i = 0; i < 8; i++)
        number[i] = (uint8_t)(answer->session >> 8 * i);
    assert_int_equal(wf_handshake_export(handshake, "EXPORTER-weft-session", number, sizeof number, answer->secret,
                                         sizeof answer->secret),
                     0);
    greet_inside(scene, fd, handshake);
}

/* As introduce(), for one who holds the key. */
static void introduce_with_key(struct scene *scene, struct wf_hello *answer)
{
    struct wf_handshake_key *made = NULL;
    struct wf_handshake *handshake = NULL;
    int fd = call(scene);
    assert_int_equal(wf_handshake_key_create(key, &made, NULL), 0);
    assert_int_equal(wf_handshake_create(made, WF_ROLE_DIALER, &handshake), 0);
    while (!wf_handshake_done(handshake))
        assert_true(step(scene, fd, handshake));
    introduce_inside(scene, fd, handshake, answer);
    wf_handshake_destroy(handshake);
    wf_handshake_key_destroy(made);
    hang_up(scene, fd);
}

/* --- cases --- */

static void expect_denial(struct scene *scene, int fd, enum wf_deny_reason reason)
{
    struct wf_setup answer;
    hear(scene, fd, &answer);
    assert_int_equal(answer.type, WF_SETUP_DENY);
    assert_int_equal(answer.deny.reason, reason);
    hang_up(scene, fd);
}

/* HELLO outside of TLS gets no session, and JOIN none of those that there are. */
static void without_the_key(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    struct wf_setup setup = {.type = WF_SETUP_HELLO}, proof;
    open_scene(&scene, path);
    wf_session_hello(&scene.host->sessions, NULL, &setup.hello);
    int fd = call(&scene);
    say(&scene, fd, &setup);
    expect_denial(&scene, fd, WF_DENY_KEY);
    assert_int_equal(scene.host->sessions.count, 0);
    /* Who has seen the number of a session, and nothing else. */
    introduce_with_key(&scene, &hello);
    assert_int_equal(scene.host->sessions.count, 1);
    struct wf_hello guess = hello;
    memset(guess.secret, 0, sizeof guess.secret);
    fd = join(&scene, &guess, 1, &proof);
    say(&scene, fd, &proof);
    expect_denial(&scene, fd, WF_DENY_PROOF);
    fd = join(&scene, &hello, 1, &proof);
    say(&scene, fd, &proof);
    pass(&scene, WF_NS_PER_S / 10);
    struct weft_peer *peer = NULL;
    assert_int_equal(weft_accept(scene.host, 0, &peer, NULL), 0);
    assert_int_equal(weft_peer_status(peer, NULL), 0);
    hang_up(&scene, fd);
    weft_peer_close(peer, 0, NULL);
    close_scene(&scene);
}

/* Bytes of a JOIN and its PROOF that were good once, said again: while the channel is up, once it is lost, and with the
 * attempt before them that never got to its proof. */
static void channel_join_said_again(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    struct wf_setup setup = {.type = WF_SETUP_JOIN}, challenge, proof;
    struct weft_peer *peer = NULL;
    open_scene(&scene, path);
    introduce_with_key(&scene, &hello);
    /* Captured on the way, and held up there: the host has not seen this proof. */
    int held = join(&scene, &hello, 2, &proof);
    hang_up(&scene, held);
    setup.join = (struct wf_join){.session = hello.session,
                                  .incarnation = 1,
                                  .channels = 2,
                                  .kind = WF_CHANNEL_EXPRESS,
                                  .granted_frames = 64,
                                  .granted_bytes = 1 << 20};
    int fd = call(&scene);
    say(&scene, fd, &setup);
    hear(&scene, fd, &challenge);
    assert_int_equal(challenge.type, WF_SETUP_CHALLENGE);
    say(&scene, fd, &proof); /* of the other challenge */
    expect_denial(&scene, fd, WF_DENY_PROOF);
    /* The acceptor's proof, sent back to it as one's own. */
    fd = call(&scene);
    say(&scene, fd, &setup);
    hear(&scene, fd, &challenge);
    proof = (struct wf_setup){.type = WF_SETUP_PROOF};
    memcpy(proof.proof.proof, challenge.challenge.proof, sizeof proof.proof.proof);
    say(&scene, fd, &proof);
    expect_denial(&scene, fd, WF_DENY_PROOF);
    /* One that is up. */
    int up = join(&scene, &hello, 2, &proof);
    say(&scene, up, &proof);
    pass(&scene, WF_NS_PER_S / 10);
    fd = call(&scene);
    say(&scene, fd, &setup);
    expect_denial(&scene, fd, WF_DENY_LIMIT);
    /* And one that is of another session. */
    struct wf_hello next;
    introduce_with_key(&scene, &next);
    assert_memory_not_equal(next.secret, hello.secret, sizeof next.secret);
    setup.join.session = next.session;
    fd = call(&scene);
    say(&scene, fd, &setup);
    hear(&scene, fd, &challenge);
    say(&scene, fd, &proof);
    expect_denial(&scene, fd, WF_DENY_PROOF);
    assert_int_equal(weft_accept(scene.host, 0, &peer, NULL), -ETIMEDOUT);
    hang_up(&scene, up);
    close_scene(&scene);
}

/* Calls all at once, and says nothing. */
static void crowd(struct scene *scene, int *fds, int count)
{
    struct wf_op *ops = calloc((size_t)count, sizeof *ops), *done[16];
    assert_non_null(ops);
    for (int i = 0; i < count; i++) {
        fds[i] = wf_engine_sim.socket(scene->sim, AF_INET, &(struct wf_socket_options){0}, NULL);
        assert_true(fds[i] >= 0);
        assert_int_equal(scene->engine->ops->attach(scene->engine, fds[i]), 0);
        ops[i] = (struct wf_op){.kind = WF_OP_CONNECT, .fd = fds[i], .address = &scene->address};
        wf_link_init(&ops[i].link);
        scene->engine->ops->post(scene->engine, &ops[i]);
    }
    for (int left = count; left > 0; left -= scene->engine->ops->poll(scene->engine, done, 16, 0))
        pass(scene, 10 * WF_NS_PER_MS);
    pass(scene, WF_NS_PER_S / 2); /* the host takes them all */
    free(ops);
}

/* More callers at once than there are places do not keep out who has begun to prove itself before them, neither with
 * the key nor with a session. */
static void a_crowd_keeps_out_no_peer(void **state)
{
    (void)state;
    enum { CROWD = WF_VISITORS_MAX + 40 };
    static int fds[2][CROWD];
    struct scene scene;
    struct wf_hello hello;
    struct wf_setup proof;
    struct wf_handshake_key *made = NULL;
    struct wf_handshake *handshake = NULL;
    struct weft_peer *peer = NULL;
    open_scene(&scene, path);
    assert_int_equal(wf_handshake_key_create(key, &made, NULL), 0);
    assert_int_equal(wf_handshake_create(made, WF_ROLE_DIALER, &handshake), 0);
    int fd = call(&scene);
    assert_true(step(&scene, fd, handshake));
    crowd(&scene, fds[0], CROWD);
    introduce_inside(&scene, fd, handshake, &hello);
    hang_up(&scene, fd);
    fd = join(&scene, &hello, 1, &proof);
    crowd(&scene, fds[1], CROWD);
    say(&scene, fd, &proof);
    pass(&scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_accept(scene.host, 0, &peer, NULL), 0);
    assert_int_equal(weft_peer_status(peer, NULL), 0);
    assert_in_range(scene.host->door->visitors, 1, WF_VISITORS_MAX + 16);
    for (int i = 0; i < 2 * CROWD; i++)
        hang_up(&scene, fds[i / CROWD][i % CROWD]);
    hang_up(&scene, fd);
    weft_peer_close(peer, 0, NULL);
    wf_handshake_destroy(handshake);
    wf_handshake_key_destroy(made);
    close_scene(&scene);
}

#define MASK 0x5a /* of what is looked for: what looks must not be found */

static bool is_in(const uint8_t *bytes, size_t length, const uint8_t masked[WF_SECRET_BYTES])
{
    for (size_t at = 0; at + WF_SECRET_BYTES <= length; at++) {
        size_t same = 0;
        while (same < WF_SECRET_BYTES && (bytes[at + same] ^ MASK) == masked[same])
            same += 1;
        if (same == WF_SECRET_BYTES)
            return true;
    }
    return false;
}

/* Looks through the heap, freed memory included, and the stack. */
static bool is_in_memory(const uint8_t masked[WF_SECRET_BYTES])
{
    char line[256];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (!found && fgets(line, sizeof line, maps)) {
        uintptr_t start, end;
        bool ours = strstr(line, "[heap]") || strstr(line, "[stack]");
        if (ours && sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) == 2) {
            int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
            uint8_t *bytes = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            assert_true(fd >= 0 && bytes != MAP_FAILED);
            ssize_t length = pread(fd, bytes, end - start, (off_t)start);
            found = length > 0 && is_in(bytes, (size_t)length, masked);
            munmap(bytes, end - start);
            close(fd);
        }
    }
    fclose(maps);
    return found;
}

/* Who reads the memory of the process later, from a dump of it, cannot read the sessions that were over by then. */
static void a_secret_ends_with_its_session(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    struct wf_setup proof;
    uint8_t masked[WF_SECRET_BYTES];
    mallopt(M_MMAP_THRESHOLD, 1 << 28);
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    open_scene(&scene, path);
    introduce_with_key(&scene, &hello);
    int fd = join(&scene, &hello, 1, &proof);
    say(&scene, fd, &proof);
    pass(&scene, WF_NS_PER_S / 10);
    assert_int_equal(scene.host->sessions.count, 1);
    for (size_t i = 0; i < sizeof masked; i++)
        masked[i] = hello.secret[i] ^ MASK;
    explicit_bzero(&hello, sizeof hello);
    bool before = is_in_memory(masked);
    hang_up(&scene, fd);
    pass(&scene, 3 * WF_NS_PER_S);
    assert_int_equal(scene.host->sessions.count, 0);
    bool after = is_in_memory(masked);
    close_scene(&scene);
    if (!before) {
        print_message("skipped: this allocator keeps its memory elsewhere\n");
        skip();
    }
    assert_false(after);
}

/* Every bit of what would be said next, at every step: the host shows the stranger out, and keeps nothing. */
static void noise_at_every_step(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_handshake_key *made = NULL;
    open_scene(&scene, path);
    assert_int_equal(wf_handshake_key_create(key, &made, NULL), 0);
    int before = wf_sim_open_descriptors(scene.sim);
    for (int round = 0; round < 60; round++) {
        struct wf_handshake *handshake = NULL;
        uint8_t bytes[4096];
        assert_int_equal(wf_handshake_create(made, WF_ROLE_DIALER, &handshake), 0);
        int fd = call(&scene);
        if (round % 2) /* past the first flight */
            assert_true(step(&scene, fd, handshake));
        size_t length = wf_handshake_pull(handshake, bytes, sizeof bytes);
        assert_true(length > 0);
        bytes[(size_t)round * 13 % length] ^= (uint8_t)(1u << round % 8);
        send_bytes(&scene, fd, bytes, length);
        pass(&scene, 6 * WF_NS_PER_S); /* damage may be a length, which is waited for */
        hang_up(&scene, fd);
        wf_handshake_destroy(handshake);
    }
    pass(&scene, WF_NS_PER_S);
    assert_int_equal(scene.host->sessions.count, 0);
    assert_int_equal(scene.host->door->visitors, 0);
    assert_int_equal(wf_sim_open_descriptors(scene.sim), before);
    wf_handshake_key_destroy(made);
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_the_key),
        cmocka_unit_test(channel_join_said_again),
        cmocka_unit_test(noise_at_every_step),
        cmocka_unit_test(a_crowd_keeps_out_no_peer),
        cmocka_unit_test(a_secret_ends_with_its_session),
    };
    return cmocka_run_group_tests(tests, make_key, drop_key);
}
