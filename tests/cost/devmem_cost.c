/*
 * devmem_cost.c: what receiving by device-memory TCP takes in user space: nanoseconds for a fragment from the control
 * message of recvmsg() to the gather list, and back to the kernel as part of a range of tokens (devmem/intake.h).
 *
 * The control messages are recorded before, as the kernel writes them, and replayed: no socket, no GPU. A round is one
 * batch: some messages are taken, placed, and the tokens of a batch two rounds before given back, as if its gather had
 * just ended. Rounds are short and many: other programs may have the processor in between, and then a round counts for
 * nothing in the median or in the least.
 *
 * Not in the figures: the kernel (recvmsg and setsockopt themselves), the gather's launch, and the chunks' headers,
 * which frames have anyway. What the kernel takes stands in the table as others have measured it on cards that can.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/histogram.h"
#include "devmem/intake.h"

#define MESSAGES 8    /* of a batch */
#define FRAGMENTS 64  /* of a message in device memory */
#define RECORDED 64   /* batches; then they come again, from caches that lie further away than the first */
#define DELAY 2       /* batches whose gather is not done yet */
#define TO_MESSAGES 8 /* of the user's, to which chunks go */
#define MEMORY UINT64_C(0x7f0000000000)
#define MESSAGE_BYTES (UINT64_C(1) << 30) /* from one message's memory to the next's */
#define LINEAR_BYTES 100
#define LINEAR_EVERY 8
#define POOL_BYTES (UINT64_C(1) << 34)
#define DMABUF 7
#define ROUNDS 5000
#define ROUNDS_MAX 100000
#define QUICK_ROUNDS 200
#define GOAL_NS 60.0
#define FRAGMENT_BYTES 4096

enum step { TAKE, PLACE, TOKENS, SUM, STEPS };

struct row {
    const char *name;
    uint32_t bytes;     /* of a fragment */
    bool shuffled;      /* chunks go to 8 messages in any order, from any buffer, with tokens in any order */
    bool linear;        /* bytes beside device memory in between */
    const char *kernel; /* CPU-s/GB of the kernel's part, by others */
    double least[STEPS], median[STEPS];
    double ranges; /* of tokens, for 1,000 fragments */
};

static struct row rows[] = {
    {.name = "in order", .bytes = FRAGMENT_BYTES, .kernel = "0.1"},
    {.name = "shuffled over 8 messages", .bytes = FRAGMENT_BYTES, .shuffled = true, .kernel = "0.1"},
    {.name = "linear parts mixed in", .bytes = FRAGMENT_BYTES, .linear = true, .kernel = "0.1"},
    {.name = "both", .bytes = FRAGMENT_BYTES, .shuffled = true, .linear = true, .kernel = "0.1"},
    {.name = "in order, buffers of 32 KiB", .bytes = 32768, .kernel = "0.03"},
};

#define ROWS (sizeof rows / sizeof rows[0])

/* One recvmsg(). */
struct message {
    uint8_t control[WF_DEVMEM_CONTROL_BYTES(2 * FRAGMENTS)];
    size_t control_bytes, received;
    uint64_t to; /* of its chunk, which has all of it */
};

/* What is replayed. Owner: the row that is measured. */
struct scene {
    const struct row *row;
    struct message (*recorded)[MESSAGES];
    struct wf_devmem_intake *intake;
    uint8_t *host;
    struct wf_devmem_gather *gathers; /* of DELAY + 1 batches */
    struct wf_devmem_copy *copies;
    uint64_t told, fragments, given, ranges;
    double samples[STEPS][ROUNDS_MAX];
};

#define LIST (MESSAGES * FRAGMENTS * 2)

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "devmem_cost: %s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* splitmix64, public domain, Sebastiano Vigna. */
static uint64_t draw(void)
{
    static uint64_t state = 20261125;
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* --- recording --- */

static void record(struct message *message, int type, const struct wf_devmem_cmsg *data)
{
    struct cmsghdr header = {.cmsg_len = CMSG_LEN(sizeof *data), .cmsg_level = SOL_SOCKET, .cmsg_type = type};

    memcpy(message->control + message->control_bytes, &header, sizeof header);
    memcpy(message->control + message->control_bytes + CMSG_LEN(0), data, sizeof *data);
    message->control_bytes += CMSG_SPACE(sizeof *data);
    message->received += data->bytes;
}

/* Buffer and token of the fragments of a message, in order or not: a buffer's number is its token. */
static void choose_buffers(const struct row *row, uint32_t first, uint32_t buffers[FRAGMENTS])
{
    for (uint32_t i = 0; i < FRAGMENTS; i++)
        buffers[i] = first + i;
    for (uint32_t i = FRAGMENTS - 1; i > 0 && row->shuffled; i--) {
        uint32_t other = (uint32_t)(draw() % (i + 1)), kept = buffers[i];
        buffers[i] = buffers[other];
        buffers[other] = kept;
    }
}

static void record_message(const struct row *row, struct message *message, uint32_t first)
{
    uint32_t buffers[FRAGMENTS];

    message->control_bytes = message->received = 0;
    choose_buffers(row, first, buffers);
    for (uint32_t i = 0; i < FRAGMENTS; i++) {
        struct wf_devmem_cmsg data = {
            .offset = (uint64_t)buffers[i] * row->bytes, .bytes = row->bytes, .token = buffers[i], .dmabuf = DMABUF};
        if (row->linear && i % LINEAR_EVERY == 0)
            record(message, WF_DEVMEM_SCM_LINEAR, &(struct wf_devmem_cmsg){.bytes = LINEAR_BYTES});
        record(message, WF_DEVMEM_SCM_DMABUF, &data);
    }
}

static void record_all(struct scene *scene)
{
    uint64_t next[TO_MESSAGES] = {0};

    for (uint32_t i = 0; i < RECORDED; i++)
        for (uint32_t k = 0; k < MESSAGES; k++) {
            struct message *message = &scene->recorded[i][k];
            uint32_t to = scene->row->shuffled ? (uint32_t)(draw() % TO_MESSAGES) : 0;
            record_message(scene->row, message, (i * MESSAGES + k) * FRAGMENTS);
            message->to = MEMORY + to * MESSAGE_BYTES + next[to];
            next[to] += message->received;
        }
}

static void scene_init(struct scene *scene, const struct row *row)
{
    struct wf_devmem_intake_setup setup = {
        .dmabuf = DMABUF, .dmabuf_bytes = POOL_BYTES, .fragments_max = (DELAY + 2) * LIST, .chunks_max = 2 * MESSAGES};
    struct wf_status status;

    *scene = (struct scene){.row = row};
    scene->recorded = calloc(RECORDED, sizeof *scene->recorded);
    scene->host = malloc(FRAGMENTS * LINEAR_BYTES);
    scene->gathers = calloc((DELAY + 1) * LIST, sizeof *scene->gathers);
    scene->copies = calloc((DELAY + 1) * LIST, sizeof *scene->copies);
    CHECK(scene->recorded && scene->host && scene->gathers && scene->copies);
    CHECK(wf_devmem_intake_create(&setup, &scene->intake, &status) == 0);
    record_all(scene);
}

static void scene_fini(struct scene *scene)
{
    wf_devmem_intake_destroy(scene->intake);
    free(scene->recorded);
    free(scene->host);
    free(scene->gathers);
    free(scene->copies);
}

/* --- one round --- */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void expect_all(struct scene *scene, const struct message *messages)
{
    struct wf_status status;

    for (int i = 0; i < MESSAGES; i++) {
        struct wf_devmem_chunk chunk = {.position = scene->told, .bytes = messages[i].received, .to = messages[i].to};
        CHECK(wf_devmem_intake_expect(scene->intake, &chunk, &status) == 0);
        scene->told += chunk.bytes;
    }
}

static void take_all(struct scene *scene, struct message *messages)
{
    struct wf_status status;

    for (int i = 0; i < MESSAGES; i++) {
        struct iovec iov = {.iov_base = scene->host, .iov_len = SIZE_MAX / 2};
        struct msghdr message = {.msg_iov = &iov,
                                 .msg_iovlen = 1,
                                 .msg_control = messages[i].control,
                                 .msg_controllen = messages[i].control_bytes};
        CHECK(wf_devmem_intake_take(scene->intake, &message, messages[i].received, &status) == 0);
    }
}

static void give_back(struct scene *scene, uint64_t done)
{
    struct wf_devmem_tokens ranges[WF_DEVMEM_RANGES_MAX];
    uint32_t fragments, count;

    if (done)
        CHECK(wf_devmem_intake_done(scene->intake, done) == 0);
    while ((count = wf_devmem_intake_give_back(scene->intake, ranges, &fragments)) > 0) {
        scene->given += fragments;
        scene->ranges += count;
    }
}

static void run_round(struct scene *scene, uint32_t round)
{
    struct message *messages = scene->recorded[round % RECORDED];
    size_t at = (round % (DELAY + 1)) * LIST;
    struct wf_devmem_batch batch = {
        .gathers = scene->gathers + at, .copies = scene->copies + at, .gathers_max = LIST, .copies_max = LIST};
    int64_t looks[STEPS];

    expect_all(scene, messages);
    looks[TAKE] = now_ns();
    take_all(scene, messages);
    looks[PLACE] = now_ns();
    CHECK(wf_devmem_intake_place(scene->intake, &batch));
    looks[TOKENS] = now_ns();
    give_back(scene, batch.number > DELAY ? batch.number - DELAY : 0);
    looks[SUM] = now_ns();
    CHECK(batch.gather_count == MESSAGES * FRAGMENTS && batch.position == scene->told);
    scene->fragments += batch.gather_count;
    for (int step = TAKE; step < SUM; step++)
        scene->samples[step][round] = (double)(looks[step + 1] - looks[step]) / batch.gather_count;
    scene->samples[SUM][round] = (double)(looks[SUM] - looks[TAKE]) / batch.gather_count;
}

/* --- a row --- */

static void settle(struct row *row, struct scene *scene, uint32_t rounds)
{
    for (int step = 0; step < STEPS; step++) {
        row->least[step] = scene->samples[step][0];
        for (uint32_t i = 1; i < rounds; i++)
            if (scene->samples[step][i] < row->least[step])
                row->least[step] = scene->samples[step][i];
        row->median[step] = wf_median(scene->samples[step], rounds);
    }
    row->ranges = 1000.0 * (double)scene->ranges / (double)scene->given;
}

/* Returns how many fragments were placed; all of them went back. */
static uint64_t measure(struct row *row, uint32_t rounds)
{
    struct scene *scene = calloc(1, sizeof *scene);

    CHECK(scene);
    scene_init(scene, row);
    for (uint32_t i = 0; i < RECORDED; i++) /* fills caches and pools, and does not count */
        run_round(scene, i);
    for (uint32_t i = 0; i < rounds; i++)
        run_round(scene, i);
    settle(row, scene, rounds);
    give_back(scene, RECORDED + rounds);
    CHECK(scene->given == scene->fragments && wf_devmem_intake_held(scene->intake) == 0);
    uint64_t fragments = scene->fragments;
    scene_fini(scene);
    free(scene);
    return fragments;
}

/* --- the table --- */

static double cpu_s_per_gb(const struct row *row, double ns)
{
    return ns / row->bytes; /* ns for a byte are seconds for a GB */
}

static void print_rows(void)
{
    printf(
        "| fragments | control messages (ns a fragment) | placing and gather list | tokens | sum, median | sum, least "
        "| ranges for 1,000 tokens | CPU-s/GB | kernel, CPU-s/GB: others' figure, not measured by us |\n"
        "|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.4f | about %s |\n", row->name, row->median[TAKE],
               row->median[PLACE], row->median[TOKENS], row->median[SUM], row->least[SUM], row->ranges,
               cpu_s_per_gb(row, row->median[SUM]), row->kernel);
    }
}

static void print_verdict(void)
{
    double worst = 0;

    for (size_t i = 0; i < ROWS; i++)
        worst = rows[i].median[SUM] > worst ? rows[i].median[SUM] : worst;
    printf("\nGoal: at most %.0f ns a fragment of 4 KiB (0.015 CPU-s/GB): %s, the slowest row takes %.1f ns.\n",
           GOAL_NS, worst <= GOAL_NS ? "met" : "MISSED", worst);
}

/* --- the command line --- */

static const char *const usage =
    "usage: devmem_cost [--rounds N] [--quick]\n"
    "What receiving by device-memory TCP takes in user space, replayed from recorded control messages. Markdown.\n"
    "  --rounds N  batches of 512 fragments, 1 to 100000 (default 5000): medians and the least are printed\n"
    "  --quick     200 of them, for tests: the figures mean little\n";

static int refuse(const char *text, const char *word)
{
    fprintf(stderr, "devmem_cost: %s: %s\n%s", text, word, usage);
    return 2;
}

/* 0: measure; else the exit status of the program, 1 for --help. */
static int read_options(int argc, char **argv, uint32_t *rounds)
{
    *rounds = ROUNDS;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return 1;
        if (strcmp(argv[i], "--quick") == 0) {
            *rounds = QUICK_ROUNDS;
        } else if (strcmp(argv[i], "--rounds") == 0) {
            const char *value = i + 1 < argc ? argv[++i] : "";
            int number = atoi(value);
            if (number < 1 || number > ROUNDS_MAX)
                return refuse("--rounds takes a number from 1 to 100000", value);
            *rounds = (uint32_t)number;
        } else {
            return refuse("unknown option", argv[i]);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t rounds;
    uint64_t fragments = 0;
    int result = read_options(argc, argv, &rounds);

    if (result == 1)
        printf("%s", usage);
    if (result != 0)
        return result == 1 ? 0 : result;
    for (size_t i = 0; i < ROWS; i++)
        fragments += measure(&rows[i], rounds);
    printf("%u rounds of %d fragments for each row. All but \"least\" are medians: others may use the processor in "
           "between.\n\n",
           rounds, MESSAGES * FRAGMENTS);
    print_rows();
    print_verdict();
    printf("\nAll %llu fragments were placed, and given back.\n", (unsigned long long)fragments);
    return 0;
}
