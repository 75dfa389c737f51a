/*
 * stranger.h: a listening context on the simulated network, and somebody who knows the protocol and talks to it. All is
 * one thread: whatever the stranger waits for, the host and the network go on meanwhile.
 */
#ifndef TESTS_MODEL_STRANGER_H
#define TESTS_MODEL_STRANGER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/join/door.h"
#include "core/session/session.h"
#include "sim.h"
#include "sim_cards.h"
#include "sim_memory.h"
#include "wire/handshake.h"
#include "wire/seal.h"

/* The acceptor's, which is more than connect_timeout of the scene, and a bit. */
#define JOIN_DEADLINE (11 * WF_NS_PER_S)

/* The host under attack, and the stranger's own engine. */
struct scene {
    struct wf_sim *sim;
    struct wf_sim_memory *memory; /* the host's devices; NULL: it has none */
    struct wf_sim_cards *cards;   /* that write to them; NULL: none does */
    struct weft_context *host;
    struct wf_engine *engine;
    struct sockaddr_storage address;
};

/* `key_file`: the host's, or NULL. */
void open_scene(struct scene *scene, const char *key_file);
/* A host with a device, and with one more setting ("name=value"); NULL: none. */
void open_scene_with(struct scene *scene, const char *key_file, bool device, const char *setting);
/* A host with a device, and a card that writes to it, but for some of the fragments. */
void open_scene_with_cards(struct scene *scene, uint32_t host_percent);
void close_scene(struct scene *scene);
/* Lets the host and the network go on for `ns`. */
void pass(struct scene *scene, int64_t ns);

int call(struct scene *scene);
/* The other way round: the host calls STRANGER_ADDRESS. */
#define STRANGER_ADDRESS "127.0.1.1:6000"
int listen_here(struct scene *scene);
int take_call(struct scene *scene, int listener);
void hang_up(struct scene *scene, int fd);
void send_bytes(struct scene *scene, int fd, const void *bytes, size_t length);
/* Whatever comes first, at most `room` bytes; 0: the host has hung up. */
size_t receive_bytes(struct scene *scene, int fd, void *bytes, size_t room);
void say(struct scene *scene, int fd, const struct wf_setup *setup);
void hear(struct scene *scene, int fd, struct wf_setup *setup);

/* HELLO and GREETING like any peer; fills what the host answers. */
void introduce(struct scene *scene, struct wf_hello *answer);
/* The same of a peer that has not these features. */
void introduce_without(struct scene *scene, uint64_t features, struct wf_hello *answer);
/* GREETING behind HELLO, and the host's. */
void greet(struct scene *scene, int fd);
/* JOIN of channel 0 of `channels`, up to the host's CHALLENGE; the proof that it wants. */
int join(struct scene *scene, const struct wf_hello *hello, uint16_t channels, struct wf_setup *proof);
/* The same, of any incarnation. */
int join_as(struct scene *scene, const struct wf_hello *hello, uint16_t channels, uint32_t incarnation,
            struct wf_setup *proof);

/* --- with the session's secret --- */

/* A session of one channel that is up and accepted; the descriptor. */
int come_in(struct scene *scene, struct weft_peer **peer);
/* A frame, and 0 to 64 bytes of payload. */
void say_frame(struct scene *scene, int fd, struct wf_frame frame, size_t payload);

#endif
