/* What the emulated driver does when something is wrong: memory that is touched, copies that fail, a GPU that is lost.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "emulated_child.h"

/* --- memory that the processor must not touch --- */

static void touch(void)
{
    struct gpu gpu = use_first(3);
    volatile char *device_memory = (char *)(uintptr_t)gpu.memory;

    device_memory[100] = 1;
    _exit(7);
}

static void a_touch_ends_the_process(void **state)
{
    (void)state;
    struct outcome outcome = in_child(touch, NULL, NULL);

    assert_false(WIFEXITED(outcome.status) && (WEXITSTATUS(outcome.status) == 0 || WEXITSTATUS(outcome.status) == 7));
    assert_non_null(strstr(outcome.said, "the processor touched memory of emulated GPU 3 at 0x"));
}

static void former(int signal)
{
    (void)signal;
    _exit(42);
}

static void touch_with_handler(void)
{
    signal(SIGSEGV, former);
    touch();
}

static void whoever_handled_it_before_does(void **state)
{
    (void)state;
    struct outcome outcome = in_child(touch_with_handler, NULL, NULL);

    assert_true(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 42);
    assert_non_null(strstr(outcome.said, "the processor touched memory of emulated GPU 3 at 0x"));
}

static void hand_to_kernel(void)
{
    struct gpu gpu = use_first(0);
    int ends[2];

    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], (void *)(uintptr_t)gpu.memory, 16) == -1 && errno == EFAULT);
    CHECK(write(ends[1], "0123456789abcdef", 16) == 16);
    CHECK(read(ends[0], (void *)(uintptr_t)gpu.memory, 16) == -1 && errno == EFAULT);
    works(&gpu, 0);
}

static void the_kernel_refuses_it(void **state)
{
    (void)state;
    runs_well(hand_to_kernel, NULL, NULL);
}

/* What a copy refers to is unmapped before it is done. */
static void take_away(void)
{
    struct gpu gpu = use_first(2);

    *gpu.word = 0;
    OK(cuda.cuStreamWaitValue32(gpu.stream, (uintptr_t)gpu.word, 1, EMU_WAIT_GEQ));
    OK(copy_out(&gpu, 0));
    munmap(gpu.pinned, PIECE);
    __atomic_store_n(gpu.word, 1, __ATOMIC_RELEASE);
    cuda.cuStreamSynchronize(gpu.stream);
    _exit(7);
}

static void memory_that_goes_too_early_ends_the_process(void **state)
{
    (void)state;
    struct outcome outcome = in_child(take_away, NULL, NULL);

    assert_false(WIFEXITED(outcome.status) && (WEXITSTATUS(outcome.status) == 0 || WEXITSTATUS(outcome.status) == 7));
    assert_non_null(strstr(outcome.said, "a copy of emulated GPU 2 refers to host memory that is gone"));
}

/* --- faults --- */

static void fail_launch(void)
{
    struct gpu gpu = use_first(1), other = use(2);
    emu_pointer more;

    CHECK(cuda.fault("launch:device=1,way=out,at=2") == 0);
    *gpu.word = 0;
    OK(cuda.cuStreamWaitValue32(gpu.stream, (uintptr_t)gpu.word, 1, EMU_WAIT_GEQ));
    OK(copy_in(&gpu));       /* another way: does not count */
    OK(copy_out(&other, 0)); /* another GPU: neither */
    OK(copy_out(&gpu, 1));
    OK(copy_out(&gpu, 2));
    OK(copy_out(&gpu, 3));
    OK(cuda.cuEventRecord(gpu.event, gpu.stream));
    __atomic_store_n(gpu.word, 1, __ATOMIC_RELEASE);
    CHECK(done(gpu.event) == EMU_LAUNCH_FAILED);
    CHECK(cuda.count("failed") == 2);
    CHECK(all_are(gpu.pinned + PIECE, 0x77));                                      /* what went in came out */
    CHECK(gpu.pinned[3 * PIECE - 1] == 0x77 || gpu.pinned[3 * PIECE - 1] == 0xA5); /* no more than half came */
    CHECK(all_are(gpu.pinned + 3 * PIECE, 0x77));                                  /* was dropped */
    CHECK(copy_out(&gpu, 1) == EMU_LAUNCH_FAILED);
    CHECK(cuda.cuStreamSynchronize(gpu.stream) == EMU_LAUNCH_FAILED);
    OK(cuda.cuCtxPushCurrent(gpu.context));
    CHECK(cuda.cuMemAlloc(&more, 1) == EMU_LAUNCH_FAILED);
    OK(cuda.cuCtxPopCurrent(NULL));
    OK(cuda.cuStreamSynchronize(other.stream));
    works(&other, 2);
    OK(cuda.cuDevicePrimaryCtxRelease(1));
    CHECK(cuda.contexts(1) == 0 && cuda.count("pending") == 0);
}

static void a_failed_launch_stays(void **state)
{
    (void)state;
    runs_well(fail_launch, NULL, NULL);
}

static void lose_in_copy(void)
{
    struct gpu gpu = use_first(1), other = use(2);
    struct CUctx_st *again;

    CHECK(cuda.fault("lost:device=1,way=out,at=2") == 0);
    OK(copy_out(&gpu, 1));
    OK(copy_out(&gpu, 2));
    for (int i = 0; i < 20; i++)
        (void)copy_out(&gpu, 3);
    (void)cuda.cuMemcpyPeerAsync(other.memory, other.context, gpu.memory, gpu.context, PIECE, other.stream);
    (void)cuda.cuEventRecord(gpu.event, gpu.stream);
    CHECK(done(gpu.event) == EMU_UNKNOWN);
    CHECK(all_are(gpu.pinned + PIECE, 2));
    CHECK(gpu.pinned[2 * PIECE] == 2 && gpu.pinned[3 * PIECE - 1] != 2); /* half of it came */
    CHECK(all_are(gpu.pinned + 3 * PIECE, 0x77));
    CHECK(cuda.cuEventQuery(gpu.event) == EMU_UNKNOWN);
    CHECK(copy_in(&gpu) == EMU_UNKNOWN);
    CHECK(cuda.cuDevicePrimaryCtxRetain(&again, 1) == EMU_DEVICE_UNAVAILABLE);
    /* The other GPU may have failed with what it read from the lost one, but not for good. */
    emu_result result = cuda.cuStreamSynchronize(other.stream);
    CHECK(result == EMU_OK || result == EMU_UNKNOWN);
    OK(cuda.cuStreamSynchronize(other.stream));
    memset(other.pinned, 3, PIECE);
    OK(copy_in(&other));
    OK(cuda.cuMemcpyPeerAsync(other.memory, other.context, gpu.memory, gpu.context, PIECE, other.stream));
    CHECK(cuda.cuStreamSynchronize(other.stream) == EMU_UNKNOWN);
    works(&other, 2);
    OK(cuda.cuDevicePrimaryCtxRelease(1));
    CHECK(cuda.fault("heal") == 0);
    struct gpu healed = use(1);
    works(&healed, 1);
}

static void a_lost_gpu_writes_nothing_any_more(void **state)
{
    (void)state;
    runs_well(lose_in_copy, NULL, NULL);
}

/* Lost while copies of it are under way, from another thread than theirs. */
static void lose_now(void)
{
    struct gpu gpu = use_first(4), other = use(5);
    unsigned char before[4 * PIECE];

    for (int i = 0; i < 200; i++) {
        OK(copy_out(&gpu, i % 4));
        OK(cuda.cuMemcpyPeerAsync(other.memory, other.context, gpu.memory, gpu.context, PIECE, other.stream));
    }
    CHECK(cuda.fault("lost:device=4") == 0);
    memcpy(before, gpu.pinned, sizeof(before));
    CHECK(copy_out(&gpu, 0) == EMU_UNKNOWN);
    while (cuda.count("pending") > 0)
        sched_yield();
    CHECK(memcmp(before, gpu.pinned, sizeof(before)) == 0);
    CHECK(cuda.cuStreamSynchronize(other.stream) == EMU_UNKNOWN);
    OK(cuda.cuStreamSynchronize(other.stream));
}

static void a_gpu_is_lost_at_once(void **state)
{
    (void)state;
    runs_well(lose_now, NULL, NULL);
}

static void fail_once(void)
{
    struct gpu gpu = use_first(0);

    OK(copy_in(&gpu)); /* the pinned memory's pattern */
    OK(copy_out(&gpu, 1));
    OK(copy_out(&gpu, 2)); /* the second one out, which the environment is about */
    OK(cuda.cuEventRecord(gpu.event, gpu.stream));
    CHECK(done(gpu.event) == EMU_ECC_UNCORRECTABLE);
    CHECK(cuda.count("failed") == 1);
    OK(cuda.cuEventRecord(gpu.event, gpu.stream));
    OK(done(gpu.event));
    CHECK(cuda.fault("refuse:at=1;copy:at=1,code=700") ==
          0); /* each counts: both are for the next, one after another */
    CHECK(copy_out(&gpu, 1) == EMU_OUT_OF_MEMORY);
    CHECK(cuda.count("pending") == 0);
    OK(copy_out(&gpu, 1));
    CHECK(cuda.cuStreamSynchronize(gpu.stream) == 700);
    OK(cuda.cuStreamSynchronize(gpu.stream));
    OK(copy_out(&gpu, 3));
    OK(cuda.cuStreamSynchronize(gpu.stream));
    CHECK(all_are(gpu.pinned + 3 * PIECE, 0x77));
}

static void one_copy_fails_alone(void **state)
{
    (void)state;
    runs_well(fail_once, "WEFT_EMULATED_FAULT", "copy:device=0,way=out,at=2");
}

static void run_out(void)
{
    struct gpu gpu = use_first(0);
    emu_pointer a, b;
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(cuda.fault("alloc:device=0,at=2;register:at=1") == 0);
    OK(cuda.cuMemAlloc(&a, 4096));
    CHECK(cuda.cuMemAlloc(&b, 4096) == EMU_OUT_OF_MEMORY);
    OK(cuda.cuMemAlloc(&b, 4096));
    CHECK(cuda.cuMemHostRegister(page, 4096, 0) == EMU_OUT_OF_MEMORY);
    OK(cuda.cuMemHostRegister(page, 4096, 0));
    OK(cuda.cuMemFree(b));
    CHECK(cuda.cuMemAlloc(&b, 64 << 20) == EMU_OUT_OF_MEMORY); /* there are 64 MiB in all */
    OK(cuda.cuMemAlloc(&b, 48 << 20));
    OK(cuda.cuMemFree(b));
    OK(cuda.cuMemAlloc(&b, 48 << 20)); /* elsewhere, or there once more */
    works(&gpu, 0);
    CHECK(cuda.fault("alloc:at=1;clear") == 0);
    CHECK(cuda.fault("launch:device=9") == -EINVAL && cuda.fault("lost") == -EINVAL && cuda.fault("what") == -EINVAL);
    CHECK(cuda.fault("alloc:way=in") == -EINVAL && cuda.fault("copy:at=0") == -EINVAL);
}

static void memory_runs_out(void **state)
{
    (void)state;
    runs_well(run_out, "WEFT_EMULATED_MEMORY", "64M");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_touch_ends_the_process), cmocka_unit_test(whoever_handled_it_before_does),
        cmocka_unit_test(the_kernel_refuses_it),    cmocka_unit_test(memory_that_goes_too_early_ends_the_process),
        cmocka_unit_test(a_failed_launch_stays),    cmocka_unit_test(a_lost_gpu_writes_nothing_any_more),
        cmocka_unit_test(a_gpu_is_lost_at_once),    cmocka_unit_test(one_copy_fails_alone),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
