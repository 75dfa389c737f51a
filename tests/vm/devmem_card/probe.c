/* devmem_probe: sends and receives over TCP with device memory, and says what it has seen, as NAME=VALUE lines. */
#define _GNU_SOURCE
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "probe.h"

static const char usage[] =
    "usage: devmem_probe receive INTERFACE PORT BYTES [--queue N]... [--buffer BYTES] [--memory BYTES] [--hold]\n"
    "                    send INTERFACE ADDRESS PORT BYTES [--device]\n"
    "                    bindings INTERFACE\n";

/* ------------------------------------------------------------------ bindings */

/* One after the other, on one netlink socket: the rows depend on those before. */
static int run_bindings(struct options *options)
{
    struct memory memory = make_memory(1 << 20, false);
    struct binder binder, other;
    const struct {
        const char *what;
        struct binding binding;
        struct binder *by;
    } rows[] = {
        {"two queues", {.fd = memory.fd, .queues = {1, 2}, .queue_count = 2}, &binder},
        {"the same memory, another queue", {.fd = memory.fd, .queues = {3}, .queue_count = 1}, &binder},
        {"the same memory, to send", {.fd = memory.fd}, &binder},
        {"by another socket", {.fd = memory.fd, .queues = {4}, .queue_count = 1}, &other},
        {"a queue that is bound", {.fd = memory.fd, .queues = {2}, .queue_count = 1}, &other},
        {"a queue that is not there", {.fd = memory.fd, .queues = {99}, .queue_count = 1}, &binder},
        {"no dma-buf", {.fd = memfd_create("no", 0), .queues = {5}, .queue_count = 1}, &binder},
    };

    binder_open(&binder);
    binder_open(&other);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct binding binding = rows[i].binding;
        int result;

        binding.interface = options->binding.interface;
        result = binder_bind(rows[i].by, &binding);
        printf("%s: %s\n", rows[i].what, result < 0 ? strerrorname_np(-result) : "bound");
    }
    binder_close(&binder);
    struct binding again = {.interface = options->binding.interface, .fd = memory.fd, .queues = {2}, .queue_count = 1};
    printf("a queue whose socket is closed: %s\n", binder_bind(&other, &again) < 0 ? "refused" : "bound");
    return 0;
}

/* ------------------------------------------------------------------ the command line */

static uint64_t number(const char *text)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10);

    if (*end || !*text)
        errx(2, "'%s' is no number", text);
    return value;
}

static void add_queue(struct binding *binding, const char *text)
{
    if (binding->queue_count == MAX_QUEUES)
        errx(2, "at most %d queues", MAX_QUEUES);
    binding->queues[binding->queue_count++] = (uint32_t)number(text);
}

static void parse_options(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        {"queue", required_argument, NULL, 'q'},  {"buffer", required_argument, NULL, 'b'},
        {"memory", required_argument, NULL, 'm'}, {"hold", no_argument, NULL, 'h'},
        {"device", no_argument, NULL, 'd'},       {NULL, 0, NULL, 0},
    };
    int name;

    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (name) {
        case 'q':
            add_queue(&options->binding, optarg);
            break;
        case 'b':
            options->binding.buffer_size = (uint32_t)number(optarg);
            break;
        case 'm':
            options->memory = number(optarg);
            break;
        case 'h':
            options->hold = true;
            break;
        case 'd':
            options->device = true;
            break;
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    struct options options = {.memory = 8 << 20};
    char **words;
    int count;

    setvbuf(stdout, NULL, _IOLBF, 0);
    parse_options(argc, argv, &options);
    words = argv + optind;
    count = argc - optind;
    if (count >= 2)
        options.binding.interface = words[1];
    if (count == 4 && !strcmp(words[0], "receive"))
        return run_receive(&options, (uint16_t)number(words[2]), number(words[3]));
    if (count == 5 && !strcmp(words[0], "send"))
        return run_send(&options, words[2], (uint16_t)number(words[3]), number(words[4]));
    if (count == 2 && !strcmp(words[0], "bindings"))
        return run_bindings(&options);
    fputs(usage, stderr);
    return 2;
}
