#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "change.h"

/* A card, how it is and how it is to be. Too large for a stack. */
struct card_work {
    struct wf_devmem_card card;
    struct wf_devmem_rss now;
    struct nic_state wanted;
    struct nic_record record;
};

static int look(const struct nic_job *job, const char *name, struct card_work *work, struct wf_status *status)
{
    int result = wf_devmem_look(job->devmem, name, &work->card, status);

    work->now.count = 0;
    if (result == 0 && work->card.rss_entries > 0)
        result = wf_devmem_rss_read(job->devmem, work->card.name, &work->now, status);
    return result;
}

/* What is not to be changed here. */
static int refuse(const struct nic_job *job, const struct wf_devmem_card *card, struct wf_status *status)
{
    struct wf_devmem_obstacle obstacle;

    wf_devmem_first_obstacle(card, job->queues, &obstacle);
    if (obstacle.remedy == WF_DEVMEM_READY || obstacle.remedy == WF_DEVMEM_BY_SET)
        return 0;
    return wf_fail(status, -EOPNOTSUPP, "%s: %s%s%s", card->name, obstacle.why, obstacle.change[0] ? ": " : "",
                   obstacle.change);
}

/* --- preparing --- */

/* The split is set each time: an earlier call may have ended before it did. */
static void plan(const struct nic_job *job, struct card_work *work)
{
    uint32_t others = (uint32_t)(work->card.rx_queues - job->queues);
    struct nic_state *wanted = &work->wanted;

    *wanted = (struct nic_state){
        .split = WF_DEVMEM_SPLIT_ON, .as_setting = true, .hds_thresh = work->card.hds_thresh > 0 ? 0 : -1, .ntuple = 1};
    wanted->rss = work->now;
    if (!wf_devmem_rss_reaches(&work->now, others))
        return;
    wf_devmem_rss_first(&wanted->rss, others);
    wanted->equal = (int)others;
}

/* A record of a card that is not here: it may be in another network namespace, changed as ever. */
static int lost(const struct nic_record *record, struct wf_status *status)
{
    char file[NIC_RECORD_NAME];

    return wf_fail(status, -ENODEV,
                   "%s: the card with the record " NIC_FOLDER "/%s (interface %d) is not here: bring it back and "
                   "restore it, or remove that file if the card is gone",
                   record->name, nic_record_file(record->name, file), record->ifindex);
}

/* What an earlier call has recorded is how the card was; what it is now may be that call's. 1: there is a record. */
static int find_record(const struct nic_job *job, struct card_work *work, struct wf_status *status)
{
    char name[IFNAMSIZ];
    int result;

    if (job->folder < 0)
        return 0;
    nic_record_of(job->folder, &work->card, name);
    result = nic_record_read(job->folder, name, &work->record, status);
    if (result == 0)
        return work->record.ifindex == work->card.ifindex ? 1 : lost(&work->record, status);
    return result == -ENOENT || result == -ESTALE ? 0 : result;
}

static int make_record(const struct nic_job *job, struct card_work *work, struct wf_status *status)
{
    work->record = (struct nic_record){.ifindex = work->card.ifindex,
                                       .split = work->card.split,
                                       .hds_thresh = work->card.hds_thresh,
                                       .ntuple = work->card.ntuple,
                                       .queues = work->card.rx_queues,
                                       .rss = work->now};
    memcpy(work->record.name, work->card.name, sizeof work->record.name);
    return nic_record_write(job->folder, &work->record, status);
}

static int check_ready(const struct nic_job *job, const char *name, struct card_work *work, struct wf_status *status)
{
    struct wf_devmem_obstacle obstacle;
    int result = look(job, name, work, status);

    if (result)
        return result;
    wf_devmem_first_obstacle(&work->card, job->queues, &obstacle);
    if (obstacle.remedy != WF_DEVMEM_READY)
        return wf_fail(status, -EIO, "%s: all was set, and still: %s", name, obstacle.why);
    if (wf_devmem_rss_reaches(&work->now, (uint32_t)(work->card.rx_queues - job->queues)))
        return wf_fail(status, -EIO, "%s: all was set, and still other traffic reaches the last queue", name);
    return 0;
}

/* What a failure has left half done is undone; the failure is what is told. */
static int undo(const struct nic_job *job, const char *name, struct wf_status *status)
{
    struct wf_status why;

    if (nic_restore(job, name, &why) == 0)
        return status->code;
    return wf_fail(status, -EIO, "%.200s; what was there is not all put back: 'weft nic restore %s' does that",
                   status->text, name);
}

static int prepare(const struct nic_job *job, struct card_work *work, struct wf_status *status)
{
    const char *name = work->card.name;
    int recorded = find_record(job, work, status);

    if (recorded < 0)
        return recorded;
    plan(job, work);
    if (!job->dry && !recorded) {
        int result = make_record(job, work, status);
        if (result)
            return result;
    }
    int changes = nic_change(job, &work->card, &work->now, &work->wanted, status), result = changes < 0 ? changes : 0;
    if (result == 0 && !job->dry)
        result = check_ready(job, name, work, status);
    if (result && !recorded && !job->dry)
        result = undo(job, name, status);
    else if (result == 0 && changes == 0)
        fprintf(job->out, "%s: is ready, nothing else is to be changed\n", name);
    return result;
}

int nic_prepare(const struct nic_job *job, const char *name, struct wf_status *status)
{
    struct card_work *work = calloc(1, sizeof *work);
    int result = work ? look(job, name, work, status) : wf_fail(status, -ENOMEM, "%s: no memory", name);

    if (result == 0)
        result = refuse(job, &work->card, status);
    if (result == 0)
        result = prepare(job, work, status);
    free(work);
    return result;
}

/* --- restoring --- */

/* The usual table is one of the queues and entries that there are now. */
static void plan_back(struct card_work *work)
{
    const struct nic_record *record = &work->record;

    work->wanted = (struct nic_state){.back = true,
                                      .split = record->split,
                                      .hds_thresh = record->hds_thresh,
                                      .ntuple = record->ntuple,
                                      .rss = record->rss};
    nic_fit_rss(&work->wanted, work->now.count, work->card.rx_queues);
}

static int check_back(const struct nic_job *job, const char *name, struct card_work *work, struct wf_status *status)
{
    const struct nic_record *record = &work->record;
    int result = look(job, name, work, status);

    if (result)
        return result;
    const char *differs = work->card.split != record->split                                        ? "header split"
                          : record->hds_thresh >= 0 && work->card.hds_thresh != record->hds_thresh ? "hds-thresh"
                          : record->ntuple >= 0 && work->card.ntuple != record->ntuple ? "rules for flows (ntuple)"
                          : !nic_same_rss(&work->wanted.rss, &work->now)               ? "its RSS table"
                                                                                       : NULL;
    if (differs)
        return wf_fail(status, -EIO, "%s: all was put back, and still the card differs in: %s; its record stays", name,
                       differs);
    return 0;
}

/* Under the name that it has now. */
static int restore(const struct nic_job *job, struct card_work *work, struct wf_status *status)
{
    char name[IFNAMSIZ];
    int result = wf_devmem_name(job->devmem, work->record.ifindex, name, status);

    if (result == 0)
        result = look(job, name, work, status);
    if (result == -ENODEV || (result == 0 && work->card.ifindex != work->record.ifindex))
        return lost(&work->record, status);
    if (result)
        return result;
    result = wf_devmem_is_bound(job->devmem, work->card.ifindex, status);
    if (result > 0)
        return wf_fail(status, -EBUSY,
                       "%s: a receive queue is bound to device memory: end the program that uses it first", name);
    if (result)
        return result;
    plan_back(work);
    result = nic_change(job, &work->card, &work->now, &work->wanted, status);
    return result < 0 || job->dry ? (result < 0 ? result : 0) : check_back(job, name, work, status);
}

int nic_restore(const struct nic_job *job, const char *name, struct wf_status *status)
{
    struct card_work *work = calloc(1, sizeof *work);
    char recorded[IFNAMSIZ];
    int result = !work             ? wf_fail(status, -ENOMEM, "%s: no memory", name)
                 : job->folder < 0 ? -ENOENT
                                   : nic_record_read(job->folder, name, &work->record, status);

    snprintf(recorded, sizeof recorded, "%.15s", name);
    if (result == -ENOENT && job->folder >= 0 && wf_devmem_look(job->devmem, name, &work->card, status) == 0) {
        nic_record_of(job->folder, &work->card, recorded); /* it may have another name */
        result = nic_record_read(job->folder, recorded, &work->record, status);
    }
    int found = result;
    bool none = found == -ENOENT || found == -ESTALE;
    if (result == 0)
        result = restore(job, work, status);
    if ((result == 0 || none) && job->folder >= 0 && !job->dry)
        result = nic_record_remove(job->folder, recorded, status);
    free(work);
    return result == 0 && none ? found : result;
}
