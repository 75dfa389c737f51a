/* Bindings of device memory to cards for sends, with memory and a kernel that are played: who shares one, when it ends,
 * how many there may be, and what is known of memory that cannot be bound. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "devmem/exports.h"
#include "devmem_fixture.h"

#define CARD FAKE_INDEX
#define OTHER_CARD (FAKE_INDEX + 1)
#define BYTES 100000

/* --- memory --- */

static uint8_t space[4][BYTES]; /* addresses of four allocations */
static uint64_t ids[4];
static struct {
    atomic_int exports;
    int refusal, bind_refusal; /* of the next exports, and of the bindings behind them */
    uint64_t offset;
    int fd;      /* the last one */
    bool stands; /* an export says that it is there, and waits until it may go on */
    sem_t there, go;
} played;
static struct fake_kernel fake;
static atomic_int sockets;
static struct wf_exports *exports;
static struct wf_status status;

static int play_extent(struct wf_memory *memory, const void *address, struct wf_memory_extent *out,
                       struct wf_status *why)
{
    (void)memory;
    for (int i = 0; i < 4; i++) {
        if ((const uint8_t *)address < space[i] || (const uint8_t *)address >= space[i] + BYTES)
            continue;
        *out = (struct wf_memory_extent){.device = i % 2, .base = space[i], .bytes = BYTES, .id = ids[i]};
        return 0;
    }
    return wf_fail(why, -EINVAL, "not memory of a GPU");
}

static int play_export(struct wf_memory *memory, int device, const void *base, uint64_t bytes, int *fd,
                       uint64_t *offset, struct wf_status *why)
{
    (void)memory, (void)device, (void)base;
    assert_int_equal(bytes, BYTES);
    played.exports++;
    if (played.stands) {
        sem_post(&played.there);
        sem_wait(&played.go);
    }
    if (played.refusal)
        return wf_fail(why, played.refusal, "no dma-buf of this memory");
    fake.refusal = played.bind_refusal;
    *fd = played.fd = memfd_create("dma-buf", MFD_CLOEXEC);
    *offset = played.offset;
    return 0;
}

static const struct wf_memory_ops memory = {.extent = play_extent, .export_dmabuf = play_export};

/* --- the kernel: sockets are closed by any thread, at any time --- */

static int (*open_played)(const struct wf_devmem_kernel *kernel);

static int open_socket(const struct wf_devmem_kernel *kernel)
{
    sockets++;
    return open_played(kernel);
}

static void close_socket(const struct wf_devmem_kernel *kernel, int fd)
{
    (void)kernel, (void)fd;
    sockets--;
}

static void start_with(int most)
{
    assert_int_equal(wf_exports_create(&memory, NULL, &fake.kernel, most, &exports, &status), 0);
}

static int start(void **state)
{
    (void)state;
    fake_kernel_init(&fake);
    open_played = fake.kernel.open;
    fake.kernel.open = open_socket;
    fake.kernel.close = close_socket;
    memset(&played, 0, sizeof played);
    for (int i = 0; i < 4; i++)
        ids[i] = (uint64_t)i + 1;
    start_with(4);
    return 0;
}

static int end(void **state)
{
    (void)state;
    wf_exports_destroy(exports);
    return sockets;
}

static void restart_with(int most)
{
    wf_exports_destroy(exports);
    start_with(most);
}

static struct wf_export use(int allocation, int card)
{
    struct wf_export found = {0};

    if (wf_exports_use(exports, card, space[allocation], BYTES, &found, &status))
        fail_msg("%s", status.text);
    return found;
}

static int refused(int allocation, int card)
{
    struct wf_export found = {.place = -7};
    int result = wf_exports_use(exports, card, space[allocation], 1, &found, &status);

    assert_true(result < 0);
    assert_int_equal(found.place, -7);
    return result;
}

static void release(const struct wf_export *found)
{
    wf_exports_release(exports, found);
}

/* --- the tests --- */

static void an_allocation_has_one_binding(void **state)
{
    struct wf_export first, second, anew;

    (void)state;
    played.offset = 512; /* it begins within a page */
    assert_int_equal(wf_exports_use(exports, CARD, space[0] + 70, 10, &first, &status), 0);
    assert_int_equal(wf_exports_use(exports, CARD, space[0] + BYTES - 1, 1, &second, &status), 0);
    assert_int_equal(first.offset, 512 + 70);
    assert_int_equal(second.offset, 512 + BYTES - 1);
    assert_int_equal(first.binding, second.binding);
    assert_int_equal(played.exports, 1);
    assert_int_equal(fake.bound_index, CARD);
    assert_int_equal(fake.bound_fd, played.fd);
    assert_int_equal(fcntl(played.fd, F_GETFD), -1); /* the binding has its own */
    assert_int_equal(wf_exports_count(exports), 1);
    release(&first);
    assert_int_equal(sockets, 1);
    release(&second);
    assert_int_equal(sockets, 0);
    assert_int_equal(wf_exports_count(exports), 0);
    anew = use(0, CARD);
    assert_int_not_equal(anew.binding, first.binding);
    assert_int_equal(played.exports, 2);
    release(&anew);
}

static void each_card_has_its_own(void **state)
{
    struct wf_export here = use(0, CARD), there = use(0, OTHER_CARD);

    (void)state;
    assert_int_not_equal(here.binding, there.binding);
    assert_int_equal(fake.bound_index, OTHER_CARD);
    assert_int_equal(wf_exports_count(exports), 2);
    release(&here);
    assert_int_equal(use(0, OTHER_CARD).binding, there.binding);
}

static void memory_made_anew_is_not_the_old_one(void **state)
{
    struct wf_export old = use(0, CARD), now, again;

    (void)state;
    ids[0] = 77;
    now = use(0, CARD);
    assert_int_not_equal(now.binding, old.binding);
    again = use(0, CARD);
    assert_int_equal(again.binding, now.binding);
    release(&old);
    assert_int_equal(use(0, CARD).binding, now.binding);
    assert_int_equal(played.exports, 2);
}

static void there_are_at_most_so_many(void **state)
{
    struct wf_export first, second;

    (void)state;
    restart_with(2);
    first = use(0, CARD);
    second = use(1, CARD);
    assert_int_equal(refused(2, CARD), -ENOSPC);
    assert_non_null(strstr(status.text, "all 2 bindings"));
    assert_int_equal(played.exports, 2);
    assert_int_equal(use(1, CARD).binding, second.binding); /* what is there can be had */
    release(&first);
    use(2, CARD);
    assert_int_equal(refused(0, CARD), -ENOSPC);
}

static void what_cannot_be_exported_is_remembered(void **state)
{
    (void)state;
    restart_with(2);
    played.refusal = -ENOTSUP;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(refused(0, CARD), -ENOTSUP);
        assert_string_equal(status.text, "no dma-buf of this memory");
    }
    assert_int_equal(played.exports, 1);
    assert_int_equal(refused(1, CARD), -ENOTSUP);
    assert_int_equal(refused(0, CARD), -ENOTSUP);
    assert_int_equal(played.exports, 2);
    assert_int_equal(sockets, 0);
    played.refusal = 0;
    use(2, CARD); /* in the place of the one that nobody asked for lately */
    assert_int_equal(refused(0, CARD), -ENOTSUP);
    assert_int_equal(played.exports, 3);
    use(1, CARD); /* forgotten, so tried again */
    assert_int_equal(played.exports, 4);
    ids[0] = 99; /* and of other memory nothing was known */
    assert_int_equal(refused(0, CARD), -ENOSPC);
}

static void what_a_card_refuses_is_remembered(void **state)
{
    struct wf_export found;

    (void)state;
    played.bind_refusal = -EOPNOTSUPP;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(refused(0, CARD), -EOPNOTSUPP);
        assert_non_null(strstr(status.text, "bind-tx of interface 7"));
    }
    assert_int_equal(played.exports, 1);
    assert_int_equal(sockets, 0);
    assert_int_equal(fcntl(played.fd, F_GETFD), -1);
    played.bind_refusal = 0;
    found = use(0, OTHER_CARD);
    release(&found);
    assert_int_equal(refused(0, CARD), -EOPNOTSUPP);
}

static void a_shortage_is_not_remembered(void **state)
{
    (void)state;
    restart_with(1);
    played.refusal = -EMFILE;
    assert_int_equal(refused(0, CARD), -EMFILE);
    assert_int_equal(refused(0, CARD), -EMFILE);
    assert_int_equal(played.exports, 2);
    assert_int_equal(sockets, 0);
    played.refusal = 0;
    use(0, CARD);
}

static void *use_another(void *argument)
{
    struct wf_export found;

    return wf_exports_use(exports, CARD, space[1], 1, &found, NULL) ? argument : NULL;
}

/* Drivers take their time. */
static void who_finds_one_waits_for_nobody(void **state)
{
    struct wf_export first = use(0, CARD), second;
    pthread_t thread;
    void *failed;

    sem_init(&played.there, 0, 0);
    sem_init(&played.go, 0, 0);
    played.stands = true;
    assert_int_equal(pthread_create(&thread, NULL, use_another, state), 0);
    sem_wait(&played.there);
    second = use(0, CARD);
    assert_int_equal(second.binding, first.binding);
    release(&second);
    release(&first);
    assert_int_equal(wf_exports_count(exports), 0);
    sem_post(&played.go);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(wf_exports_count(exports), 1);
}

static void what_is_no_device_memory(void **state)
{
    struct wf_export found;
    int here = 0;

    (void)state;
    assert_int_equal(wf_exports_use(exports, CARD, &here, 1, &found, &status), -EINVAL);
    assert_int_equal(wf_exports_use(exports, CARD, space[0] + 1, BYTES, &found, &status), -EINVAL);
    assert_non_null(strstr(status.text, "leave their allocation"));
    ids[0] = 0; /* it could not be told from what is there later */
    assert_int_equal(refused(0, CARD), -ENOTSUP);
    assert_int_equal(played.exports, 0);
}

/* Each has the same binding as long as it has one, whoever comes and goes. */
static void *come_and_go(void *argument)
{
    unsigned int number = (unsigned int)(uintptr_t)argument;

    for (int i = 0; i < 300; i++) {
        struct wf_export first, second;
        const uint8_t *address = space[(number + (unsigned int)i) % 3] + 9;
        int card = i % 2 ? CARD : OTHER_CARD;
        if (wf_exports_use(exports, card, address, 1, &first, NULL) ||
            wf_exports_use(exports, card, address + 5, 1, &second, NULL) || first.binding != second.binding ||
            first.offset + 5 != second.offset)
            return argument;
        release(&first);
        release(&second);
    }
    return NULL;
}

static void many_threads(void **state)
{
    pthread_t threads[8];
    void *failed;

    (void)state;
    restart_with(6);
    for (uintptr_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, (void *)(i + 1)), 0);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(wf_exports_count(exports), 0);
    assert_int_equal(sockets, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_allocation_has_one_binding, start, end),
        cmocka_unit_test_setup_teardown(each_card_has_its_own, start, end),
        cmocka_unit_test_setup_teardown(memory_made_anew_is_not_the_old_one, start, end),
        cmocka_unit_test_setup_teardown(there_are_at_most_so_many, start, end),
        cmocka_unit_test_setup_teardown(what_cannot_be_exported_is_remembered, start, end),
        cmocka_unit_test_setup_teardown(what_a_card_refuses_is_remembered, start, end),
        cmocka_unit_test_setup_teardown(a_shortage_is_not_remembered, start, end),
        cmocka_unit_test_setup_teardown(who_finds_one_waits_for_nobody, start, end),
        cmocka_unit_test_setup_teardown(what_is_no_device_memory, start, end),
        cmocka_unit_test_setup_teardown(many_threads, start, end),
    };

    return cmocka_run_group_tests_name("exports of device memory", tests, NULL, NULL);
}
