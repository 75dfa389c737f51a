/*
 * peer.h: a tool that moves messages over TCP, asked to measure the same as Weft. An adapter is one table of functions
 * without side effects: it says which programs to run and reads what they printed. Only the runner (run.h) starts
 * anything, so that an adapter is tested with recorded output alone.
 */
#ifndef WF_PEERS_PEER_H
#define WF_PEERS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define PEER_RAILS_MAX 16
#define PEER_WORDS_MAX 64 /* of a command line, the closing NULL among them */
#define PEER_VERSION_WORDS 4

enum peer_metric {
    PEER_BANDWIDTH, /* messages one way, `inflight` of them outstanding */
    PEER_LATENCY,   /* half round trip of a ping-pong */
    PEER_RATE,      /* as bandwidth, of small messages: messages per second count */
};

/* What is measured: the same for every tool. */
struct peer_case {
    enum peer_metric metric;
    uint64_t size;     /* bytes of a message */
    uint64_t messages; /* measured, at least 1; about a second's worth */
    uint64_t warmup;   /* sent before and not measured */
    uint32_t inflight; /* messages outstanding at most; 1 for PEER_LATENCY */
    uint32_t buffers;  /* areas of `size` bytes that the messages take turns in, at each side */
};

/* Where it is measured. The client connects to the server; data goes from client to server, or both ways in turn. */
struct peer_place {
    const char *folder;                  /* of Weft's own programs (weft, weft-mpi) */
    const char *rails[PEER_RAILS_MAX];   /* the server's address on each rail; at least one */
    const char *devices[PEER_RAILS_MAX]; /* the interface of each rail here, "" where it is not known; of two machines
                                            each makes its own side's command */
    int rail_count;
    int port;         /* free at the server */
    bool one_machine; /* server and client run on this machine */
    /* NULL: messages lie in host memory; else in that of each side's first GPU: "cuda", or "cuda (emulated)" with the
     * driver of the tests, which is no GPU. A server leaves it to the client. */
    const char *memory;

    const char *settings[PEER_WORDS_MAX]; /* "name=value" for Weft itself, ends with NULL */
};

/* One program to run. Words point into `text`, or are constants. */
struct peer_command {
    const char *words[PEER_WORDS_MAX];    /* argv, ends with NULL; words[0] NULL: nothing to run */
    const char *settings[PEER_WORDS_MAX]; /* "NAME=VALUE" for its environment, ends with NULL */
    char text[8192];                      /* 64 rails by their IPv6 addresses take up to 2,560 */
    uint32_t used;                        /* of text */
};

/* How one measurement is made with a tool. */
struct peer_commands {
    struct peer_command server, client; /* the server is up once `port` is listened on */
    char note[200]; /* in what the measurement differs from what was asked: "one buffer", "ping-pong"; "": in nothing */
};

/* What a program left behind. */
struct peer_output {
    const char *text; /* standard output, ends with '\0' */
    double cpu_s;     /* processor seconds of it and its children, start and end included; negative: not known */
    double elapsed_s;
};

/* What was found. Negative: this tool does not tell. */
struct peer_reading {
    double gb_per_s; /* 10^9 bytes of payload per second */
    double messages_per_s;
    double p50_us, p99_us, mean_us; /* PEER_LATENCY: half round trips */
    double cpu_s_per_gb;            /* processor seconds of both sides per 10^9 bytes of payload */
};

/*
 * An adapter. `variants` are different ways to use the tool for the same case (call sizes, protocols), so that
 * no tool is handicapped by how it was called; peers.h says which of them count.
 */
struct peer_tool {
    const char *name;     /* the sample's "backend" */
    const char *program;  /* looked for on PATH, or in place->folder when it begins with "weft" */
    const char *package;  /* Debian package that has it; NULL: part of Weft */
    const char *at_build; /* Debian package that Weft is to be built with for it; NULL: none */
    const char *aside;    /* what it is where it is no other tool to be compared with; NULL: it is one, or Weft */
    /* What prints its version, as the first number with a point in it: a program, found as `program` is, and its
     * arguments. Ends with NULL; the first NULL: nothing does. */
    const char *version[PEER_VERSION_WORDS];
    bool many_buffers; /* it can do more than one; a tool that cannot is left out where more are asked for */
    bool gpu_memory;   /* it can move that; one that cannot is left out where that is asked for */

    /* How many variants it has for this case in this place. 0: it cannot measure this; `why` (never empty then) says
     * so in a few words. */
    int (*variants)(const struct peer_case *asked, const struct peer_place *place, char why[200]);

    /* Fills the commands of variant `index`, 0 <= index < variants(). `out` comes zeroed. -ENOBUFS if they are too
     * long. */
    int (*commands)(const struct peer_case *asked, const struct peer_place *place, int index,
                    struct peer_commands *out);

    /* Reads what they printed; the server's is NULL where there was none to run. `out` comes with all values negative.
     * -EPROTO with the reason when the output is not understood. */
    int (*read)(const struct peer_case *asked, const struct peer_output *server, const struct peer_output *client,
                struct peer_reading *out, struct wf_status *status);
};

extern const struct peer_tool peer_weft, peer_raw, peer_iperf3, peer_ucx, peer_libfabric, peer_openmpi, peer_nccl,
    peer_plugin;

/* Appends a word, or a "NAME=VALUE", made as by printf. Once something did not fit, everything after it fails too:
 * check only the last. 0 or -ENOBUFS. */
int peer_word(struct peer_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
int peer_setting(struct peer_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The congestion controls that tools which can choose are tried with, "" for the system's: that of Weft's settings;
 * else the system's and, on one machine, Weft's own there (docs/decisions/0010-call-size.md). */
int peer_congestion_count(const struct peer_place *place);
const char *peer_congestion(const struct peer_place *place, int index);

/* A processor for each side, where both sides run on this machine and it has two that this process may use. */
bool peer_two_processors(const struct peer_place *place, int cores[2]);

/* The command as one would type it into a shell, settings first; cut if it is too long. Returns `buffer`. */
char *peer_command_text(const struct peer_command *command, char *buffer, size_t room);

#endif
