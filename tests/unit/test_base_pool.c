/* The pool: objects do not overlap, are aligned, come back, and never pass the limit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/pool.h"

#define MOST 200

/* Takes `count` objects and fills each to its last byte, so that an overlap shows. */
static void take_and_fill(struct wf_pool *pool, unsigned char **objects, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        objects[i] = wf_pool_take(pool);
        assert_non_null(objects[i]);
        assert_int_equal((uintptr_t)objects[i] % 16, 0);
        memset(objects[i], (int)(i + 1), pool->object_size);
        assert_int_equal(pool->taken, i + 1);
    }
}

static void check_and_give(struct wf_pool *pool, unsigned char **objects, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; at < pool->object_size; at++)
            assert_int_equal(objects[i][at], (unsigned char)(i + 1));
    for (size_t i = 0; i < count; i++)
        wf_pool_give(pool, objects[i]);
    assert_int_equal(pool->taken, 0);
}

static size_t slabs_of(const struct wf_pool *pool)
{
    size_t count = 0;

    for (void *slab = pool->slabs; slab; count++)
        memcpy(&slab, slab, sizeof(slab));
    return count;
}

static void test_shapes(void **state)
{
    static const struct {
        size_t object_size, per_slab, rounded, taken, slabs;
    } cases[] = {
        {0, 0, 16, 3, 3},   {1, 1, 16, 4, 4},       {8, 16, 16, 17, 2},    {16, 16, 16, 16, 1},
        {17, 7, 32, 50, 8}, {200, 64, 208, 200, 4}, {4096, 3, 4096, 9, 3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char *objects[MOST];
        struct wf_pool pool;

        wf_pool_init(&pool, cases[i].object_size, cases[i].per_slab, 0);
        assert_int_equal(pool.object_size, cases[i].rounded);
        assert_int_equal(slabs_of(&pool), 0);
        /* The second round takes what the first gave back: no slab is added. */
        for (int round = 0; round < 2; round++) {
            take_and_fill(&pool, objects, cases[i].taken);
            assert_int_equal(slabs_of(&pool), cases[i].slabs);
            check_and_give(&pool, objects, cases[i].taken);
        }
        wf_pool_fini(&pool);
    }
}

static void test_limit(void **state)
{
    static const struct {
        size_t per_slab, limit;
    } cases[] = {{1, 1}, {1, 5}, {4, 5}, {64, 5}, {5, 5}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char *objects[MOST];
        struct wf_pool pool;

        wf_pool_init(&pool, 32, cases[i].per_slab, cases[i].limit);
        take_and_fill(&pool, objects, cases[i].limit);
        assert_null(wf_pool_take(&pool));
        assert_int_equal(pool.taken, cases[i].limit);
        wf_pool_give(&pool, objects[0]);
        assert_ptr_equal(wf_pool_take(&pool), objects[0]);
        assert_null(wf_pool_take(&pool));
        wf_pool_fini(&pool);
    }
}

static void test_clear(void **state)
{
    static const unsigned char zeroes[48];
    struct wf_pool pool;

    (void)state;
    wf_pool_init(&pool, sizeof(zeroes), 2, 2);
    for (int i = 0; i < 5; i++) {
        unsigned char *object = wf_pool_take_clear(&pool);
        assert_non_null(object);
        assert_memory_equal(object, zeroes, sizeof(zeroes));
        memset(object, 0xA5, sizeof(zeroes));
        wf_pool_give(&pool, object);
    }
    assert_non_null(wf_pool_take(&pool));
    assert_non_null(wf_pool_take(&pool));
    assert_null(wf_pool_take_clear(&pool));
    wf_pool_fini(&pool);
}

static void test_too_large(void **state)
{
    static const struct {
        size_t object_size, per_slab;
    } cases[] = {{SIZE_MAX, 1}, {SIZE_MAX - 15, 1}, {SIZE_MAX - 40, 1}, {SIZE_MAX / 2, 3}, {64, SIZE_MAX / 32}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wf_pool pool;

        wf_pool_init(&pool, cases[i].object_size, cases[i].per_slab, 0);
        assert_null(wf_pool_take(&pool));
        assert_int_equal(pool.taken, 0);
        wf_pool_fini(&pool);
    }
}

static void test_fini_twice(void **state)
{
    struct wf_pool pool;

    (void)state;
    wf_pool_init(&pool, 32, 4, 0);
    wf_pool_fini(&pool);
    assert_non_null(wf_pool_take(&pool));
    wf_pool_fini(&pool);
    wf_pool_fini(&pool);
    assert_int_equal(pool.taken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),    cmocka_unit_test(test_limit),      cmocka_unit_test(test_clear),
        cmocka_unit_test(test_too_large), cmocka_unit_test(test_fini_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
