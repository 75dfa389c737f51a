/* source.h: what the sources of a rendezvous have in common. */
#ifndef WF_MEET_SOURCE_H
#define WF_MEET_SOURCE_H

#include "collective/rendezvous/rendezvous.h"

/* What a source knows. */
struct wf_found {
    uint32_t rank, size;
    int local_rank; /* -1: not known */
    enum wf_meet_way way;
    char place[WF_MEET_PLACE_BYTES];
    char where[96];  /* what names the place */
    char lacks[160]; /* way NOWHERE: what has to be added */
};

/*
 * One source. 1: `found` has rank and size, and the way where it knows it; 0: it is not there, or cannot be used, and
 * then `err` may say why; -EINVAL: a variable is wrong.
 */
struct wf_source {
    const char *name; /* in weft_group_options.source */
    const char *words;
    int (*find)(struct wf_meet *meet, const struct wf_meet_env *env, struct wf_found *found, struct weft_error *err);
};

int wf_find_pmix(struct wf_meet *, const struct wf_meet_env *, struct wf_found *, struct weft_error *);
int wf_find_torchrun(struct wf_meet *, const struct wf_meet_env *, struct wf_found *, struct weft_error *);
int wf_find_slurm(struct wf_meet *, const struct wf_meet_env *, struct wf_found *, struct weft_error *);
int wf_find_pmi(struct wf_meet *, const struct wf_meet_env *, struct wf_found *, struct weft_error *);

/* Writes `err` and returns `code`. */
int wf_meet_fail(struct weft_error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

const char *wf_meet_get(const struct wf_meet_env *env, const char *name); /* NULL where it is empty, too */

/* 1 and the number of a variable; 0: there is none; -EINVAL: it is no number up to `most`. */
int wf_meet_number(const struct wf_meet_env *env, const char *name, uint32_t most, uint32_t *out,
                   struct weft_error *err);

/* Rank, size and number on the host (which may be missing) from three variables: 1, 0 or -EINVAL. */
int wf_meet_numbers(const struct wf_meet_env *env, const char *rank, const char *size, const char *local,
                    struct wf_found *found, struct weft_error *err);

/* "HOST:PORT", with brackets around an address of IPv6. False: it does not fit. */
bool wf_meet_place(struct wf_found *found, const char *host, uint32_t port);

/* The first host of a list as Slurm writes it, "node[01-04,7],other". False: it is none. */
bool wf_slurm_first_host(const char *list, char *out, uint32_t room);

/* PMI-1 over `fd`. All wait up to `timeout_ms`. */
int wf_pmi_open(struct wf_pmi *pmi, int fd, int timeout_ms, struct weft_error *err);
int wf_pmi_put(struct wf_pmi *pmi, const char *key, const char *value, int timeout_ms, struct weft_error *err);
int wf_pmi_barrier(struct wf_pmi *pmi, int timeout_ms, struct weft_error *err);
int wf_pmi_get(struct wf_pmi *pmi, const char *key, char *value, uint32_t room, int timeout_ms, struct weft_error *err);

/* The launcher counts the process as one that has ended well, whatever it still does. */
void wf_pmi_close(struct wf_pmi *pmi);

/* PMIx, in a build with libpmix; else open() returns -ENOTSUP. get(): 1, or 0 after `timeout_ms`. */
int wf_pmix_open(struct wf_pmix **out, struct wf_found *found, struct weft_error *err);
int wf_pmix_put(struct wf_pmix *pmix, const char *key, const char *value, struct weft_error *err);
int wf_pmix_get(struct wf_pmix *pmix, const char *key, char *value, uint32_t room, int timeout_ms,
                struct weft_error *err);
void wf_pmix_close(struct wf_pmix *pmix);

/* A file on a folder that all share. read(): 1, or 0: there is none, or it is no line of ours. */
int wf_meet_file_write(const char *path, const char *line, struct weft_error *err);
int wf_meet_file_read(const char *path, char *line, uint32_t room, struct weft_error *err);
void wf_meet_file_remove(const char *path);

#endif
