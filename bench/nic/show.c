#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "devmem/lent.h"

static void put_count(FILE *out, const char *format, int64_t number)
{
    if (number >= 0)
        fprintf(out, format, (long long)number);
}

static void put_card(FILE *out, const struct wf_devmem_card *card, const struct wf_devmem_rss *rss)
{
    static const char *const splits[] = {"unknown", "off", "on"};
    char queues[128];

    fprintf(out, "%s: %s", card->name, card->loopback ? "loopback" : card->driver[0] ? card->driver : "no driver");
    put_count(out, ", MTU %lld", card->mtu);
    put_count(out, card->rx_queues == 1 ? ", %lld receive queue" : ", %lld receive queues", card->rx_queues);
    if (rss->count)
        fprintf(out, ", other traffic to queues %s", nic_queues_text(rss, queues, sizeof queues));
    fprintf(out, ", header split %s", splits[card->split]);
    put_count(out, ", hds-thresh %lld", card->hds_thresh);
    if (card->ntuple >= 0)
        fprintf(out, ", rules for flows %s%s", card->ntuple ? "on" : "off", card->ntuple_fixed ? " for good" : "");
    if (card->rules_most > 0)
        fprintf(out, " (%lld of %lld)", (long long)card->rules_used, (long long)card->rules_most);
    fprintf(out, "\n");
}

static void put_obstacle(FILE *out, const struct nic_job *job, const struct wf_devmem_card *card,
                         const struct wf_devmem_rss *rss)
{
    struct wf_devmem_obstacle obstacle;
    int others = card->rx_queues - job->queues;

    wf_devmem_first_obstacle(card, job->queues, &obstacle);
    if (obstacle.remedy != WF_DEVMEM_READY)
        fprintf(out, "  %s%s%s\n", obstacle.why, obstacle.change[0] ? ": " : "", obstacle.change);
    else if (wf_devmem_rss_reaches(rss, (uint32_t)others))
        fprintf(out, "  other traffic reaches the last queue, too: ethtool -X %s equal %d\n", card->name, others);
    else if (job->queues == 1)
        fprintf(out, "  ready: queue %d is set aside\n", others);
    else
        fprintf(out, "  ready: queues %d-%d are set aside\n", others, card->rx_queues - 1);
}

/* Another user's records cannot be read, but their names can. */
static void put_record(const struct nic_job *job, const struct wf_devmem_card *card, char (*recorded)[IFNAMSIZ],
                       int count)
{
    struct nic_record *record = job->folder < 0 ? NULL : calloc(1, sizeof *record);
    struct wf_status ignored;
    char name[IFNAMSIZ];
    bool found = false;

    if (!record)
        return;
    nic_record_of(job->folder, card, name);
    for (int i = 0; !found && i < count; i++)
        found = strcmp(recorded[i], name) == 0;
    if (found && nic_record_read(job->folder, name, record, &ignored) == -ESTALE)
        fprintf(job->out, "  " NIC_STALE "\n");
    else if (found)
        fprintf(job->out, "  as 'weft nic prepare' has made it: 'weft nic restore %s' puts back what was there\n",
                card->name);
    free(record);
}

/* Queues that Weft has lent, and rules of programs that have ended. */
static void put_lent(const struct nic_job *job, const struct wf_devmem_card *card)
{
    struct wf_lent *lent = job->folder < 0 ? NULL : malloc(sizeof *lent);
    struct wf_status ignored;

    for (int queue = 0; lent && queue < card->rx_queues; queue++) {
        if (wf_lent_read(job->folder, card->ifindex, (uint32_t)queue, lent, &ignored) != 0)
            continue;
        int rules = wf_lent_count_rules(lent);
        const char *s = rules == 1 ? "" : "s";
        char buffers[40] = "";
        if (lent->buffer)
            snprintf(buffers, sizeof buffers, ", buffers of %u bytes", lent->buffer);
        if (wf_lent_counts(job->devmem, lent))
            fprintf(job->out, "  queue %d is lent to %s (process %d of user %u), with %d rule%s%s\n", queue,
                    lent->holder.command, lent->holder.process, lent->holder.user, rules, s, buffers);
        else if (rules)
            fprintf(job->out,
                    "  queue %d: %s (process %d) has ended and left %d rule%s: 'weft nic restore' takes them away\n",
                    queue, lent->holder.command, lent->holder.process, rules, s);
    }
    free(lent);
}

int nic_show(const struct nic_job *job, const char *name, char (*recorded)[IFNAMSIZ], int count,
             struct wf_status *status)
{
    struct wf_devmem_card card;
    struct wf_devmem_rss *rss = calloc(1, sizeof *rss);
    struct wf_status ignored;
    int result =
        rss ? wf_devmem_look(job->devmem, name, &card, status) : wf_fail(status, -ENOMEM, "%s: no memory", name);

    if (result == 0) {
        if (card.rss_entries > 0 && wf_devmem_rss_read(job->devmem, card.name, rss, &ignored) != 0)
            rss->count = 0;
        put_card(job->out, &card, rss);
        put_obstacle(job->out, job, &card, rss);
        put_lent(job, &card);
        put_record(job, &card, recorded, count);
    }
    free(rss);
    return result;
}
