/*
 * card.c: vm_devmem_card: one stream from one card to another by transport/devmem: memory of an emulated GPU is bound
 * by pool.h, exports.h, lease.h or devmem.h, the stream is led to its queue by lease.h or by a rule, and what comes
 * goes through intake.h into a buffer of the GPU, from there to the host, and is compared. What was seen is printed as
 * NAME=VALUE lines.
 *
 *     receive CARD PORT BYTES [--lease | --queue N...] [--steer N] [--buffer BYTES | --fits] [--memory BYTES] [--hold]
 *     send CARD ADDRESS PORT BYTES [--device] [--told]
 *     bindings CARD
 *
 * Only here, and in no product: the calls of the system for a single stream (Weft's are in transport/io); the choice of
 * a queue, of several, or of one that the stream is not led to; buffers that are held until the card has none left
 * (--hold); counts of what has come how (beside the headers, in ordinary packets, the largest fragment); copies one by
 * one where Weft has one gather; and the bindings that have to be refused.
 */
#include "card.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct wf_memory_ops *const ops = &wf_memory_cuda;
struct wf_memory *memory;
struct wf_status status;

void need(int result, const char *what)
{
    if (result >= 0)
        return;
    printf("%s: %s: %s\n", what, strerrorname_np(-result), status.text);
    exit(1);
}

void need_system(bool good, const char *what)
{
    if (!good)
        need(wf_fail(&status, -errno, "%s", strerror(errno)), what);
}

void use_gpu(void)
{
    need(ops->open(NULL, &memory, &status), "the driver");
    need(ops->use(memory, GPU, &status), "the GPU");
    need(ops->exports(memory, GPU, &status), "dma-bufs");
}

uint8_t *take_memory(uint64_t bytes)
{
    void *base = NULL;

    need(ops->alloc(memory, GPU, bytes, &base, &status), "memory of the GPU");
    return base;
}

static int misused(void)
{
    fputs("usage: see card.c\n", stderr);
    return 2;
}

static int read_options(int argc, char **argv, struct plan *plan)
{
    static const struct option names[] = {
        {"lease", no_argument, NULL, 'l'},       {"queue", required_argument, NULL, 'q'},
        {"steer", required_argument, NULL, 's'}, {"buffer", required_argument, NULL, 'b'},
        {"fits", no_argument, NULL, 'f'},        {"memory", required_argument, NULL, 'm'},
        {"hold", no_argument, NULL, 'h'},        {"device", no_argument, NULL, 'd'},
        {"told", no_argument, NULL, 't'},        {NULL, 0, NULL, 0},
    };
    int name, result = 0;

    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        plan->lease |= name == 'l';
        plan->fits |= name == 'f';
        plan->hold |= name == 'h';
        plan->device |= name == 'd';
        plan->told |= name == 't';
        if (name == 'q' && plan->queue_count < QUEUES_MAX)
            plan->queues[plan->queue_count++] = (uint32_t)atoi(optarg);
        else if (name == 's')
            plan->steer = atoi(optarg);
        else if (name == 'b')
            plan->buffer = (uint32_t)atoi(optarg);
        else if (name == 'm')
            plan->memory = strtoull(optarg, NULL, 10);
        else if (name == '?')
            result = -1;
    }
    return result;
}

int main(int argc, char **argv)
{
    struct plan plan = {.steer = -1, .memory = 8 << 20};

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (read_options(argc, argv, &plan) != 0)
        return misused();
    char **words = argv + optind;
    int count = argc - optind;
    if (count == 2 && strcmp(words[0], "bindings") == 0)
        return run_bindings(words[1]);
    bool sends = count == 5 && strcmp(words[0], "send") == 0;
    if (!sends && (count != 4 || strcmp(words[0], "receive") != 0))
        return misused();
    plan.card = words[1];
    plan.address = sends ? words[2] : NULL;
    plan.port = (uint16_t)atoi(words[count - 2]);
    plan.bytes = strtoull(words[count - 1], NULL, 10);
    return sends ? run_send(&plan) : run_receive(&plan);
}
