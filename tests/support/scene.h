/*
 * scene.h: on the simulated network a host that listens, a friend with whom it shares a session, and a stranger who has
 * nothing but sockets. Whatever the stranger does, scene_exchange() has to go on working: that is what tests claim.
 *
 * The library blocks where it always does; the poll of who waits is where the rest of the world goes on. Aborts where
 * anything of this goes wrong. One scene at a time. Owner: one thread.
 */
#ifndef WEFT_TESTS_SUPPORT_SCENE_H
#define WEFT_TESTS_SUPPORT_SCENE_H

#include <stdbool.h>

#include "core/calls/context.h"
#include "sim.h"
#include "sim_memory.h"
#include "wire/hello.h"

#define SCENE_CHECK(condition) scene_check((condition), __FILE__, __LINE__, #condition)
void scene_check(bool holds, const char *file, int line, const char *condition);

/* Settings: "name=value" with blanks between, after those that every scene has. */
struct scene_options {
    uint64_t seed;
    const char *settings;        /* of the host */
    const char *friend_settings; /* NULL: none, as above */
    uint32_t stream_bytes;       /* that a stream holds; 0: 4 KiB or more */
    int log;                     /* where the host's lines go; 0: nowhere, but for errors */
    bool devices;                /* the host has one */
};

enum { SCENE_HOST, SCENE_FRIEND, SCENE_SIDES };

struct scene {
    struct wf_sim *sim;
    struct wf_sim_memory *memory; /* of the host's device; NULL: it has none */
    struct weft_context *contexts[SCENE_SIDES];
    struct weft_endpoint *endpoints[SCENE_SIDES];
    struct weft_peer *peers[SCENE_SIDES]; /* each the other one */
    struct weft_connection *connections[SCENE_SIDES];
    struct wf_engine *engine; /* the stranger's */
    struct sockaddr_storage address;
    bool turning;
};

void scene_open(struct scene *scene, const struct scene_options *options);
void scene_close(struct scene *scene);

/* Everybody once; time moves when nobody had anything to do. */
void scene_turn(struct scene *scene);
/* The world goes on for so long. */
void scene_pass(struct scene *scene, int64_t ns);

/* A message of `length` bytes from the friend to the host, and one back: ends, whole. */
void scene_exchange(struct scene *scene, size_t length, uint64_t seed);

/* --- the stranger --- */

/* Connects to the host; the descriptor, or a negative errno. */
int scene_call(struct scene *scene);
void scene_hang_up(struct scene *scene, int fd);
/* Until all is sent or received, the other end is gone, or nothing moves within a second: the bytes moved, or a
 * negative errno. */
int64_t scene_send(struct scene *scene, int fd, const void *bytes, size_t length);
int64_t scene_receive(struct scene *scene, int fd, void *bytes, size_t length);

void scene_say(struct scene *scene, int fd, const struct wf_setup *setup);
/* The host's answer. */
void scene_hear(struct scene *scene, int fd, struct wf_setup *setup);
/* HELLO and GREETING, as a peer would: what the host answers. */
void scene_introduce(struct scene *scene, struct wf_hello *answer);
/* One channel of `channels`, with a good proof: its descriptor, or -ECONNREFUSED. */
int scene_join(struct scene *scene, const struct wf_hello *hello, int channel, int channels, uint32_t incarnation);

#endif
