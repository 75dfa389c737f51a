/* Parts of vm_devmem_gpu: pools and exports of transport/devmem with emulated GPUs and a card that can use them. */
#ifndef VM_DEVMEM_GPU_H
#define VM_DEVMEM_GPU_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdint.h>

#include "devmem/devmem.h"
#include "mem/memory.h"

#define GPUS_MAX 8
#define CARDS_MAX 4
#define PATIENCE_MS 30000 /* for a peer that does nothing */

/* A card and the address of the receiver behind it. */
struct card {
    char name[IFNAMSIZ];
    int ifindex;
    struct sockaddr_in address; /* without a port */
};

/* What the command line asks for: one stream for each GPU and card. */
struct plan {
    int first, gpus; /* numbers of the GPUs */
    int cards;
    struct card card[CARDS_MAX];
    uint32_t queue; /* on each card, of GPU 0; that of the others follow */
    uint64_t bytes; /* of each stream */
};

extern const struct wf_memory_ops *const ops; /* CUDA, on the emulated driver */
extern struct wf_memory *memory;
extern struct wf_status status;

/* Ends the program where `result` is negative, with what was to be done and the text of `status`. */
void need(int result, const char *what);

/* Of the stream of one GPU and card. */
static inline uint16_t port_of(int gpu, int card)
{
    return (uint16_t)(5200 + card * GPUS_MAX + gpu);
}

/* The byte of GPU `gpu`'s memory at a position. */
static inline uint8_t pattern(int gpu, uint64_t at)
{
    return (uint8_t)(at * 131 + (at >> 8) * 7 + (at >> 16) * 29 + (uint64_t)gpu * 53);
}

/* The exit status of the program. */
int run_receive(const struct plan *plan);
int run_send(const struct plan *plan);
int run_share(const char *card);
int run_bound(const char *card);
int run_unbind(const char *pid);

#endif
