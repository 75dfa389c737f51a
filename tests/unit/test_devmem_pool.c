/* How large a pool of receive buffers is, and what is had of a device for one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "devmem/pool.h"

#define PAGE 4096
#define MEBI (1u << 20)

/* 10 GB/s and 1 ms: 10 MB on their way. */
static const struct wf_devmem_need usual = {
    .rate = 10000000000, .away_ns = 1000000, .mtu = 4148, .buffer = PAGE, .least = 1 * MEBI, .most = 64 * MEBI};

static uint64_t buffers_of(struct wf_devmem_need need)
{
    uint64_t bytes = wf_devmem_pool_bytes(&need);

    assert_int_equal(bytes % need.buffer, 0);
    return bytes / need.buffer;
}

static void holds_what_is_on_its_way(void **state)
{
    struct wf_devmem_need need = usual;

    (void)state;
    assert_int_equal(buffers_of(need), 10000000 / PAGE + 1);
    need.away_ns *= 2;
    assert_int_equal(buffers_of(need), 20000000 / PAGE + 1);
    need.in_rings = 1000;
    assert_int_equal(buffers_of(need), 20000000 / PAGE + 1001);
    need.mtu = 8244; /* two buffers, both full */
    assert_int_equal(buffers_of(need), 20000000 / PAGE + 1001);
}

/* A packet begins a buffer of its own. */
static void counts_what_packets_leave_empty(void **state)
{
    struct wf_devmem_need need = usual;

    (void)state;
    need.mtu = 9000; /* 8948 bytes: 4096, 4096 and 756 */
    assert_int_equal(buffers_of(need), 10000000ull * 3 / 8948 + 1);
    need.mtu = 1500; /* 1448 bytes, one buffer each */
    assert_int_equal(buffers_of(need), 10000000 / 1448 + 1);
    need.mtu = 4149; /* one byte too much: twice as many */
    assert_int_equal(buffers_of(need), 10000000ull * 2 / 4097 + 1);
    need.mtu = 9000;
    need.buffer = 16384;
    assert_int_equal(buffers_of(need), 10000000 / 8948 + 1);
}

static void keeps_to_its_bounds(void **state)
{
    struct wf_devmem_need need = usual;

    (void)state;
    need.rate = 0;
    assert_int_equal(buffers_of(need), MEBI / PAGE);
    need.least = MEBI + 1;
    assert_int_equal(buffers_of(need), MEBI / PAGE + 1);
    need.rate = UINT64_MAX;
    need.away_ns = UINT64_MAX;
    assert_int_equal(buffers_of(need), 64 * MEBI / PAGE);
    need.most = 3 * PAGE - 1;
    assert_int_equal(buffers_of(need), 2); /* the ceiling counts */
    need.rate = 0;
    assert_int_equal(buffers_of(need), 2);
    need.most = 0;
    need.mtu = 0;
    assert_int_equal(buffers_of(need), 1);
}

static void buffers_hold_a_packet(void **state)
{
    static const struct {
        uint32_t mtu, buffer;
    } rows[] = {{0, PAGE}, {1500, PAGE}, {4148, PAGE}, {4149, 8192}, {8244, 8192}, {9000, 16384}, {65535, 65536}};
    struct wf_devmem_need need = usual;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        need.mtu = rows[i].mtu;
        assert_int_equal(wf_devmem_buffer_bytes(&need, PAGE), rows[i].buffer);
    }
    need.mtu = 9000;
    assert_int_equal(wf_devmem_buffer_bytes(&need, 65536), 65536);
    need.mtu = 1u << 20;
    assert_int_equal(wf_devmem_buffer_bytes(&need, PAGE), WF_DEVMEM_BUFFER_MAX);
    /* Where the pool may not be as large as they need, pages are more. */
    need.mtu = 9000;
    need.most = (10000000 / 8948 + 2) * 16384ull;
    assert_int_equal(wf_devmem_buffer_bytes(&need, PAGE), 16384);
    need.most -= 16384;
    assert_int_equal(wf_devmem_buffer_bytes(&need, PAGE), PAGE);
}

/* --- memory: an allocation that begins within a page --- */

static uint8_t *const allocation = (uint8_t *)0x7f0000000200;
static struct {
    uint64_t allocated;
    int freed, refusal, fd;
    const uint8_t *exported;
    uint64_t bytes;
} device;

static int take(struct wf_memory *memory, int number, uint64_t bytes, void **out, struct wf_status *status)
{
    (void)memory, (void)number, (void)status;
    device.allocated = bytes;
    *out = allocation;
    return 0;
}

static void give(struct wf_memory *memory, int number, void *base)
{
    (void)memory;
    assert_int_equal(number, 3);
    assert_ptr_equal(base, allocation);
    device.freed++;
}

static int export_memory(struct wf_memory *memory, int number, const void *base, uint64_t bytes, int *fd,
                         uint64_t *offset, struct wf_status *status)
{
    (void)memory, (void)number;
    if (device.refusal)
        return wf_fail(status, device.refusal, "no dma-bufs");
    device.exported = base;
    device.bytes = bytes;
    *fd = device.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *offset = 0;
    return 0;
}

static const struct wf_memory_ops memory = {.alloc = take, .free = give, .export_dmabuf = export_memory};

static void exports_pages_of_its_own_alone(void **state)
{
    struct wf_devmem_pool pool;
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(wf_devmem_pool_init(&pool, &memory, NULL, 3, 10 * PAGE - 5, 0, &status), 0);
    assert_int_equal(pool.bytes, 10 * PAGE);
    assert_int_equal((uintptr_t)pool.base % PAGE, 0);
    assert_true(pool.base >= allocation && pool.base + pool.bytes <= allocation + device.allocated);
    assert_ptr_equal(device.exported, pool.base);
    assert_int_equal(device.bytes, pool.bytes);
    assert_int_equal(pool.dmabuf, device.fd);
    wf_devmem_pool_close(&pool);
    assert_int_equal(fcntl(device.fd, F_GETFD), -1);
    assert_int_equal(pool.dmabuf, -1);
    assert_int_equal(device.freed, 0);
    wf_devmem_pool_fini(&pool, &memory, NULL);
    assert_int_equal(device.freed, 1);
    wf_devmem_pool_fini(&pool, &memory, NULL);
    assert_int_equal(device.freed, 1);
}

static void begins_at_a_whole_buffer(void **state)
{
    struct wf_devmem_pool pool;
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(wf_devmem_pool_init(&pool, &memory, NULL, 3, 10 * PAGE, 4 * PAGE, &status), 0);
    assert_int_equal(pool.bytes, 12 * PAGE);
    assert_int_equal((uintptr_t)pool.base % (4 * PAGE), 0);
    assert_true(pool.base >= allocation && pool.base + pool.bytes <= allocation + device.allocated);
    assert_ptr_equal(device.exported, pool.base);
    wf_devmem_pool_fini(&pool, &memory, NULL);
    device.freed = 0;
}

static void leaves_nothing_where_there_is_no_dmabuf(void **state)
{
    struct wf_devmem_pool pool;
    struct wf_status status = {0};

    (void)state;
    device.freed = 0;
    device.refusal = -ENOTSUP;
    assert_int_equal(wf_devmem_pool_init(&pool, &memory, NULL, 3, PAGE, 0, &status), -ENOTSUP);
    assert_string_equal(status.text, "no dma-bufs");
    assert_int_equal(device.freed, 1);
    wf_devmem_pool_fini(&pool, &memory, NULL);
    assert_int_equal(device.freed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_what_is_on_its_way),
        cmocka_unit_test(counts_what_packets_leave_empty),
        cmocka_unit_test(keeps_to_its_bounds),
        cmocka_unit_test(buffers_hold_a_packet),
        cmocka_unit_test(begins_at_a_whole_buffer),
        cmocka_unit_test(exports_pages_of_its_own_alone),
        cmocka_unit_test(leaves_nothing_where_there_is_no_dmabuf),
    };

    return cmocka_run_group_tests_name("pools of receive buffers", tests, NULL, NULL);
}
