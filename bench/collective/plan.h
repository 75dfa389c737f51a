/*
 * plan.h: what is to be measured, and how each backend is started.
 */
#ifndef WF_BENCH_COLLECTIVE_PLAN_H
#define WF_BENCH_COLLECTIVE_PLAN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/collective/ranks/rank.h"
#include "bench/plan/options.h"
#include "peers/peer.h"

#define COLL_BACKENDS 5
#define COLL_COUNTS_MAX 16 /* of --processes */
#define COLL_RANKS_MAX 64  /* started by us */
#define COLL_WAY_SETTINGS 3
#define COLL_NAMES 1024

/* One way to use a backend: variables for an MPI, --with words for Gloo. */
struct coll_way {
    const char *name;                        /* "as installed" */
    bool aside;                              /* for information: it leaves the network that is compared */
    const char *settings[COLL_WAY_SETTINGS]; /* "NAME=VALUE"; ends with NULL */
};

enum coll_starter { COLL_BY_US, COLL_BY_OPENMPI, COLL_BY_MPICH };

struct coll_backend {
    const char *name;
    const char *program; /* in the folder of weft; NULL: weft itself, also for NCCL */
    const char *package; /* what it is built with, where it is missing */
    enum coll_starter starter;
    const struct coll_way *ways; /* the first one is that without --best */
    int way_count;
    const char *slow; /* what to know where it is far below what the rails allow; NULL: nothing of its own */
};

const struct coll_backend *coll_backend_find(const char *name);
bool coll_is_weft(const struct coll_backend *backend);

/* Owner: the measuring thread. */
struct coll_plan {
    const struct bench_options *options;
    struct rank_asked asked;
    const struct coll_backend *backends[COLL_BACKENDS];
    int backend_count;
    uint32_t counts[COLL_COUNTS_MAX];
    int count_count;
    bool found; /* a launcher has started this process as one of the ranks */
    bool best;
    int rounds;
    uint64_t limit_s;       /* for what is measured in a run; 0: as long as something is heard */
    char hosts[COLL_NAMES]; /* with '\0' between them */
    uint32_t host_count;    /* 0: this machine */
    const char *rsh;
    char rails[COLL_NAMES];      /* of Weft: addresses, or names; "": all */
    char interfaces[COLL_NAMES]; /* the same as interfaces, each once; "": not known */
    char meeting[PATH_MAX / 2];  /* the folder in which ranks meet */
    bool made_meeting;
    char folder[PATH_MAX / 2]; /* of the programs */
    char self[PATH_MAX];
};

/* `asked` is what the options ask of a rank. -EINVAL: wrong usage. `plan` can be given to fini() whatever the result.
 */
int coll_plan_init(struct coll_plan *plan, const struct bench_options *options, const struct rank_asked *asked,
                   struct wf_status *status);
void coll_plan_fini(struct coll_plan *plan);

/* With all that is in it, such as what ranks that were killed have left of their meeting. */
void coll_remove_folder(const char *path);

/* A setting where nobody has said anything else. */
int coll_own_default(const struct bench_options *options, enum wf_setting_id id, const char *text,
                     struct wf_status *status);

/* How long a rank waits for one operation. */
uint64_t coll_timeout_s(const struct wf_config *config);

/* What the options of `weft collective` ask of a rank; also for a rank itself. */
int coll_plan_asked(struct rank_asked *asked, const struct bench_options *options, struct wf_status *status);

/* The rails as interfaces, as far as they are of this machine. */
int coll_plan_rails(struct coll_plan *plan, struct wf_status *status);

/* Whether ranks of Weft work on GPU memory: only weft collective has the setting memory. */
bool coll_on_gpu(const struct bench_options *options);

/* Why the backend cannot be had for so many ranks; "": it can. */
void coll_lacks(const struct coll_plan *plan, const struct coll_backend *backend, uint32_t ranks, char why[200]);

#define COLL_RANK_BYTES (48u << 20) /* of a process beside its buffers */

/* Why there is not enough memory for so many ranks (0: not known) where those of one machine take `each`, and `beside`
 * once more; "": there is. */
void coll_lacks_memory(const struct coll_plan *plan, uint32_t ranks, uint64_t each, uint64_t beside, char why[200]);

/* How many ways there are to be tried. */
int coll_way_count(const struct coll_plan *plan, const struct coll_backend *backend);

/* One run: the same words for each of its programs, but for who they are. */
struct coll_run {
    const struct coll_backend *backend;
    const struct coll_way *way;
    uint32_t ranks;
    uint32_t number; /* of the run, from 0 */
    const struct rank_asked *asked;
    uint64_t silence_s; /* that is too long; 0: some times `asked->timeout_s` */
    const char *const
        *words; /* of the command line of a rank of Weft, instead of `asked`; ends with NULL. NULL: none */
};

/* The programs of a run: one, or one for each rank. */
uint32_t coll_program_count(const struct coll_plan *plan, const struct coll_run *run);

/* The command of program `index`. It comes zeroed. -ENOBUFS: too long. */
int coll_command(const struct coll_plan *plan, const struct coll_run *run, uint32_t index, struct peer_command *out);

/* Weft as a backend of rank.h: `member` is "RANK/SIZE/FILE", "found" or "found/FILE". `asked` NULL: what
 * coll_plan_asked() reads. Exit status as of rank_run(). */
int coll_member(const struct bench_options *options, const struct rank_asked *asked);

#endif
