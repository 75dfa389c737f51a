/*
 * weft-mpi: one pair of MPI processes, measured as `weft pair` measures: rank 0 sends to rank 1, `inflight` messages
 * are outstanding, and take turns in `buffers` areas. Prints one JSON object (schema weft.mpi/1) at rank 0. For
 * comparison only: no part of Weft uses MPI.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/config.h"
#include "base/histogram.h"

#define TAG 7
#define COUNT_MAX (1u << 20)

struct pair {
    int rank;
    bool latency;
    uint64_t size, messages, warmup, inflight, buffers;
    char *areas;
    MPI_Request *requests; /* `inflight` of them: message i has number i % inflight */
};

static double cpu_s(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void *area(const struct pair *pair, uint64_t message)
{
    return pair->areas + message % pair->buffers * pair->size;
}

static void start(struct pair *pair, uint64_t message)
{
    MPI_Request *request = &pair->requests[message % pair->inflight];

    if (pair->rank == 0)
        MPI_Isend(area(pair, message), (int)pair->size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, request);
    else
        MPI_Irecv(area(pair, message), (int)pair->size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, request);
}

/* One message leaves the window as the next enters it, so that it never runs empty. Receives are posted before the
 * first send. Returns seconds, from the first send to rank 1's word that it has all. */
static double flow(struct pair *pair, uint64_t messages)
{
    uint64_t posted = 0;
    char done = 0;

    while (pair->rank == 1 && posted < messages && posted < pair->inflight)
        start(pair, posted++);
    MPI_Barrier(MPI_COMM_WORLD);
    double before = MPI_Wtime();
    for (uint64_t i = 0; i < messages; i++) {
        while (posted < messages && posted < i + pair->inflight)
            start(pair, posted++);
        MPI_Wait(&pair->requests[i % pair->inflight], MPI_STATUS_IGNORE);
    }
    if (pair->rank == 0)
        MPI_Recv(&done, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&done, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    return MPI_Wtime() - before;
}

static double ping_pong(struct pair *pair, uint64_t messages, double *times_ns)
{
    int other = 1 - pair->rank, size = (int)pair->size;
    MPI_Barrier(MPI_COMM_WORLD);
    double first = MPI_Wtime(), before = first;
    for (uint64_t i = 0; i < messages; i++) {
        if (pair->rank == 0)
            MPI_Send(area(pair, i), size, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
        MPI_Recv(area(pair, i), size, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (pair->rank == 1)
            MPI_Send(area(pair, i), size, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
        double now = MPI_Wtime();
        times_ns[i] = (now - before) * 1e9 / 2;
        before = now;
    }
    return before - first;
}

static void print_result(const struct pair *pair, double elapsed_s, double cpu, double *times_ns)
{
    double gb = (double)pair->size * (double)pair->messages / 1e9;
    struct wf_times times;

    printf(
        "{\"schema\": \"weft.mpi/1\", \"size_bytes\": %llu, \"messages\": %llu, \"inflight\": %llu, \"buffers\": %llu, "
        "\"elapsed_s\": %.9f, \"cpu_s\": %.9f, ",
        (unsigned long long)pair->size, (unsigned long long)pair->messages, (unsigned long long)pair->inflight,
        (unsigned long long)pair->buffers, elapsed_s, cpu);
    if (pair->latency) {
        wf_times_of(times_ns, pair->messages, &times);
        printf("\"p50_us\": %.4f, \"p99_us\": %.4f, \"mean_us\": %.4f}\n", times.p50, times.p99, times.mean);
    } else {
        printf("\"gb_per_s\": %.6f, \"messages_per_s\": %.3f, \"cpu_s_per_gb\": %.6f}\n", gb / elapsed_s,
               (double)pair->messages / elapsed_s, cpu / gb);
    }
}

static int measure(struct pair *pair)
{
    uint64_t most = pair->warmup > pair->messages ? pair->warmup : pair->messages;
    double *times_ns = calloc(pair->latency ? most : 1, sizeof *times_ns);
    double both = 0;

    pair->requests = calloc(pair->inflight, sizeof *pair->requests);
    pair->areas = mmap(NULL, pair->size * pair->buffers, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!times_ns || !pair->requests || pair->areas == MAP_FAILED) {
        fprintf(stderr, "weft-mpi: no memory for %llu buffers of %llu bytes\n", (unsigned long long)pair->buffers,
                (unsigned long long)pair->size);
        return 1;
    }
    madvise(pair->areas, pair->size * pair->buffers, MADV_HUGEPAGE); /* a kernel without them says no */
    memset(pair->areas, 0x5a, pair->size * pair->buffers);
    if (pair->latency)
        ping_pong(pair, pair->warmup, times_ns);
    else
        flow(pair, pair->warmup);
    double before = cpu_s();
    double elapsed_s = pair->latency ? ping_pong(pair, pair->messages, times_ns) : flow(pair, pair->messages);
    double used = cpu_s() - before;
    MPI_Reduce(&used, &both, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (pair->rank == 0)
        print_result(pair, elapsed_s, both, times_ns);
    munmap(pair->areas, pair->size * pair->buffers);
    free(pair->requests);
    free(times_ns);
    return 0;
}

/* Whole numbers, or sizes with K, M or G. */
static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    return wf_parse_size(text, out) == 0 && *out >= least && *out <= most;
}

static bool read_options(struct pair *pair, int argc, char **argv)
{
    static const struct option longs[] = {
        {"size", required_argument, NULL, 's'},
        {"iters", required_argument, NULL, 'n'},
        {"warmup", required_argument, NULL, 'w'},
        {"inflight", required_argument, NULL, 'i'},
        {"buffers", required_argument, NULL, 'b'},
        {"lat", no_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    bool good = true;
    int option;

    *pair = (struct pair){.size = 1 << 20, .messages = 1000, .warmup = 100, .inflight = 16, .buffers = 16};
    while (good && (option = getopt_long(argc, argv, "n:w:", longs, NULL)) != -1) {
        switch (option) {
        case 's':
            good = read_number(optarg, 0, INT_MAX, &pair->size); /* MPI counts in int */
            break;
        case 'n':
            good = read_number(optarg, 1, UINT64_C(1) << 40, &pair->messages);
            break;
        case 'w':
            good = read_number(optarg, 0, UINT64_C(1) << 40, &pair->warmup);
            break;
        case 'i':
            good = read_number(optarg, 1, COUNT_MAX, &pair->inflight);
            break;
        case 'b':
            good = read_number(optarg, 1, COUNT_MAX, &pair->buffers);
            break;
        case 'l':
            pair->latency = true;
            break;
        default:
            good = false;
        }
    }
    return good && optind == argc;
}

int main(int argc, char **argv)
{
    struct pair pair;
    int ranks, status = 2;
    bool good = read_options(&pair, argc, argv);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &pair.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (good && ranks == 2)
        status = measure(&pair);
    else if (pair.rank == 0)
        fprintf(stderr,
                "usage: mpirun -n 2 weft-mpi [--size BYTES] [-n N] [-w N] [--inflight N] [--buffers N] [--lat]\n");
    if (status)
        MPI_Abort(MPI_COMM_WORLD, status);
    MPI_Finalize();
    return status;
}
