#include "nic.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/words/words.h"
#include "change.h"
#include "devmem/lent.h"
#include "serve.h"

enum verb { VERB_PREPARE, VERB_STATUS, VERB_RESTORE, VERB_SERVE, VERB_COUNT };

static const char *const verbs[VERB_COUNT] = {"prepare", "status", "restore", "serve"};

/* --- what is asked for --- */

static int find_verb(const struct bench_options *options, struct wf_status *status)
{
    const char *word = options->word_count ? options->words[0] : "";

    for (int verb = 0; verb < VERB_COUNT; verb++)
        if (strcmp(word, verbs[verb]) == 0)
            return verb;
    const char *nearest = bench_nearest(word, verbs, VERB_COUNT);
    if (nearest)
        return wf_fail(status, -EINVAL, "nic '%.60s': did you mean '%s'?", word, nearest);
    return wf_fail(status, -EINVAL, "nic %s%.60s%s: which of prepare, status, restore and serve?", word[0] ? "'" : "",
                   word[0] ? word : "what", word[0] ? "'" : "");
}

static int check_names(const struct bench_options *options, enum verb verb, struct wf_status *status)
{
    if (verb == VERB_PREPARE && options->word_count < 2)
        return wf_fail(status, -EINVAL,
                       "nic prepare: which cards? Name their interfaces; 'weft nic status' lists them");
    if (options->dry_run && verb == VERB_STATUS)
        return wf_fail(status, -EINVAL, "--dry-run is not for 'weft nic status', which changes nothing");
    if (options->dry_run && verb == VERB_SERVE)
        return wf_fail(status, -EINVAL, "--dry-run is not for 'weft nic serve', which changes no card by itself");
    if (verb == VERB_SERVE && !options->allow)
        return wf_fail(status, -EINVAL, "nic serve: for whom? --allow USER,... names users who may have queues");
    if (verb != VERB_SERVE && options->allow)
        return wf_fail(status, -EINVAL, "--allow is for 'weft nic serve', and does nothing here");
    for (int i = 1; i < options->word_count; i++)
        if (strlen(options->words[i]) >= IFNAMSIZ)
            return wf_fail(status, -EINVAL, "'%.60s' is too long for a name: those of interfaces have up to %d letters",
                           options->words[i], IFNAMSIZ - 1);
    for (int i = 1; i < options->word_count && verb != VERB_RESTORE; i++)
        if (if_nametoindex(options->words[i]) == 0)
            return wf_fail(status, -EINVAL, "there is no interface '%.60s': 'weft nic status' lists them",
                           options->words[i]);
    return 0;
}

/* --- the verbs --- */

static void tell(const struct wf_status *status)
{
    fprintf(stderr, "weft: %s\n", status->text);
}

/* The exit status of several cards: a failure counts most, then a card that it was done for. */
static int sum_up(int failed, int done, int unavailable)
{
    return failed ? BENCH_FAILED : done || !unavailable ? BENCH_PASSED : BENCH_UNAVAILABLE;
}

static int prepare_all(const struct nic_job *job, const struct bench_options *options)
{
    int failed = 0, done = 0, unavailable = 0;
    struct wf_status status;

    for (int i = 1; i < options->word_count; i++) {
        int result = nic_prepare(job, options->words[i], &status);
        if (result)
            tell(&status);
        done += result == 0;
        unavailable += result == -EOPNOTSUPP || result == -EPERM;
        failed += result && result != -EOPNOTSUPP && result != -EPERM;
    }
    return sum_up(failed, done, unavailable);
}

struct tally {
    int failed, done;
};

static void restore_one(const struct nic_job *job, const char *name, struct tally *tally)
{
    struct wf_status status;
    int result = nic_restore(job, name, &status);

    bool none = result == -ENOENT || result == -ESTALE;

    if (none)
        fprintf(job->out, "%s: %s\n", name,
                result == -ESTALE ? NIC_STALE : "'weft nic prepare' has changed nothing here");
    else if (result)
        tell(&status);
    tally->done += result == 0 || none;
    tally->failed += result && !none;
}

/* Rules of programs that have ended, in all cards: none of those that are lent now. */
static void sweep(const struct nic_job *job, struct tally *tally)
{
    struct wf_status status;
    int rules = job->folder < 0 || job->dry ? 0 : wf_lent_sweep(job->devmem, job->folder, &status);

    if (rules > 0)
        fprintf(job->out, "%d rule%s of programs that have ended taken away\n", rules, rules == 1 ? "" : "s");
    if (rules < 0)
        tally->failed++, tell(&status);
}

/* Those that are named, or all. What is not put back is a failure, whatever the reason. */
static int restore_all(const struct nic_job *job, const struct bench_options *options)
{
    char names[NIC_RECORDS_MAX][IFNAMSIZ];
    int count = options->word_count < 2 ? nic_record_list(job->folder, names, NIC_RECORDS_MAX) : 0;
    struct tally tally = {0};

    sweep(job, &tally);
    for (int i = 0; i < count; i++)
        restore_one(job, names[i], &tally);
    for (int i = 1; i < options->word_count; i++)
        restore_one(job, options->words[i], &tally);
    if (tally.done + tally.failed == 0)
        fprintf(job->out, "'weft nic prepare' has changed no card here\n");
    return sum_up(tally.failed, tally.done, 0);
}

static int show_all(const struct nic_job *job, const struct bench_options *options)
{
    char recorded[NIC_RECORDS_MAX][IFNAMSIZ];
    int count = job->folder < 0 ? 0 : nic_record_list(job->folder, recorded, NIC_RECORDS_MAX), failed = 0;
    struct if_nameindex *all = options->word_count < 2 ? if_nameindex() : NULL;
    struct wf_status status;

    for (int i = 1; i < options->word_count; i++)
        if (nic_show(job, options->words[i], recorded, count, &status) != 0)
            failed++, tell(&status);
    /* One that has gone meanwhile is none. */
    for (int i = 0; all && all[i].if_name; i++) {
        int result = nic_show(job, all[i].if_name, recorded, count, &status);
        if (result && result != -ENODEV)
            failed++, tell(&status);
    }
    if (all)
        if_freenameindex(all);
    return failed ? BENCH_FAILED : BENCH_PASSED;
}

/* Whether anything could be changed if this process might: then what it lacks is what is in the way. */
static bool would_change(const struct nic_job *job, const struct bench_options *options, enum verb verb)
{
    struct wf_devmem_card card;
    struct wf_devmem_obstacle obstacle;
    struct wf_status ignored;

    for (int i = 1; i < options->word_count && verb == VERB_PREPARE; i++) {
        if (wf_devmem_look(job->devmem, options->words[i], &card, &ignored) != 0)
            continue;
        wf_devmem_first_obstacle(&card, job->queues, &obstacle);
        if (obstacle.remedy == WF_DEVMEM_READY || obstacle.remedy == WF_DEVMEM_BY_SET)
            return true;
    }
    return verb == VERB_RESTORE;
}

/* --- the command --- */

/* Of the folder only those have need that find a record in it, or are going to write one. */
static int open_folder(struct nic_job *job, bool writes, enum verb verb, struct wf_status *status)
{
    if (!writes && access(NIC_FOLDER, R_OK | X_OK) != 0)
        return 0;
    if (verb == VERB_STATUS) /* also another user's: the names of records are enough */
        job->folder = open(NIC_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    else
        job->folder = nic_records_hold(NIC_FOLDER, &job->held, status);
    return job->folder < 0 && (writes || verb == VERB_RESTORE) ? job->folder : 0;
}

/* Who is asked to end in the middle of changes, or has nobody left to read of them, ends when all is done. */
static void hold_signals(sigset_t *before)
{
    static const int asking[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++)
        sigaddset(&set, asking[i]);
    sigprocmask(SIG_BLOCK, &set, before);
}

static int run_verb(struct nic_job *job, const struct bench_options *options, enum verb verb, struct wf_status *status)
{
    if (verb == VERB_SERVE)
        return serve_run(job->devmem, options, status);
    bool changes = verb != VERB_STATUS && !options->dry_run && would_change(job, options, verb);

    if (changes && !wf_devmem_may_change(job->devmem))
        return wf_fail(status, -EPERM,
                       "nic %s: this process has no CAP_NET_ADMIN, which changing a card needs: run it as root, or "
                       "with --dry-run to see what would change",
                       verbs[verb]);
    int result = open_folder(job, changes && verb == VERB_PREPARE, verb, status);
    if (result)
        return result;
    if (verb == VERB_STATUS)
        return show_all(job, options);
    sigset_t before;
    if (changes)
        hold_signals(&before);
    result = verb == VERB_PREPARE ? prepare_all(job, options) : restore_all(job, options);
    if (changes) {
        fflush(job->out);
        sigprocmask(SIG_SETMASK, &before, NULL); /* what has come meanwhile ends the process here */
    }
    return result;
}

int bench_nic(struct bench_options *options)
{
    struct nic_job job = {.folder = -1,
                          .held = -1,
                          .out = stdout,
                          .queues = options->queues ? options->queues : 1,
                          .dry = options->dry_run};
    struct wf_status status = {0};
    int verb = find_verb(options, &status), result = verb < 0 ? verb : check_names(options, (enum verb)verb, &status);

    if (result < 0) {
        tell(&status);
        return BENCH_USAGE;
    }
    result = wf_devmem_open(NULL, &job.devmem, &status);
    if (result == 0)
        result = run_verb(&job, options, (enum verb)verb, &status);
    if (result < 0)
        tell(&status);
    wf_devmem_close(job.devmem);
    if (job.held >= 0)
        close(job.held);
    if (job.folder >= 0)
        close(job.folder);
    if (result < 0)
        return result == -EOPNOTSUPP || result == -EPERM ? BENCH_UNAVAILABLE : BENCH_FAILED;
    return result;
}
