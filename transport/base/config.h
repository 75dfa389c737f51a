/*
 * config.h: the one table of settings and the one reader of the environment. Every setting has a name, a type, a
 * default as text, a unit and a help line; a value stores its origin. Order of precedence:
 *
 *     default < preset (--preset) < file (--config, WEFT_CONFIG) < environment (alias < WEFT_NAME) < command line / API
 */
#ifndef WF_BASE_CONFIG_H
#define WF_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

enum wf_setting_type {
    WF_TYPE_INT,    /* decimal number within [min, max] */
    WF_TYPE_SIZE,   /* bytes; K, M, G, T = powers of 1024; within [min, max] */
    WF_TYPE_CHOICE, /* one word of `choices` */
    WF_TYPE_TEXT,   /* free text */
    WF_TYPE_FLAG,   /* 0|1, and the other words for them: see wf_setting_boolean() */
    WF_TYPE_SIZES   /* comma separated sizes; empty: none */
};

enum wf_setting_group { WF_GROUP_LIBRARY, WF_GROUP_BENCH };

/* What a setting is about: the sections of a help text. */
enum wf_setting_topic {
    WF_TOPIC_WHAT,    /* what is measured */
    WF_TOPIC_HOW,     /* how it is measured */
    WF_TOPIC_OUTPUT,  /* what is written, and where */
    WF_TOPIC_NETWORK, /* rails, peers, deadlines, security */
    WF_TOPIC_DATA,    /* how data moves */
    WF_TOPIC_LIMITS,  /* how much memory that takes, and how many of everything there may be */
    WF_TOPIC_PLACE,   /* where threads and memory are, GPUs */
    WF_TOPIC_COUNT
};

/* The commands of the program `weft` that settings act on. */
enum wf_setting_use {
    WF_USE_MESH = 1,
    WF_USE_PAIR = 2,
    WF_USE_PEERS = 4,
    WF_USE_TOPO = 8,
    WF_USE_CONFIG = 16, /* which shows all of them */
    WF_USE_SWEEP = 32,
    WF_USE_PROFILE = 512, /* the numbers between belong to commands without settings */
    WF_USE_COLLECTIVE = 4096,
    WF_USE_DOCTOR = 65536,
    WF_USE_STRAGGLER = 1 << 20,
    WF_USE_SETUP_COST = 1 << 21,
    WF_USE_OVERLAP = 1 << 22
};

/* The identities of the settings; the table in config_table.c has one row for each. */
enum wf_setting_id {
    /* library */
    WF_SET_RAILS,           /* rails: text, "" = all network cards; names, addresses; a* = prefix, leading ^ excludes */
    WF_SET_FAMILY,          /* family: choice auto|ipv4|ipv6, auto; which addresses of interfaces count */
    WF_SET_PORT,            /* port: int 18555, 0..65535 */
    WF_SET_ENGINE,          /* engine: choice auto|uring|epoll, auto */
    WF_SET_WORKERS,         /* workers: choice auto|shared|split, auto */
    WF_SET_PIN,             /* pin: choice auto|off|require, auto */
    WF_SET_RAIL_POLICY,     /* rail_policy: choice auto|near|node|all, auto */
    WF_SET_IRQ_POLICY,      /* irq_policy: choice avoid|use|any, avoid */
    WF_SET_TX_BINDINGS,     /* tx_bindings: text, "eth1:8-21,112-125;eth2:…" */
    WF_SET_RX_BINDINGS,     /* rx_bindings: text, as tx_bindings */
    WF_SET_CHANNELS,        /* channels: bulk TCP streams per peer and rail, 1..64 */
    WF_SET_WINDOW,          /* window: chunks in flight per channel, 1..4096 */
    WF_SET_CHUNK,           /* chunk: size 64..64M; odd values are allowed */
    WF_SET_EAGER,           /* eager: size 0..64K; the largest message that is copied and sent at once */
    WF_SET_FIRST_BURST,     /* first_burst: size 0..16M; bytes of a larger message sent before the receiver asks */
    WF_SET_INTRODUCTIONS,   /* introductions: int 1024, 2..65536 */
    WF_SET_UNEXPECTED,      /* unexpected: size 8M; buffer for payload without a posted receive; per peer */
    WF_SET_SMALL_POOL,      /* small_pool: size 2M; copies of small sends; per peer */
    WF_SET_REQUESTS,        /* requests: int 65536; the most operations under way in a context */
    WF_SET_PEERS,           /* peers: int 64; the most sessions of a context */
    WF_SET_HEADER_PAD,      /* header_pad: size 64..4096, multiple of 64: bytes of a bulk frame before its payload */
    WF_SET_SOCKET_BUFFER,   /* socket_buffer: size 0 = left to the kernel */
    WF_SET_CONGESTION,      /* congestion: text, name of a congestion control; "": the kernel's */
    WF_SET_DSCP,            /* dscp: text "0,0,0,0"; the mark of the packets of each traffic class, 0..63 */
    WF_SET_CALL,            /* call: size 0 = chosen by the library; the most bytes in one send or receive call */
    WF_SET_ZERO_COPY,       /* zero_copy: size 0 = never; sends of this size or more leave without a copy */
    WF_SET_READ_AHEAD,      /* read_ahead: choice auto|off|on, auto; reads payload before the kernel copies it */
    WF_SET_SPIN_US,         /* spin_us: int, microseconds a waiting caller polls before it sleeps */
    WF_SET_TIMEOUT,         /* timeout: int seconds 30; a peer that sends nothing for this time is given up */
    WF_SET_CONNECT_TIMEOUT, /* connect_timeout: int seconds 30; for connecting to a peer, with the handshake */
    WF_SET_RAIL_TIMEOUT_MS, /* rail_timeout_ms: int 2000; a rail silent for this time is lost, if other rails answer */
    WF_SET_CRC,             /* crc: choice off|on, off */
    WF_SET_CRC_LIMIT,       /* crc_limit: int 16; a rail with this many damaged chunks is retired; 0: never */
    WF_SET_KEY_FILE,        /* key_file: text, "" = none; the file with the key that every peer holds */
    WF_SET_ENCRYPT,         /* encrypt: choice off|on, off; needs key_file */
    WF_SET_CUDA,            /* cuda: choice auto|off|require, auto */
    WF_SET_GPUS,            /* gpus: text, "" = each GPU when its memory is registered first; "all", or "0,2,5-7" */
    WF_SET_DEVMEM,          /* devmem: choice auto|off|require, auto */
    WF_SET_DEVMEM_POOL,     /* devmem_pool: size 64M; the most memory of a GPU for each card */
    WF_SET_STAGING,         /* staging: size 64M; pinned memory per GPU and direction */
    WF_SET_NCCL_DEVICES,    /* nccl_devices: choice all|rails|both, all; what the plugin shows to NCCL */
    WF_SET_NCCL_PTR,        /* nccl_ptr: choice auto|host|cuda, auto; the memory that the plugin takes from NCCL */
    WF_SET_FAULT,           /* fault: text as in fault_spec.h; faults to inject; "": none */
    WF_SET_LOG,             /* log: choice error|warn|info|debug, warn */
    /* bench */
    WF_SET_ENDPOINTS, /* endpoints: int, 0 = all GPUs, else 8 */
    WF_SET_BEGIN,
    WF_SET_END,
    WF_SET_FACTOR,
    WF_SET_SIZE,
    WF_SET_ITERS,
    WF_SET_DURATION,
    WF_SET_WARMUP,
    WF_SET_CHECK, /* check: choice 0|1|all, 1 */
    WF_SET_CHECK_TIME_MS,
    WF_SET_MEMORY,
    WF_SET_PATTERN,
    WF_SET_NODE_PAIRS,
    WF_SET_PROCESSES,
    WF_SET_SESSIONS,
    WF_SET_SCOPE,
    WF_SET_MODE,
    WF_SET_INFLIGHT,
    WF_SET_BUFFERS,
    WF_SET_BACKGROUND,
    WF_SET_BACKGROUND_INFLIGHT,
    WF_SET_BACKEND,
    WF_SET_NCCL_LIBRARY,   /* nccl_library: text, "" = the usual places */
    WF_SET_PLUGIN_LIBRARY, /* plugin_library: text, "" = this build's own, else the loader's */
    WF_SET_SEED,
    WF_SET_SRC,
    WF_SET_DST,
    WF_SET_OUT,
    WF_SET_JSON,
    WF_SET_CSV,
    WF_SET_JSON_STREAM,
    WF_SET_EXPECT,
    WF_SET_LOG_DIR,
    WF_SET_WATCH_MEMORY,
    WF_SET_QUIET,
    WF_SET_WIDTH, /* width: int 40..1000, 0 = auto; columns of a report */
    WF_SET_ROUNDS,
    WF_SET_TOOLS,
    WF_SET_SECONDS,       /* seconds: how long `weft peers` measures */
    WF_SET_IDLE_TIMEOUT,  /* idle_timeout: int seconds 0 = none; how long a node that listens waits for a client */
    WF_SET_MEASURE,       /* measure: choice mesh|pair, pair; what a sweep runs */
    WF_SET_VARY,          /* vary: text, "chunk=256K,1M window=16..128x2"; what a sweep tries */
    WF_SET_RUNS,          /* runs: int 0 = a third of what the grid takes; the most runs of weft sweep --auto */
    WF_SET_TRACES,        /* traces: text "traces"; the folder that weft profile makes one of its own in */
    WF_SET_DRIFT_S,       /* drift_s: int 30; seconds of a drift measurement, 0 = none */
    WF_SET_DRIFT_WINDOWS, /* drift_windows: int 1; drift measurements at the start, and at the end */
    WF_SET_LOCK_CLOCKS,   /* lock_clocks: flag "0"; the GPUs' clocks held at the highest */
    WF_SET_WARM_TO,       /* warm_to: int 0 = off; degrees Celsius before anything is measured */
    WF_SET_WARM_S,        /* warm_s: int 60; the longest that warming up may take */
    WF_SET_REWARM_EVERY,  /* rewarm_every: int 0 = never; messages between two looks at the temperature */
    WF_SET_REWARM_BELOW,  /* rewarm_below: int 45; degrees Celsius under which it is warmed again */
    WF_SETTING_COUNT
};

struct wf_setting {
    const char *name; /* lower case, as in a file; WEFT_<NAME> in the environment; --name-with-dashes as option */
    enum wf_setting_type type;
    enum wf_setting_group group;
    enum wf_setting_topic topic;
    unsigned uses;        /* enum wf_setting_use: the commands that have it as an option */
    const char *fallback; /* the default as text */
    const char *unit;     /* "bytes", "chunks", "s", … or "" */
    const char *choices;  /* WF_TYPE_CHOICE: the allowed words, "auto|uring|epoll" */
    const char *zero;     /* INT: a word that means 0; NULL: none does */
    int64_t min, max;     /* INT, SIZE, SIZES */
    bool list;            /* CHOICE: a comma separated list is allowed */
    const char *value;    /* what a help text calls its value, "FILE"; NULL: see wf_setting_value_name() */
    const char *help;     /* its meaning in one sentence */
    const char *more;     /* the sentences that follow that one; NULL: none */
};

/* From the lowest to the highest rank. */
enum wf_origin { WF_ORIGIN_DEFAULT, WF_ORIGIN_PRESET, WF_ORIGIN_FILE, WF_ORIGIN_ENVIRONMENT, WF_ORIGIN_COMMAND };

#define WF_VALUE_MAX 4096 /* 64 rails by their IPv6 addresses take up to 2,560 */

struct wf_value {
    char text[WF_VALUE_MAX]; /* as given, but of a flag or a choice the word in the table: "on" for "yes" */
    int64_t number;          /* INT, SIZE, FLAG; CHOICE without list: index of the word; else 0 */
    enum wf_origin origin;
    char source[128]; /* for people: "default", "preset", "file weft.conf:3", "environment WEFT_CHUNK",
                       * "environment UCCL_TCPX_CHUNK_BYTES (alias)", "command line" */
};

/* Owner: one thread at a time. About 300 KiB: keep it on the heap. */
struct wf_config {
    struct wf_value values[WF_SETTING_COUNT];
};

const struct wf_setting *wf_setting(enum wf_setting_id id);

/* The id for a name ("chunk", "connect_timeout"; '-' counts as '_'), or -ENOENT with the nearest name in `status`. */
int wf_setting_find(const char *name, struct wf_status *status);

/* The id for whatever a setting is called: "chunk", "--chunk", "WEFT_CHUNK", "UCCL_TCPX_CHUNK_BYTES"; or -ENOENT. */
int wf_setting_find_any(const char *name);

/* What stands for the value behind the option: "SIZE", "N", "auto|uring|epoll"; NULL: a flag, which needs none. */
const char *wf_setting_value_name(const struct wf_setting *setting);

/* Whether the option may stand alone and then means on: flags, and choices with the words off and on. */
bool wf_setting_is_switch(const struct wf_setting *setting);

/* What a setting takes, for people: "4K..64M", "auto|epoll", "off|on", "text". Returns `text`. */
char *wf_setting_allowed(const struct wf_setting *setting, char *text, size_t room);

/* 1, on, yes, true (in any case): 1. 0, off, no, false: 0. Anything else: -EINVAL. All flags, and all choices that
 * have one of these words, take the others for it: this is the one place that knows them. */
int wf_setting_boolean(const char *text);

/* Did the value come by another program's variable, which may have been set for a whole cluster? */
bool wf_config_is_alias(const struct wf_config *config, enum wf_setting_id id);

/* That variable ("NCCL_SOCKET_IFNAME"), or NULL: the value did not come by one. */
const char *wf_config_alias(const struct wf_config *config, enum wf_setting_id id);

/* All settings at their defaults. */
void wf_config_init(struct wf_config *config);

/* Checks `text` and stores it. -EINVAL: the old value stays, and `status` has the setting, value and allowed values. */
int wf_config_set(struct wf_config *config, enum wf_setting_id id, const char *text, enum wf_origin origin,
                  const char *source, struct wf_status *status);

/* Whether wf_config_set() would take `text`. */
bool wf_setting_takes(enum wf_setting_id id, const char *text);

/* As wf_config_set(), but keeps a value of a higher origin: the order of loading does not change the precedence. */
int wf_config_offer(struct wf_config *config, enum wf_setting_id id, const char *text, enum wf_origin origin,
                    const char *source, struct wf_status *status);

/* A file of `name = value` lines of at most 4096 bytes, 1 MiB in all; '#' starts a comment anywhere. The first bad line
 * fails (-EINVAL, "FILE:LINE: ..."); -ENOENT and the like: the file cannot be opened. It is a regular file, or
 * /dev/null, so that nothing waits. Values that the environment or the command line has set stay. */
int wf_config_load_file(struct wf_config *config, const char *path, struct wf_status *status);

/* WEFT_CONFIG's file, then aliases, then WEFT_ names of `environment` (NULL: the process's). An unknown WEFT_ name is
 * logged as a warning with the nearest known name (`log` NULL: not logged); a bad value fails. An empty variable counts
 * as not set. An alias is ignored if its WEFT_ name is set. Values that the command line has set stay. */
int wf_config_load_environment(struct wf_config *config, char *const *environment, const struct wf_log *log,
                               struct wf_status *status);

/*
 * The variables of other programs. A caller that starts such a program records its variables in the results. Only
 * variables named by the caller, or with the caller's prefix ("NCCL_"), are read: an environment has secrets, too.
 */
typedef void wf_variable_seen(void *context, const char *name, const char *value);
/* Calls `seen` for every variable whose name begins with `prefix`; returns the number of calls. No other thread may
 * change the environment meanwhile. */
int wf_environment_list(const char *prefix, wf_variable_seen *seen, void *context);
/* The value of a variable; NULL: not set, or empty. */
const char *wf_environment_value(const char *name);
/* Whether `entry` of the environment ("NAME=VALUE") is but a setting, as a WEFT_ name or an alias: a child process gets
 * its settings by its arguments and is not given this. Not so NCCL's variables, which NCCL reads in the child, too:
 * they stay, and so do the WEFT_ names that beat them; nor what tests tell the emulated driver. */
bool wf_environment_is_setting(const char *entry);
/* Sets a variable that is not set ("" counts as set). 1: it has `value` now; 0: the user's value stays; -ENOMEM. */
int wf_environment_offer(const char *name, const char *value);
/* Sets a variable for a library that is loaded later, whatever the user has set. 0, or -ENOMEM. */
int wf_environment_set(const char *name, const char *value);

static inline int64_t wf_config_number(const struct wf_config *config, enum wf_setting_id id)
{
    return config->values[id].number;
}

static inline const char *wf_config_text(const struct wf_config *config, enum wf_setting_id id)
{
    return config->values[id].text;
}

/* Parses "64K", "1M", "3" exactly as a SIZE setting would (so that tools agree); at most 2^63 - 1; 0 or -EINVAL. */
int wf_parse_size(const char *text, uint64_t *bytes);
/* What somebody should have written who wrote a size otherwise: "1536K" for "1.5M", "1K" for "1 KB" or "1kib". False:
 * `text` is no size in any writing, or no whole number of bytes. */
bool wf_size_meant(const char *text, char *buffer, size_t room);
/* Prints the shortest exact form: "64K", "1M", "65537". Returns `buffer`. */
char *wf_format_size(uint64_t bytes, char *buffer, size_t room);

/* The aliases, for `weft config` and the documentation: the name of another program's variable, and the setting that
 * the variable changes. The last entry has a NULL name. */
struct wf_alias {
    const char *variable;
    enum wf_setting_id id;
};
const struct wf_alias *wf_config_aliases(void);

#endif
