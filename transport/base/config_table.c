/* The one table of settings, and the names that other systems have for them. */
#include "base/config_parts.h"

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)

/* The commands of the program. MOVES: those that open a context of the library. */
#define MESH WF_USE_MESH
#define PAIR WF_USE_PAIR
#define PEERS WF_USE_PEERS
#define TOPO WF_USE_TOPO
#define SWEEP WF_USE_SWEEP
#define PROFILE WF_USE_PROFILE
#define DOCTOR WF_USE_DOCTOR
#define COLLECTIVE WF_USE_COLLECTIVE
#define OVERLAP WF_USE_OVERLAP
#define STRAGGLER WF_USE_STRAGGLER
#define RUNS (MESH | PAIR | SWEEP) /* what a sweep passes on to its runs */
#define PLANS (RUNS | PROFILE)
#define PAIRS (PLANS | PEERS) /* what two nodes measure */
#define SETUP_COST WF_USE_SETUP_COST
#define RANKS (COLLECTIVE | OVERLAP | STRAGGLER | SETUP_COST)
#define MOVES (PAIRS | RANKS)

/* Arguments: group, topic, the commands it acts on, name, default, then what the type needs, the first sentence of its
 * meaning; after that .more = "..." and .value = "..." where they are needed. `weft config` shows every setting. */
#define ROW(of_group, about, acts_on, called, of_type, preset, ...)                                                    \
    {                                                                                                                  \
        .name = called, .type = WF_TYPE_##of_type, .group = WF_GROUP_##of_group, .topic = WF_TOPIC_##about,            \
        .uses = (acts_on) | WF_USE_CONFIG, .fallback = preset, __VA_ARGS__                                             \
    }
#define INT(group, topic, uses, name, preset, measured_in, least, most, ...)                                           \
    ROW(group, topic, uses, name, INT, preset, .unit = measured_in, .choices = "", .min = least, .max = most,          \
        .help = __VA_ARGS__)
#define SIZE(group, topic, uses, name, preset, least, most, ...)                                                       \
    ROW(group, topic, uses, name, SIZE, preset, .unit = "bytes", .choices = "", .min = least, .max = most,             \
        .help = __VA_ARGS__)
#define SIZES(group, topic, uses, name, preset, least, most, ...)                                                      \
    ROW(group, topic, uses, name, SIZES, preset, .unit = "bytes", .choices = "", .min = least, .max = most,            \
        .help = __VA_ARGS__)
#define CHOICE(group, topic, uses, name, preset, words, ...)                                                           \
    ROW(group, topic, uses, name, CHOICE, preset, .unit = "", .choices = words, .help = __VA_ARGS__)
#define CHOICES(group, topic, uses, name, preset, words, ...)                                                          \
    ROW(group, topic, uses, name, CHOICE, preset, .unit = "", .choices = words, .list = true, .help = __VA_ARGS__)
#define TEXT(group, topic, uses, name, preset, ...)                                                                    \
    ROW(group, topic, uses, name, TEXT, preset, .unit = "", .choices = "", .help = __VA_ARGS__)
/* A number whose 0 has a name. */
#define COUNT(group, topic, uses, name, preset, measured_in, word, most, ...)                                          \
    ROW(group, topic, uses, name, INT, preset, .unit = measured_in, .choices = "", .zero = word, .max = most,          \
        .help = __VA_ARGS__)
#define FLAG(group, topic, uses, name, preset, ...)                                                                    \
    ROW(group, topic, uses, name, FLAG, preset, .unit = "", .choices = "", .max = 1, .help = __VA_ARGS__)

static const struct wf_setting settings[WF_SETTING_COUNT] = {
    /*
     * An item names one rail exactly, or every rail that begins so where it ends in '*'; a leading '^' takes the listed
     * ones out. NCCL means prefixes unless told otherwise, so its variables are translated when they are imported:
     * "eth,ens" is "eth*,ens*", "=eth0,eth1" is "eth0,eth1", "^docker,lo" is "^docker*,lo*", "^=a,b" is "^a,b".
     */
    [WF_SET_RAILS] =
        TEXT(LIBRARY, NETWORK, MOVES | TOPO | DOCTOR, "rails", "",
             "Interfaces or local addresses to use, separated by commas; empty means all network cards.",
             .more = "'eth*' is every name that begins so, a leading '^' excludes the list, a link-local address names "
                     "its interface (fe80::1%eth0). weft topo lists what there is.",
             .value = "LIST"),
    [WF_SET_FAMILY] = CHOICE(LIBRARY, NETWORK, MOVES | TOPO | DOCTOR, "family", "auto", "auto|ipv4|ipv6",
                             "Which addresses of the interfaces count; auto takes IPv4 where an interface has both.",
                             .more = "An address that rails names counts in any case."),
    [WF_SET_PORT] =
        INT(LIBRARY, NETWORK, MOVES | DOCTOR, "port", "18555", "", 0, 65535,
            "The TCP port for control and all channels where an address names none; 0 lets the kernel choose."),
    [WF_SET_ENGINE] =
        CHOICE(LIBRARY, DATA, MOVES, "engine", "auto", "auto|uring|epoll", "How the kernel is asked to move data.",
               .more = "auto is io_uring where it works and each rail has threads of its own, else epoll."),
    [WF_SET_WORKERS] = CHOICE(
        LIBRARY, DATA, MOVES, "workers", "auto", "auto|shared|split",
        "Whether one thread serves all rails (shared), or each rail has two and small messages one more (split).",
        .more = "auto decides by the number of cores."),
    [WF_SET_PIN] = CHOICE(LIBRARY, PLACE, MOVES | TOPO, "pin", "auto", "auto|off|require",
                          "Whether threads and memory are placed near their rails.",
                          .more = "auto notes what the system refuses, require fails."),
    [WF_SET_RAIL_POLICY] = CHOICE(
        LIBRARY, PLACE, MOVES | TOPO, "rail_policy", "auto", "auto|near|node|all",
        "Which rails carry the large messages of an endpoint: those of its NUMA node, or all.",
        .more = "near and node are those of the node, where that is known; auto and all are every rail. In the plan of "
                "weft topo near also knows distances, and auto is near for GPUs."),
    [WF_SET_IRQ_POLICY] = CHOICE(LIBRARY, PLACE, MOVES | TOPO, "irq_policy", "avoid", "avoid|use|any",
                                 "Whether threads keep off the cores that serve the interrupts of network cards, "
                                 "receive there, or do not mind."),
    [WF_SET_TX_BINDINGS] = TEXT(LIBRARY, PLACE, MOVES | TOPO, "tx_bindings", "",
                                "The processors of the threads that send on a rail, as in eth1:8-21,112;eth2:8-21.",
                                .more = "Empty leaves them to the plan that weft topo shows.", .value = "LIST"),
    [WF_SET_RX_BINDINGS] =
        TEXT(LIBRARY, PLACE, MOVES | TOPO, "rx_bindings", "",
             "The processors of the threads that receive on a rail, written as tx_bindings is.", .value = "LIST"),
    [WF_SET_CHANNELS] =
        INT(LIBRARY, DATA, MOVES, "channels", "1", "streams", 1, 64, "TCP streams for bulk data per peer and rail."),
    [WF_SET_WINDOW] = INT(LIBRARY, DATA, MOVES, "window", "64", "chunks", 1, 4096,
                          "Chunks that may be under way on a channel before the receiver has to acknowledge one."),
    [WF_SET_CHUNK] = SIZE(LIBRARY, DATA, MOVES, "chunk", "512K", 64, 64 * MIB,
                          "The size of the pieces in which a large message travels over the channels."),
    [WF_SET_EAGER] =
        SIZE(LIBRARY, DATA, MOVES, "eager", "8K", 0, 64 * KIB, "The largest message that is copied and sent at once.",
             .more = "Its send completes without waiting for the receiver."),
    [WF_SET_FIRST_BURST] = SIZE(
        LIBRARY, DATA, MOVES, "first_burst", "1M", 0, 16 * MIB,
        "Bytes of a larger message that are sent before its receiver has asked for them.",
        .more = "More than 64K only of a message that goes whole, or where no others are under way, and at most half "
                "of what is left of the receiver's unexpected; else the receiver is asked first. Rounded down to a "
                "multiple of 128."),
    [WF_SET_INTRODUCTIONS] =
        INT(LIBRARY, LIMITS, MOVES, "introductions", "1024", "messages", 2, 65536,
            "Messages of a connection that may be known to the receiver and not yet finished.",
            .more = "Once all connections with a peer have a million together, a further one gets 16."),
    [WF_SET_UNEXPECTED] = SIZE(LIBRARY, LIMITS, MOVES, "unexpected", "8M", 4 * KIB, 16 * GIB,
                               "Buffer per peer for data that arrives before its receive is posted."),
    [WF_SET_SMALL_POOL] = SIZE(LIBRARY, LIMITS, MOVES, "small_pool", "2M", 4 * KIB, 16 * GIB,
                               "Buffer per peer for the copies of small messages that are not yet acknowledged."),
    [WF_SET_REQUESTS] = INT(LIBRARY, LIMITS, MOVES, "requests", "65536", "requests", 1, 16777216,
                            "Sends and receives that may be outstanding in a context."),
    [WF_SET_PEERS] = INT(LIBRARY, LIMITS, MOVES, "peers", "64", "peers", 1, 65536,
                         "Peers that a context may be connected to at a time."),
    [WF_SET_HEADER_PAD] = SIZE(LIBRARY, DATA, MOVES, "header_pad", "512", 64, 4 * KIB,
                               "Bytes from the start of a bulk frame to its payload, in steps of 64."),
    [WF_SET_SOCKET_BUFFER] =
        SIZE(LIBRARY, DATA, MOVES, "socket_buffer", "0", 0, GIB,
             "Send and receive buffer of each socket; 0 leaves the size to the kernel, which adapts it."),
    [WF_SET_CONGESTION] =
        TEXT(LIBRARY, DATA, MOVES, "congestion", "",
             "The congestion control of each socket; empty leaves it to the kernel, but for loopback.",
             .more = "One of those in /proc/sys/net/ipv4/tcp_allowed_congestion_control. If empty, channels that this "
                     "side dials within this machine, or accepts on a loopback address, have reno, which does not "
                     "pace.",
             .value = "NAME"),
    [WF_SET_DSCP] = TEXT(
        LIBRARY, NETWORK, MOVES, "dscp", "0,0,0,0",
        "The mark (DSCP, 0 to 63) of the packets that this side sends, one for each traffic class.",
        .more = "A shorter list leaves the other classes at 0. Traffic of the library has class 0 unless the program "
                "names another.",
        .value = "LIST"),
    [WF_SET_CALL] =
        SIZE(LIBRARY, DATA, MOVES, "call", "0", 0, 64 * MIB,
             "The most bytes in one send or receive call, at least 4K; 0 lets the library choose.",
             .more = "Smaller calls let small messages pass sooner. With 0 a call has as many chunks as 8M "
                     "holds; with io_uring or crc one; and with io_uring, encrypt or fault 256K where there "
                     "are several streams for bulk data."),
    [WF_SET_ZERO_COPY] =
        SIZE(LIBRARY, DATA, MOVES | TOPO, "zero_copy", "0", 0, GIB,
             "Sends of at least so many bytes leave without the kernel's copying them; 0 means none.",
             .more = "This needs io_uring; a network card that never lets go of the memory holds them up."),
    [WF_SET_READ_AHEAD] =
        CHOICE(LIBRARY, DATA, MOVES, "read_ahead", "auto", "auto|off|on",
               "Whether payload that no cache holds is read into one before the kernel copies it.",
               .more = "auto does so where that takes less time than without, and tries both now and then."),
    [WF_SET_SPIN_US] = INT(LIBRARY, DATA, MOVES, "spin_us", "50", "us", 0, 1000000,
                           "How long a waiting thread polls at most before it sleeps, and less while that does not "
                           "pay.",
                           .value = "US"),
    [WF_SET_TIMEOUT] = INT(LIBRARY, NETWORK, MOVES, "timeout", "30", "s", 1, 86400,
                           "A peer from which nothing has come for so long is given up.", .value = "S"),
    [WF_SET_CONNECT_TIMEOUT] = INT(LIBRARY, NETWORK, MOVES | DOCTOR, "connect_timeout", "30", "s", 1, 86400,
                                   "How long connecting to a peer and the handshake with it may take.", .value = "S"),
    [WF_SET_RAIL_TIMEOUT_MS] =
        INT(LIBRARY, NETWORK, MOVES, "rail_timeout_ms", "2000", "ms", 10, 3600000,
            "A rail on which nothing moves for so long while others do is lost; its work goes to the others.",
            .value = "MS"),
    [WF_SET_CRC] = CHOICE(LIBRARY, NETWORK, MOVES, "crc", "off", "off|on",
                          "Whether the payload that this side sends carries a checksum that the receiver verifies."),
    [WF_SET_CRC_LIMIT] = INT(LIBRARY, NETWORK, MOVES, "crc_limit", "16", "chunks", 0, 1000000,
                             "A rail that has damaged so many chunks is not used any more while another is left; 0 "
                             "means it always is."),
    [WF_SET_KEY_FILE] =
        TEXT(LIBRARY, NETWORK, MOVES | DOCTOR, "key_file", "",
             "The file with the key that every peer has to hold; empty lets everybody connect.",
             .more = "weft key makes one. Only its owner may be able to read the file.", .value = "FILE"),
    [WF_SET_ENCRYPT] = CHOICE(LIBRARY, NETWORK, MOVES | DOCTOR, "encrypt", "off", "off|on",
                              "Whether everything on the channels is encrypted (AES-256-GCM).",
                              .more = "on needs a key_file, and the same setting at every peer."),
    [WF_SET_CUDA] = CHOICE(LIBRARY, PLACE, MOVES | TOPO, "cuda", "auto", "auto|off|require",
                           "Whether messages may lie in GPU memory.",
                           .more = "auto where a driver and a GPU are found, require fails where they are not."),
    [WF_SET_GPUS] =
        TEXT(LIBRARY, PLACE, MOVES | TOPO, "gpus", "", "The GPUs to make ready at the start, as in 0,2,5-7, or all.",
             .more = "Empty means each when memory of it is registered first, and weft mesh, pair and topo take all "
                     "of them as endpoints.",
             .value = "LIST"),
    [WF_SET_DEVMEM] =
        CHOICE(LIBRARY, PLACE, MOVES | TOPO, "devmem", "auto", "auto|off|require",
               "Whether network cards read and write registered GPU memory themselves (device-memory TCP).",
               .more = "auto where kernel, driver and card can, require fails where they cannot. With crc or "
                       "encrypt the bytes pass through host memory."),
    [WF_SET_DEVMEM_POOL] =
        SIZE(LIBRARY, LIMITS, MOVES, "devmem_pool", "64M", MIB, 16 * GIB,
             "The most memory of a GPU that one network card receives into; less does for a slow card."),
    [WF_SET_STAGING] = SIZE(LIBRARY, LIMITS, MOVES, "staging", "64M", 64 * KIB, 16 * GIB,
                            "Pinned memory per GPU and direction through which messages in its memory pass."),
    [WF_SET_NCCL_DEVICES] =
        CHOICE(LIBRARY, PLACE, MESH | PAIR | PEERS, "nccl_devices", "all", "all|rails|both",
               "What NCCL's plugin shows to NCCL: one device for all rails together, one for each rail, or both."),
    [WF_SET_NCCL_PTR] =
        CHOICE(LIBRARY, PLACE, MESH | PAIR | PEERS, "nccl_ptr", "auto", "auto|host|cuda",
               "The memory that NCCL's plugin takes: host memory, or GPU memory, too.",
               .more = "auto takes GPU memory where devmem = require; cuda in any case, through pinned memory if need "
                       "be."),
    [WF_SET_FAULT] =
        TEXT(LIBRARY, NETWORK, MOVES, "fault", "",
             "Faults to inject, to see what becomes of them, as in seed=7,reset_every=64M.",
             .more = "The items are seed=N, reset_every=SIZE, flip_every=SIZE, short=1, stall=RAIL@MS+MS and "
                     "drop=RAIL@MS+MS, as docs/faults.md tells.",
             .value = "ITEM[,ITEM...]"),
    [WF_SET_LOG] = CHOICE(LIBRARY, OUTPUT, MOVES | DOCTOR, "log", "warn", "error|warn|info|debug",
                          "The least severe messages that are written to standard error."),

    [WF_SET_ENDPOINTS] = INT(BENCH, WHAT, PLANS | TOPO, "endpoints", "0", "endpoints", 0, 1024,
                             "Endpoints per node; 0 means one for each GPU, or 8 where there is none."),
    [WF_SET_BEGIN] = SIZE(BENCH, WHAT, PLANS | COLLECTIVE, "begin", "1M", 0, TIB, "The smallest message size."),
    [WF_SET_END] = SIZE(BENCH, WHAT, PLANS | COLLECTIVE, "end", "64M", 0, TIB, "The largest message size."),
    [WF_SET_FACTOR] = INT(BENCH, WHAT, PLANS | COLLECTIVE, "factor", "4", "", 1, 1048576,
                          "Each message size is this many times the one before."),
    [WF_SET_SIZE] = SIZES(BENCH, WHAT, PAIRS | COLLECTIVE | SETUP_COST, "size", "", 0, TIB,
                          "The message sizes, separated by commas, instead of begin, end and factor."),
    [WF_SET_ITERS] =
        COUNT(BENCH, HOW, PAIRS | COLLECTIVE | OVERLAP | SETUP_COST, "iters", "auto", "messages", "auto", 1000000000,
              "Measured messages per pair and size; auto (or 0) takes as many as fit into the duration.",
              .more = "auto takes what fits into the size's share of it, at least 8 (64 small ones), and 2000 for a "
                      "ping-pong.",
              .value = "N|auto"),
    [WF_SET_DURATION] =
        INT(BENCH, HOW, RUNS | COLLECTIVE, "duration", "5", "s", 1, 86400,
            "With iters auto, how long all messages that are timed shall take.",
            .more = "The modes, sizes and pairs share it; warm-up and verification come on top.", .value = "S"),
    [WF_SET_WARMUP] = INT(BENCH, HOW, PAIRS | COLLECTIVE | OVERLAP, "warmup", "5", "messages", 0, 1000000000,
                          "Messages per pair and size that are sent first and not measured."),
    [WF_SET_CHECK] =
        CHOICE(BENCH, HOW, PLANS | COLLECTIVE | OVERLAP, "check", "1", "0|1|all",
               "Whether what arrives is verified: not, in a pass of its own, or also while it is timed.",
               .more = "1 sends the measured messages again, untimed, and verifies every byte of these for as long as "
                       "check_time_ms allows; all verifies the measured ones, too, in measured time."),
    [WF_SET_CHECK_TIME_MS] =
        INT(BENCH, HOW, RUNS, "check_time_ms", "2000", "ms", 0, 3600000,
            "How long what was measured is sent again and verified.",
            .more = "This is for all pairs of one backend, mode and size together; it is at least one window of each "
                    "pair.",
            .value = "MS"),
    [WF_SET_MEMORY] =
        CHOICE(BENCH, WHAT, PAIRS | TOPO | COLLECTIVE | OVERLAP, "memory", "auto", "auto|host|cuda",
               "Where the messages lie; auto takes GPU memory where it can be used, else host memory.",
               .more = "In weft collective auto is GPU memory for NCCL and host memory for all others; in "
                       "weft overlap it is host memory."),
    [WF_SET_PATTERN] = CHOICE(
        BENCH, WHAT, MESH | SWEEP, "pattern", "mesh", "mesh|pairs|bidir|incast|ring|alltoall|permutation|bisection",
        "Which pairs send: every pair of two nodes, or fewer of them.",
        .more =
            "Mesh: every directed pair between nodes; pairs: equal numbers; bidir: each pair both ways at once; "
            "incast: "
            "all to one; alltoall: also those within a node. Equal numbers also with ring: to the next node; "
            "permutation: to one other node, by the seed; bisection: with the node of that place in the other half."),
    [WF_SET_NODE_PAIRS] =
        COUNT(BENCH, HOW, MESH, "node_pairs", "auto", "pairs", "auto", 4096,
              "Pairs of nodes that measure at a time when isolated.",
              .more = "Auto takes one where nodes share a machine, else as many as there can be with no node in two."),
    [WF_SET_PROCESSES] = INT(
        BENCH, HOW, MESH | SWEEP, "processes", "1", "processes", 1, 64,
        "Processes of each node, each with a context and a share of the endpoints.",
        .more = "With --local, --nodes or a launcher, which starts so many on each node, one after the other by rank."),
    [WF_SET_SESSIONS] = INT(BENCH, NETWORK, MESH, "sessions", "0", "sessions", 0, 65536,
                            "Sessions with other nodes that a node of many keeps open at a time; 0 means no limit.",
                            .more = "Those with its parent and children, by which results travel, do not count."),
    [WF_SET_SCOPE] = CHOICE(BENCH, WHAT, MESH | SWEEP | PROFILE, "scope", "inter", "inter|intra|all",
                            "Which pairs there are: those between the nodes, those within each, or all."),
    [WF_SET_MODE] = CHOICE(
        BENCH, WHAT, MESH | SWEEP, "mode", "both", "isolated|loaded|both",
        "Whether pairs send one at a time (isolated), all at once (loaded), or first the one and then the other."),
    [WF_SET_INFLIGHT] =
        INT(BENCH, HOW, RUNS | PEERS, "inflight", "0", "messages", 0, 65536,
            "Messages outstanding per pair; 0 means 1 for mesh, and for pair 16, or as many as 1G holds."),
    [WF_SET_BUFFERS] = INT(BENCH, HOW, RUNS | PEERS, "buffers", "0", "buffers", 0, 65536,
                           "Buffers that the messages of a pair take turns in, at each side.",
                           .more = "0 means one for each in flight at the receiver, and shared memory at the sender."),
    [WF_SET_BACKGROUND] = SIZE(BENCH, WHAT, PAIR | SWEEP, "background", "0", 0, TIB,
                               "With weft pair --lat, the size of messages that are exchanged meanwhile; 0 means none.",
                               .more = "The two endpoints exchange them back to back, both ways, on the same "
                                       "connection."),
    [WF_SET_BACKGROUND_INFLIGHT] = INT(BENCH, HOW, PAIR | SWEEP, "background_inflight", "2", "messages", 1, 1024,
                                       "How many messages of background are outstanding each way."),
    [WF_SET_BACKEND] = CHOICES(BENCH, WHAT, PLANS, "backend", "weft", "weft|nccl|plugin|null",
                               "What moves the messages, one or several in turns.",
                               .more = "nccl moves those in GPU memory; plugin is Weft as NCCL drives it, through its "
                                       "net plugin; null moves none and measures the harness itself."),
    [WF_SET_NCCL_LIBRARY] =
        TEXT(BENCH, HOW, PAIRS | COLLECTIVE | OVERLAP | SETUP_COST, "nccl_library", "",
             "NCCL's library: a file, or the folder of a libnccl.so.2; empty means the usual places.", .value = "FILE"),
    [WF_SET_PLUGIN_LIBRARY] =
        TEXT(BENCH, HOW, PAIRS, "plugin_library", "",
             "The file of the net plugin for NCCL; empty means libnccl-net-weft.so beside this program's library.",
             .value = "FILE"),
    [WF_SET_SEED] = INT(BENCH, HOW, PLANS | STRAGGLER, "seed", "42", "", 0, INT64_MAX,
                        "Determines the order of the pairs and the data of the messages."),
    [WF_SET_SRC] = TEXT(BENCH, WHAT, PAIR | SWEEP, "src", "node0:host0", "The endpoint that sends in weft pair.",
                        .more = "gpu3 instead of host3 asks for GPU memory there, and host3 for host memory.",
                        .value = "NODE:ENDPOINT"),
    [WF_SET_DST] = TEXT(BENCH, WHAT, PAIR | SWEEP, "dst", "node1:host0", "The endpoint that receives in weft pair.",
                        .value = "NODE:ENDPOINT"),
    [WF_SET_OUT] = TEXT(BENCH, OUTPUT, MOVES | DOCTOR, "out", "",
                        "The folder for the results; empty means none are written.", .value = "DIR"),
    [WF_SET_JSON] = TEXT(BENCH, OUTPUT, MOVES | TOPO | DOCTOR, "json", "",
                         "The file for the results as JSON; '-' is standard output.", .value = "FILE"),
    [WF_SET_CSV] = TEXT(BENCH, OUTPUT, PLANS | COLLECTIVE, "csv", "",
                        "The file for the results as CSV; '-' is standard output.", .value = "FILE"),
    [WF_SET_JSON_STREAM] =
        TEXT(BENCH, OUTPUT, MESH | PAIR, "json_stream", "",
             "The file for each sample as soon as it is measured, a JSON object a line; '-' is standard output.",
             .value = "FILE"),
    [WF_SET_EXPECT] =
        TEXT(BENCH, HOW, MESH | PAIR, "expect", "",
             "The least share of the rails' line rate, above 0 and up to 1, that each direction has to "
             "reach.",
             .more = "This is with the largest size; below it weft mesh and pair end with status 1.", .value = "RATIO"),
    [WF_SET_LOG_DIR] =
        TEXT(BENCH, OUTPUT, MESH | PAIR | DOCTOR, "log_dir", "",
             "The folder for one log per endpoint of weft mesh; empty means none are written.", .value = "DIR"),
    [WF_SET_WATCH_MEMORY] =
        FLAG(BENCH, HOW, MESH | PAIR, "watch_memory", "0",
             "Whether memory is sampled once a second, and a growth is warned of at the end.",
             .more = "Runs of three minutes and more are judged (--duration). It is each node's own setting, but one "
                     "for both with --local."),
    [WF_SET_QUIET] = FLAG(BENCH, OUTPUT, MOVES | DOCTOR, "quiet", "0", "Whether only errors are printed."),
    [WF_SET_WIDTH] = ROW(
        BENCH, OUTPUT, MESH | PAIR, "width", INT, "auto", .unit = "columns", .choices = "", .zero = "auto", .min = 40,
        .max = 1000, .help = "How wide the report may be; auto (or 0) is the terminal's width, at least 80.",
        .more = "What is wider goes on in further lines, the matrix in further blocks.", .value = "N|auto"),
    [WF_SET_ROUNDS] = INT(BENCH, HOW, PEERS | SWEEP | COLLECTIVE, "rounds", "5", "rounds", 1, 1000,
                          "How often weft peers runs every tool for each case, weft sweep every point, and weft "
                          "collective every backend, in turns."),
    [WF_SET_TOOLS] =
        TEXT(BENCH, WHAT, PEERS, "tools", "", "The tools that weft peers runs, separated by commas; empty means all.",
             .more = "A leading '^' excludes the list.", .value = "LIST"),
    [WF_SET_SECONDS] =
        TEXT(BENCH, HOW, PEERS, "seconds", "0.5",
             "How long Weft takes for the messages of a case in weft peers; other tools move as many.", .value = "S"),
    [WF_SET_IDLE_TIMEOUT] =
        INT(BENCH, NETWORK, PAIRS | DOCTOR, "idle_timeout", "0", "s", 0, 31536000,
            "How long a node that listens waits for a client before it ends; 0 means for ever.", .value = "S"),
    [WF_SET_MEASURE] = CHOICE(BENCH, WHAT, SWEEP, "measure", "pair", "mesh|pair",
                              "What each run of a sweep is: weft mesh, or weft pair."),
    [WF_SET_VARY] = TEXT(
        BENCH, WHAT, SWEEP, "vary", "", "The settings that a sweep tries, each with its values.",
        .more = "Values are separated by commas, or by '|' where they have commas in them; 16..128x2 is 16,32,64,128, "
                "and 1..4 is 1,2,3,4. A number for rails is so many of those that are here.",
        .value = "NAME=VALUE,..."),
    [WF_SET_RUNS] =
        COUNT(BENCH, HOW, SWEEP, "runs", "auto", "runs", "auto", 10000000,
              "The most runs of a sweep with --auto; auto is a third of what the whole grid takes.", .value = "N|auto"),
    [WF_SET_TRACES] = TEXT(BENCH, OUTPUT, PROFILE, "traces", "traces",
                           "The folder in which weft profile makes one for this kind of machine, with its files.",
                           .more = "It is called GPU-DRIVER-CUDA, or host-PROCESSOR-KERNEL where there is no GPU; the "
                                   "files of the run before are replaced.",
                           .value = "DIR"),
    [WF_SET_DRIFT_S] = INT(BENCH, HOW, PROFILE, "drift_s", "30", "s", 0, 3600,
                           "How long the clocks are compared before the measurement, and again after it.",
                           .more = "0 compares them only as often as their alignment needs.", .value = "S"),
    [WF_SET_DRIFT_WINDOWS] = INT(BENCH, HOW, PROFILE, "drift_windows", "1", "windows", 1, 20,
                                 "How many times in a row the clocks are compared for drift_s, each time."),
    [WF_SET_LOCK_CLOCKS] = FLAG(BENCH, HOW, PROFILE, "lock_clocks", "0",
                                "Whether the GPUs' clocks are held at the highest frequency for the time of the run.",
                                .more = "This needs root. Another process undoes it, however the run ends."),
    [WF_SET_WARM_TO] = COUNT(BENCH, HOW, PROFILE, "warm_to", "off", "degrees Celsius", "off", 110,
                             "Heat the GPUs, or the processors where there are none, to this before measuring.",
                             .value = "CELSIUS|off"),
    [WF_SET_WARM_S] = INT(BENCH, HOW, PROFILE, "warm_s", "60", "s", 1, 3600,
                          "The longest time that warming up may take.", .value = "S"),
    [WF_SET_REWARM_EVERY] = COUNT(BENCH, HOW, PROFILE, "rewarm_every", "off", "messages", "off", 1000000,
                                  "After so many messages, look whether it must be warmed up again.", .value = "N|off"),
    [WF_SET_REWARM_BELOW] =
        INT(BENCH, HOW, PROFILE, "rewarm_below", "45", "degrees Celsius", 1, 110,
            "With rewarm_every, the temperature below which it is warmed up again.", .value = "CELSIUS"),
};

/* In the order of import: of two that act on one setting the later wins. */
static const struct wf_alias aliases[] = {
    {"UCCL_TCPX_NUM_CHANNELS", WF_SET_CHANNELS},
    {"UCCL_TCPX_CHUNK_BYTES", WF_SET_CHUNK},
    {"UCCL_TCPX_WINDOW_SIZE", WF_SET_WINDOW},
    {"UCCL_TCPX_PERF_SIZE", WF_SET_SIZE},
    {"UCCL_TCPX_PERF_ITERS", WF_SET_ITERS},
    {"UCCL_TCPX_BOOTSTRAP_PORT_BASE", WF_SET_PORT},
    {"GPU_LIST", WF_SET_GPUS},
    {"LOG_DIR", WF_SET_LOG_DIR},
    {"NCCL_SOCKET_IFNAME", WF_SET_RAILS},
    {"NCCL_SOCKET_FAMILY", WF_SET_FAMILY},
    {"NCCL_GPUDIRECTTCPX_SOCKET_IFNAME", WF_SET_RAILS},
    {"NCCL_GPUDIRECTTCPX_TX_BINDINGS", WF_SET_TX_BINDINGS},
    {"NCCL_GPUDIRECTTCPX_RX_BINDINGS", WF_SET_RX_BINDINGS},
    {NULL, WF_SETTING_COUNT},
};

/* Names that scripts read: WEFT_CONFIG, WEFT_SETUP, …. They are no settings, and no typing errors either. */
static const char *const script_names[] = {"config", "setup", "build", "test_program", "test_root", "werror"};

_Static_assert(sizeof(script_names) / sizeof(script_names[0]) == WF_SCRIPT_NAMES, "config_parts.h counts them");

const struct wf_setting *wf_setting(enum wf_setting_id id)
{
    return (unsigned)id < WF_SETTING_COUNT ? &settings[id] : NULL;
}

const struct wf_alias *wf_config_aliases(void)
{
    return aliases;
}

const char *wf_config_name(size_t index)
{
    return index < WF_SETTING_COUNT ? settings[index].name : script_names[index - WF_SETTING_COUNT];
}
