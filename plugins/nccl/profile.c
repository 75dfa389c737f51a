#include "plugins/nccl/profile.h"

/* As NCCL's sockets tell of what one of them carries. NULL: it is not recorded. */
static void *begin_event(const struct plugin_profile *profile, int fd, size_t bytes)
{
    struct nccl_profile_socket event = {
        .type = NCCL_PROFILE_SOCKET,
        .sock = {.fd = fd, .op = profile->receives ? NCCL_PROFILE_OP_RECV : NCCL_PROFILE_OP_SEND, .length = bytes},
    };
    void *own = NULL;
    profile->profiler(&own, NCCL_PROFILE_START, profile->phandle,
                      NCCL_PROFILE_PLUGIN_SOCKET | NCCL_PROFILE_SOCKET_VERSION, &event);
    return own;
}

static void end_event(const struct plugin_profile *profile, void **own)
{
    if (*own)
        profile->profiler(own, NCCL_PROFILE_STOP, NULL, 0, NULL);
    *own = NULL;
}

/* On a thread of Weft, one at a time. */
static void *chunk_begins(void *user_data, const struct weft_chunk *chunk)
{
    struct plugin_profile *profile = user_data;
    int index = atomic_load_explicit(&profile->begun, memory_order_relaxed);
    if (index == PLUGIN_CHUNKS_TOLD)
        return NULL;
    struct plugin_chunk *own = &profile->chunks[index];
    own->bytes = chunk->bytes;
    own->fd = chunk->fd;
    atomic_store_explicit(&own->ended, false, memory_order_relaxed);
    atomic_store_explicit(&profile->begun, index + 1, memory_order_release);
    return own;
}

static void chunk_ends(void *user_data, void *own, int whole)
{
    struct plugin_chunk *chunk = own;
    (void)user_data, (void)whole; /* NCCL's events do not say how they end */
    if (chunk)
        atomic_store_explicit(&chunk->ended, true, memory_order_release);
}

void plugin_profile_begin(struct plugin_profile *profile, nccl_profiler profiler, void *phandle, bool receives,
                          size_t bytes, struct weft_options *options)
{
    static const struct weft_watcher watcher = {.begins = chunk_begins, .ends = chunk_ends};
    profile->profiler = profiler;
    profile->phandle = phandle;
    profile->receives = receives;
    atomic_store_explicit(&profile->begun, 0, memory_order_relaxed);
    for (int i = 0; i < PLUGIN_CHUNKS_TOLD; i++)
        profile->chunks[i].told = false;
    profile->event = begin_event(profile, -1, bytes);
    if (!profile->event) /* NCCL gives the callback whether or not it has a profiler */
        return;
    options->flags |= WEFT_WATCH;
    options->watcher = &watcher;
    options->user_data = profile;
}

void plugin_profile_look(struct plugin_profile *profile)
{
    int begun = atomic_load_explicit(&profile->begun, memory_order_acquire);
    for (int i = 0; i < begun; i++) {
        struct plugin_chunk *chunk = &profile->chunks[i];
        if (!chunk->told)
            chunk->event = begin_event(profile, chunk->fd, chunk->bytes);
        chunk->told = true;
        if (atomic_load_explicit(&chunk->ended, memory_order_acquire))
            end_event(profile, &chunk->event);
    }
}

void plugin_profile_end(struct plugin_profile *profile)
{
    for (int i = 0; i < PLUGIN_CHUNKS_TOLD; i++) /* of an operation that NCCL has not tested to its end */
        end_event(profile, &profile->chunks[i].event);
    end_event(profile, &profile->event);
}
