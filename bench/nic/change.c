#include "change.h"

#include <stdarg.h>
#include <string.h>

static const char *split_text(enum wf_devmem_split split)
{
    return split == WF_DEVMEM_SPLIT_ON ? "on" : split == WF_DEVMEM_SPLIT_OFF ? "off" : "unknown";
}

char *nic_queues_text(const struct wf_devmem_rss *rss, char *text, size_t room)
{
    uint8_t reached[UINT16_MAX / 8 + 2] = {0};
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < rss->count; i++)
        reached[rss->queue[i] / 8] |= (uint8_t)(1 << rss->queue[i] % 8);
    for (int first = 0, end; first <= UINT16_MAX && used < room; first = end + 1) {
        for (end = first; end <= UINT16_MAX && (reached[end / 8] & 1 << end % 8);)
            end++;
        if (end > first + 1)
            used += (size_t)snprintf(text + used, room - used, "%s%d-%d", used ? "," : "", first, end - 1);
        else if (end > first)
            used += (size_t)snprintf(text + used, room - used, "%s%d", used ? "," : "", first);
    }
    return text;
}

/* Before the change: it may take away the connection by which its user reads this. */
static void announce(const struct nic_job *job, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void announce(const struct nic_job *job, const char *name, const char *format, ...)
{
    va_list arguments;

    fprintf(job->out, "%s: ", name);
    va_start(arguments, format);
    vfprintf(job->out, format, arguments);
    va_end(arguments);
    fputc('\n', job->out);
    fflush(job->out);
}

static void announce_threshold(const struct nic_job *job, const struct wf_devmem_card *card,
                               const struct nic_state *wanted)
{
    announce(job, card->name, "hds-thresh %lld -> %lld (ethtool -G %s hds-thresh %lld)", (long long)card->hds_thresh,
             (long long)wanted->hds_thresh, card->name, (long long)wanted->hds_thresh);
}

/* What kernel and driver tell may be a setting, or what the driver does where there is none. So there is none first,
 * and one only where that is not as it was. */
static int change_rings_back(const struct nic_job *job, const struct wf_devmem_card *card,
                             const struct nic_state *wanted, struct wf_status *status)
{
    bool split = wanted->split != card->split;
    bool threshold = wanted->hds_thresh >= 0 && wanted->hds_thresh != card->hds_thresh;
    const char *word = split_text(wanted->split);
    struct wf_devmem_card now;

    if (split)
        announce(job, card->name, "header split %s -> %s (ethtool -G %s tcp-data-split auto%s%s)",
                 split_text(card->split), word, card->name, wanted->split ? ", or " : "", wanted->split ? word : "");
    if (threshold)
        announce_threshold(job, card, wanted);
    if (job->dry || (!split && !threshold))
        return split + threshold;
    int result = wf_devmem_set_split(job->devmem, card->name, split ? WF_DEVMEM_SPLIT_AUTO : WF_DEVMEM_SPLIT_UNKNOWN,
                                     threshold ? wanted->hds_thresh : -1, status);
    if (split && wanted->split != WF_DEVMEM_SPLIT_UNKNOWN) {
        bool same = result == 0 && wf_devmem_look(job->devmem, card->name, &now, status) == 0 &&
                    now.split == wanted->split && (!threshold || now.hds_thresh == wanted->hds_thresh);
        if (!same)
            result = wf_devmem_set_split(job->devmem, card->name, wanted->split, threshold ? wanted->hds_thresh : -1,
                                         status);
    }
    return result ? result : split + threshold;
}

static int change_rings(const struct nic_job *job, const struct wf_devmem_card *card, const struct nic_state *wanted,
                        struct wf_status *status)
{
    bool split = wanted->split != WF_DEVMEM_SPLIT_UNKNOWN && (wanted->as_setting || wanted->split != card->split);
    bool threshold = wanted->hds_thresh >= 0 && wanted->hds_thresh != card->hds_thresh;
    const char *word = split_text(wanted->split);

    if (!split && !threshold)
        return 0;
    if (split && wanted->split == card->split)
        announce(job, card->name, "header split stays %s, now as a setting (ethtool -G %s tcp-data-split %s)", word,
                 card->name, word);
    else if (split)
        announce(job, card->name, "header split %s -> %s (ethtool -G %s tcp-data-split %s)", split_text(card->split),
                 word, card->name, word);
    if (threshold)
        announce_threshold(job, card, wanted);
    int result = job->dry
                     ? 0
                     : wf_devmem_set_split(job->devmem, card->name, split ? wanted->split : WF_DEVMEM_SPLIT_UNKNOWN,
                                           threshold ? wanted->hds_thresh : -1, status);
    return result ? result : (split && wanted->split != card->split) + threshold;
}

static int change_ntuple(const struct nic_job *job, const struct wf_devmem_card *card, const struct nic_state *wanted,
                         struct wf_status *status)
{
    static const char *const words[] = {"off", "on"};
    bool on = wanted->ntuple > 0;

    if (wanted->ntuple < 0 || card->ntuple < 0 || wanted->ntuple == card->ntuple)
        return 0;
    announce(job, card->name, "rules for flows %s -> %s (ethtool -K %s ntuple %s)", words[!on], words[on], card->name,
             words[on]);
    int result = job->dry ? 0 : wf_devmem_set_ntuple(job->devmem, card->name, on, status);
    return result ? result : 1;
}

bool nic_same_rss(const struct wf_devmem_rss *wanted, const struct wf_devmem_rss *now)
{
    return wanted->count == 0 || (wanted->count == now->count &&
                                  memcmp(wanted->queue, now->queue, wanted->count * sizeof now->queue[0]) == 0);
}

void nic_fit_rss(struct nic_state *wanted, uint32_t entries, int queues)
{
    bool usual = wanted->rss.usual;
    int first = usual ? queues : wanted->equal;

    if (wanted->rss.count == 0 || entries == 0 || first <= 0)
        return;
    wanted->rss.count = entries;
    wf_devmem_rss_first(&wanted->rss, (uint32_t)first);
    wanted->rss.usual = usual;
}

static int change_rss(const struct nic_job *job, const struct wf_devmem_card *card, const struct wf_devmem_rss *now,
                      struct nic_state *wanted, struct wf_status *status)
{
    char before[128], after[128], command[96] = "the table that was there before";
    struct wf_devmem_rss *rss = &wanted->rss;

    nic_fit_rss(wanted, now->count, card->rx_queues);
    if (nic_same_rss(rss, now))
        return 0;
    if (rss->usual)
        snprintf(command, sizeof command, "ethtool -X %s default", card->name);
    else if (wanted->equal)
        snprintf(command, sizeof command, "ethtool -X %s equal %d", card->name, wanted->equal);
    announce(job, card->name, "other traffic to queues %s -> %s (%s)", nic_queues_text(now, before, sizeof before),
             nic_queues_text(rss, after, sizeof after), command);
    int result = job->dry ? 0 : wf_devmem_rss_write(job->devmem, card->name, rss, status);
    return result ? result : 1;
}

int nic_change(const struct nic_job *job, const struct wf_devmem_card *card, struct wf_devmem_rss *now,
               struct nic_state *wanted, struct wf_status *status)
{
    int rings = wanted->back ? change_rings_back(job, card, wanted, status) : change_rings(job, card, wanted, status);
    int ntuple = rings < 0 ? rings : change_ntuple(job, card, wanted, status);
    int result = ntuple < 0 ? ntuple : 0;

    if (result == 0 && !job->dry && wanted->rss.count) /* drivers make queues anew, and the table with them */
        result = wf_devmem_rss_read(job->devmem, card->name, now, status);
    if (result == 0)
        result = change_rss(job, card, now, wanted, status);
    return result < 0 ? result : rings + ntuple + result;
}
