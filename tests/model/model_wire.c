/* Follows what both nodes say on the simulated network, to wait for a moment and to damage what is passing. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/whole_words.h"
#include "model.h"
#include "wire/frame.h"
#include "wire/hello.h"

#define JOIN_HEAD 28 /* up to the rail */
#define JOIN_INCARNATION 20
#define JOIN_KIND 26

/* One direction of one connection. */
struct model_stream {
    bool known;
    int rails[2]; /* by node */
    bool framed;  /* after the set-up */
    bool express, rejoins;
    bool device;  /* payload goes on another stream, */
    bool payload; /* which is this one: nothing of it is looked at behind the set-up */
    uint8_t head[WF_FRAME_BYTES];
    uint32_t have; /* of the head of this message */
    uint8_t type;
    uint64_t skip, left;       /* bytes after the head: padding, then the rest */
    bool checked;              /* the payload has a checksum */
    bool armed[MODEL_ACTIONS]; /* damage to come */
    bool flip;                 /* damage this payload */
};

static uint32_t host_of(const struct sockaddr_storage *address)
{
    return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr);
}

int model_rail_of(const struct sockaddr_storage *address)
{
    return (int)(host_of(address) >> 8 & 0xff) - 1;
}

int model_wire_ends(const struct model_world *world, int fd, int rails[2])
{
    struct sockaddr_storage near, far;
    wf_engine_sim.address(world->sim, fd, false, &near);
    wf_engine_sim.address(world->sim, fd, true, &far);
    int rail = model_rail_of(&near), far_rail = model_rail_of(&far), node = (int)(host_of(&near) & 0xff) - 1;
    rails[0] = rails[1] = MODEL_CONTROL;
    if (rail != MODEL_CONTROL) {
        rails[node] = rail;
        rails[1 - node] = far_rail;
    }
    return node;
}

/* Moves them all when one is new: what was found earlier is elsewhere then. */
static struct model_stream *stream_of(struct model_world *world, uint64_t number)
{
    struct model_faults *faults = &world->faults;
    if (number >= faults->stream_room) {
        uint64_t room = number * 2 + 64;
        faults->streams = realloc(faults->streams, room * sizeof *faults->streams);
        memset(faults->streams + faults->stream_room, 0, (room - faults->stream_room) * sizeof *faults->streams);
        faults->stream_room = room;
    }
    return &faults->streams[number];
}

/* --- moments --- */

static void happen(struct model_world *world, const struct wf_sim_piece *piece, const struct model_stream *stream,
                   int moment)
{
    struct model_faults *faults = &world->faults;
    for (int i = 0; i < MODEL_TRIGGERS; i++) {
        struct model_trigger *trigger = &faults->triggers[i];
        if (!trigger->armed || trigger->moment != moment || faults->due[i].turns > 0 ||
            !model_faults_may(world, trigger->action, stream->rails))
            continue;
        trigger->armed = false;
        faults->due[i] = (struct model_due){.turns = 1 + (int)(model_pick(world, 2) ? model_pick(world, 40) : 0),
                                            .fd = piece->fd,
                                            .stream = piece->stream,
                                            .action = trigger->action};
    }
}

/* --- lies --- */

/* What no honest peer says, whatever the state. */
static void lie_frame(struct model_world *world, uint8_t *bytes)
{
    struct wf_frame frame;
    if (wf_frame_decode(bytes, &frame) < 0)
        return;
    switch (model_pick(world, 3)) {
    case 0:
        frame = (struct wf_frame){.type = WF_OPENED, .data_off = frame.data_off, .conn = 4321, .ack = frame.ack};
        break;
    case 1:
        frame = (struct wf_frame){
            .type = WF_GRANT, .flags = WF_FLAG_PEER, .data_off = frame.data_off, .conn = 4321, .ack = frame.ack};
        break;
    default:
        frame.ack += 1u << 30; /* acknowledges what was never sent */
        break;
    }
    wf_frame_encode(&frame, bytes);
}

static void lie_setup(struct model_world *world, uint8_t *bytes, size_t length)
{
    struct wf_setup setup;
    if (wf_setup_decode(bytes, length, &setup) < 0)
        return;
    bool other = model_pick(world, 2);
    if (setup.type == WF_SETUP_HELLO)
        setup.hello.version_min = setup.hello.version_max = 99;
    else if (setup.type == WF_SETUP_JOIN && other)
        setup.join.session ^= 2;
    else if (setup.type == WF_SETUP_JOIN)
        setup.join.nonce[0] ^= 1;
    else if (setup.type == WF_SETUP_CHALLENGE)
        setup.challenge.proof[5] ^= 0x10;
    else if (setup.type == WF_SETUP_PROOF)
        setup.proof.proof[7] ^= 0x10;
    wf_setup_encode(&setup, bytes, length);
}

/* --- following --- */

static void flip_one(struct model_world *world, const struct model_stream *stream, uint8_t *bytes, uint64_t length)
{
    if (stream->rails[0] != MODEL_CONTROL)
        world->faults.damaged[stream->rails[0]][stream->rails[1]] = true;
    bytes[model_pick(world, length)] ^= (uint8_t)(1 << model_pick(world, 8));
}

static uint32_t head_bytes(const struct model_stream *stream)
{
    if (stream->framed)
        return WF_FRAME_BYTES;
    return stream->have >= WF_SETUP_PREFIX && stream->head[4] == WF_SETUP_JOIN ? JOIN_HEAD : WF_SETUP_PREFIX;
}

/* One line for each frame or set-up message that begins to leave. */
static void trace(const struct model_world *world, const struct wf_sim_piece *piece, const struct model_stream *stream,
                  const struct wf_frame *frame)
{
    int rails[2], node = model_wire_ends(world, piece->fd, rails);
    if (!world->traced)
        return;
    fprintf(stderr, "%.6f  node %d, rails %d-%d, stream %llu %s: ", (double)wf_sim_now(world->sim) / 1e9, node,
            rails[0] + 1, rails[1] + 1, (unsigned long long)piece->stream, stream->express ? "express" : "bulk");
    if (frame)
        fprintf(stderr, "%s%s conn %u msg %llu [%llu + %u of %llu) key %#llx base %#llx ack %u flags %#x\n",
                wf_frame_name(frame->type), frame->flags & WF_FLAG_RESENT ? " again" : "", frame->conn,
                (unsigned long long)frame->msg, (unsigned long long)frame->offset, frame->length,
                (unsigned long long)frame->total, (unsigned long long)frame->key, (unsigned long long)frame->base,
                frame->ack, frame->flags);
    else
        fprintf(stderr, "set-up %d%s\n", stream->type, stream->rejoins ? ", again" : "");
}

static void begin_frame(struct model_world *world, const struct wf_sim_piece *piece, struct model_stream *stream)
{
    struct wf_frame frame;
    if (wf_frame_decode(stream->head, &frame) < 0) /* behind a lie */
        return;
    stream->type = frame.type;
    stream->skip = frame.length ? frame.data_off - WF_FRAME_BYTES : 0;
    stream->left = stream->device ? 0 : frame.length;
    stream->checked = frame.flags & WF_FLAG_CRC;
    const struct model_faults *faults = &world->faults;
    for (int node = 0; node < 2 && frame.length > 0 && stream->rails[0] != MODEL_CONTROL; node++)
        stream->flip |= model_pick(world, 100) < faults->rots[node][stream->rails[node]];
    trace(world, piece, stream, &frame);
    /* What another rail brings begins with a line, or, behind a short chunk, with a word. Behind one from device memory
     * that had to be sent again it need not. */
    uint64_t end = frame.offset + frame.length, unit = frame.length < WF_LINE_BYTES ? WF_WORD_BYTES : WF_LINE_BYTES;
    MODEL_CHECK(stream->device || frame.flags & WF_FLAG_RESENT || end == frame.total || end % unit == 0 ||
                    frame.length < WF_WORD_BYTES,
                end);
    happen(world, piece, stream, frame.type);
    if (frame.flags & WF_FLAG_RESENT)
        happen(world, piece, stream, MODEL_ON_RESENT);
}

static void begin_setup(struct model_world *world, const struct wf_sim_piece *piece, struct model_stream *stream)
{
    stream->type = stream->head[4];
    stream->left = (uint64_t)(wf_setup_length(stream->head) - (int)stream->have);
    if (stream->type == WF_SETUP_JOIN) {
        uint32_t incarnation;
        memcpy(&incarnation, stream->head + JOIN_INCARNATION, sizeof incarnation);
        stream->rejoins = incarnation > 1;
        stream->express = stream->head[JOIN_KIND] == WF_CHANNEL_EXPRESS;
        struct model_stream *answers = stream_of(world, piece->reverse);
        stream->device = stream->head[JOIN_KIND] == WF_CHANNEL_DEVICE;
        stream->payload = stream->head[JOIN_KIND] == WF_CHANNEL_PAYLOAD;
        answers->rejoins = stream->rejoins;
        answers->express = stream->express;
        answers->device = stream->device;
        answers->payload = stream->payload;
    }
    trace(world, piece, stream, NULL);
    happen(world, piece, stream, (stream->rejoins ? MODEL_ON_REJOIN : MODEL_ON_SETUP) + stream->type);
}

/* All of a message may be told otherwise, where all of it is at hand. */
static void maybe_lie(struct model_world *world, struct model_stream *stream, uint8_t *bytes, size_t length)
{
    if (stream->have > 0)
        return;
    int whole = stream->framed ? WF_FRAME_BYTES : length < WF_SETUP_PREFIX ? -1 : wf_setup_length(bytes);
    bool wanted = !stream->framed && whole > 0 && world->faults.lie_about == bytes[4];
    if (whole < 0 || (size_t)whole > length || !(stream->armed[MODEL_LIE] || wanted))
        return;
    stream->armed[MODEL_LIE] = false;
    if (wanted)
        world->faults.lie_about = 0;
    if (stream->framed)
        lie_frame(world, bytes);
    else
        lie_setup(world, bytes, (size_t)whole);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Takes some of the bytes; returns how many. */
static uint64_t follow_head(struct model_world *world, const struct wf_sim_piece *piece, struct model_stream *stream,
                            uint8_t *bytes, uint64_t length)
{
    maybe_lie(world, stream, bytes, length);
    uint64_t step = smaller(head_bytes(stream) - stream->have, length);
    memcpy(stream->head + stream->have, bytes, step);
    stream->have += (uint32_t)step;
    enum model_action flips = stream->framed ? MODEL_FLIP_HEADER : MODEL_FLIP_SETUP;
    if (stream->armed[flips] && (stream->framed || model_pick(world, 2))) {
        stream->armed[flips] = false;
        flip_one(world, stream, bytes, step);
    }
    if (stream->have < head_bytes(stream))
        return step;
    if (stream->framed)
        begin_frame(world, piece, stream);
    else
        begin_setup(world, piece, stream);
    return step;
}

static uint64_t follow_rest(struct model_world *world, const struct wf_sim_piece *piece, struct model_stream *stream,
                            uint8_t *bytes, uint64_t length)
{
    if (stream->skip > 0) {
        uint64_t step = smaller(stream->skip, length);
        stream->skip -= step;
        return step;
    }
    uint64_t step = smaller(stream->left, length);
    stream->left -= step;
    enum model_action flips = stream->framed ? MODEL_FLIP_PAYLOAD : MODEL_FLIP_SETUP;
    bool flip = stream->framed ? stream->checked && (stream->armed[flips] || stream->flip) : stream->armed[flips];
    if (step > 0 && flip) {
        stream->armed[flips] = stream->flip = false;
        flip_one(world, stream, bytes, step);
    }
    if (stream->framed && stream->left > 0)
        happen(world, piece, stream, MODEL_ON_HALF_PAYLOAD);
    return step;
}

static void end_message(struct model_stream *stream)
{
    stream->have = 0;
    stream->flip = false;
    if (!stream->framed)
        stream->framed = stream->type == WF_SETUP_PROOF || stream->type == WF_SETUP_CHALLENGE;
}

static void watch(void *context, const struct wf_sim_piece *piece)
{
    struct model_world *world = context;
    stream_of(world, piece->reverse); /* so that it exists, and this one stays where it is */
    struct model_stream *stream = stream_of(world, piece->stream);
    if (!stream->known)
        model_wire_ends(world, piece->fd, stream->rails);
    stream->known = true;
    for (uint64_t at = 0; at < piece->length && !(stream->payload && stream->framed);) {
        bool in_head = stream->have < head_bytes(stream);
        uint8_t *bytes = piece->bytes + at;
        at += in_head ? follow_head(world, piece, stream, bytes, piece->length - at)
                      : follow_rest(world, piece, stream, bytes, piece->length - at);
        if (stream->have == head_bytes(stream) && stream->skip == 0 && stream->left == 0)
            end_message(stream);
    }
}

/* --- what model_faults.c asks --- */

bool model_wire_is_express(struct model_world *world, int fd)
{
    uint64_t number = wf_sim_stream_of(world->sim, fd);
    return number && stream_of(world, number)->express;
}

bool model_wire_is_device(struct model_world *world, int fd)
{
    uint64_t number = wf_sim_stream_of(world->sim, fd);
    const struct model_stream *stream = number ? stream_of(world, number) : NULL;
    return stream && (stream->device || stream->payload);
}

void model_wire_damage(struct model_world *world, int fd, enum model_action action)
{
    uint64_t number = wf_sim_stream_of(world->sim, fd);
    if (number)
        stream_of(world, number)->armed[action] = true;
}

void model_wire_open(struct model_world *world)
{
    wf_sim_watch(world->sim, watch, world);
}

void model_wire_close(struct model_world *world)
{
    wf_sim_watch(world->sim, NULL, NULL);
    free(world->faults.streams);
    world->faults.streams = NULL;
    world->faults.stream_room = 0;
}
