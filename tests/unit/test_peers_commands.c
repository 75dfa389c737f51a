/* How each tool is called, word by word: what stands here is what docs and results tell. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peers/peer.h"
#include "peers/peers.h"
#include "peers/reading.h"

static const struct peer_case bandwidth = {PEER_BANDWIDTH, 1 << 20, 2000, 100, 16, 1};
static const struct peer_case medium = {PEER_BANDWIDTH, 100000, 50, 5, 16, 3};
static const struct peer_case large = {PEER_BANDWIDTH, 64 << 20, 20, 2, 4, 4};
static const struct peer_case latency = {PEER_LATENCY, 8, 20000, 1000, 1, 1};
static const struct peer_case rate = {PEER_RATE, 64, 100000, 1000, 64, 1};
static const struct peer_case huge = {PEER_BANDWIDTH, UINT64_C(1) << 31, 1, 0, 1, 1};

/* A folder in which weft-mpi seems to be. */
static char folder[] = "/tmp/weft-peers-XXXXXX";

static struct peer_place one_rail(void)
{
    return (struct peer_place){.folder = folder,
                               .rails = {"127.0.0.1"},
                               .devices = {"lo"},
                               .rail_count = 1,
                               .port = 4711,
                               .one_machine = true};
}

static struct peer_place two_machines(void)
{
    return (struct peer_place){.folder = folder,
                               .rails = {"fd00::1", "192.0.2.1", "198.51.100.1"},
                               .devices = {"eth1", "eth2", "eth1"},
                               .rail_count = 3,
                               .port = 4711};
}

/* FOLDER stands for the folder. */
static void assert_command(const struct peer_command *command, const char *expected)
{
    char text[4096], wanted[4096] = "";

    peer_command_text(command, text, sizeof(text));
    for (const char *at; (at = strstr(expected, "FOLDER")); expected = at + 6)
        snprintf(wanted + strlen(wanted), sizeof(wanted) - strlen(wanted), "%.*s%s", (int)(at - expected), expected,
                 folder);
    snprintf(wanted + strlen(wanted), sizeof(wanted) - strlen(wanted), "%s", expected);
    assert_string_equal(text, wanted);
}

/* The variant's command lines and note; "" for a server: there is none. */
static void assert_variant(const struct peer_tool *tool, const struct peer_case *asked, const struct peer_place *place,
                           int index, const char *server, const char *client, const char *note)
{
    struct peer_commands commands;
    char why[200] = "";

    memset(&commands, 0, sizeof(commands));
    assert_in_range(index, 0, tool->variants(asked, place, why) - 1);
    assert_int_equal(tool->commands(asked, place, index, &commands), 0);
    assert_command(&commands.server, server);
    assert_command(&commands.client, client);
    assert_string_equal(commands.note, note);
}

static int count(const struct peer_tool *tool, const struct peer_case *asked, const struct peer_place *place)
{
    char why[200] = "";
    int variants = tool->variants(asked, place, why);

    assert_int_equal(variants == 0, why[0] != '\0');
    return variants;
}

static void assert_refused(const struct peer_tool *tool, const struct peer_case *asked, const struct peer_place *place,
                           const char *reason)
{
    char why[200] = "";

    assert_int_equal(tool->variants(asked, place, why), 0);
    assert_string_equal(why, reason);
}

/* ------------------------------------------------------------------------------------------- raw */

#define RAW_SERVER "FOLDER/weft raw --listen 4711"
#define RAW_CLIENT "FOLDER/weft raw --connect 127.0.0.1:4711 "

static void test_raw(void **state)
{
    static const char *const calls[] = {"64K", "128K", "256K", "512K", "1M", "64M"};
    struct peer_place place = one_rail(), far = two_machines();
    struct peer_case empty = bandwidth;
    char client[300], server[100], note[100], ahead[320], ahead_note[120];
    int cores[2], rounds = peer_two_processors(&place, cores) ? 3 : 2;

    (void)state;
    assert_int_equal(count(&peer_raw, &large, &place), (rounds + 1) * 12);
    for (int i = 0; i < 12; i++) {
        snprintf(client, sizeof(client), RAW_CLIENT "--size 67108864 -n 20 -w 2 --buffers 4 %s--inflight 4 --call %s",
                 i % 2 ? "--block " : "", calls[i / 2]);
        snprintf(note, sizeof(note), "calls of %s, %s", calls[i / 2], i % 2 ? "blocking" : "spinning");
        assert_variant(&peer_raw, &large, &place, i, RAW_SERVER, client, note);
        strcat(client, " --congestion reno");
        strcat(note, ", reno");
        assert_variant(&peer_raw, &large, &place, 12 + i, RAW_SERVER " --congestion reno", client, note);
        snprintf(ahead, sizeof(ahead), "%s --read-ahead", client);
        snprintf(ahead_note, sizeof(ahead_note), "%s, reading ahead", note);
        assert_variant(&peer_raw, &large, &place, rounds * 12 + i, RAW_SERVER " --congestion reno", ahead, ahead_note);
        if (rounds < 3)
            continue;
        snprintf(server, sizeof(server), RAW_SERVER " --congestion reno --cpu %d", cores[0]);
        snprintf(client + strlen(client), sizeof(client) - strlen(client), " --cpu %d", cores[1]);
        strcat(note, ", each side on its processor");
        assert_variant(&peer_raw, &large, &place, 24 + i, server, client, note);
    }
    assert_int_equal(count(&peer_raw, &bandwidth, &place), (rounds + 1) * 10); /* 1M is the whole message */
    assert_int_equal(count(&peer_raw, &medium, &place), (rounds + 1) * 4);
    assert_int_equal(count(&peer_raw, &medium, &far), 8); /* whose processors are not ours to choose */
    assert_variant(&peer_raw, &medium, &far, 2, RAW_SERVER,
                   "FOLDER/weft raw --connect '[fd00::1]:4711,192.0.2.1:4711,198.51.100.1:4711' --size 100000 -n 50 "
                   "-w 5 --buffers 3 --inflight 16 --call 100000",
                   "calls of 100000, spinning");
    assert_int_equal(count(&peer_raw, &latency, &place), rounds * 2);
    assert_variant(&peer_raw, &latency, &place, 1, RAW_SERVER,
                   RAW_CLIENT "--size 8 -n 20000 -w 1000 --buffers 1 --block --lat", "blocking");
    assert_int_equal(count(&peer_raw, &rate, &place), rounds * 6);
    assert_variant(&peer_raw, &rate, &place, 2, RAW_SERVER,
                   RAW_CLIENT "--size 64 -n 100000 -w 1000 --buffers 64 --inflight 64 --rate --batch 32",
                   "32 messages a call, 64 buffers, spinning");
    empty.size = 0;
    assert_refused(&peer_raw, &empty, &place, "a stream has no empty messages");
}

/* ------------------------------------------------------------------------------------------- congestion control */

static void test_congestion(void **state)
{
    struct peer_place place = one_rail(), far = two_machines();
    struct peer_commands commands;
    char text[400];
    int cores[2], ways = count(&peer_iperf3, &bandwidth, &far);

    (void)state;
    assert_int_equal(peer_congestion_count(&place), 2);
    assert_string_equal(peer_congestion(&place, 0), "");
    assert_string_equal(peer_congestion(&place, 1), "reno");
    assert_int_equal(peer_congestion_count(&far), 1);
    assert_string_equal(peer_congestion(&far, 0), "");

    place.settings[0] = "congestion=";
    assert_int_equal(peer_congestion_count(&place), 2);
    place.settings[0] = "chunk=1M";
    place.settings[1] = far.settings[0] = "congestion=cubic";
    assert_int_equal(peer_congestion_count(&place), 1);
    assert_string_equal(peer_congestion(&place, 0), "cubic");
    assert_string_equal(peer_congestion(&far, 0), "cubic");

    assert_int_equal(count(&peer_raw, &latency, &place), peer_two_processors(&place, cores) ? 4 : 2);
    assert_variant(&peer_raw, &latency, &place, 0, RAW_SERVER " --congestion cubic",
                   RAW_CLIENT "--size 8 -n 20000 -w 1000 --buffers 1 --lat --congestion cubic", "spinning, cubic");

    assert_int_equal(count(&peer_iperf3, &bandwidth, &far), ways);
    memset(&commands, 0, sizeof(commands));
    assert_int_equal(peer_iperf3.commands(&bandwidth, &far, 3, &commands), 0);
    assert_non_null(strstr(peer_command_text(&commands.client, text, sizeof(text)), " -l 1M -C cubic -J -i0"));
    assert_non_null(strstr(commands.note, "from and to 1M of memory: calls of 1M, cubic"));
}

/* ------------------------------------------------------------------------------------------- UCX */

#define UCX_SETTINGS "UCX_TLS=tcp UCX_NET_DEVICES=lo "
#define UCX_SERVER "ucx_perftest -p 4711"
#define UCX_CLIENT "ucx_perftest 127.0.0.1 -p 4711 -t tag_bw -s 1048576 -n 2000 -w 100 -O 16 "

static void assert_ucx(int index, const char *settings, const char *end, const char *note)
{
    struct peer_place place = one_rail();
    char server[300], client[300];

    snprintf(server, sizeof(server), UCX_SETTINGS "%s" UCX_SERVER, settings);
    snprintf(client, sizeof(client), UCX_SETTINGS "%s" UCX_CLIENT "%s", settings, end);
    assert_variant(&peer_ucx, &bandwidth, &place, index, server, client, note);
}

static void test_ucx(void **state)
{
    struct peer_place place = one_rail(), far = two_machines();

    (void)state;
    assert_int_equal(count(&peer_ucx, &bandwidth, &place), 7);
    assert_ucx(0, "", "-f -v", "as installed");
    assert_ucx(1, "UCX_RNDV_THRESH=8K ", "-f -v", "rendezvous from 8K");
    assert_ucx(2, "UCX_RNDV_SCHEME=put_zcopy UCX_RNDV_THRESH=8K ", "-f -v", "rendezvous by put");
    assert_ucx(3, "UCX_RNDV_THRESH=inf ", "-f -v", "eager");
    assert_ucx(4, "UCX_RNDV_THRESH=inf UCX_TCP_TX_SEG_SIZE=64K ", "-f -v", "eager, segments of 64K");
    assert_ucx(5, "UCX_TCP_SNDBUF=4M UCX_TCP_RCVBUF=4M ", "-f -v", "socket buffers of 4 MiB");
    assert_ucx(6, "", "-E sleep -f -v", "sleeping");
    assert_int_equal(count(&peer_ucx, &latency, &place), 1);
    assert_variant(&peer_ucx, &latency, &place, 0, UCX_SETTINGS UCX_SERVER,
                   UCX_SETTINGS "ucx_perftest 127.0.0.1 -p 4711 -t tag_lat -s 8 -n 20000 -w 1000 -f -v",
                   "as installed, no p99");
    assert_int_equal(count(&peer_ucx, &rate, &place), 2);
    assert_variant(&peer_ucx, &rate, &place, 1, UCX_SETTINGS "UCX_TCP_TX_SEG_SIZE=64K " UCX_SERVER,
                   UCX_SETTINGS "UCX_TCP_TX_SEG_SIZE=64K "
                                "ucx_perftest 127.0.0.1 -p 4711 -t tag_bw -s 64 -n 100000 -w 1000 -O 64 -f -v",
                   "segments of 64K");
    /* Three rails on two interfaces, and an address of the sixth version. */
#define FAR_SETTINGS "UCX_TLS=tcp UCX_NET_DEVICES=eth1,eth2 UCX_MAX_EAGER_RAILS=2 UCX_MAX_RNDV_RAILS=2 "
    assert_variant(&peer_ucx, &bandwidth, &far, 0, FAR_SETTINGS "ucx_perftest -6 -p 4711",
                   FAR_SETTINGS "ucx_perftest fd00::1 -6 -p 4711 -t tag_bw -s 1048576 -n 2000 -w 100 -O 16 -f -v",
                   "as installed, one connection for the rails of an interface");
    far.devices[1] = "";
    assert_variant(&peer_ucx, &bandwidth, &far, 0, "UCX_TLS=tcp ucx_perftest -6 -p 4711",
                   "UCX_TLS=tcp ucx_perftest fd00::1 -6 -p 4711 -t tag_bw -s 1048576 -n 2000 -w 100 -O 16 -f -v",
                   "as installed, one connection for the rails of an interface");
}

/* ------------------------------------------------------------------------------------------- libfabric */

static void test_libfabric(void **state)
{
    static const char *const ways[][2] = {{"tcp", "msg"}, {"tcp", "rdm"}, {"net", "msg"}, {"net", "rdm"}};
    struct peer_place place = one_rail(), far = two_machines();
    char server[200], client[200], note[200];

    (void)state;
    assert_int_equal(count(&peer_libfabric, &bandwidth, &place), 4);
    for (int i = 0; i < 4; i++) {
        snprintf(server, sizeof(server), "fi_pingpong -B 4711 -p %s -e %s -d lo -I 2000 -S 1048576", ways[i][0],
                 ways[i][1]);
        snprintf(client, sizeof(client), "fi_pingpong -P 4711 -p %s -e %s -d lo -I 2000 -S 1048576 127.0.0.1",
                 ways[i][0], ways[i][1]);
        snprintf(note, sizeof(note), "provider %s, %s; ping-pong, one in flight; no warm-up", ways[i][0], ways[i][1]);
        assert_variant(&peer_libfabric, &bandwidth, &place, i, server, client, note);
    }
    assert_variant(&peer_libfabric, &latency, &far, 0, "fi_pingpong -B 4711 -p tcp -e msg -d eth1 -6 -I 20000 -S 8",
                   "fi_pingpong -P 4711 -p tcp -e msg -d eth1 -6 -I 20000 -S 8 fd00::1",
                   "provider tcp, msg; mean only; first rail only; no warm-up");
    assert_refused(&peer_libfabric, &rate, &place, "fi_pingpong has one message in flight: it has no rate of its own");
    assert_refused(&peer_libfabric, &huge, &place, "fi_pingpong counts bytes and messages in int, from 1 to 2^31 - 1");
}

/* ------------------------------------------------------------------------------------------- Open MPI */

#define MPI_START                                                                                                      \
    "mpirun -n 2 --allow-run-as-root --oversubscribe --mca plm isolated --mca pml ob1 --mca btl tcp,self "             \
    "--mca btl_tcp_if_include "
#define MPI_END "FOLDER/weft-mpi --size 1048576 -n 2000 -w 100 --inflight 16 --buffers 1"

static void assert_mpi(int index, const char *parameters, const char *note)
{
    struct peer_place place = one_rail();
    char client[700];

    snprintf(client, sizeof(client), MPI_START "lo --mca mpi_yield_when_idle 0 %s " MPI_END, parameters);
    assert_variant(&peer_openmpi, &bandwidth, &place, index, "", client, note);
}

static void test_openmpi(void **state)
{
    struct peer_place place = one_rail(), far = two_machines();

    (void)state;
    if (peer_processors() < 2)
        skip();
    assert_int_equal(count(&peer_openmpi, &bandwidth, &place), 7);
    assert_mpi(0, "--bind-to none", "as installed");
    assert_mpi(1, "--bind-to core", "bound to cores");
    assert_mpi(2, "--mca btl_tcp_endpoint_cache 0 --bind-to none", "read into place");
    assert_mpi(3,
               "--mca btl_tcp_endpoint_cache 0 --mca btl_tcp_max_send_size 1048576 "
               "--mca btl_tcp_rdma_pipeline_send_length 1048576 --bind-to none",
               "read into place, fragments of 1 MiB");
    assert_mpi(4, "--mca btl_tcp_links 2 --bind-to none", "two connections a rail");
    assert_mpi(5, "--mca btl_tcp_sndbuf 4194304 --mca btl_tcp_rcvbuf 4194304 --bind-to none",
               "socket buffers of 4 MiB");
    assert_mpi(6,
               "--mca btl_tcp_endpoint_cache 0 --mca btl_tcp_eager_limit 1048832 "
               "--mca btl_tcp_rndv_eager_limit 1048832 --mca btl_tcp_max_send_size 1048832 --bind-to none",
               "eager");
    assert_int_equal(count(&peer_openmpi, &large, &place), 6);
    assert_int_equal(count(&peer_openmpi, &latency, &place), 3);
    assert_variant(&peer_openmpi, &latency, &place, 2, "",
                   MPI_START "lo --mca mpi_yield_when_idle 0 --mca btl_tcp_endpoint_cache 0 --bind-to none "
                             "FOLDER/weft-mpi --size 8 -n 20000 -w 1000 --inflight 1 --lat --buffers 1",
                   "read into place");
    assert_refused(&peer_openmpi, &bandwidth, &far, "mpirun is started for one machine only");
    assert_refused(&peer_openmpi, &huge, &place, "MPI counts the bytes of a message in int: up to 2 GiB - 1");
    place.folder = "/";
    assert_refused(&peer_openmpi, &bandwidth, &place, "weft-mpi was not built: it needs libopenmpi-dev");
    far.one_machine = true;
    assert_variant(&peer_openmpi, &rate, &far, 0, "",
                   MPI_START "eth1,eth2 --mca mpi_yield_when_idle 0 --bind-to none "
                             "FOLDER/weft-mpi --size 64 -n 100000 -w 1000 --inflight 64 --buffers 1",
                   "one connection for the rails of an interface, as installed");
}

/* Confined to one processor, nothing may leave it or keep the other side from running. */
static void test_openmpi_on_one_processor(void **state)
{
    struct peer_place place = one_rail();
    cpu_set_t before, one;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(count(&peer_openmpi, &bandwidth, &place), 6);
    assert_variant(&peer_openmpi, &bandwidth, &place, 0, "",
                   MPI_START "lo --mca mpi_yield_when_idle 1 --bind-to none " MPI_END, "as installed");
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* ------------------------------------------------------------------------------------------- all */

static const struct peer_tool *const tools[] = {&peer_raw, &peer_ucx, &peer_libfabric, &peer_openmpi};

/* Whatever does not fit is told, and never cut. */
static void test_too_long(void **state)
{
    char word[400];

    (void)state;
    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        struct peer_place place = one_rail();
        char why[200] = "";
        place.rail_count = PEER_RAILS_MAX;
        for (int rail = 0; rail < PEER_RAILS_MAX; rail++)
            place.rails[rail] = place.devices[rail] = rail == 0 ? "lo" : word + rail;
        for (int index = 0; tools[i] != &peer_libfabric && index < tools[i]->variants(&bandwidth, &place, why);
             index++) {
            struct peer_commands commands;
            memset(&commands, 0, sizeof(commands));
            assert_int_equal(tools[i]->commands(&bandwidth, &place, index, &commands), -ENOBUFS);
        }
    }
}

/* As many rails as there can be, with addresses as long as they can be: all fits. */
static void test_many_rails(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
        struct peer_place place = one_rail();
        char devices[PEER_RAILS_MAX][16], why[200] = "";
        place.rail_count = PEER_RAILS_MAX;
        for (int rail = 0; rail < PEER_RAILS_MAX; rail++) {
            snprintf(devices[rail], sizeof(devices[rail]), "interface-%05d", rail);
            place.rails[rail] = "fd00:1111:2222:3333:4444:5555:6666:7777%if012";
            place.devices[rail] = devices[rail];
        }
        for (int index = 0; index < tools[i]->variants(&bandwidth, &place, why); index++) {
            struct peer_commands commands;
            memset(&commands, 0, sizeof(commands));
            assert_int_equal(tools[i]->commands(&bandwidth, &place, index, &commands), 0);
        }
    }
}

/* The best of some of a tool's ways is not its best. */
static void test_all_ways_are_tried(void **state)
{
    static const struct peer_case *const cases[] = {&bandwidth, &large, &medium, &latency, &rate};
    static const struct peer_tool *const all[] = {&peer_weft,      &peer_raw,     &peer_iperf3, &peer_ucx,
                                                  &peer_libfabric, &peer_openmpi, &peer_nccl,   &peer_plugin};
    struct peer_place place = one_rail();
    char why[200];

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (size_t j = 0; j < sizeof(cases) / sizeof(cases[0]); j++)
            assert_true(all[i]->variants(cases[j], &place, why) <= PEERS_VARIANTS_MAX);
}

/* A machine with the one device in /dev, and with NVIDIA's driver or without. */
struct machine {
    const char *device;
    bool driver, gpus;
};

static const struct machine *machine; /* NULL: this one */

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);

int __wrap_access(const char *path, int mode)
{
    if (!machine || strncmp(path, "/dev/", 5) != 0)
        return __real_access(path, mode);
    return strcmp(path, machine->device) == 0 ? 0 : -1;
}

/* For the driver stands this program, which has none of its functions. */
void *__wrap_dlopen(const char *name, int flags)
{
    if (!machine || strcmp(name, "libcuda.so.1") != 0)
        return __real_dlopen(name, flags);
    return machine->driver ? __real_dlopen(NULL, flags) : NULL;
}

static void test_nccl(void **state)
{
    static const struct machine machines[] = {
        {"/dev/nvidiactl", true, true}, /* a container that has another GPU than the first */
        {"/dev/dxg", true, true},
        {"/dev/nvidiactl", false, false},
        {"/dev/null", true, false},
    };
    struct peer_place place = one_rail();
    struct peer_commands commands;

    (void)state;
    memset(&commands, 0, sizeof(commands));
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        machine = &machines[i];
        assert_refused(&peer_nccl, &bandwidth, &place,
                       machine->gpus ? "moves GPU memory only, and this is host memory: use --memory cuda"
                                     : "no GPU here");
    }
    machine = NULL;
    assert_int_equal(count(&peer_nccl, &bandwidth, &place), 0);
    place.memory = "cuda";
    assert_int_equal(peer_nccl.commands(&bandwidth, &place, 0, &commands), 0);
    assert_command(&commands.client, "FOLDER/weft pair --connect=127.0.0.1:4711 --rails 127.0.0.1 --src=node1:gpu0 "
                                     "--dst=node0:gpu0 --size=1048576 --iters=2000 --warmup=100 --check=0 --buffers=1 "
                                     "--inflight=16 --backend=nccl --quiet --json=-");
    assert_string_equal(commands.note, "one GPU for both: time-sliced without MPS");
}

static void test_plugin(void **state)
{
    struct peer_place place = one_rail();
    struct peer_commands commands;

    (void)state;
    memset(&commands, 0, sizeof(commands));
    assert_refused(&peer_plugin, &bandwidth, &place, "no libnccl-net-weft.so here: build the target weft_nccl");
    place.settings[0] = "plugin_library=plugin.so";
    assert_int_equal(count(&peer_plugin, &bandwidth, &place), 1);
    assert_int_equal(peer_plugin.commands(&bandwidth, &place, 0, &commands), 0);
    assert_command(&commands.client, "FOLDER/weft pair --connect=127.0.0.1:4711 --rails 127.0.0.1 --src=node1:host0 "
                                     "--dst=node0:host0 --size=1048576 --iters=2000 --warmup=100 --check=0 --buffers=1 "
                                     "--inflight=16 --backend=plugin --set=plugin_library=plugin.so --quiet --json=-");
    assert_false(peer_plugin.gpu_memory);
}

static void test_weft_on_gpus(void **state)
{
    struct peer_place place = one_rail();
    struct peer_commands commands;
    char text[4096];

    (void)state;
    memset(&commands, 0, sizeof(commands));
    place.memory = "cuda";
    assert_int_equal(peer_weft.commands(&bandwidth, &place, 0, &commands), 0);
    peer_command_text(&commands.client, text, sizeof(text));
    assert_non_null(strstr(text, "--src=node1:gpu0 --dst=node0:gpu0"));
    assert_null(strstr(text, "--backend"));
    assert_string_equal(commands.note, "");
    assert_true(peer_weft.gpu_memory && peer_nccl.gpu_memory);
    assert_false(peer_raw.gpu_memory || peer_iperf3.gpu_memory || peer_ucx.gpu_memory);
}

static int make_folder(void **state)
{
    char path[64];
    int fd;

    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/weft-mpi", folder);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
    return fd < 0 ? -1 : close(fd);
}

static int remove_folder(void **state)
{
    char path[64];

    (void)state;
    snprintf(path, sizeof(path), "%s/weft-mpi", folder);
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_raw),          cmocka_unit_test(test_congestion),
        cmocka_unit_test(test_ucx),          cmocka_unit_test(test_libfabric),
        cmocka_unit_test(test_openmpi),      cmocka_unit_test(test_openmpi_on_one_processor),
        cmocka_unit_test(test_too_long),     cmocka_unit_test(test_many_rails),
        cmocka_unit_test(test_nccl),         cmocka_unit_test(test_plugin),
        cmocka_unit_test(test_weft_on_gpus), cmocka_unit_test(test_all_ways_are_tried),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
