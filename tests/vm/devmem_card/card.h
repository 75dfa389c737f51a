/* Parts of vm_devmem_card (card.c). */
#ifndef VM_DEVMEM_CARD_H
#define VM_DEVMEM_CARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "mem/memory.h"

#define QUEUES_MAX 16
#define GPU 0
#define PATIENCE_MS 20000 /* for a peer that does nothing */

/* What the command line asks for. */
struct plan {
    const char *card;
    uint16_t port;
    uint64_t bytes; /* of the stream */
    /* Of a receiver. Without a lease and without queues nothing is bound, and all that comes is plain. */
    bool lease;
    uint32_t queues[QUEUES_MAX], queue_count;
    int steer;       /* the stream to this queue; -1: to none */
    bool fits;       /* buffers that hold a packet */
    uint32_t buffer; /* bytes; 0: a page */
    uint64_t memory; /* of the pool, in bytes */
    bool hold;       /* give no buffer back until nothing more comes */
    /* Of a sender. */
    const char *address;
    bool device; /* from device memory */
    bool told;   /* only when the receiver has said that the stream is led to its queue */
};

extern const struct wf_memory_ops *const ops; /* CUDA, on the emulated driver */
extern struct wf_memory *memory;              /* NULL: no GPU is in use */
extern struct wf_status status;

/* Ends the program where `result` is negative, with what was to be done and the text of `status`. */
void need(int result, const char *what);

void use_gpu(void);
uint8_t *take_memory(uint64_t bytes);

/* Of the system: ends the program with the words of errno. */
void need_system(bool good, const char *what);

/* The byte of a stream at a position. */
static inline uint8_t pattern(uint64_t at)
{
    return (uint8_t)(at * 131 + (at >> 8) * 7 + (at >> 16) * 29);
}

/* The exit status of the program. */
int run_receive(const struct plan *plan);
int run_send(const struct plan *plan);
int run_bindings(const char *card);

#endif
