/*
 * nccl_ranks.c: two ranks of NCCL on one GPU, as two hosts (NCCL_HOSTID): all that they exchange goes over NCCL's
 * network, which the environment chooses (NCCL_NET_PLUGIN, NCCL_NET). For each operation and size a line:
 *
 *     OPERATION BYTES MICROSECONDS GB_PER_S WRONG
 *
 * the median time of one operation of rank 0, bytes over that time, and values that were not what they should be, of
 * all rounds together: each hands in other values, and all of its result is compared after its time is taken.
 *
 *     nccl_ranks [MAX_BYTES [ROUNDS [MIN_BYTES]]]
 *
 * Exit status: 0 all is right, 1 something is not, 77 there is no GPU.
 */
#include <cuda_runtime.h>
#include <nccl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANKS 2
#define ROUNDS_MOST 10000
#define WARM_UP 2
#define SHIFT 4 /* elements, from a round to the next: 16 bytes, for what NCCL's kernels load at a time */

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t result = (call);                                                                                   \
        if (result != cudaSuccess)                                                                                     \
            give_up(#call, cudaGetErrorString(result));                                                                \
    } while (0)
#define NCCL(call)                                                                                                     \
    do {                                                                                                               \
        ncclResult_t result = (call);                                                                                  \
        if (result != ncclSuccess)                                                                                     \
            give_up(#call, ncclGetErrorString(result));                                                                \
    } while (0)

/* Of both ranks. */
struct shared {
    atomic_uint came;    /* to a meeting, all that there were */
    atomic_size_t wrong; /* values, so far */
};

struct rank {
    int number;
    ncclComm_t comm;
    cudaStream_t stream;
    float *from, *to;       /* of the GPU; a round begins SHIFT elements further in `from` than the one before */
    float *host, *expected; /* what came, and what must come in all rounds, shifted as `from` is */
    size_t least, most;     /* bytes of an operation */
    int rounds;
    struct shared *shared;
    unsigned met; /* times */
};

static void give_up(const char *call, const char *why)
{
    fprintf(stderr, "%s: %s\n", call, why);
    exit(1);
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Small whole numbers: their sums are exact. */
static float value(int rank, size_t index)
{
    return (float)((index * 7 + (size_t)rank * 3) % 251);
}

static void all_reduce(const struct rank *rank, const float *from, size_t count)
{
    NCCL(ncclAllReduce(from, rank->to, count, ncclFloat, ncclSum, rank->comm, rank->stream));
}

static void send_and_receive(const struct rank *rank, const float *from, size_t count)
{
    NCCL(ncclGroupStart());
    NCCL(ncclSend(from, count, ncclFloat, 1 - rank->number, rank->comm, rank->stream));
    NCCL(ncclRecv(rank->to, count, ncclFloat, 1 - rank->number, rank->comm, rank->stream));
    NCCL(ncclGroupEnd());
}

static const struct operation {
    const char *name;
    void (*run)(const struct rank *rank, const float *from, size_t count);
    int sums; /* of both ranks; else the other rank's */
} operations[] = {{"all_reduce", all_reduce, 1}, {"sendrecv", send_and_receive, 0}};

/* Waits for the other rank: one may have compared for longer. Where one is gone, the parent ends the other. */
static void meet(struct rank *rank)
{
    unsigned all = RANKS * ++rank->met;
    atomic_fetch_add(&rank->shared->came, 1);
    while (atomic_load(&rank->shared->came) < all)
        sched_yield();
}

/* All that the rounds hand in, and what must come of it. */
static void prepare(const struct rank *rank, const struct operation *operation, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rank->host[i] = value(rank->number, i);
    CUDA(cudaMemcpy(rank->from, rank->host, count * sizeof(float), cudaMemcpyHostToDevice));
    for (size_t i = 0; i < count; i++)
        rank->expected[i] = value(1 - rank->number, i) + (operation->sums ? rank->host[i] : 0);
}

static size_t count_wrong(const struct rank *rank, const float *expected, size_t count)
{
    size_t wrong = 0;
    CUDA(cudaMemcpy(rank->host, rank->to, count * sizeof(float), cudaMemcpyDeviceToHost));
    if (memcmp(rank->host, expected, count * sizeof(float)) == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        wrong += rank->host[i] != expected[i];
    return wrong;
}

static void measure(struct rank *rank, const struct operation *operation, size_t bytes)
{
    double times[ROUNDS_MOST];
    size_t count = bytes / sizeof(float), before = atomic_load(&rank->shared->wrong);
    prepare(rank, operation, count + (size_t)(rank->rounds + WARM_UP) * SHIFT);
    for (int round = 0; round < rank->rounds + WARM_UP; round++) {
        size_t at = (size_t)round * SHIFT;
        CUDA(cudaMemset(rank->to, 0xff, bytes));
        CUDA(cudaDeviceSynchronize());
        meet(rank);
        double start = now_us();
        operation->run(rank, rank->from + at, count);
        CUDA(cudaStreamSynchronize(rank->stream));
        if (round >= WARM_UP)
            times[round - WARM_UP] = now_us() - start;
        atomic_fetch_add(&rank->shared->wrong, count_wrong(rank, rank->expected + at, count));
    }
    qsort(times, (size_t)rank->rounds, sizeof *times, by_size);
    double median = times[rank->rounds / 2];
    meet(rank);
    size_t wrong = atomic_load(&rank->shared->wrong) - before;
    if (rank->number == 0)
        printf("%s %zu %.1f %.4f %zu\n", operation->name, bytes, median, (double)bytes / median * 1e-3, wrong);
    fflush(stdout);
    meet(rank); /* `wrong` is read */
}

/* Four times as large; the last is `most`, and then comes 0. */
static size_t next_size(size_t bytes, size_t most)
{
    if (bytes == most)
        return 0;
    return bytes > most / 4 ? most : 4 * bytes;
}

static int run(struct rank *rank, const ncclUniqueId *id)
{
    CUDA(cudaSetDevice(0));
    CUDA(cudaStreamCreateWithFlags(&rank->stream, cudaStreamNonBlocking));
    size_t room = rank->most + (size_t)(rank->rounds + WARM_UP) * SHIFT * sizeof(float);
    CUDA(cudaMalloc((void **)&rank->from, room));
    CUDA(cudaMalloc((void **)&rank->to, rank->most));
    CUDA(cudaMallocHost((void **)&rank->host, room));
    rank->expected = malloc(room);
    if (!rank->expected)
        give_up("malloc", "no memory");
    NCCL(ncclCommInitRank(&rank->comm, RANKS, *id, rank->number));
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        for (size_t bytes = rank->least; bytes > 0; bytes = next_size(bytes, rank->most))
            measure(rank, &operations[i], bytes);
    NCCL(ncclCommDestroy(rank->comm));
    return atomic_load(&rank->shared->wrong) > 0;
}

/* Rank 0 makes the number of the communicator and hands it to rank 1 through a pipe. */
static int be(struct rank *rank, const int pipe_ends[2])
{
    ncclUniqueId id;
    char host[16];
    int devices = 0;
    snprintf(host, sizeof host, "host%d", rank->number);
    setenv("NCCL_HOSTID", host, 1);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
        return 77;
    if (rank->number == 0) {
        NCCL(ncclGetUniqueId(&id));
        if (write(pipe_ends[1], &id, sizeof id) != sizeof id)
            return 1;
    } else if (read(pipe_ends[0], &id, sizeof id) != sizeof id) {
        return 1;
    }
    return run(rank, &id);
}

int main(int argc, char **argv)
{
    size_t most = argc > 1 ? strtoull(argv[1], NULL, 0) : (size_t)256 << 20;
    int rounds = argc > 2 ? atoi(argv[2]) : 20, pipe_ends[2], worst = 0;
    size_t least = argc > 3 ? strtoull(argv[3], NULL, 0) : 8;
    if (least < 8 || most < least || rounds < 1 || rounds > ROUNDS_MOST || pipe(pipe_ends) != 0) {
        fprintf(stderr, "usage: nccl_ranks [MAX_BYTES [ROUNDS [MIN_BYTES]]]\n");
        return 2;
    }
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    pid_t children[RANKS];
    for (int i = 0; i < RANKS; i++) {
        struct rank rank = {.number = i, .least = least, .most = most, .rounds = rounds, .shared = shared};
        children[i] = fork();
        if (children[i] == 0)
            exit(be(&rank, pipe_ends));
        if (children[i] < 0)
            return 1;
    }
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    for (int i = 0; i < RANKS; i++) {
        int status;
        pid_t ended = wait(&status);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        /* A kernel of the other rank waits for the one that failed, for ever. */
        for (int k = 0; k < RANKS; k++)
            if (children[k] == ended)
                children[k] = 0;
            else if (code != 0 && children[k] > 0)
                kill(children[k], SIGKILL);
        worst = code > worst ? code : worst;
    }
    return worst;
}
