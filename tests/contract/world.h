/*
 * world.h: what a contract test needs of an implementation: an engine, time that passes, connections, and operations
 * that count how often they came back.
 */
#ifndef WEFT_TESTS_CONTRACT_WORLD_H
#define WEFT_TESTS_CONTRACT_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/engine_fault.h"
#include "io/engine_seal.h"
#include "sim.h"

#define WORLD_ENTRIES 64
#define WORLD_ENGINES 2

/* Seeds of the simulator. It has one thread, so the sanitizer of threads sees as much in a few; that of addresses is
 * slow, and what a seed does is the same in a plain build. */
#if defined(__SANITIZE_THREAD__)
#define SIMULATED_SEEDS(usual) 2
#elif defined(__SANITIZE_ADDRESS__)
#define SIMULATED_SEEDS(usual) ((usual) / 4 + 1)
#else
#define SIMULATED_SEEDS(usual) (usual)
#endif

/* An implementation under test; the simulator counts once per seed. */
struct implementation {
    const char *name;
    const struct wf_engine_ops *ops;
    bool simulated;
    bool pinned;        /* see struct wf_engine_limits */
    uint32_t zero_copy; /* the same */
    enum wf_read_ahead_when read_ahead;
    bool set_up; /* the same */
    uint64_t seed;
    const char *fault;            /* NULL; or it is the engine that injects these faults around `ops` */
    const struct wf_clock *clock; /* of the faults; NULL: the system's, or the simulator's */
    bool shortens;                /* calls may move less than they could */
    bool keyed;                   /* it is the engine that encrypts around all that, with keys for every pair */
};

struct world {
    const struct implementation *of;
    const struct wf_engine_ops *ops;
    void *host;
    struct wf_sim *sim; /* NULL: real */
    struct wf_fault *fault;
    struct wf_seal *seal;      /* NULL: nothing is encrypted */
    struct wf_fault_rail rail; /* of everything on 127.0.0.1, for `fault` */
    struct wf_log log;
    struct wf_engine *engines[WORLD_ENGINES];
    int engine_count;
    int64_t give_up_ns; /* real time after which a wait fails */
    uint64_t random_state;
};

/* An operation with its vector. */
struct task {
    struct wf_op op;
    struct iovec iov[WORLD_ENTRIES];
    int returned; /* times that poll gave it back since the last post */
};

/* call_bytes 0: the engine's own choice. */
void world_open(struct world *world, const struct implementation *of, int engines, uint32_t call_bytes);
void world_close(struct world *world);

/* One poll of each engine; the simulator's time moves when there is nothing to do. Fails the test when nothing can
 * happen any more, or after a long time. */
void world_progress(struct world *world);
/* Until nothing more happens by itself; for asserting that something does NOT finish. */
void world_idle(struct world *world);
/* Until the task is back. Its result. */
int64_t world_await(struct world *world, struct task *task);

uint64_t world_random(struct world *world);

/* Fill in and post on engine number `engine`. */
void task_buffer(struct task *task, void *memory, size_t length);
void task_post(struct world *world, int engine, struct task *task, enum wf_op_kind kind, int fd);
void task_connect(struct world *world, int engine, struct task *task, int fd, struct sockaddr_storage *address);
/* The same, and wait. */
int64_t task_run(struct world *world, struct task *task, enum wf_op_kind kind, int fd, void *memory, size_t length);

struct sockaddr_storage address_of(const char *text, int port);
int port_of(const struct sockaddr_storage *address);

/* Two connected descriptors, attached to engine 0. */
struct pair {
    int client, server;
};
/* Buffers of about `buffer_bytes` (0: whatever). */
struct pair pair_open(struct world *world, int buffer_bytes);
/* What `bytes` of one operation, of the engine's own choice of call_bytes, are on the wire. */
uint64_t pair_wire_bytes(const struct world *world, uint64_t bytes);
void pair_close(struct world *world, const struct pair *pair);
/* A listener on 127.0.0.1, attached to engine 0, and where it listens. */
int listener_open(struct world *world, const char *text, int backlog, struct sockaddr_storage *address);
int dialer_open(struct world *world, int family, int buffer_bytes);
void descriptor_close(struct world *world, int fd);

/* The byte at a place of stream number `stream`. */
uint8_t pattern(unsigned stream, uint64_t offset);
void pattern_fill(void *memory, size_t length, unsigned stream, uint64_t offset);
/* Fails the test where the bytes differ. */
void pattern_check(const void *memory, size_t length, unsigned stream, uint64_t offset);

#endif
