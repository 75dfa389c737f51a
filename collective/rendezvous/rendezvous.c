#include "collective/rendezvous/rendezvous.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collective/rendezvous/source.h"

#define KEY_BYTES (WF_MEET_NAME_BYTES + 8)

static const struct wf_source sources[] = {
    {"pmix", "PMIx", wf_find_pmix},
    {"torchrun", "torchrun's variables", wf_find_torchrun},
    {"slurm", "Slurm's variables", wf_find_slurm},
    {"pmi", "PMI-1", wf_find_pmi},
};
enum { SOURCES = sizeof sources / sizeof sources[0] };

/* --- what the options say --- */

static int check_name(const char *name, struct weft_error *err)
{
    size_t length = strlen(name);
    for (const char *at = name; *at; at++)
        if (isspace((unsigned char)*at) || *at == '=' || iscntrl((unsigned char)*at))
            length = 0;
    if (length == 0 || length >= WF_MEET_NAME_BYTES)
        return wf_meet_fail(err, -EINVAL,
                            "the group's name '%.80s': must have 1 to %d characters, no white space and no '='", name,
                            WF_MEET_NAME_BYTES - 1);
    return 0;
}

static int take_rendezvous(struct wf_meet *meet, const char *text, struct weft_error *err)
{
    bool file = strncmp(text, "file:", 5) == 0;
    const char *place = file ? text + 5 : text, *colon = strrchr(text, ':');
    if (strlen(place) >= sizeof meet->place || !*place || (!file && (!colon || colon == text || !colon[1])))
        return wf_meet_fail(err, -EINVAL, "the rendezvous '%.120s': must be HOST:PORT or file:PATH", text);
    meet->way = file ? WF_MEET_FILE : WF_MEET_HOST;
    snprintf(meet->place, sizeof meet->place, "%s", place);
    return 0;
}

static int take_options(struct wf_meet *meet, const struct weft_group_options *options, struct weft_error *err)
{
    for (size_t i = 0; i < sizeof options->reserved / sizeof options->reserved[0]; i++)
        if (options->reserved[i] != 0)
            return wf_meet_fail(err, -EINVAL, "a reserved field of the group's options is not 0");
    if (options->size > 0 && options->rank >= options->size)
        return wf_meet_fail(err, -EINVAL, "rank %u of %u: ranks go from 0 to one less than the size", options->rank,
                            options->size);
    snprintf(meet->name, sizeof meet->name, "-");
    int result = options->name ? check_name(options->name, err) : 0;
    if (result == 0 && options->name)
        snprintf(meet->name, sizeof meet->name, "%s", options->name);
    if (result == 0 && options->rendezvous)
        result = take_rendezvous(meet, options->rendezvous, err);
    return result;
}

/* --- the search --- */

static void take_found(struct wf_meet *meet, const struct wf_found *found, const char *words)
{
    meet->rank = found->rank;
    meet->size = found->size;
    meet->local_rank = found->local_rank;
    int length = snprintf(meet->said, sizeof meet->said, "rank %u of %u by %s", meet->rank, meet->size, words);
    size_t room = sizeof meet->said - (size_t)length;
    char *rest = meet->said + length;
    if (meet->way == WF_MEET_NOWHERE && found->way != WF_MEET_NOWHERE) {
        meet->way = found->way;
        snprintf(meet->place, sizeof meet->place, "%s", found->place);
        if (found->way == WF_MEET_HOST)
            snprintf(rest, room, ", meeting at %.120s (%s)", meet->place, found->where);
        else
            snprintf(rest, room, ", meeting by %s", found->where);
    } else if (meet->way != WF_MEET_NOWHERE) {
        snprintf(rest, room, ", meeting at %s%.120s (options)", meet->way == WF_MEET_FILE ? "file:" : "", meet->place);
    }
}

/* Asks the sources in their order. `first` keeps what the first one lacked that knows rank and size. */
static int search(struct wf_meet *meet, const char *only, const struct wf_meet_env *env, struct wf_found *first,
                  const char **first_words, struct weft_error *err)
{
    for (int i = 0; i < SOURCES; i++) {
        struct wf_found found = {.local_rank = -1};
        if (only && strcmp(only, sources[i].name) != 0)
            continue;
        int result = sources[i].find(meet, env, &found, err);
        if (result < 0)
            return result;
        if (result == 0)
            continue;
        if (meet->way != WF_MEET_NOWHERE || found.way != WF_MEET_NOWHERE || found.size == 1) {
            take_found(meet, &found, sources[i].words);
            return 1;
        }
        if (!*first_words) {
            *first = found;
            *first_words = sources[i].words;
        }
    }
    return 0;
}

static int find(struct wf_meet *meet, const char *only, const struct wf_meet_env *env, struct weft_error *err)
{
    struct wf_found first;
    const char *first_words = NULL;
    struct weft_error passed = {0};
    int result = search(meet, only, env, &first, &first_words, &passed);
    if (result == 1)
        return 0;
    if (result < 0) {
        *err = passed;
        return result;
    }
    if (first_words) /* with what another source may have said of itself */
        return wf_meet_fail(err, -EINVAL, "rank %u of %u by %s, but not where they meet: %s%s%s", first.rank,
                            first.size, first_words, first.lacks, passed.text[0] ? "; " : "", passed.text);
    return wf_meet_fail(
        err, -EINVAL,
        "%s%s who this process is among how many is not known: give size, rank and rendezvous (HOST:PORT or "
        "file:PATH), or start with mpirun, mpiexec, srun or torchrun",
        passed.text, passed.text[0] ? ";" : "nothing in the environment:");
}

static bool known_source(const char *name)
{
    for (int i = 0; i < SOURCES; i++)
        if (strcmp(name, sources[i].name) == 0)
            return true;
    return strcmp(name, "options") == 0;
}

int wf_meet_init(struct wf_meet *meet, const struct weft_group_options *options, const struct wf_meet_env *env,
                 struct weft_error *err)
{
    *meet = (struct wf_meet){.local_rank = -1, .pmi.fd = -1};
    int result = take_options(meet, options, err);
    if (result < 0)
        return result;
    if (options->source && !known_source(options->source))
        return wf_meet_fail(err, -EINVAL, "the source '%.40s': must be options, pmix, torchrun, slurm or pmi",
                            options->source);
    if (options->size == 0 && options->source && strcmp(options->source, "options") == 0)
        return wf_meet_fail(err, -EINVAL, "the source is options, but they have no size: give size and rank");
    if (options->size == 0)
        return find(meet, options->source, env, err);
    struct wf_found found = {.rank = options->rank, .size = options->size, .local_rank = -1};
    if (meet->way == WF_MEET_NOWHERE && found.size > 1)
        return wf_meet_fail(
            err, -EINVAL,
            "rank %u of %u by options, but not where they meet: give a rendezvous, too: HOST:PORT of rank 0, "
            "or file:PATH in a folder that all share",
            found.rank, found.size);
    take_found(meet, &found, "options");
    return 0;
}

void wf_meet_fini(struct wf_meet *meet)
{
    wf_pmi_close(&meet->pmi);
    wf_pmix_close(meet->pmix);
    meet->pmix = NULL;
}

bool wf_meet_is_launched(const struct wf_meet_env *env)
{
    static const char *const sizes[] = {"WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMI_SIZE"};
    struct weft_error ignored = {0};
    uint32_t size;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (wf_meet_number(env, sizes[i], UINT32_MAX, &size, &ignored) == 1 && size > 1)
            return true;
    return wf_meet_get(env, "PMIX_NAMESPACE") != NULL;
}

/* --- the meeting --- */

static const char *key_of(const struct wf_meet *meet, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "weft.%s", meet->name);
    return key;
}

void wf_meet_clear(struct wf_meet *meet)
{
    if (meet->way == WF_MEET_FILE)
        wf_meet_file_remove(meet->place);
}

int wf_meet_publish(struct wf_meet *meet, const char *line, int timeout_ms, struct weft_error *err)
{
    char key[KEY_BYTES];
    int result = 0;
    switch (meet->way) {
    case WF_MEET_FILE:
        return wf_meet_file_write(meet->place, line, err);
    case WF_MEET_PMIX:
        return wf_pmix_put(meet->pmix, key_of(meet, key), line, err);
    case WF_MEET_PMI:
        result = wf_pmi_put(&meet->pmi, key_of(meet, key), line, timeout_ms, err);
        return result < 0 ? result : wf_pmi_barrier(&meet->pmi, timeout_ms, err);
    case WF_MEET_HOST:
    case WF_MEET_NOWHERE:
        break;
    }
    return 0;
}

int wf_meet_look(struct wf_meet *meet, int timeout_ms, char line[WF_MEET_LINE_BYTES], struct weft_error *err)
{
    char key[KEY_BYTES];
    int result;
    switch (meet->way) {
    case WF_MEET_FILE:
        return wf_meet_file_read(meet->place, line, WF_MEET_LINE_BYTES, err);
    case WF_MEET_PMIX:
        return wf_pmix_get(meet->pmix, key_of(meet, key), line, WF_MEET_LINE_BYTES, timeout_ms, err);
    case WF_MEET_PMI:
        result = wf_pmi_barrier(&meet->pmi, timeout_ms, err);
        if (result == 0)
            result = wf_pmi_get(&meet->pmi, key_of(meet, key), line, WF_MEET_LINE_BYTES, timeout_ms, err);
        return result < 0 ? result : 1;
    case WF_MEET_HOST:
    case WF_MEET_NOWHERE:
        break;
    }
    return 0;
}
