/* The clock of a GPU and its heat, on the emulated driver, whose clock is SKEW_PPM fast. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "emulated.h"
#include "mem/gpu_clock.h"

#define GPU "0000:3a:00.0"
#define WANTED_PPM (SKEW_PPM / 4.0)         /* how well the skew has to be known */
#define REFERENCES_NS (5 * WF_NS_PER_S / 2) /* in this time the clock has taken a new reference */

static struct {
    __typeof__(weft_emulated_contexts) *contexts;
    __typeof__(weft_emulated_count) *count;
    __typeof__(weft_emulated_fault) *fault;
} emulated;

struct reading {
    int64_t before_ns, after_ns;
    double gpu_ns;
};

static struct reading reading_of(struct wf_gpu_clock *clock)
{
    struct reading reading = {0};
    struct wf_status status = {0};

    if (wf_gpu_clock_read(clock, &reading.before_ns, &reading.after_ns, &reading.gpu_ns, &status))
        fail_msg("%s", status.text);
    assert_true(reading.after_ns >= reading.before_ns);
    return reading;
}

/* One that nobody has held up: what is compared with a wide one takes minutes to tell anything. */
static struct reading narrow_reading_of(struct wf_gpu_clock *clock)
{
    struct reading best = reading_of(clock);

    for (int i = 0; i < 50; i++) {
        struct reading reading = reading_of(clock);
        if (reading.after_ns - reading.before_ns < best.after_ns - best.before_ns)
            best = reading;
    }
    return best;
}

/* How much faster the GPU's clock is, in millionths: at least and at most, as two readings have it. */
struct bounds {
    double least_ppm, most_ppm;
};

static struct bounds bounds_of(const struct reading *from, const struct reading *to)
{
    double most_ns = (double)(to->after_ns - from->before_ns), least_ns = (double)(to->before_ns - from->after_ns);
    double gpu_ns = to->gpu_ns - from->gpu_ns;

    return (struct bounds){.least_ppm = ((gpu_ns - 2 * WF_GPU_CLOCK_STEP_NS) / most_ns - 1) * 1e6,
                           .most_ppm = ((gpu_ns + 2 * WF_GPU_CLOCK_STEP_NS) / least_ns - 1) * 1e6};
}

/* The brackets say themselves when they have become narrow for the time between them. Until then, and until the clock
 * has had to change its reference, each reading has to agree. */
static void shows_how_much_it_is_fast(void **state)
{
    static const struct timespec pause = {.tv_nsec = 20 * WF_NS_PER_MS};
    struct wf_gpu_clock *clock = NULL;
    struct wf_status status = {0};
    struct bounds known = {.least_ppm = -1e6, .most_ppm = 1e6};

    (void)state;
    assert_int_equal(wf_gpu_clock_open(GPU, &clock, &status), 0);
    struct reading first = narrow_reading_of(clock), last = first;
    while (known.most_ppm - known.least_ppm > 2 * WANTED_PPM || last.before_ns - first.after_ns < REFERENCES_NS) {
        nanosleep(&pause, NULL);
        struct reading now = reading_of(clock);
        assert_true(now.gpu_ns > last.gpu_ns);
        struct bounds bounds = bounds_of(&first, &now);
        if (SKEW_PPM < bounds.least_ppm || SKEW_PPM > bounds.most_ppm)
            fail_msg("%g to %g millionths", bounds.least_ppm, bounds.most_ppm);
        if (bounds.least_ppm > known.least_ppm)
            known.least_ppm = bounds.least_ppm;
        if (bounds.most_ppm < known.most_ppm)
            known.most_ppm = bounds.most_ppm;
        last = now;
    }
    assert_true(known.least_ppm > SKEW_PPM - 2 * WANTED_PPM && known.most_ppm < SKEW_PPM + 2 * WANTED_PPM);
    wf_gpu_clock_close(clock);
}

static void starts_at_zero_and_leaves_nothing(void **state)
{
    static const char *const levels[] = {"pending", "allocated", "streams", "events"};
    struct wf_gpu_clock *clock = NULL, *untouched = (void *)&clock;
    struct wf_status status = {0};

    (void)state;
    int64_t before_ns = wf_clock_now(&wf_clock_monotonic);
    assert_int_equal(wf_gpu_clock_open(GPU, &clock, &status), 0);
    struct reading reading = reading_of(clock);
    assert_true(reading.gpu_ns >= 0);
    assert_true(reading.gpu_ns < (double)(reading.after_ns - before_ns) * 1.1 + WF_GPU_CLOCK_STEP_NS);
    assert_int_equal(emulated.contexts(1), 1);
    wf_gpu_clock_close(clock);
    assert_int_equal(emulated.contexts(1), 0);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        assert_int_equal(emulated.count(levels[i]), 0);
    clock = untouched;
    assert_int_equal(wf_gpu_clock_open("0000:ff:00.0", &clock, &status), -ENODEV);
    assert_non_null(strstr(status.text, "0000:ff:00.0"));
    assert_ptr_equal(clock, untouched);
    wf_gpu_clock_close(NULL);
}

static void heats_as_long_as_asked_for(void **state)
{
    struct wf_gpu_clock *clock = NULL;
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(wf_gpu_clock_open(GPU, &clock, &status), 0);
    uint64_t copies = emulated.count("copies");
    int64_t begin_ns = wf_clock_now(&wf_clock_monotonic);
    assert_int_equal(wf_gpu_heat(clock, 30 * WF_NS_PER_MS, &status), 0);
    assert_true(wf_clock_now(&wf_clock_monotonic) - begin_ns >= 30 * WF_NS_PER_MS);
    assert_true(emulated.count("copies") > copies);
    assert_int_equal(emulated.count("allocated"), 0);
    copies = emulated.count("copies");
    assert_int_equal(wf_gpu_heat(clock, 0, &status), 0);
    assert_int_equal(emulated.count("copies"), copies);
    assert_int_equal(emulated.fault("alloc:at=1"), 0);
    assert_int_equal(wf_gpu_heat(clock, 30 * WF_NS_PER_MS, &status), -ENOMEM);
    wf_gpu_clock_close(clock);
}

static void says_that_a_gpu_is_lost(void **state)
{
    struct wf_gpu_clock *clock = NULL;
    struct reading reading;
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(wf_gpu_clock_open(GPU, &clock, &status), 0);
    assert_int_equal(emulated.fault("lost:device=1"), 0);
    assert_int_equal(wf_gpu_clock_read(clock, &reading.before_ns, &reading.after_ns, &reading.gpu_ns, &status), -EIO);
    assert_non_null(strstr(status.text, "CUDA_ERROR_UNKNOWN"));
    assert_int_equal(wf_gpu_heat(clock, WF_NS_PER_MS, &status), -EIO);
    wf_gpu_clock_close(clock);
    assert_int_equal(emulated.fault("heal"), 0);
}

/* In a process of its own: a driver reads its environment once. */
static void an_old_driver_tells_no_times(void **state)
{
    struct wf_gpu_clock *clock = NULL;
    struct wf_status status = {0};
    int ended = 0;

    (void)state;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("WEFT_EMULATED_OLD", "1", 1);
        bool loaded = dlopen(EMULATED_CUDA, RTLD_NOW | RTLD_LOCAL) != NULL;
        int result = wf_gpu_clock_open(GPU, &clock, &status);
        _exit(loaded && result == -EOPNOTSUPP && strstr(status.text, "cuEventElapsedTime") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
}

/* Under its name the library is found from now on. */
static int load(void **state)
{
    void *library = dlopen(EMULATED_CUDA, RTLD_NOW | RTLD_LOCAL);

    (void)state;
    if (!library)
        return -1;
    *(void **)&emulated.contexts = dlsym(library, "weft_emulated_contexts");
    *(void **)&emulated.count = dlsym(library, "weft_emulated_count");
    *(void **)&emulated.fault = dlsym(library, "weft_emulated_fault");
    return emulated.contexts && emulated.count && emulated.fault ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_driver_tells_no_times),
        cmocka_unit_test_setup(starts_at_zero_and_leaves_nothing, load),
        cmocka_unit_test_setup(shows_how_much_it_is_fast, load),
        cmocka_unit_test_setup(heats_as_long_as_asked_for, load),
        cmocka_unit_test_setup(says_that_a_gpu_is_lost, load),
    };

    return cmocka_run_group_tests_name("the clock of a GPU", tests, NULL, NULL);
}
