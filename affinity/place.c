/* Memory: which node its pages are to be on, and where they are. */
#include "affinity/pin.h"

#include <errno.h>
#include <numaif.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Node numbers that a node_mask here can hold: more than any kernel has. */
#define NODES_MAX 1024
#define WORD_BITS (8 * (int)sizeof(unsigned long))

#define LOOKED_AT_MAX 1024

static uintptr_t page_bytes(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static void explain_node_refusal(int status, int node, char *why, size_t why_room)
{
    if (status == -EPERM || status == -ENOSYS)
        snprintf(why, why_room,
                 "mbind: not permitted (a container's filter; --security-opt seccomp=... or --cap-add SYS_NICE)");
    else if (status == -EINVAL)
        snprintf(why, why_room, "mbind: node %d is not there, or has no memory that this process may use", node);
    else if (status == -EFAULT)
        snprintf(why, why_room, "mbind: part of the memory is not mapped");
    else
        snprintf(why, why_room, "mbind to node %d: %s", node, strerror(-status));
}

int wf_place_memory(void *at, size_t bytes, int node, char *why, size_t why_room)
{
    unsigned long mask[NODES_MAX / WORD_BITS] = {0};
    if ((uintptr_t)at % page_bytes()) {
        snprintf(why, why_room, "memory at %p does not begin with a page: it cannot be sent to a node", at);
        return -EINVAL;
    }
    if (node < 0 || node >= NODES_MAX) {
        explain_node_refusal(-EINVAL, node, why, why_room);
        return -EINVAL;
    }
    if (bytes == 0)
        return 0;
    mask[node / WORD_BITS] |= 1UL << (node % WORD_BITS);
    /* Preferred, not bound: on a full node, far memory is better than none. The kernel wants one bit more than it uses.
     */
    int status = mbind(at, bytes, MPOL_PREFERRED, mask, NODES_MAX + 1, MPOL_MF_MOVE) ? -errno : 0;
    if (status)
        explain_node_refusal(status, node, why, why_room);
    return status;
}

/* One page at a time, for where move_pages is refused: Docker's filter with SYS_NICE lets this pass. To ask for the
 * node of a page that is not there would make one, so mincore goes first. */
static int ask_one_by_one(void **pages, int *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char there = 0;
        if (mincore(pages[i], 1, &there) < 0 || !(there & 1))
            continue;
        if (get_mempolicy(&nodes[i], NULL, 0, pages[i], MPOL_F_NODE | MPOL_F_ADDR) < 0) {
            nodes[i] = -1;
            if (errno == EPERM || errno == ENOSYS)
                return -errno;
        }
    }
    return 0;
}

/* Fills in the nodes; what is not known stays as it is. */
static int ask(void **pages, int *nodes, size_t count)
{
    /* No target nodes: a question. */
    if (move_pages(0, count, pages, NULL, nodes, 0) >= 0)
        return 0;
    return errno == EPERM || errno == ENOSYS ? ask_one_by_one(pages, nodes, count) : -errno;
}

int wf_place_where(const void *at, size_t bytes, int *counts, int max)
{
    void *pages[LOOKED_AT_MAX];
    int nodes[LOOKED_AT_MAX];
    uintptr_t first = (uintptr_t)at / page_bytes();
    size_t all = bytes ? ((uintptr_t)at + bytes - 1) / page_bytes() - first + 1 : 0;
    size_t looked_at = all < LOOKED_AT_MAX ? all : LOOKED_AT_MAX;

    memset(counts, 0, (size_t)(max > 0 ? max : 0) * sizeof *counts);
    if (looked_at == 0)
        return 0;
    for (size_t i = 0; i < looked_at; i++) {
        size_t page = looked_at < all ? all / looked_at * i + all % looked_at * i / looked_at : i;
        pages[i] = (void *)((first + page) * page_bytes());
        nodes[i] = -1;
    }
    int status = ask(pages, nodes, looked_at);
    if (status)
        return status;
    for (size_t i = 0; i < looked_at; i++)
        if (nodes[i] >= 0 && nodes[i] < max)
            counts[nodes[i]] += 1;
    return (int)looked_at;
}

/* "7f00 default anon=5 dirty=5 N0=3 N1=2 kernelpagesize_kB=4": pages of a mapping on each node, of the size at the end.
 */
static void count_mapping(char *line, uint64_t *bytes, int max)
{
    const char *size = strstr(line, "kernelpagesize_kB=");
    uint64_t page = size ? strtoull(size + strlen("kernelpagesize_kB="), NULL, 10) * 1024 : page_bytes();
    char *rest = NULL;
    if (!strstr(line, " anon=") || strstr(line, " file="))
        return;
    for (char *word = strtok_r(line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        unsigned node;
        unsigned long long pages;
        if (sscanf(word, "N%u=%llu", &node, &pages) == 2 && node < (unsigned)(max > 0 ? max : 0))
            bytes[node] += pages * page;
    }
}

int wf_place_of(pid_t process, uint64_t *bytes, int max)
{
    char path[48], *line = NULL;
    size_t room = 0;
    memset(bytes, 0, (size_t)(max > 0 ? max : 0) * sizeof *bytes);
    snprintf(path, sizeof path, "/proc/%d/numa_maps", (int)process);
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    errno = 0;
    while (getline(&line, &room, file) >= 0)
        count_mapping(line, bytes, max);
    int status = ferror(file) ? -errno : 0; /* opening it is allowed to many, reading it is not */
    free(line);
    fclose(file);
    return status;
}

int wf_place_of_device(const char *pci)
{
    char path[96];
    int node = -1;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", pci);
    FILE *file = pci[0] && !strchr(pci, '/') ? fopen(path, "re") : NULL;
    if (!file)
        return -1;
    if (fscanf(file, "%d", &node) != 1)
        node = -1;
    fclose(file);
    return node;
}
