#include "lend.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* --- the queues of a card --- */

/* In turns by `at`: the queues to which the RSS table sends nothing. -1: no more. */
static int next_aside(const struct wf_lend_card *card, int at)
{
    for (; at < card->card.rx_queues && at < WF_DEVMEM_RX_MAX; at++) {
        bool reached = false;
        for (uint32_t i = 0; i < card->rss.count && !reached; i++)
            reached = card->rss.queue[i] == at;
        if (!reached)
            return at;
    }
    return -1;
}

struct words {
    char text[240];
    size_t used;
};

static void add(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct words *words, const char *format, ...)
{
    va_list arguments;
    size_t room = sizeof words->text - words->used;

    va_start(arguments, format);
    int length = vsnprintf(words->text + words->used, room, format, arguments);
    va_end(arguments);
    words->used += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

/* Who has a queue is known where Weft has lent it; of others the kernel tells only that it is bound. */
static int all_taken(const struct wf_lend_card *card, const char *folder, struct wf_status *status)
{
    struct wf_lent *lent = malloc(sizeof *lent);
    struct wf_lent_folder held = {.folder = -1, .lock = -1};
    struct wf_status ignored;
    struct words words = {.used = 0};
    int count = 0;

    wf_lent_look(folder, &held, &ignored);
    for (int queue = next_aside(card, 0); queue >= 0; queue = next_aside(card, queue + 1)) {
        count++;
        add(&words, "%s queue %d ", words.used ? "," : "", queue);
        if (lent && held.folder >= 0 &&
            wf_lent_read(held.folder, card->card.ifindex, (uint32_t)queue, lent, &ignored) == 0 &&
            lent->binding == card->bindings[queue])
            add(&words, "by %s (process %d of user %u)", lent->holder.command, lent->holder.process, lent->holder.user);
        else
            add(&words, "by a program without a lease");
    }
    wf_lent_let_go(&held);
    free(lent);
    return wf_fail(status, -EBUSY, "%s: of %d queue%s that %s set aside none is free:%s", card->card.name, count,
                   count == 1 ? "" : "s", count == 1 ? "is" : "are", words.text);
}

static int check_ready(const struct wf_lend_card *card, struct wf_status *status)
{
    const char *name = card->card.name;
    struct wf_devmem_obstacle obstacle;

    wf_devmem_first_obstacle(&card->card, 1, &obstacle);
    if (obstacle.remedy == WF_DEVMEM_BY_SET)
        return wf_fail(status, -EOPNOTSUPP, "%s: %s: 'weft nic prepare %s' as root", name, obstacle.why, name);
    if (obstacle.remedy != WF_DEVMEM_READY)
        return wf_fail(status, -EOPNOTSUPP, "%s: %s%s%s", name, obstacle.why, obstacle.change[0] ? ": " : "",
                       obstacle.change);
    if (next_aside(card, 0) < 0)
        return wf_fail(status, -EOPNOTSUPP,
                       "%s: other traffic reaches all its queues, none is set aside: 'weft nic prepare %s' as root",
                       name, name);
    return 0;
}

int wf_lend_look(struct wf_devmem *devmem, const char *folder, const char *name, struct wf_lend_card *card,
                 struct wf_status *status)
{
    int result = wf_devmem_look(devmem, name, &card->card, status);

    card->rss.count = 0;
    if (result == 0 && card->card.rss_entries > 0)
        result = wf_devmem_rss_read(devmem, card->card.name, &card->rss, status);
    if (result == 0)
        result = check_ready(card, status);
    if (result)
        return result;
    int told = wf_devmem_bindings(devmem, card->card.ifindex, card->bindings, WF_DEVMEM_RX_MAX, status);
    if (told < 0)
        return told;
    for (int queue = next_aside(card, 0); queue >= 0; queue = next_aside(card, queue + 1))
        if (card->bindings[queue] == 0)
            return 0;
    return all_taken(card, folder, status);
}

/* --- a queue --- */

struct holdings {
    struct wf_devmem *devmem;
    uint32_t user;
    int count;
};

static int count_one(struct wf_lent *lent, void *data)
{
    struct holdings *holdings = data;

    holdings->count += lent->holder.user == holdings->user && wf_lent_counts(holdings->devmem, lent);
    return 0;
}

static int check_share(struct wf_loan *loan, int folder, const struct wf_lend_terms *terms, struct wf_status *status)
{
    struct holdings holdings = {.devmem = loan->devmem, .user = terms->holder.user};
    int result = terms->most ? wf_lent_each(folder, count_one, &holdings) : 0;

    if (result)
        return wf_fail(status, result, "the records of queues cannot be read: %s", wf_strerror(result));
    if (terms->most && holdings.count >= terms->most)
        return wf_fail(status, -EDQUOT, "%s: user %u has %d queues already, and may have no more", terms->card,
                       holdings.user, holdings.count);
    return 0;
}

/* Another process may take a queue after it was looked at; the words of the last one stay. */
static int bind_one(struct wf_loan *loan, const struct wf_lend_card *card, const struct wf_lend_terms *terms,
                    struct wf_status *status)
{
    struct wf_lent *lent = &loan->lent;
    const struct wf_devmem_rx rx = {.ifindex = card->card.ifindex,
                                    .queues = &lent->queue,
                                    .count = 1,
                                    .dmabuf = terms->dmabuf,
                                    .buffer = terms->buffer};
    int result = -EBUSY;

    for (int queue = next_aside(card, 0); queue >= 0; queue = next_aside(card, queue + 1)) {
        if (card->bindings[queue])
            continue;
        lent->queue = (uint32_t)queue;
        result = wf_devmem_bind_rx(loan->binding, &rx, &lent->binding, status);
        if (result != -EBUSY && result != -EEXIST)
            break;
    }
    if (result != -EBUSY && result != -EEXIST)
        return result;
    wf_fail_prefix(status, "%s: none of the queues that are set aside can be bound", card->card.name);
    return -EBUSY;
}

static int take(struct wf_loan *loan, const struct wf_lend_terms *terms, struct wf_lend_card *card,
                struct wf_status *status)
{
    struct wf_lent_folder held;
    int result = wf_lent_hold(loan->folder, &held, status);

    if (result)
        return result;
    result = wf_lent_sweep(loan->devmem, held.folder, status);
    if (result >= 0)
        result = check_share(loan, held.folder, terms, status);
    if (result == 0)
        result = wf_lend_look(loan->devmem, loan->folder, terms->card, card, status);
    if (result == 0)
        result = bind_one(loan, card, terms, status);
    if (result == 0) {
        loan->lent.ifindex = card->card.ifindex;
        result = wf_lent_write(held.folder, &loan->lent, status);
    }
    if (result == 0)
        wf_loan_try_rules(loan, held.folder);
    wf_lent_let_go(&held);
    return result;
}

int wf_lend(const struct wf_devmem_kernel *kernel, const char *folder, const struct wf_lend_terms *terms,
            struct wf_loan *loan, struct wf_status *status)
{
    struct wf_lend_card *card = calloc(1, sizeof *card);
    int result = card ? 0 : wf_fail(status, -ENOMEM, "%s: no memory to look at its queues", terms->card);

    *loan = (struct wf_loan){.folder = folder, .lent = {.holder = terms->holder, .buffer = terms->buffer}};
    if (result == 0)
        result = wf_devmem_open(kernel, &loan->devmem, status);
    if (result == 0)
        result = wf_devmem_open(kernel, &loan->binding, status);
    if (result == 0)
        result = take(loan, terms, card, status);
    free(card);
    if (result) {
        wf_devmem_close(loan->binding);
        wf_devmem_close(loan->devmem);
        loan->binding = loan->devmem = NULL;
    }
    return result;
}
