/* What other tools printed, and what they might print: read right, or refused with a reason. The good texts are what
 * the tools of Debian 12 printed on loopback: ucx-utils 1.13.1, libfabric-bin 1.17.0, openmpi-bin 4.1.4. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "peers/peer.h"
#include "peers/reading.h"

#define UCX_HEAD "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
#define FI_HEAD "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
#define RAW_HEAD                                                                                                       \
    "{\"schema\": \"weft.raw/1\", \"version\": \"0.1.0\", \"mode\": \"bandwidth\", \"size_bytes\": 1048576, "          \
    "\"messages\": 3000, \"warmup\": 300, \"inflight\": 16, \"buffers\": 16, \"batch\": 8, \"call_bytes\": 262144, "   \
    "\"blocking\": false, \"streams\": 1, \"elapsed_s\": 0.456346, "
#define RAW_BANDWIDTH                                                                                                  \
    RAW_HEAD                                                                                                           \
    "\"gb_per_s\": 6.8933, \"messages_per_s\": 6573.96, \"p50_us\": null, \"p99_us\": null, \"mean_us\": null, "       \
    "\"client_cpu_s\": 0.454553, \"server_cpu_s\": 0.45628, \"cpu_s_per_gb\": 0.289546}\n"
#define RAW_LATENCY                                                                                                    \
    RAW_HEAD                                                                                                           \
    "\"gb_per_s\": null, \"messages_per_s\": null, \"p50_us\": 3.34, \"p99_us\": 3.58, \"mean_us\": 3.36699, "         \
    "\"client_cpu_s\": 0.13465, \"server_cpu_s\": 0.134669, \"cpu_s_per_gb\": null}\n"
#define MPI_BANDWIDTH                                                                                                  \
    "{\"schema\": \"weft.mpi/1\", \"size_bytes\": 1048576, \"messages\": 2000, \"inflight\": 16, \"buffers\": 16, "    \
    "\"elapsed_s\": 0.671584840, \"cpu_s\": 0.962913260, \"gb_per_s\": 3.122691, \"messages_per_s\": 2978.030, "       \
    "\"cpu_s_per_gb\": 0.459153}\n"
#define MPI_LATENCY                                                                                                    \
    "{\"schema\": \"weft.mpi/1\", \"size_bytes\": 8, \"messages\": 20000, \"inflight\": 16, \"buffers\": 16, "         \
    "\"elapsed_s\": 0.606456631, \"cpu_s\": 0.678602492, \"p50_us\": 4.5715, \"p99_us\": 14.6970, "                    \
    "\"mean_us\": 15.1614}\n"
#define MPI_MISSING "2 total processes failed to start\n"

static const struct peer_case bandwidth = {PEER_BANDWIDTH, 1 << 20, 2000, 100, 16, 1};
static const struct peer_case latency = {PEER_LATENCY, 8, 20000, 1000, 1, 1};
static const struct peer_case rate = {PEER_RATE, 64, 100000, 1000, 64, 1};
static const struct peer_case large = {PEER_BANDWIDTH, 64 << 20, 20, 0, 4, 1};
static const struct peer_case pings = {PEER_BANDWIDTH, 1 << 20, 500, 50, 16, 1};

#define NONE (-1.0)

static const struct genuine {
    const struct peer_tool *tool;
    const struct peer_case *asked;
    const char *text;
    struct peer_reading expected;
} genuine[] = {
    {&peer_ucx,
     &bandwidth,
     UCX_HEAD "2000,4.613,119.847,119.847,8343.98,8343.98,8344,8344 \n",
     {8.7493, 8343.98, NONE, NONE, NONE, (1.5 + 0.5) / (2100 * 1.048576e-3)}},
    {&peer_ucx,
     &rate,
     UCX_HEAD "100000,3.503,5.121,5.121,11.92,11.92,195276,195276 \n",
     {0.012498, 195276, NONE, NONE, NONE, 2.0 / (101000 * 64e-9)}},
    {&peer_ucx,
     &latency,
     UCX_HEAD "20000,4.329,4.072,4.072,1.87,1.87,245579,245579 \n",
     {NONE, NONE, 4.329, NONE, 4.072, NONE}},
    /* The average of the last interval is not the whole; a blank stands before a short number. */
    {&peer_ucx,
     &large,
     UCX_HEAD "  20,1203.487,22134.948,22134.948,9999.99,2891.36,99,45\n",
     {3.0318, 45.1775, NONE, NONE, NONE, 2.0 / (20 * 0.067108864)}},
    /* 500 * 2 * 1 MiB in 0.19 s; of which one way is half the time of a round. */
    {&peer_libfabric,
     &pings,
     FI_HEAD "1m      500     =500     1000m       0.19s   5383.55     194.77       0.01 \n",
     {5.38366, 5134.26, NONE, NONE, NONE, 2.0 / (1000 * 1.048576e-3)}},
    {&peer_libfabric,
     &latency,
     FI_HEAD "8       20k     =20k     312k        0.22s      1.47       5.43       0.18 \n",
     {NONE, NONE, NONE, NONE, 5.43, NONE}},
    {&peer_raw, &bandwidth, RAW_BANDWIDTH, {6.8933, 6573.96, NONE, NONE, NONE, 0.289546}},
    {&peer_raw, &latency, RAW_LATENCY, {NONE, NONE, 3.34, 3.58, 3.36699, NONE}},
    {&peer_openmpi, &bandwidth, MPI_BANDWIDTH, {3.122691, 2978.03, NONE, NONE, NONE, 0.459153}},
    {&peer_openmpi, &latency, MPI_LATENCY, {NONE, NONE, 4.5715, 14.697, 15.1614, NONE}},
    {&peer_openmpi,
     &latency,
     "a word of mpirun\n\n" MPI_LATENCY "and another\n",
     {NONE, NONE, 4.5715, 14.697, 15.1614, NONE}},
};

static const struct peer_reading unread = {NONE, NONE, NONE, NONE, NONE, NONE};

static int read_text(const struct peer_tool *tool, const struct peer_case *asked, const char *text,
                     struct peer_reading *reading, struct wf_status *status)
{
    struct peer_output server = {"", 0.5, 1}, client = {text, 1.5, 1};

    *reading = unread;
    memset(status, 0, sizeof(*status));
    return tool->read(asked, tool == &peer_openmpi ? NULL : &server, &client, reading, status);
}

static void assert_near(double found, double expected)
{
    if (expected < 0)
        assert_true(found < 0);
    else
        assert_true(fabs(found - expected) <= 1e-4 * expected);
}

static void test_genuine(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(genuine) / sizeof(genuine[0]); i++) {
        const struct peer_reading *expected = &genuine[i].expected;
        struct peer_reading found;
        struct wf_status status;
        assert_int_equal(read_text(genuine[i].tool, genuine[i].asked, genuine[i].text, &found, &status), 0);
        assert_near(found.gb_per_s, expected->gb_per_s);
        assert_near(found.messages_per_s, expected->messages_per_s);
        assert_near(found.p50_us, expected->p50_us);
        assert_near(found.p99_us, expected->p99_us);
        assert_near(found.mean_us, expected->mean_us);
        assert_near(found.cpu_s_per_gb, expected->cpu_s_per_gb);
    }
}

/* Text of which a number has been cut off may still be a number, but not with what has to come before or after. */
static const struct broken {
    const struct peer_tool *tool;
    const struct peer_case *asked;
    const char *text, *told;
} broken[] = {
    {&peer_ucx, &bandwidth, "", "printed nothing"},
    {&peer_ucx, &bandwidth, "\n\n", "printed nothing"},
    {&peer_ucx, &bandwidth, UCX_HEAD, "iterations,"},
    {&peer_ucx, &bandwidth, UCX_HEAD "2000,4.613,119.847,119.847,8343.98", "printed no result"},
    {&peer_ucx, &bandwidth, UCX_HEAD "2000,4.613,119.847,119.847,8343.98,8343.98,8344,\n", "printed no result"},
    {&peer_ucx, &bandwidth, UCX_HEAD "2000,4,613,119,847,119,847,8343,98,8343,98,8344,8344\n", "printed no result"},
    {&peer_ucx, &bandwidth, UCX_HEAD "2000,4.6x,119.847,119.847,8343.98,8343.98,8344,8344\n", "printed no result"},
    {&peer_ucx, &bandwidth, UCX_HEAD "2000,nan,nan,nan,inf,inf,8344,8344\n", "printed no result"},
    {&peer_ucx, &bandwidth, UCX_HEAD "2000,4.6,-1,-1,-1,-1,-1,-1\n", "printed no result"},
    {&peer_ucx, &bandwidth, UCX_HEAD "2000,1e999,1,1,1,1,1,1\n", "printed no result"},
    {&peer_ucx, &bandwidth, UCX_HEAD "1000,4.613,119.847,119.847,8343.98,8343.98,8344,8344\n", "asked for 2000"},
    {&peer_ucx, &bandwidth, UCX_HEAD "2000,0,0,0,0,0,0,0\n", "0.000 us"},
    {&peer_ucx, &bandwidth, UCX_HEAD "2000,4.613,119.847,119.847,0.00,0.00,0,0\n", "bandwidth of 0"},
    {&peer_ucx, &bandwidth,
     "[1795287742.951096] [vm:11934:0]        perftest.c:405  UCX  ERROR client failed. "
     "connect() failed: Connection refused\n",
     "Connection refused"},
    {&peer_ucx, &bandwidth,
     "iterations,avg_lat,overall_lat,50.0_percentile_lat,avg_bw,overall_bw,avg_mr,overall_mr\n1,2,3,4,5,6,7,8\n",
     "printed no result"},
    {&peer_libfabric, &pings, "", "printed nothing"},
    {&peer_libfabric, &pings, FI_HEAD, "printed no result"},
    {&peer_libfabric, &pings, FI_HEAD "1m      500     =500     1000m       0.19s   5383.55\n", "printed no result"},
    {&peer_libfabric, &pings, FI_HEAD "1m      500     =500     1000m       0,19s   5383,55     194,77       0,01\n",
     "printed no result"},
    {&peer_libfabric, &pings, FI_HEAD "1m      500     -20      1000m       0.19s   5383.55     194.77       0.01\n",
     "printed no result"},
    {&peer_libfabric, &latency, FI_HEAD "8       20k     =20k     312k        0.00s      inf       0.00       inf\n",
     "printed no result"},
    {&peer_libfabric, &latency, "[error] util/pingpong.c:568 : ctrl/read: no data or remote connection closed\n",
     "remote connection closed"},
    {&peer_raw, &bandwidth, "", "printed nothing"},
    {&peer_raw, &bandwidth, RAW_HEAD, "weft raw printed no result"},
    {&peer_raw, &bandwidth, RAW_LATENCY, "gb_per_s"},
    {&peer_raw, &latency, RAW_BANDWIDTH, "p50_us"},
    {&peer_raw, &bandwidth, MPI_BANDWIDTH, "weft.mpi/1"},
    {&peer_raw, &bandwidth, "{}", "weft.raw/1"},
    {&peer_raw, &bandwidth, "{\"schema\": 7}", "weft.raw/1"},
    {&peer_raw, &bandwidth, "{\"schema\": \"weft.raw/1\", \"gb_per_s\": \"7\", \"messages_per_s\": 7}", "gb_per_s"},
    {&peer_raw, &bandwidth, "{\"schema\": \"weft.raw/1\", \"gb_per_s\": -7, \"messages_per_s\": 7}", "gb_per_s"},
    {&peer_raw, &bandwidth, "{\"schema\": \"weft.raw/1\", \"gb_per_s\": 6,8933, \"messages_per_s\": 7}",
     "printed no result"},
    {&peer_openmpi, &bandwidth, MPI_MISSING, "2 total processes failed to start"},
    {&peer_openmpi, &bandwidth, "", "weft-mpi printed nothing"},
    {&peer_openmpi, &bandwidth, "--------\nMPI_INIT has failed\n", "MPI_INIT has failed"},
    {&peer_nccl, &bandwidth, "anything", "weft pair printed no JSON"},
};

static void test_broken(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        struct peer_reading found;
        struct wf_status status;
        assert_int_equal(read_text(broken[i].tool, broken[i].asked, broken[i].text, &found, &status), -EPROTO);
        if (!strstr(status.text, broken[i].told))
            fail_msg("'%s' does not say '%s'", status.text, broken[i].told);
        assert_memory_equal(&found, &unread, sizeof(found));
    }
}

/* Every beginning of a good text is read as the whole, or refused. */
static void test_truncated(void **state)
{
    char text[1024];

    (void)state;
    for (size_t i = 0; i < sizeof(genuine) / sizeof(genuine[0]); i++) {
        struct peer_reading whole, found;
        struct wf_status status;
        assert_int_equal(read_text(genuine[i].tool, genuine[i].asked, genuine[i].text, &whole, &status), 0);
        for (size_t length = 0; length < strlen(genuine[i].text); length++) {
            memcpy(text, genuine[i].text, length);
            text[length] = '\0';
            if (read_text(genuine[i].tool, genuine[i].asked, text, &found, &status) == 0)
                assert_memory_equal(&found, &whole, sizeof(found));
            else
                assert_int_equal(status.code, -EPROTO);
        }
    }
}

static void test_unknown_processor_time(void **state)
{
    struct peer_output told = {"", 0.5, 1}, untold = {"", -1, 1};

    (void)state;
    assert_near(peer_cpu_per_gb(&large, &told, &told, 1), 1 / (20 * 0.067108864));
    assert_near(peer_cpu_per_gb(&large, NULL, &told, 2), 0.25 / (20 * 0.067108864));
    assert_near(peer_cpu_per_gb(&large, &untold, &told, 1), NONE);
    assert_near(peer_cpu_per_gb(&large, &told, &untold, 1), NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_genuine),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_unknown_processor_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
