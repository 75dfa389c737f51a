/*
 * PMIx, as Open MPI's mpirun and Slurm's srun --mpi=pmix speak it. libpmix is loaded when PMIx has started this
 * process: where it has not, nobody needs that library.
 */
#include "collective/rendezvous/source.h"

#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIBRARY "libpmix.so.2"

/* What is called of it. */
#define CALLS(F) F(Init) F(Finalize) F(Get) F(Get_nb) F(Put) F(Commit) F(Error_string)

#define POINTER(name) __typeof__(&PMIx_##name) name;

struct wf_pmix {
    pmix_proc_t self;
    struct pmix_calls {
        CALLS(POINTER)
    } call;
};

/* The library stays in the process: its threads may outlive the last call. 0, or -ENOENT. */
static int load(struct pmix_calls *call)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL); /* its own plugins look for its functions */
    bool all = library != NULL;

#define FIND(name) all = all && (call->name = (__typeof__(call->name))dlsym(library, "PMIx_" #name)) != NULL;
    CALLS(FIND)
    return all ? 0 : -ENOENT;
}

/* An answer under way. Owners: who asks, and the thread of libpmix; the last one frees it. */
struct answer {
    pthread_mutex_t lock;
    pthread_cond_t came;
    int owners;
    bool there;
    pmix_status_t status;
    char value[WF_MEET_LINE_BYTES];
};

static void let_go(struct answer *answer)
{
    pthread_mutex_lock(&answer->lock);
    bool last = --answer->owners == 0;
    pthread_mutex_unlock(&answer->lock);
    if (!last)
        return;
    pthread_cond_destroy(&answer->came);
    pthread_mutex_destroy(&answer->lock);
    free(answer);
}

static int job_number(struct wf_pmix *pmix, const char *key, bool of_job, uint32_t *out)
{
    pmix_proc_t whose = pmix->self;
    pmix_value_t *value = NULL;
    if (of_job)
        whose.rank = PMIX_RANK_WILDCARD;
    pmix_status_t status = pmix->call.Get(&whose, key, NULL, 0, &value);
    if (status != PMIX_SUCCESS || !value)
        return -ENOENT;
    int result = 0;
    if (value->type == PMIX_UINT32)
        *out = value->data.uint32;
    else if (value->type == PMIX_UINT16)
        *out = value->data.uint16;
    else
        result = -ENOENT;
    free(value); /* which holds a number */
    return result;
}

int wf_find_pmix(struct wf_meet *meet, const struct wf_meet_env *env, struct wf_found *found, struct weft_error *err)
{
    if (!wf_meet_get(env, "PMIX_NAMESPACE"))
        return 0;
    struct wf_pmix *pmix = calloc(1, sizeof *pmix);
    if (!pmix)
        return wf_meet_fail(err, -ENOMEM, "no memory for a client of PMIx");
    if (load(&pmix->call) < 0) {
        free(pmix);
        return wf_meet_fail(err, 0, "PMIx has started this process, but its library cannot be loaded: %s", dlerror());
    }
    pmix_status_t status = pmix->call.Init(&pmix->self, NULL, 0);
    if (status != PMIX_SUCCESS) {
        wf_meet_fail(err, 0, "PMIx has started this process, but its server does not answer (%s)",
                     pmix->call.Error_string(status));
        free(pmix);
        return 0;
    }
    uint32_t local;
    found->rank = pmix->self.rank;
    found->local_rank = job_number(pmix, PMIX_LOCAL_RANK, false, &local) == 0 ? (int)local : -1;
    if (job_number(pmix, PMIX_JOB_SIZE, true, &found->size) < 0 || found->rank >= found->size) {
        wf_pmix_close(pmix);
        return wf_meet_fail(err, 0, "PMIx does not say how many processes there are");
    }
    meet->pmix = pmix;
    found->way = WF_MEET_PMIX;
    snprintf(found->where, sizeof found->where, "PMIx");
    return 1;
}

int wf_pmix_put(struct wf_pmix *pmix, const char *key, const char *text, struct weft_error *err)
{
    pmix_value_t value = {.type = PMIX_STRING, .data.string = (char *)(uintptr_t)text}; /* which it copies */
    pmix_status_t status = pmix->call.Put(PMIX_GLOBAL, key, &value);
    if (status == PMIX_SUCCESS)
        status = pmix->call.Commit();
    return status == PMIX_SUCCESS ? 0
                                  : wf_meet_fail(err, -EIO, "PMIx takes no value: %s", pmix->call.Error_string(status));
}

/* Called by a thread of libpmix. */
static void take(pmix_status_t status, pmix_value_t *value, void *user)
{
    struct answer *answer = user;
    pthread_mutex_lock(&answer->lock);
    answer->status = status;
    if (status == PMIX_SUCCESS && value && value->type == PMIX_STRING && value->data.string)
        snprintf(answer->value, sizeof answer->value, "%s", value->data.string);
    answer->there = true;
    pthread_cond_signal(&answer->came);
    pthread_mutex_unlock(&answer->lock);
    let_go(answer);
}

static struct answer *new_answer(void)
{
    struct answer *answer = calloc(1, sizeof *answer);
    if (!answer)
        return NULL;
    answer->owners = 2;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&answer->lock, NULL);
    pthread_cond_init(&answer->came, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return answer;
}

static void await(struct answer *answer, int timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&answer->lock);
    while (!answer->there && pthread_cond_timedwait(&answer->came, &answer->lock, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&answer->lock);
}

/* The server keeps the question until rank 0 has put the answer: no other member has to take part. */
int wf_pmix_get(struct wf_pmix *pmix, const char *key, char *value, uint32_t room, int timeout_ms,
                struct weft_error *err)
{
    pmix_proc_t first = pmix->self;
    first.rank = 0;
    struct answer *answer = new_answer();
    if (!answer)
        return wf_meet_fail(err, -ENOMEM, "no memory to ask PMIx");
    pmix_status_t status = pmix->call.Get_nb(&first, key, NULL, 0, take, answer);
    if (status != PMIX_SUCCESS) {
        answer->owners = 1;
        let_go(answer);
        return wf_meet_fail(err, -EIO, "PMIx cannot be asked: %s", pmix->call.Error_string(status));
    }
    await(answer, timeout_ms);
    pthread_mutex_lock(&answer->lock);
    int result = !answer->there ? 0 : answer->status == PMIX_SUCCESS && answer->value[0] ? 1 : -EIO;
    status = answer->status;
    snprintf(value, room, "%s", answer->value);
    pthread_mutex_unlock(&answer->lock);
    let_go(answer);
    if (result == -EIO && (status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT))
        return 0;
    return result < 0 ? wf_meet_fail(err, result, "PMIx has no address of rank 0: %s", pmix->call.Error_string(status))
                      : result;
}

void wf_pmix_close(struct wf_pmix *pmix)
{
    if (!pmix)
        return;
    pmix->call.Finalize(NULL, 0);
    free(pmix);
}
