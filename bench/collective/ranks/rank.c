#include "rank.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/config.h"
#include "layers.h"
#include "measure.h"

#define COUNT_MOST 1000000000u
#define EXIT_UNAVAILABLE 77
#define OVERLAP_OPTION 1 /* any of those that rank_overlap_take() reads */

const char *rank_with(const struct rank_asked *asked, const char *name)
{
    size_t length = strlen(name);

    for (int i = 0; asked->with[i]; i++)
        if (strncmp(asked->with[i], name, length) == 0 && asked->with[i][length] == '=')
            return asked->with[i] + length + 1;
    return NULL;
}

/* --- memory --- */

static void *take_memory(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_HUGEPAGE); /* a kernel without them says no */
    memset(memory, 0, bytes);
    return memory;
}

static int take_one(const struct rank_backend *backend, uint64_t bytes, void **out, struct wf_status *status)
{
    if (backend->take)
        return backend->take(bytes, out, status);
    *out = take_memory(bytes);
    return *out ? 0 : wf_fail(status, -ENOMEM, "no memory for buffers of %llu bytes", (unsigned long long)bytes);
}

static void give_one(const struct rank_backend *backend, void *memory, uint64_t bytes)
{
    if (memory && backend->give)
        backend->give(memory);
    else if (memory)
        munmap(memory, bytes);
}

static int take_all(struct rank_world *world, struct wf_status *status)
{
    const struct rank_asked *asked = world->asked;
    uint64_t most = 64;
    int result = 0;

    for (int i = 0; i < asked->size_count; i++)
        most = asked->sizes[i] > most ? asked->sizes[i] : most;
    if (asked->overlap.layers) /* the gradients */
        most = asked->overlap.layers * asked->overlap.layer_bytes;
    world->recv_bytes = most;
    world->send_bytes = asked->out_of_place ? most : 0;
    result = take_one(world->backend, most, &world->recv, status);
    if (result == 0 && world->send_bytes)
        result = take_one(world->backend, most, &world->send, status);
    if (result)
        return result;
    if (world->backend->take)
        world->mirror = take_memory(most);
    world->all = calloc((size_t)world->ranks * RANK_TOLD_MOST, sizeof *world->all);
    world->times_us = calloc(asked->iters ? asked->iters : RANK_ITERS_MAX, sizeof *world->times_us);
    if ((world->backend->take && !world->mirror) || !world->all || !world->times_us ||
        values_init(&world->values, world->rank, world->ranks) != 0)
        return wf_fail(status, -ENOMEM, "no memory for buffers of %llu bytes", (unsigned long long)most);
    return 0;
}

static void free_all(struct rank_world *world)
{
    values_fini(&world->values);
    if (world->mirror)
        munmap(world->mirror, world->recv_bytes);
    free(world->all);
    free(world->times_us);
}

/* --- from options to an exit status --- */

static int exit_status(int result)
{
    return result == 0 ? 0 : result == -EINVAL ? 2 : result == -EOPNOTSUPP ? EXIT_UNAVAILABLE : 1;
}

int rank_run(const struct rank_backend *backend, const struct rank_asked *asked)
{
    struct rank_world world = {.backend = backend, .asked = asked};
    struct wf_status status = {0};
    double begun_us = rank_now_us();

    if (asked->overlap.layers)
        layers_limit_threads();
    int result = backend->open(asked, &world.rank, &world.ranks, &status);

    world.open_us = rank_now_us() - begun_us;
    if (result) {
        fprintf(stderr, "%s: %s\n", backend->name, status.text); /* which rank it is may not be known */
        return exit_status(result);
    }
    if (world.ranks > VALUES_RANKS_MAX)
        result = wf_fail(&status, -EINVAL, "%u ranks: at most %d can be verified", world.ranks, VALUES_RANKS_MAX);
    if (result == 0)
        result = take_all(&world, &status);
    if (result == 0 && world.rank == 0)
        rank_say_facts(&world);
    if (result == 0)
        result = asked->renew            ? rank_renew(&world, &status)
                 : asked->overlap.layers ? rank_overlap(&world, &status)
                                         : rank_measure(&world, &status);
    if (result == 0 && world.rank == 0)
        rank_say_done();
    if (result)
        fprintf(stderr, "%s: rank %u: %s\n", backend->name, world.rank, status.text);
    if (result == 0 || result == -EOPNOTSUPP) { /* else others may still use what would be freed */
        give_one(backend, world.recv, world.recv_bytes);
        give_one(backend, world.send, world.send_bytes);
        backend->close();
    }
    free_all(&world);
    return exit_status(result);
}

static bool read_number(const char *text, uint64_t most, uint64_t *out)
{
    return wf_parse_size(text, out) == 0 && *out <= most;
}

static bool add_op(struct rank_asked *asked, const char *word)
{
    int op = rank_op_find(word);

    if (op < 0 || asked->op_count == RANK_OPS)
        return false;
    asked->ops[asked->op_count++] = (enum bench_collective)op;
    return true;
}

static bool add_size(struct rank_asked *asked, const char *word)
{
    return asked->size_count < RANK_SIZES_MAX &&
           read_number(word, UINT64_C(1) << 40, &asked->sizes[asked->size_count++]);
}

static bool each_word(struct rank_asked *asked, char *list, bool (*add)(struct rank_asked *, const char *))
{
    char *rest;

    for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        if (!add(asked, word))
            return false;
    return true;
}

static bool find_name(int (*find)(const char *), const char *name, int *out)
{
    *out = find(name);
    return *out >= 0;
}

static bool add_with(struct rank_asked *asked, const char *word)
{
    int used = 0;

    while (asked->with[used])
        used++;
    if (used == RANK_WITH_MAX - 1)
        return false;
    asked->with[used] = word;
    return true;
}

static bool read_place(struct rank_asked *asked, const char *word)
{
    asked->in_place = strcmp(word, "out") != 0;
    asked->out_of_place = strcmp(word, "in") != 0;
    return strcmp(word, "in") == 0 || strcmp(word, "out") == 0 || strcmp(word, "both") == 0;
}

static bool read_option(struct rank_asked *asked, int option)
{
    int found = 0;
    bool good = true;

    switch (option) {
    case 'O':
        return each_word(asked, optarg, add_op);
    case 's':
        return each_word(asked, optarg, add_size);
    case 'd':
        good = find_name(rank_type_find, optarg, &found);
        asked->type = (enum rank_type)found;
        return good;
    case 'o':
        good = find_name(rank_redop_find, optarg, &found);
        asked->redop = (enum rank_redop)found;
        return good;
    case 'n':
        return read_number(optarg, COUNT_MOST, &asked->iters);
    case 'w':
        return read_number(optarg, COUNT_MOST, &asked->warmup);
    case 'S':
        return read_number(optarg, COUNT_MOST, &asked->share_ms);
    case 'T':
        return read_number(optarg, COUNT_MOST, &asked->timeout_s);
    case 'R':
        return read_number(optarg, COUNT_MOST, &asked->renew);
    case 'c':
        asked->check = strcmp(optarg, "0") != 0;
        return true;
    case 'P':
        return read_place(asked, optarg);
    case 'W':
        return add_with(asked, optarg);
    default:
        return false;
    }
}

int rank_main(const struct rank_backend *backend, int argc, char **argv)
{
    static const struct option longs[] = {
        {"op", required_argument, NULL, 'O'},
        {"size", required_argument, NULL, 's'},
        {"share-ms", required_argument, NULL, 'S'},
        {"timeout", required_argument, NULL, 'T'},
        {"place", required_argument, NULL, 'P'},
        {"with", required_argument, NULL, 'W'},
        {"layers", required_argument, NULL, OVERLAP_OPTION},
        {"layer-mb", required_argument, NULL, OVERLAP_OPTION},
        {"bucket-mb", required_argument, NULL, OVERLAP_OPTION},
        {"batch", required_argument, NULL, OVERLAP_OPTION},
        {"style", required_argument, NULL, OVERLAP_OPTION},
        {"renew", required_argument, NULL, 'R'},
        {NULL, 0, NULL, 0},
    };
    struct rank_asked asked = {.type = RANK_FLOAT32,
                               .check = true,
                               .in_place = true,
                               .out_of_place = true,
                               .share_ms = 200,
                               .warmup = 1,
                               .timeout_s = 60};
    struct wf_status ignored;
    bool good = true;
    int option, index = 0;

    while (good && (option = getopt_long(argc, argv, "d:o:n:w:c:", longs, &index)) != -1)
        good = option == OVERLAP_OPTION ? rank_overlap_take(&asked, longs[index].name, optarg, &ignored) == 0
                                        : read_option(&asked, option);
    if (!good || optind != argc || (asked.op_count == 0 && !asked.overlap.layers) || asked.size_count == 0) {
        fprintf(
            stderr,
            "usage: started by 'weft collective': %s --op OP[,...] --size SIZE[,...] [-d TYPE] [-o REDOP] [-n N]\n"
            "       [-w N] [-c 0|1] [--place in|out|both] [--share-ms MS] [--timeout S] [--renew N]\n"
            "       [--with NAME=VALUE]...\n"
            "or by 'weft overlap': %s --layers N --layer-mb N --bucket-mb N[,...] --style STYLE[,...] [--batch N]\n",
            argv[0], argv[0]);
        return 2;
    }
    return rank_run(backend, &asked);
}
