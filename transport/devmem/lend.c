#include "lend.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
static int bind_one(struct wf_loan *loan, const struct wf_lend_card *card, int dmabuf, struct wf_status *status)
{
    struct wf_lent *lent = &loan->lent;
    int result = -EBUSY;

    for (int queue = next_aside(card, 0); queue >= 0; queue = next_aside(card, queue + 1)) {
        if (card->bindings[queue])
            continue;
        lent->queue = (uint32_t)queue;
        result = wf_devmem_bind_rx(loan->binding, card->card.ifindex, &lent->queue, 1, dmabuf, &lent->binding, status);
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
        result = bind_one(loan, card, terms->dmabuf, status);
    if (result == 0) {
        loan->lent.ifindex = card->card.ifindex;
        result = wf_lent_write(held.folder, &loan->lent, status);
    }
    wf_lent_let_go(&held);
    return result;
}

int wf_lend(const struct wf_devmem_kernel *kernel, const char *folder, const struct wf_lend_terms *terms,
            struct wf_loan *loan, struct wf_status *status)
{
    struct wf_lend_card *card = calloc(1, sizeof *card);
    int result = card ? 0 : wf_fail(status, -ENOMEM, "%s: no memory to look at its queues", terms->card);

    *loan = (struct wf_loan){.folder = folder, .lent = {.holder = terms->holder}};
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

/* --- rules --- */

static int add_rule(struct wf_loan *loan, int folder, int slot, const struct wf_devmem_flow *flow,
                    struct wf_status *status)
{
    struct wf_lent *lent = &loan->lent;
    struct wf_status ignored;
    char name[IFNAMSIZ];
    uint32_t place;
    int result = wf_devmem_name(loan->devmem, lent->ifindex, name, status);

    if (result)
        return result;
    lent->rules[slot] = *flow;
    result = wf_lent_write(folder, lent, status);
    if (result == 0)
        result = wf_devmem_steer(loan->devmem, name, flow, lent->queue, &place, status);
    if (result == 0)
        return 0;
    memset(&lent->rules[slot], 0, sizeof lent->rules[slot]);
    wf_lent_write(folder, lent, &ignored);
    return result;
}

int wf_loan_steer(struct wf_loan *loan, int socket, uint32_t *rule, struct wf_status *status)
{
    struct wf_lent_folder held;
    struct wf_devmem_flow flow;
    int slot = 0, result = wf_lend_flow(socket, &flow, status);

    while (slot < WF_LENT_RULES_MAX && loan->lent.rules[slot].to.ss_family != AF_UNSPEC)
        slot++;
    if (result == 0 && slot == WF_LENT_RULES_MAX)
        result = wf_fail(status, -ENOSPC, "queue %u has %d rules, and may have no more", loan->lent.queue, slot);
    if (result == 0)
        result = wf_lent_hold(loan->folder, &held, status);
    if (result)
        return result;
    result = wf_lent_sweep(loan->devmem, held.folder, status); /* one of the same words may be there still */
    if (result >= 0)
        result = add_rule(loan, held.folder, slot, &flow, status);
    wf_lent_let_go(&held);
    if (result == 0)
        *rule = (uint32_t)slot;
    return result;
}

/* Out of the card first: what the record says no more nobody would take away. */
static int drop_rule(struct wf_loan *loan, int folder, int rule, struct wf_status *status)
{
    int result = wf_lent_take_rule(loan->devmem, &loan->lent, rule, status);

    if (result)
        return result;
    memset(&loan->lent.rules[rule], 0, sizeof loan->lent.rules[rule]);
    return wf_lent_write(folder, &loan->lent, status);
}

int wf_loan_unsteer(struct wf_loan *loan, uint32_t rule, struct wf_status *status)
{
    struct wf_lent_folder held;

    if (rule >= WF_LENT_RULES_MAX || loan->lent.rules[rule].to.ss_family == AF_UNSPEC)
        return wf_fail(status, -ENOENT, "queue %u has no rule with the number %u", loan->lent.queue, rule);
    int result = wf_lent_hold(loan->folder, &held, status);
    if (result)
        return result;
    result = drop_rule(loan, held.folder, (int)rule, status);
    wf_lent_let_go(&held);
    return result;
}

/* The record goes with the binding; one whose binding was given away may be swept later. */
void wf_loan_end(struct wf_loan *loan)
{
    struct wf_lent_folder held = {.folder = -1, .lock = -1};
    struct wf_status ignored;
    bool holding = wf_lent_hold(loan->folder, &held, &ignored) == 0;

    for (int i = 0; i < WF_LENT_RULES_MAX && holding; i++)
        if (loan->lent.rules[i].to.ss_family != AF_UNSPEC)
            drop_rule(loan, held.folder, i, &ignored);
    wf_devmem_close(loan->binding);
    if (holding)
        wf_lent_sweep(loan->devmem, held.folder, &ignored);
    wf_devmem_close(loan->devmem);
    wf_lent_let_go(&held);
}
