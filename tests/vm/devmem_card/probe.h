/* Parts of devmem_probe, which shows that the test NIC does what device-memory TCP asks of a card. Device memory is
 * that of udmabuf: pages that the kernel treats as if it could not read them, and that the probe has mapped to check
 * them. */
#ifndef DEVMEM_PROBE_H
#define DEVMEM_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_QUEUES 16
#define PATIENCE_MS 20000 /* for a peer that does nothing */

/* A dma-buf and a mapping of the same memory. */
struct memory {
    int fd;
    uint8_t *bytes;
    size_t size;
};

/* What a binding is asked for. */
struct binding {
    const char *interface;
    int fd;
    uint32_t queues[MAX_QUEUES];
    unsigned queue_count; /* 0: for transmission */
    uint32_t buffer_size; /* 0: the kernel's */
};

/* Owner of bindings: they end with it. */
struct binder {
    struct mnl_socket *socket;
    uint16_t family; /* number of "netdev" here */
    char said[160];  /* what the kernel said of the last binding that failed, or empty */
};

/* Ends the program where it fails: without memory there is nothing to show. Huge pages back buffers larger than a page.
 */
struct memory make_memory(size_t size, bool huge);

/* Ends the program where the kernel has no family "netdev". */
void binder_open(struct binder *binder);
void binder_close(struct binder *binder);

/* The number of the binding, or a negative errno. */
int binder_bind(struct binder *binder, const struct binding *binding);

struct options {
    struct binding binding;
    size_t memory;
    bool hold;   /* give no buffer back until nothing more comes */
    bool device; /* send from device memory */
};

/* The byte of a stream at a position. */
static inline uint8_t pattern(uint64_t at)
{
    return (uint8_t)(at * 131 + (at >> 8) * 7 + (at >> 16) * 29);
}

/* receive.c, send.c: the exit status of the program. Without a queue nothing is bound, and all that comes is plain. */
int run_receive(struct options *options, uint16_t port, uint64_t bytes);
int run_send(struct options *options, const char *address, uint16_t port, uint64_t bytes);

#endif
