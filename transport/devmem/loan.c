/* The rules of a loan. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "lend.h"

static bool is_free(const struct wf_loan *loan, int slot)
{
    return loan->lent.rules[slot].to.ss_family == AF_UNSPEC;
}

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

static int add_new(struct wf_loan *loan, int slot, const struct wf_devmem_flow *flow, struct wf_status *status)
{
    struct wf_lent_folder held;
    int result = slot < WF_LENT_RULES_MAX
                     ? 0
                     : wf_fail(status, -ENOSPC, "queue %u has %d rules, and may have no more", loan->lent.queue, slot);

    if (result == 0)
        result = wf_lent_hold(loan->folder, &held, status);
    if (result)
        return result;
    result = wf_lent_sweep(loan->devmem, held.folder, status); /* one of the same words may be there still */
    if (result >= 0)
        result = add_rule(loan, held.folder, slot, flow, status);
    wf_lent_let_go(&held);
    return result;
}

static bool find_rule(const struct wf_loan *loan, const struct wf_devmem_flow *flow, int *slot)
{
    for (int i = 0; i < WF_LENT_RULES_MAX; i++)
        if (!is_free(loan, i) && memcmp(&loan->lent.rules[i], flow, sizeof *flow) == 0) {
            *slot = i;
            return true;
        }
    return false;
}

int wf_loan_steer(struct wf_loan *loan, int socket, uint32_t *rule, struct wf_status *status)
{
    struct wf_devmem_flow flow;
    int slot = 0, result = wf_lend_flow(socket, &flow, status);

    if (result)
        return result;
    if (loan->by_port)
        memset(&flow.from, 0, sizeof flow.from);
    if (!loan->by_port || !find_rule(loan, &flow, &slot)) {
        for (slot = 0; slot < WF_LENT_RULES_MAX && !is_free(loan, slot);)
            slot++;
        result = add_new(loan, slot, &flow, status);
    }
    if (result)
        return result;
    loan->streams[slot]++;
    *rule = (uint32_t)slot;
    return 0;
}

/* Out of the card first: what the record says no more nobody would take away. */
static int drop_rule(struct wf_loan *loan, int folder, int rule, struct wf_status *status)
{
    int result = wf_lent_take_rule(loan->devmem, &loan->lent, rule, status);

    if (result)
        return result;
    memset(&loan->lent.rules[rule], 0, sizeof loan->lent.rules[rule]);
    loan->streams[rule] = 0;
    return wf_lent_write(folder, &loan->lent, status);
}

/* Addresses that no network has: those of documentation. */
static struct wf_devmem_flow flow_of_nobody(int family)
{
    struct wf_devmem_flow flow = {0};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(9)};

    inet_pton(AF_INET, "192.0.2.1", &four.sin_addr);
    inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr);
    if (family == AF_INET) {
        memcpy(&flow.from, &four, sizeof four);
        memcpy(&flow.to, &four, sizeof four);
    } else {
        memcpy(&flow.from, &six, sizeof six);
        memcpy(&flow.to, &six, sizeof six);
    }
    return flow;
}

/* 0, or why the card does not take the rule. It is there no more. */
static int try_rule(struct wf_loan *loan, int folder, const struct wf_devmem_flow *flow)
{
    struct wf_status ignored;
    int result = add_rule(loan, folder, 0, flow, &ignored);

    if (result == 0)
        drop_rule(loan, folder, 0, &ignored); /* what stays goes with the loan */
    return result;
}

/* A driver that does not take a rule of this kind says one of these; a full table, say, tells nothing of the kind. */
void wf_loan_try_rules(struct wf_loan *loan, int folder)
{
    static const int families[] = {AF_INET, AF_INET6};

    for (int i = 0; i < 2 && !loan->by_port && is_free(loan, 0); i++) {
        struct wf_devmem_flow flow = flow_of_nobody(families[i]);
        int result = try_rule(loan, folder, &flow);
        memset(&flow.from, 0, sizeof flow.from);
        loan->by_port = (result == -EOPNOTSUPP || result == -EINVAL) && try_rule(loan, folder, &flow) == 0;
    }
    wf_lent_note_by_port(folder, loan->lent.ifindex, loan->by_port);
}

int wf_loan_unsteer(struct wf_loan *loan, uint32_t rule, struct wf_status *status)
{
    struct wf_lent_folder held;

    if (rule >= WF_LENT_RULES_MAX || is_free(loan, (int)rule))
        return wf_fail(status, -ENOENT, "queue %u has no rule with the number %u", loan->lent.queue, rule);
    if (loan->streams[rule] > 1) {
        loan->streams[rule]--;
        return 0;
    }
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
        if (!is_free(loan, i))
            drop_rule(loan, held.folder, i, &ignored);
    wf_devmem_close(loan->binding);
    if (holding)
        wf_lent_sweep(loan->devmem, held.folder, &ignored);
    wf_devmem_close(loan->devmem);
    wf_lent_let_go(&held);
}
