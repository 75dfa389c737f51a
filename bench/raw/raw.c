/* The command `raw`: one run, from the first byte to the line that tells of it. */
#include "raw.h"

#include <errno.h>
#include <endian.h>
#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/limits.h"
#include "bench/plan/options.h"
#include "parts.h"
#include "weft.h"

/* What was measured, between the first byte and the server's word that it has all. */
struct raw_result {
    double elapsed_s, client_cpu_s, server_cpu_s;
    struct wf_times times; /* RAW_LATENCY */
};

static double now_s(void)
{
    return (double)wf_clock_now(&wf_clock_monotonic) / 1e9;
}

/* Processor seconds of this process, in user and kernel. */
static double cpu_s(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* Says what became of the streams; for both sides, in the same words. */
static int failed(const struct raw_link *link, int code, const char *peer, struct wf_status *status)
{
    if (code == -ECONNRESET)
        return wf_fail(status, code, "the %s closed the connection: look at what it says there", peer);
    if (code == -ETIMEDOUT)
        return wf_fail(status, code, "nothing came from or went to the %s for %d s: is it stopped? (--timeout)", peer,
                       (int)link->plan.timeout_s);
    return wf_fail(status, code, "the connection to the %s failed: %s", peer, wf_strerror(code));
}

/* --- server --- */

static int serve_phases(struct raw_link *link)
{
    const struct raw_plan *plan = &link->plan;
    bool pong = plan->mode == RAW_LATENCY;
    char question;
    int result = pong ? raw_pong(link, plan->warmup) : raw_flow_receive(link, plan->warmup);

    if (result == 0)
        result = raw_flow_confirm(link);
    double before = cpu_s();
    if (result == 0)
        result = pong ? raw_pong(link, plan->messages) : raw_flow_receive(link, plan->messages);
    uint64_t cpu_ns = htole64((uint64_t)((cpu_s() - before) * 1e9));
    if (result == 0)
        result = raw_flow_confirm(link);
    /* Only when asked: whoever reads that all is there reads whatever has come with it. */
    if (result == 0)
        result = raw_get(link, &link->streams[0], &question, sizeof question);
    return result ? result : raw_put(link, &link->streams[0], &cpu_ns, sizeof cpu_ns);
}

static int serve(struct raw_link *link, const struct raw_options *options, struct wf_status *status)
{
    int result = raw_link_accept(link, options, status);

    if (result)
        return result;
    result = serve_phases(link);
    return result ? failed(link, result, "client", status) : 0;
}

/* --- client --- */

static int measure_phases(struct raw_link *link, struct raw_result *result, double *times_ns)
{
    const struct raw_plan *plan = &link->plan;
    bool ping = plan->mode == RAW_LATENCY;
    uint64_t cpu_ns;
    int code = ping ? raw_ping(link, plan->warmup, NULL) : 0;

    if (code == 0)
        code = raw_flow_send(link, ping ? 0 : plan->warmup);
    double before = now_s();
    double cpu_before = cpu_s();
    if (code == 0 && ping)
        code = raw_ping(link, plan->messages, times_ns);
    if (code == 0)
        code = raw_flow_send(link, ping ? 0 : plan->messages);
    result->elapsed_s = now_s() - before;
    result->client_cpu_s = cpu_s() - cpu_before;
    if (code == 0)
        code = raw_put(link, &link->streams[0], "?", 1);
    if (code == 0)
        code = raw_get(link, &link->streams[0], &cpu_ns, sizeof cpu_ns);
    if (code == 0)
        result->server_cpu_s = (double)le64toh(cpu_ns) / 1e9;
    return code;
}

static int print_result(const struct raw_link *link, const struct raw_result *result, struct wf_status *status)
{
    const struct raw_plan *plan = &link->plan;
    bool latency = plan->mode == RAW_LATENCY;
    double gb = (double)plan->size * (double)plan->messages / 1e9;
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:i}", "schema", "weft.raw/1", "version",
        weft_version(), "mode", raw_mode_name(plan->mode), "size_bytes", (json_int_t)plan->size, "messages",
        (json_int_t)plan->messages, "warmup", (json_int_t)plan->warmup, "inflight", (json_int_t)plan->inflight,
        "buffers", (json_int_t)plan->buffers, "batch", (json_int_t)plan->batch, "call_bytes", (json_int_t)plan->call,
        "blocking", plan->block, "read_ahead", link->read_ahead, "streams", latency ? 1 : link->stream_count);
    json_t *numbers = json_pack("{s:f, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o}", "elapsed_s", result->elapsed_s,
                                "gb_per_s", latency ? json_null() : json_real(gb / result->elapsed_s), "messages_per_s",
                                latency ? json_null() : json_real((double)plan->messages / result->elapsed_s), "p50_us",
                                latency ? json_real(result->times.p50) : json_null(), "p99_us",
                                latency ? json_real(result->times.p99) : json_null(), "mean_us",
                                latency ? json_real(result->times.mean) : json_null(), "client_cpu_s",
                                result->client_cpu_s, "server_cpu_s", result->server_cpu_s, "cpu_s_per_gb",
                                latency ? json_null() : json_real((result->client_cpu_s + result->server_cpu_s) / gb));
    int code = root && numbers && json_object_update(root, numbers) == 0 &&
                       json_dumpf(root, stdout, JSON_REAL_PRECISION(6)) == 0 && putchar('\n') != EOF
                   ? 0
                   : wf_fail(status, -EIO, "cannot print the result");

    json_decref(numbers);
    json_decref(root);
    return code;
}

static int measure(struct raw_link *link, const struct raw_options *options, struct wf_status *status)
{
    bool latency = options->plan.mode == RAW_LATENCY;
    uint64_t count = latency ? options->plan.messages : 0;
    struct raw_result result = {0};
    double *times_ns = calloc(count ? count : 1, sizeof *times_ns);

    if (!times_ns)
        return wf_fail(status, -ENOMEM, "no memory for %llu times: lower --iters", (unsigned long long)count);
    for (uint64_t i = 0; i < count; i += 512)
        times_ns[i] = -1; /* no page is touched for the first time while measuring */
    int code = raw_link_connect(link, options, status);
    if (code == 0) {
        code = measure_phases(link, &result, times_ns);
        if (code)
            failed(link, code, "server", status);
    }
    wf_times_of(times_ns, code ? 0 : count, &result.times);
    free(times_ns);
    return code ? code : print_result(link, &result, status);
}

static int run_on(int cpu, struct wf_status *status)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        return wf_fail(status, -errno,
                       "--cpu %d: no such processor is here, or this process may not use it: see 'taskset -cp $$'",
                       cpu);
    return 0;
}

static int run(const struct raw_options *options, struct wf_status *status)
{
    struct raw_link link;
    int result;

    raw_link_init(&link);
    result = options->listen ? serve(&link, options, status) : measure(&link, options, status);
    raw_link_close(&link);
    return result;
}

int bench_raw(int argc, char **argv)
{
    struct raw_options options;
    struct wf_status status = {0};
    int result = raw_options_read(&options, argc, argv, &status);

    if (result == 0 && !options.help && options.cpu != RAW_ANY_CPU)
        result = run_on(options.cpu, &status);
    int exit_status = result ? BENCH_USAGE : BENCH_PASSED;

    if (result == 0 && options.help) {
        raw_options_help();
    } else if (result == 0 && options.version) {
        printf("weft %s\n", weft_version());
    } else if (result == 0) {
        result = run(&options, &status);
        exit_status = result ? BENCH_FAILED : BENCH_PASSED;
    }
    raw_options_free(&options);
    wf_blame_memory_limit(&status);
    if (result)
        fprintf(stderr, "weft: %s\n", status.text);
    return exit_status;
}
