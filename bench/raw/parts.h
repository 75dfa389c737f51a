/*
 * parts.h: what the files of this room share: one run, its streams, and the calls that move bytes. Nobody else includes
 * it.
 */
#ifndef WF_BENCH_RAW_PARTS_H
#define WF_BENCH_RAW_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/status.h"

#define RAW_STREAMS_MAX 1024 /* of one run, over all addresses */
#define RAW_ASKED_MAX 16     /* so many streams are asked in turn whether they can move; of more, ready.c knows */
#define RAW_ANY_CPU (-1)

enum raw_mode {
    RAW_BANDWIDTH, /* messages one way, each in calls of its own */
    RAW_LATENCY,   /* ping-pong on the first stream */
    RAW_RATE,      /* messages one way, a batch in each call */
    RAW_MODES
};

/* What is measured. The client's, told to the server in the first bytes of each stream. */
struct raw_plan {
    enum raw_mode mode;
    uint64_t size;     /* bytes of a message; at least 1 */
    uint64_t messages; /* measured; at least 1 */
    uint64_t warmup;
    uint64_t call;     /* most bytes of a send or receive call; at least 1 */
    uint64_t inflight; /* messages sent and not known to be received, at most; 0: as many as the kernel holds */
    uint64_t buffers;  /* areas of `size` bytes, at each side, taken in turn; at least 1 */
    uint64_t batch;    /* messages received per byte sent back; 1 to inflight */
    uint64_t timeout_s;
    bool block; /* calls wait in the kernel; else they are repeated until they do something */
};

struct raw_options {
    struct raw_plan plan;
    bool listen, help, version;
    char address[256]; /* of --listen; empty: any, and the usual port */
    char *list;        /* of --connect, cut into addresses; NULL: none */
    char **addresses;  /* in `list` */
    int address_count;
    int streams;         /* to each address; at least 1 */
    char congestion[16]; /* TCP_CONGESTION of this side's sockets; empty: the system's */
    int cpu;             /* the processor that this side runs on, or RAW_ANY_CPU */
    bool read_ahead;     /* the client reads what a call sends before the call: it comes out of the cache then */
};

/* One TCP stream. Owner: the measuring thread. */
struct raw_stream {
    int fd;
    uint64_t place;   /* in the ring: where its next byte comes from or goes to */
    uint64_t partial; /* bytes there are of the message under way: 0 to size - 1 */
    uint64_t left;    /* sender: bytes not sent yet of what this stream was given to send */
    uint64_t ahead;   /* sender: bytes from `place` on that have been read ahead */
    bool queued;      /* in raw_ready.queue */
};

/* Which of many streams can move, as far as is known. Owner: the measuring thread. */
struct raw_ready {
    int epoll;                 /* -1: there are few streams, and each is asked */
    struct raw_stream **queue; /* a ring with a place for each stream */
    int places, first, count;
};

/* Both sides' half of a run. Owner: the measuring thread. */
struct raw_link {
    struct raw_plan plan;
    struct raw_stream *streams; /* the first is the one that both sides talk on */
    int stream_count;           /* 0: not known yet */
    struct raw_ready ready;
    uint8_t *ring; /* `buffers` areas, one behind the other */
    uint64_t ring_bytes;
    bool yield;           /* one processor only: the other side needs it */
    bool read_ahead;      /* as the options say */
    bool moved;           /* since the clock was looked at */
    uint64_t idle_rounds; /* in which nothing could be moved */
    int64_t moved_ns;     /* when something had been moved, at the latest */
};

/* --- options (options.c) --- */

/* -EINVAL: wrong usage; -ENOMEM. The caller frees the options, also when this failed. */
int raw_options_read(struct raw_options *options, int argc, char **argv, struct wf_status *status);
void raw_options_free(struct raw_options *options);
void raw_options_help(void);
const char *raw_mode_name(enum raw_mode mode);
/* 0, or -EINVAL with what is wrong with a plan: also for one that came from a stranger. */
int raw_plan_check(const struct raw_plan *plan, struct wf_status *status);

/* --- addresses and sockets (address.c) --- */

/* -EINVAL where it cannot be one: of --listen "[[ADDR:]PORT]", of --connect "ADDR[:PORT]". */
int raw_address_check(const char *text, bool listen, struct wf_status *status);

/* -EINVAL where the kernel has no such congestion control. */
int raw_congestion_check(const char *name, struct wf_status *status);
/* The caller closes what was opened. */
int raw_listen(const char *address, const char *congestion, int *listener, struct wf_status *status);
int raw_dial(const char *address, const char *congestion, uint64_t timeout_s, int *stream, struct wf_status *status);
/* The deadline of calls that wait, and small packets at once. */
int raw_prepare(int fd, uint64_t timeout_s, struct wf_status *status);
/* Raises the limit of open files to what `streams` need. -EMFILE: it may not be raised so far. */
int raw_allow_descriptors(int streams, struct wf_status *status);

/* --- setting up (setup.c) --- */

void raw_link_init(struct raw_link *link);
void raw_link_close(struct raw_link *link);

/* Maps the ring and touches every page of it. -ENOMEM. */
int raw_link_map(struct raw_link *link, struct wf_status *status);

/* Server: waits for a client and its plan, at most the timeout of `options`, and gets ready. */
int raw_link_accept(struct raw_link *link, const struct raw_options *options, struct wf_status *status);
/* Client: connects all streams and waits until the server is ready. */
int raw_link_connect(struct raw_link *link, const struct raw_options *options, struct wf_status *status);

/* --- moving bytes (io.c) --- */

/* One call on `stream` for up to `bytes` of the ring, at its place there. Returns how many it moved; 0: none now;
 * -ECONNRESET: the other side is gone. */
int64_t raw_send(struct raw_link *link, struct raw_stream *stream, uint64_t bytes);
int64_t raw_receive(struct raw_link *link, struct raw_stream *stream, uint64_t bytes);
/* Exactly `bytes` from or to other memory, waiting as the plan says. */
int raw_put(struct raw_link *link, struct raw_stream *stream, const void *from, uint64_t bytes);
int raw_get(struct raw_link *link, struct raw_stream *stream, void *to, uint64_t bytes);
/* The flags of a call: 0 where it waits in the kernel, MSG_DONTWAIT where it does not. */
int raw_call_flags(const struct raw_link *link);
/* Whether a stream has something left to send. */
bool raw_sending(const struct raw_link *link);
/* Nothing could be moved: waits for `events` of poll(), or returns at once for another try. -ETIMEDOUT when nothing was
 * moved for the plan's time. */
int raw_idle(struct raw_link *link, short events); /* of any stream; there are few */
int raw_idle_on(struct raw_link *link, const struct raw_stream *stream, short events); /* of this one */
/* The part of the two that does not wait in the kernel. */
int raw_spin(struct raw_link *link);

/* --- which of many streams can move (ready.c) --- */

#define RAW_EVENTS 256 /* at most, of one look */

/* Watches all streams for `events` of epoll. */
int raw_ready_open(struct raw_link *link, uint32_t events, struct wf_status *status);
void raw_ready_close(struct raw_ready *ready);
/* Takes the stream whose turn it is out of the queue. There must be one. */
struct raw_stream *raw_ready_take(struct raw_ready *ready);
/* A stream can move: behind all others, or, where it goes on with something, before them. */
void raw_ready_put(struct raw_ready *ready, struct raw_stream *stream, bool before);
/* What has become of the streams since the last look: each event has its stream in data.ptr, and is told once. The
 * number of events, or -errno; -ECONNRESET: the other side is gone. `idle`: nothing could be moved, so waits as
 * raw_idle() does. */
int raw_ready_look(struct raw_link *link, bool idle, struct epoll_event events[RAW_EVENTS]);

/* --- the measurements: `messages` of them, then the server's word that it has all --- */

int raw_flow_send(struct raw_link *link, uint64_t messages);    /* flow.c */
int raw_flow_receive(struct raw_link *link, uint64_t messages); /* without the word: raw_flow_confirm() */
int raw_flow_confirm(struct raw_link *link);

/* latency.c. `times_ns` takes `messages` half round trips; NULL: not wanted. */
int raw_ping(struct raw_link *link, uint64_t messages, double *times_ns);
int raw_pong(struct raw_link *link, uint64_t messages);

#endif
