/*
 * The kernels on this machine's GPU 0, against their references, and how fast they gather beside a plain copy of the
 * same bytes (printed; nothing depends on it). Ends with 77 where there is no GPU, or no kernel that it takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernel_reference.h"
#include "mem/memory_cuda.h"

#define ROOM ((uint64_t)64 << 20)
#define REPEATS 50

static struct wf_memory *memory;
static struct wf_cuda_device *device;
static const struct wf_cuda_api *api;
static wf_cu_memory from, to, table;
static uint8_t *here, *there, *wanted; /* host images of `from` and `to`, and what `to` is to be */
static uint64_t random_state = 88172645463325252u;

static void die(const char *what, wf_cu_result result)
{
    char text[WF_CUDA_ERROR_TEXT];

    fprintf(stderr, "%s: %s\n", what, wf_cuda_error(api, result, text));
    exit(1);
}

static void must(wf_cu_result result, const char *what)
{
    if (result)
        die(what, result);
}

/* xorshift64 (Marsaglia). */
static uint64_t below(uint64_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % bound;
}

static void fill(uint8_t *base, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t word = below(UINT64_MAX);
        memcpy(base + i, &word, 8);
    }
}

static void put(wf_cu_memory target, const void *source, uint64_t bytes)
{
    must(api->cuMemcpyHtoDAsync(target, source, bytes, device->now), "cuMemcpyHtoDAsync");
    must(api->cuStreamSynchronize(device->now), "cuStreamSynchronize");
}

static void expect(wf_cu_memory source, const uint8_t *image, uint64_t bytes, const char *what)
{
    uint8_t *got = malloc(bytes);

    must(api->cuMemcpyDtoHAsync(got, source, bytes, device->now), "cuMemcpyDtoHAsync");
    must(api->cuStreamSynchronize(device->now), "cuStreamSynchronize");
    if (memcmp(got, image, bytes) != 0) {
        fprintf(stderr, "%s is wrong\n", what);
        exit(1);
    }
    free(got);
}

/* Pieces of up to `most` bytes at any alignment; the references run on the images. */
static void gathers(uint64_t most)
{
    enum { COUNT = 1000 };
    static struct wf_gather_piece pieces[COUNT], images[COUNT];
    uint64_t at = 0, longest = 0, bytes = COUNT * (2 * most + 24);

    fill(here, bytes);
    fill(there, bytes);
    for (int i = 0; i < COUNT; i++) {
        uint64_t place = (uint64_t)i * 2 * most + below(most), length = below(most + 1);
        at += below(20);
        pieces[i] = (struct wf_gather_piece){.address = from + place, .offset = at, .bytes = length};
        images[i] = pieces[i];
        images[i].address = (uintptr_t)here + place;
        at += length;
        longest = length > longest ? length : longest;
    }
    put(from, here, bytes);
    put(to, there, bytes);
    put(table, pieces, sizeof(pieces));
    memcpy(wanted, there, bytes);
    wf_reference_gather(wanted, images, COUNT);
    must(wf_cuda_gather(api, &device->kernels, device->now, to, table, COUNT, longest), "weft_gather");
    expect(to, wanted, bytes, "gather");
    /* And back: what was gathered lies where it came from already, so something else is scattered. */
    put(to, there, bytes);
    wf_reference_scatter(there, images, COUNT);
    must(wf_cuda_scatter(api, &device->kernels, device->now, to, table, COUNT, longest), "weft_scatter");
    expect(from, here, bytes, "scatter");
}

static void sums(enum wf_number type)
{
    uint64_t size = (uint64_t)wf_number_bytes(type);

    for (int round = 0; round < 20; round++) {
        uint64_t count = round < 2 ? (uint64_t)round : below(ROOM / 8 / size), shift = round % 3 ? 0 : size * below(16);
        uint64_t bytes = (count * size + shift + 7) / 8 * 8 + 8;
        fill(here, bytes);
        fill(there, bytes);
        /* No number that is none: its bits are nobody's promise. */
        for (uint64_t i = size - 1; i < bytes; i += size) {
            here[i] &= 0xBF;
            there[i] &= 0xBF;
        }
        put(from, here, bytes);
        put(to, there, bytes);
        wf_reference_sum(type, there + shift, here, count);
        must(wf_cuda_sum(api, &device->kernels, device->now, type, to + shift, from, count), "weft_sum");
        expect(to, there, bytes, "sum");
    }
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Pieces of `bytes`, each `bytes` apart from the next, and as many as there is room for. */
static void measure(uint64_t bytes)
{
    unsigned int count = (unsigned int)(ROOM / 2 / bytes);
    struct wf_gather_piece *pieces = calloc(count, sizeof(*pieces));
    double took[2];

    for (unsigned int i = 0; i < count; i++)
        pieces[i] = (struct wf_gather_piece){
            .address = from + 2 * bytes * i, .offset = bytes * (count - 1 - i), .bytes = bytes};
    put(table, pieces, count * sizeof(*pieces));
    for (int what = 0; what < 2; what++) {
        for (int i = -1; i < REPEATS; i++) {
            if (i == 0) {
                must(api->cuStreamSynchronize(device->now), "cuStreamSynchronize");
                took[what] = seconds();
            }
            if (what == 0)
                must(api->cuMemcpyDtoDAsync(to, from, bytes * count, device->now), "cuMemcpyDtoDAsync");
            else
                must(wf_cuda_gather(api, &device->kernels, device->now, to, table, count, bytes), "weft_gather");
        }
        must(api->cuStreamSynchronize(device->now), "cuStreamSynchronize");
        took[what] = seconds() - took[what];
    }
    double total = (double)bytes * count * REPEATS / 1e9;
    printf("pieces of %7llu bytes: gathered at %7.1f GB/s, copied in one at %7.1f GB/s: %.2f of it\n",
           (unsigned long long)bytes, total / took[1], total / took[0], took[0] / took[1]);
    free(pieces);
}

int main(void)
{
    struct wf_cuda_visit visit;
    struct wf_status status = {0};

    if (wf_memory_cuda.open(NULL, &memory, &status)) {
        printf("skipped: no GPU: %s\n", status.text);
        return 77;
    }
    if (wf_memory_cuda.use(memory, 0, &status)) {
        fprintf(stderr, "%s\n", status.text);
        return 1;
    }
    device = &memory->devices[0];
    api = &memory->driver.api;
    must(wf_cuda_enter(memory, device, &visit), "cuCtxPushCurrent");
    if (!device->kernels.module) {
        char text[WF_CUDA_ERROR_TEXT];
        struct wf_cuda_kernels kernels;
        printf("skipped: no kernels for %s: %s\n", device->info.name,
               wf_cuda_error(api, wf_cuda_kernels_load(api, &kernels), text));
        wf_cuda_leave(memory, &visit);
        wf_memory_cuda.close(memory);
        return 77;
    }
    must(api->cuMemAlloc(&from, ROOM), "cuMemAlloc");
    must(api->cuMemAlloc(&to, ROOM), "cuMemAlloc");
    must(api->cuMemAlloc(&table, ROOM), "cuMemAlloc");
    here = malloc(ROOM);
    there = malloc(ROOM);
    wanted = malloc(ROOM);
    for (uint64_t most = 1; most <= 30000; most = most * 3 + 1)
        gathers(most);
    for (int type = 0; type < WF_NUMBERS; type++)
        sums((enum wf_number)type);
    printf("%s: gather, scatter and sums are those of the references\n", device->info.name);
    for (uint64_t bytes = 256; bytes <= 1 << 20; bytes *= 4)
        measure(bytes);
    (void)api->cuMemFree(from);
    (void)api->cuMemFree(to);
    (void)api->cuMemFree(table);
    wf_cuda_leave(memory, &visit);
    wf_memory_cuda.close(memory);
    free(here);
    free(there);
    free(wanted);
    return 0;
}
