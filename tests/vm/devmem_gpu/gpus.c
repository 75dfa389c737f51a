/*
 * gpus.c: vm_devmem_gpu: emulated GPUs whose memory a card of the guest writes and reads. What it has seen it prints.
 *
 *     receive FIRST GPUS BYTES QUEUE CARD=ADDRESS...   a pool in each GPU for each card, bound to queue QUEUE + number
 *     send FIRST GPUS BYTES CARD=ADDRESS...            from an allocation in each GPU, over each card
 *     share CARD                                       who shares a binding, and how many there may be
 *     bound CARD                                       the receive queues of the card that are bound
 *     unbind PID                                       ends all bindings of that process
 */
#include "gpus.h"

#include <arpa/inet.h>
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
    printf("%s: %d: %s\n", what, result, status.text);
    exit(1);
}

/* CARD=ADDRESS */
static int read_card(char *word, struct card *card)
{
    char *equals = strchr(word, '=');

    if (!equals)
        return -1;
    *equals = '\0';
    snprintf(card->name, sizeof card->name, "%s", word);
    card->ifindex = (int)if_nametoindex(word);
    card->address.sin_family = AF_INET;
    return card->ifindex > 0 && inet_pton(AF_INET, equals + 1, &card->address.sin_addr) == 1 ? 0 : -1;
}

static int read_plan(struct plan *plan, bool queues, char **words, int count)
{
    int at = queues ? 4 : 3;

    if (count <= at || count - at > CARDS_MAX)
        return -1;
    plan->first = atoi(words[0]);
    plan->gpus = atoi(words[1]);
    plan->bytes = strtoull(words[2], NULL, 10);
    plan->queue = queues ? (uint32_t)atoi(words[3]) : 0;
    for (; at < count; at++)
        if (read_card(words[at], &plan->card[plan->cards++]))
            return -1;
    return plan->first >= 0 && plan->gpus > 0 && plan->first + plan->gpus <= GPUS_MAX && plan->bytes > 0 ? 0 : -1;
}

static void use_gpus(int first, int count)
{
    need(ops->open(NULL, &memory, &status), "open");
    for (int gpu = first; gpu < first + count; gpu++) {
        need(ops->use(memory, gpu, &status), "use");
        need(ops->exports(memory, gpu, &status), "exports");
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    struct plan plan = {0};
    int result = 2;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(what, "bound") == 0)
        return run_bound(argv[2]);
    if (strcmp(what, "unbind") == 0)
        return run_unbind(argv[2]);
    if (strcmp(what, "share") == 0) {
        use_gpus(0, 1);
        result = run_share(argv[2]);
    } else if ((strcmp(what, "receive") == 0 || strcmp(what, "send") == 0) &&
               read_plan(&plan, what[0] == 'r', argv + 2, argc - 2) == 0) {
        use_gpus(plan.first, plan.gpus);
        result = what[0] == 'r' ? run_receive(&plan) : run_send(&plan);
    }
    ops->close(memory);
    return result;
}
