/*
 * JSON that comes from outside: the result that `weft topo --in-force` is shown, and what the programs of `weft peers`
 * and `weft compare` have printed. What is not understood ends in a sentence, whatever type a key's value has.
 */
#include <errno.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "peers/peer.h"
#include "peers/reading.h"
#include "bench/result/result.h"
#include "bench/topo/topo.h"

/* Of the benchmark only bench/topo/force.c is here: what it would write is not asked for. */
int bench_topo_leave(const struct bench_options *options, json_t *root, struct wf_status *status, int exit_status)
{
    (void)options;
    FUZZ_CHECK(json_is_object(root) && status->code == 0);
    json_decref(root);
    return exit_status;
}

int bench_topo_refused(const struct bench_options *options, struct wf_status *status)
{
    (void)options;
    FUZZ_CHECK(status->code < 0 && status->text[0]);
    return BENCH_USAGE;
}

static void check(int rc, const struct peer_reading *reading, const struct wf_status *status)
{
    FUZZ_CHECK(rc == 0 || (rc == status->code && status->text[0] && memchr(status->text, '\0', sizeof status->text)));
    FUZZ_CHECK(rc < 0 || !isnan(reading->gb_per_s));
    FUZZ_CHECK(rc < 0 || !isnan(reading->mean_us));
}

static void read_tools(const char *text)
{
    static const struct peer_tool *const tools[] = {&peer_weft,      &peer_raw,     &peer_iperf3, &peer_ucx,
                                                    &peer_libfabric, &peer_openmpi, &peer_nccl};
    struct peer_output output = {.text = text, .cpu_s = 1, .elapsed_s = 2};
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        for (int metric = PEER_BANDWIDTH; metric <= PEER_RATE; metric++) {
            struct peer_case asked = {
                .metric = (enum peer_metric)metric, .size = 65536, .messages = 100, .inflight = 1, .buffers = 1};
            struct peer_reading reading = {-1, -1, -1, -1, -1, -1};
            struct wf_status status = {0};
            int rc = tools[i]->read(&asked, &output, &output, &reading, &status);
            check(rc, &reading, &status);
        }
    }
}

static void read_result(const uint8_t *data, size_t size)
{
    static struct wf_config config; /* large */
    struct bench_options options = {.config = &config};
    char path[64];
    int fd = memfd_create("result", MFD_CLOEXEC);

    wf_config_init(&config);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    options.in_force = path;
    bench_topo_in_force(&options);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    read_tools(text);
    read_result(data, size);
    free(text);
    return 0;
}
