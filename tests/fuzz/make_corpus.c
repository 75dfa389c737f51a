/* make_corpus FOLDER: valid inputs of every target, one file each, below FOLDER/TARGET. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "devmem/intake.h"
#include "wire/frame.h"
#include "wire/hello.h"

static const char *root;

static void put(const char *target, const char *name, const void *bytes, size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", root, target);
    if (mkdir(path, 0777) < 0 && errno != EEXIST) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    snprintf(path, sizeof path, "%s/%s/%s", root, target, name);
    FILE *file = fopen(path, "we");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

/* --- frames: one of each type, and the flags that change what a field means --- */

static void make_frames(void)
{
    static const struct wf_frame frames[] = {
        {.type = WF_DATA, .conn = 1, .msg = 1, .total = 64, .length = 64, .key = 9},
        {.type = WF_DATA,
         .flags = WF_FLAG_TAGGED | WF_FLAG_CRC,
         .conn = 1,
         .msg = 2,
         .offset = 64,
         .total = 128,
         .length = 64,
         .payload_crc = 7},
        {.type = WF_DATA, .flags = WF_FLAG_WRITE, .conn = 1, .msg = 3, .total = 64, .length = 64, .key = 9, .base = 8},
        {.type = WF_DATA, .flags = WF_FLAG_READ_REPLY | WF_FLAG_PEER, .conn = 1, .msg = 1, .total = 1, .length = 1},
        {.type = WF_DATA, .flags = WF_FLAG_LIST, .conn = 1, .msg = 1, .total = 24, .length = 24},
        {.type = WF_OFFER, .flags = WF_FLAG_TAGGED, .conn = 1, .msg = 1, .total = 1 << 20},
        {.type = WF_GRANT, .flags = WF_FLAG_PEER, .conn = 1, .msg = 1, .offset = 4096},
        {.type = WF_READ, .conn = 1, .msg = 1, .total = 100, .key = 9},
        {.type = WF_REFUSE, .conn = 1, .msg = 1, .key = (uint64_t)-ECANCELED},
        {.type = WF_OPEN, .conn = 1, .offset = 1024},
        {.type = WF_OPENED, .conn = 1, .offset = 1024},
        {.type = WF_CLOSE, .conn = 1, .msg = 2},
        {.type = WF_CLOSED, .conn = 1},
        {.type = WF_DOWN, .key = 1, .offset = 5},
        {.type = WF_STATE, .key = 1, .offset = 5, .total = 64, .base = 1 << 20},
        {.type = WF_CREDIT, .offset = 1 << 20},
        {.type = WF_PING, .msg = 1},
        {.type = WF_PONG, .msg = 1},
        {.type = WF_BYE},
        {.type = WF_TRIAL},
    };
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        struct wf_frame frame = frames[i];
        uint8_t bytes[WF_FRAME_BYTES];
        char name[32];
        frame.data_off = WF_FRAME_BYTES;
        wf_frame_encode(&frame, bytes);
        snprintf(name, sizeof name, "%02zu_%s", i, wf_frame_name(frame.type));
        put("frame", name, bytes, sizeof bytes);
    }
}

/* --- set-up messages --- */

static void put_setup(const char *name, const struct wf_setup *setup)
{
    uint8_t bytes[WF_SETUP_MAX];
    int length = wf_setup_encode(setup, bytes, sizeof bytes);
    if (length < 0) {
        fprintf(stderr, "%s: %s\n", name, strerror(-length));
        exit(EXIT_FAILURE);
    }
    put("hello", name, bytes, (size_t)length);
}

/* The two streams of a device channel, and one whose payload stream has come to a port for it. */
static void make_device_joins(void)
{
    struct wf_setup join = {.type = WF_SETUP_JOIN,
                            .join = {.session = 5,
                                     .channel = (WF_CLASSES + 3) * 2 + 1,
                                     .incarnation = 2,
                                     .channels = 2,
                                     .kind = WF_CHANNEL_PAYLOAD,
                                     .rail = 1,
                                     .domain = 4}};
    put_setup("join_payload", &join);
    join.join.kind = WF_CHANNEL_DEVICE;
    join.join.granted_frames = 64;
    join.join.granted_bytes = 1 << 20;
    put_setup("join_device", &join);
    join.join.payload_port = 40000;
    put_setup("join_claims", &join);
    join.join.domain = WF_STRANDS_MAX;
    put_setup("join_last_strand", &join);
    put_setup("deny_port", &(struct wf_setup){.type = WF_SETUP_DENY,
                                              .deny = {.reason = WF_DENY_PORT, .text = "elsewhere", .port = 18556}});
}

static void make_setups(void)
{
    struct wf_setup hello = {.type = WF_SETUP_HELLO,
                             .hello = {.version_min = WF_PROTOCOL_VERSION,
                                       .version_max = WF_PROTOCOL_VERSION,
                                       .boot_nonce = 77,
                                       .limits = {.chunk = 65536,
                                                  .eager = 4096,
                                                  .first_burst = 65536,
                                                  .header_pad = 64,
                                                  .unsolicited = 1 << 20,
                                                  .list_bytes = 1 << 20,
                                                  .connections = 64},
                                       .name = "node1",
                                       .rail_count = 2}};
    hello.hello.rails[0] = (struct wf_wire_address){.family = 4, .bytes = {127, 0, 1, 1}, .port = 18555, .name = "lo"};
    hello.hello.rails[1] = (struct wf_wire_address){.family = 6, .bytes = {0xfe, 0x80}, .port = 18555, .name = "eth1"};
    put_setup("hello", &hello);
    hello.hello.features = 2 * WF_FEATURE_TRIAL - 1; /* all */
    put_setup("hello_features", &hello);
    put_setup("join", &(struct wf_setup){.type = WF_SETUP_JOIN,
                                         .join = {.session = 5,
                                                  .incarnation = 1,
                                                  .channels = 2,
                                                  .kind = WF_CHANNEL_EXPRESS,
                                                  .granted_frames = 64,
                                                  .granted_bytes = 1 << 20}});
    put_setup("challenge", &(struct wf_setup){.type = WF_SETUP_CHALLENGE,
                                              .challenge = {.granted_frames = 64, .granted_bytes = 1 << 20}});
    put_setup("proof", &(struct wf_setup){.type = WF_SETUP_PROOF, .proof = {{1, 2, 3}}});
    make_device_joins();
    put_setup("deny", &(struct wf_setup){.type = WF_SETUP_DENY, .deny = {.reason = WF_DENY_BUSY, .text = "busy"}});
    struct wf_setup greeting = {.type = WF_SETUP_GREETING, .greeting = {.length = 4, .bytes = "node"}};
    put_setup("greeting", &greeting);
    greeting.greeting.length = WF_GREETING_MAX;
    put_setup("greeting_longest", &greeting);
}

/* --- steps of a peer: as fuzz_connection.c reads them --- */

enum { BYTES = 0, FRAME = 1, WIDE = 3, TIME = 4, LISTEN = 5, USE = 7, AGAIN = 6 + 8 + 16, BULK = 0x80 };

/* type, flags, conn, msg, offset (2), length, what is left to the total (2), key, base (2), ack */
#define SAY(type, flags, conn, msg, offset, length, more, key, base)                                                   \
    FRAME, type, flags, conn, msg, (offset)&255, (offset) >> 8, length, (more)&255, (more) >> 8, key, (base)&255,      \
        (base) >> 8, 0
#define OPENING SAY(WF_OPEN, 0, 1, 0, 1024, 0, 0, 0, 0), TIME, 10, USE, 5

static void make_steps(void)
{
    static const uint8_t message[] = {0, OPENING, USE, 0, 0, 0, SAY(WF_DATA, 0, 1, 1, 0, 64, 0, 0, 0), TIME, 50};
    static const uint8_t early[] = {2, OPENING, SAY(WF_DATA, 0, 1, 1, 0, 64, 0, 0, 0), TIME, 5, USE, 0, 0, 0, TIME, 5};
    static const uint8_t offer[] = {
        1,      OPENING, SAY(WF_OFFER, 0, 1, 1, 0, 0, 3000, 0, 0),         USE,  0, 2, 0, TIME, 9,
        LISTEN, 200,     BULK + SAY(WF_DATA, 0, 1, 1, 0, 200, 2800, 0, 0), TIME, 50};
    static const uint8_t write[] = {0,
                                    OPENING,
                                    SAY(WF_DATA, WF_FLAG_WRITE, 1, 1, 0, 200, 100, 0, 64),
                                    SAY(WF_DATA, WF_FLAG_WRITE, 1, 1, 200, 100, 0, 0, 64),
                                    TIME,
                                    50,
                                    LISTEN,
                                    64};
    static const uint8_t read[] = {0, OPENING, SAY(WF_READ, 0, 1, 1, 0, 0, 100, 0, 8), TIME, 50, LISTEN, 250};
    static const uint8_t foreign[] = {0, OPENING, SAY(WF_READ, 0, 1, 1, 0, 0, 100, 1, 8), TIME, 50, LISTEN, 250};
    static const uint8_t far[] = {0, OPENING, SAY(WF_DATA, WF_FLAG_WRITE, 1, 1, 0, 200, 0, 0, 60000), TIME, 50};
    static const uint8_t list[] = {0,    OPENING, SAY(WF_DATA, WF_FLAG_LIST, 1, 1, 0, 24, 0, 0, 0),
                                   TIME, 9,       SAY(WF_DATA, WF_FLAG_WRITE | WF_FLAG_LIST, 1, 2, 0, 9, 0, 0, 1),
                                   TIME, 9};
    /* With a device, whose stream holds the receive up: bytes that were not asked for; and those that were, later. */
    static const uint8_t parked[] = {4,
                                     OPENING,
                                     USE,
                                     0,
                                     3,
                                     3,
                                     SAY(WF_OFFER, 0, 1, 1, 0, 0, 3000, 3, 0),
                                     TIME,
                                     9,
                                     SAY(WF_DATA, 0, 1, 1, 0, 64, 2936, 3, 0),
                                     TIME,
                                     50};
    static const uint8_t unparked[] = {
        4, OPENING, USE,  0,  3,      3,  SAY(WF_DATA, WF_FLAG_TAGGED, 1, 1, 0, 200, 0, 3, 0), TIME, 9, USE,
        6, 128,     TIME, 50, LISTEN, 250};
    static const uint8_t device[] = {4,
                                     OPENING,
                                     USE,
                                     0,
                                     2,
                                     1,
                                     SAY(WF_OFFER, WF_FLAG_TAGGED, 1, 1, 0, 0, 3000, 3, 0),
                                     TIME,
                                     9,
                                     LISTEN,
                                     250,
                                     SAY(WF_DATA, WF_FLAG_TAGGED, 1, 1, 0, 250, 2750, 3, 0),
                                     TIME,
                                     9,
                                     USE,
                                     1,
                                     3,
                                     3,
                                     USE,
                                     6,
                                     128,
                                     SAY(WF_DATA, WF_FLAG_WRITE, 1, 2, 0, 200, 0, 2, 64),
                                     SAY(WF_READ, 0, 1, 3, 0, 0, 100, 2, 8),
                                     TIME,
                                     50,
                                     LISTEN,
                                     250};
    static const uint8_t replies[] = {0,
                                      OPENING,
                                      USE,
                                      1,
                                      3,
                                      5,
                                      USE,
                                      3,
                                      1,
                                      5,
                                      USE,
                                      2,
                                      2,
                                      5,
                                      TIME,
                                      50,
                                      LISTEN,
                                      250,
                                      SAY(WF_GRANT, WF_FLAG_PEER, 1, 1, 40000, 0, 0, 0, 0),
                                      TIME,
                                      9,
                                      SAY(WF_DATA, WF_FLAG_READ_REPLY | WF_FLAG_PEER, 1, 2, 0, 200, 700, 0, 0),
                                      TIME,
                                      9,
                                      SAY(WF_REFUSE, WF_FLAG_PEER, 1, 3, 0, 0, 0, 0, 0),
                                      TIME,
                                      9,
                                      USE,
                                      6,
                                      0};
    static const uint8_t asked[] = {0, USE, 7, TIME, 9, SAY(WF_OPENED, 0, 1, 0, 1024, 0, 0, 0, 0), TIME, 9};
    static const uint8_t closing[] = {0,
                                      OPENING,
                                      USE,
                                      0,
                                      0,
                                      0,
                                      SAY(WF_CLOSE, 0, 1, 1, 0, 0, 0, 0, 0),
                                      TIME,
                                      9,
                                      SAY(WF_CLOSED, 0, 1, 0, 0, 0, 0, 0, 0),
                                      SAY(WF_BYE, 0, 0, 0, 0, 0, 0, 0, 0)};
    static const uint8_t totals[] = {1,
                                     SAY(WF_STATE, 0, 0, 0, 0, 0, 64, 1, 0),
                                     SAY(WF_CREDIT, 0, 0, 0, 9000, 0, 0, 0, 0),
                                     SAY(WF_PING, 0, 0, 3, 0, 0, 0, 0, 0),
                                     SAY(WF_PONG, 0, 0, 3, 0, 0, 0, 0, 0),
                                     SAY(WF_DOWN, 0, 0, 0, 3, 0, 0, 1, 0),
                                     TIME,
                                     200};
    static const uint8_t pieces[] = {0,    OPENING, SAY(WF_DATA, WF_FLAG_LIST, 1, 1, 0, 48, 0, 0, 0),
                                     64,   0,       9,
                                     200,  0,       11,
                                     TIME, 9,       SAY(WF_DATA, WF_FLAG_WRITE | WF_FLAG_LIST, 1, 2, 0, 20, 0, 0, 1),
                                     TIME, 9,       SAY(WF_READ, WF_FLAG_LIST, 1, 3, 0, 0, 20, 0, 1),
                                     TIME, 9,       LISTEN,
                                     200};
    static const uint8_t again[] = {1,
                                    OPENING,
                                    USE,
                                    0,
                                    2,
                                    0,
                                    SAY(WF_OFFER, 0, 1, 1, 0, 0, 200, 0, 0),
                                    TIME,
                                    5,
                                    BULK + AGAIN,
                                    BULK + SAY(WF_DATA, WF_FLAG_RESENT, 1, 1, 0, 200, 0, 0, 0),
                                    TIME,
                                    9,
                                    AGAIN,
                                    LISTEN,
                                    200};
    static const uint8_t summed[] = {2, OPENING, SAY(WF_DATA, WF_FLAG_CRC, 1, 1, 0, 64, 0, 0, 0), TIME, 50, USE, 0,
                                     0, 0};
    static const uint8_t garbage[] = {0,   BYTES, 8,    'G', 'E',  'T', ' ', '/', ' ',
                                      'H', 'T',   TIME, 50,  WIDE, 1,   0,   255, 255};
    static const struct {
        const char *name;
        const uint8_t *bytes;
        size_t size;
    } rows[] = {
#define ROW(name) {#name, name, sizeof name}
        ROW(message), ROW(early),  ROW(offer),   ROW(write),    ROW(read),   ROW(foreign), ROW(far),
        ROW(list),    ROW(asked),  ROW(replies), ROW(closing),  ROW(totals), ROW(garbage), ROW(pieces),
        ROW(again),   ROW(summed), ROW(parked),  ROW(unparked), ROW(device),
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        put("connection", rows[i].name, rows[i].bytes, rows[i].size);
}

/* --- texts --- */

static void make_texts(void)
{
    static const struct {
        const char *target, *name, *text;
    } texts[] = {
        {"settings", "plain", "# rails of this machine\nrails = eth1,eth2\nchannels = 4\nchunk=64K # more\n\n"},
        {"settings", "types",
         "engine = epoll\nwindow = 4096\ncrc = on\neager = 0\nfault = seed=1,short=1\nlog=debug\n"},
        {"settings", "no_newline", "tx_bindings = eth1:8-21,112-125;eth2:22-35\r\npin = off"},
        {"settings", "unknown", "chanels = 4\n"},
        {"settings", "no_value", "chunk\n"},
        {"settings", "too_large", "chunk = 99999999999999999999G\nsize = 1,2K,3M\n"},
        {"bindings", "two", "eth1:8-21,112-125;eth2:22-35"},
        {"bindings", "ipv6", " fe80::2 : 22-35 ; ; 10.0.0.1:0"},
        {"bindings", "twice", "eth1:1;eth1:2"},
        {"bindings", "backwards", "eth1:9-3"},
        {"bindings", "far", "eth1:4294967296-4294967299"},
        {"gpus", "all", "all"},
        {"gpus", "list", "0,1,3"},
        {"gpus", "range", "0-1,7"},
        {"gpus", "far", "99999999999999999999"},
        {"gpus", "open", "0-"},
        {"fault", "all", "seed=7,reset_every=64M,flip_every=1G,short=1,stall=eth1@100+50,drop=0@1+1"},
        {"fault", "address", "drop=127.0.1.1@200+3000,stall=fe80::1@5+5"},
        {"fault", "twice", "seed=1,seed=2"},
        {"fault", "far", "stall=a@99999999999999999999+1"},
        {"fault", "empty_items", ",seed=1,"},
        {"json", "affinity",
         "{\"host\":[{\"node\":\"node0\",\"name\":\"a\",\"affinity\":{\"pin\":\"auto\",\"rail_policy\":\"near\","
         "\"threads\":[{\"name\":\"weft-rx0\",\"role\":\"rx\",\"rail\":\"eth1\",\"planned_cpus\":\"8-21\","
         "\"allowed_cpus\":\"8-21\",\"last_cpu\":9,\"numa_node\":0}],\"memory\":[{\"numa_node\":0,\"bytes\":4096}],"
         "\"endpoints\":[{\"endpoint\":\"0\",\"pages_there\":1,\"pages_seen\":2,\"numa_node\":0,\"refusal\":\"no\"}]}}]"
         "}"},
        {"json", "wrong_types",
         "{\"host\":[{\"affinity\":{\"threads\":[7,{\"name\":7}],\"memory\":{\"a\":[]}}},3,null]}"},
        {"json", "not_json", "warning: something\n{\"schema\""},
        {"json", "raw",
         "{\"schema\":\"weft.raw/1\",\"gb_per_s\":3.1,\"messages_per_s\":100,\"p50_us\":1,\"p99_us\":2,\"mean_us\":1}"},
        {"json", "mpi", "started by mpirun\n{\"schema\":\"weft.mpi/1\",\"gb_per_s\":3.1,\"messages_per_s\":1e3}"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        put(texts[i].target, texts[i].name, texts[i].text, strlen(texts[i].text));
}

/* --- steps of a payload stream of device memory: see fuzz_intake.c --- */

static size_t put_step(uint8_t *at, uint8_t what, const void *bytes, size_t size)
{
    at[0] = what;
    at[1] = (uint8_t)size;
    if (size)
        memcpy(at + 2, bytes, size);
    return 2 + size;
}

/* A message of three parts, the second beside device memory. */
static size_t put_message(uint8_t *at)
{
    static const struct wf_devmem_cmsg parts[] = {{.offset = 4096, .bytes = 4096, .token = 3, .dmabuf = 7},
                                                  {.bytes = 100},
                                                  {.offset = 8192, .bytes = 904, .token = 4, .dmabuf = 7}};
    uint8_t message[2 + WF_DEVMEM_CONTROL_BYTES(3)] = {0}, *control = message + 2;
    uint16_t received = 5100;
    memcpy(message, &received, sizeof received);
    for (int i = 0; i < 3; i++) {
        struct cmsghdr header = {.cmsg_len = CMSG_LEN(sizeof parts[i]),
                                 .cmsg_level = SOL_SOCKET,
                                 .cmsg_type = i == 1 ? WF_DEVMEM_SCM_LINEAR : WF_DEVMEM_SCM_DMABUF};
        memcpy(control, &header, sizeof header);
        memcpy(control + CMSG_LEN(0), &parts[i], sizeof parts[i]);
        control += CMSG_SPACE(sizeof parts[i]);
    }
    return put_step(at, 0, message, sizeof message);
}

static void make_intakes(void)
{
    static const struct wf_devmem_chunk chunks[] = {{.position = 0, .bytes = 4000, .to = 1 << 20},
                                                    {.position = 4000, .bytes = 1100, .to = 1 << 21}};
    static const uint8_t plain[2] = {200, 0};
    uint8_t steps[1024];
    size_t used = put_step(steps, 1, &chunks[0], sizeof chunks[0]);
    used += put_message(steps + used);
    used += put_step(steps + used, 2, NULL, 0);
    used += put_step(steps + used, 1, &chunks[1], sizeof chunks[1]);
    used += put_step(steps + used, 2, NULL, 0);
    used += put_step(steps + used, 3, NULL, 0);
    used += put_step(steps + used, 4, NULL, 0);
    put("intake", "fragments", steps, used);
    used = put_step(steps, 0, plain, sizeof plain);
    used += put_step(steps + used, 1, &chunks[0], sizeof chunks[0]);
    used += put_step(steps + used, 2, NULL, 0);
    put("intake", "plain", steps, used);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_corpus FOLDER\n");
        return 2;
    }
    root = argv[1];
    make_frames();
    make_setups();
    make_steps();
    make_texts();
    make_intakes();
    return EXIT_SUCCESS;
}
