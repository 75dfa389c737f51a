/*
 * sim_memory_internal.h: what sim_memory.c (devices, memory, the seam), sim_memory_copy.c (copies),
 * sim_memory_export.c (allocations, dma-bufs) and sim_memory_stream.c (streams of the user's) share.
 */
#ifndef WEFT_TESTS_SUPPORT_SIM_MEMORY_INTERNAL_H
#define WEFT_TESTS_SUPPORT_SIM_MEMORY_INTERNAL_H

#include "sim_internal.h"
#include "sim_memory.h"

#define SIM_MOMENTS 3 /* at which bytes of a copy move */

/* Device memory in use. */
struct sim_allocation {
    uint64_t base, bytes; /* address as the program knows it */
    uint64_t id;
    int device;
    uint8_t *content;
};

/* Host memory made known to devices. */
struct sim_pin {
    struct wf_link link;
    uint8_t *base;
    uint64_t bytes;
    struct wf_memory *owner;
};

/* A part of a piece of a copy. */
struct sim_part {
    uint8_t *to;
    const uint8_t *from;
    uint64_t bytes;
    int moment;
};

enum sim_copy_state {
    SIM_GATHERING, /* more pieces are to come */
    SIM_MOVING,    /* under way, or a mark in a stream */
    SIM_ENDED,     /* not reported yet */
};

struct sim_copy {
    struct wf_link link;
    struct wf_copy *copy;
    struct wf_memory *owner;
    enum sim_copy_state state;
    enum wf_copy_way way;
    int device, to_device;
    int64_t moments_ns[SIM_MOMENTS], end_ns;
    int moment; /* the next one */
    int fate;   /* how it is to end: 0 or negative errno */
    int result;
    int part_count, part_room;
    struct sim_part *parts;
    uint64_t bytes;
    /* The pieces as they were given: what may not be freed. */
    int range_count, range_room;
    struct wf_copy_piece *ranges;
};

enum sim_item_kind { SIM_WORK, SIM_CALL, SIM_MARK, SIM_HOLD };

struct sim_item {
    struct wf_link link;
    enum sim_item_kind kind;
    int64_t duration_ns, end_ns; /* WORK; end_ns 0: has not begun */
    bool released;
    void (*function)(void *argument); /* CALL */
    void *argument;
    struct sim_copy *mark;
    const uint32_t *flag; /* HOLD */
    uint32_t value;
    struct wf_memory *owner;
};

struct wf_sim_stream {
    struct wf_link link;
    struct wf_sim_memory *memory;
    int device;
    struct wf_list items;
};

struct sim_device {
    bool lost, frozen;
    int64_t copy_min_ns, copy_max_ns;
    uint64_t room; /* bytes left */
    uint64_t next; /* address of the next allocation */
    int failing_allocs;
    uint32_t fail_percent;
    struct {
        uint64_t countdown; /* 0: none is to fail */
        bool at_start;
    } failing[4];
    const char *why;
    struct wf_sim_memory_counts counts;
    struct wf_sim_stream stream; /* the default one */
};

/* An open kind. */
struct wf_memory {
    struct wf_sim_memory *host;
    bool used[WF_SIM_DEVICES_MAX];
};

struct wf_sim_memory {
    struct sim_extra extra; /* its place in the simulation */
    struct wf_sim *sim;     /* NULL: no time */
    uint64_t random_state;
    struct wf_sim_memory_options options;
    uint64_t last_id;
    uint8_t *reserved; /* addresses of all devices, one slice each */
    int opened;
    int failing_pins;
    int allocation_count, allocation_room;
    struct sim_allocation *allocations; /* by address */
    struct wf_list pins, copies, streams;
    struct sim_device devices[WF_SIM_DEVICES_MAX];
};

uint64_t sim_memory_below(struct wf_sim_memory *memory, uint64_t bound);
bool sim_memory_chance(struct wf_sim_memory *memory, uint32_t percent);
int64_t sim_memory_now(const struct wf_sim_memory *memory);

/* The allocation that [address, address + bytes) begins in; NULL: none. */
struct sim_allocation *sim_allocation_of(const struct wf_sim_memory *memory, const void *address);
bool sim_is_device_address(const struct wf_sim_memory *memory, const void *address, uint64_t bytes);
/* Where the bytes are that a copy reads or writes: of `device`, or of the host. Aborts where they are not. */
uint8_t *sim_memory_at(struct wf_sim_memory *memory, const void *address, uint64_t bytes, int device);
bool sim_is_pinned(const struct wf_sim_memory *memory, const void *address, uint64_t bytes);
bool sim_ranges_meet(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes);

/* --- sim_memory_export.c --- */
int sim_extent(struct wf_memory *memory, const void *address, struct wf_memory_extent *out, struct wf_status *status);
int sim_exports(struct wf_memory *memory, int device, struct wf_status *status);
int sim_export_dmabuf(struct wf_memory *memory, int device, const void *base, uint64_t bytes, int *fd, uint64_t *offset,
                      struct wf_status *status);

/* --- sim_memory_copy.c --- */
int sim_copy_start(struct wf_memory *memory, struct wf_copy *copy, const struct wf_copy_piece *pieces, int count,
                   bool more);
int sim_copy_done(struct wf_memory *memory, struct wf_copy *copy);
/* A copy has come to its end; a mark too. */
void sim_copy_end(struct wf_sim_memory *memory, struct sim_copy *copy, int result);
/* When a copy moves something next, or ends, and letting that happen. */
int64_t sim_copies_next(const struct wf_sim_memory *memory);
void sim_copies_settle(struct wf_sim_memory *memory);
/* Does one use this memory? */
bool sim_copies_use(const struct wf_sim_memory *memory, const void *base, uint64_t bytes);

/* --- sim_memory_stream.c --- */
void sim_stream_add(struct wf_sim_memory *memory, int device, void *stream, const struct sim_item *item);
int64_t sim_streams_next(struct wf_sim_memory *memory);
void sim_streams_settle(struct wf_sim_memory *memory);
/* Nothing more happens in the streams of a device that is lost. */
void sim_streams_lose(struct wf_sim_memory *memory, int device);
/* Does a hold look at this memory, or is it of this owner? */
bool sim_streams_use(struct wf_sim_memory *memory, const void *base, uint64_t bytes, const struct wf_memory *owner);

#endif
