/* One bucket: by an all-reduce, or by a server. */
#include "overlap.h"

static struct rank_call call_of(const struct overlap *overlap, const struct rank_bucket *bucket)
{
    uint64_t elements = layers_elements(&overlap->layers);
    float *memory = overlap->layers.gradients + bucket->first * elements;

    return (struct rank_call){.op = BENCH_ALL_REDUCE,
                              .type = RANK_FLOAT32,
                              .redop = RANK_SUM,
                              .count = bucket->count * elements,
                              .in_place = true,
                              .send = memory,
                              .recv = memory,
                              .result = memory};
}

const char *overlap_lacks(const struct overlap *overlap)
{
    const struct rank_backend *backend = overlap->world->backend;
    struct rank_call call = call_of(overlap, &overlap->buckets[0]);

    if (overlap->style == RANK_STYLE_SERVER && !backend->send)
        return "messages from one rank to another are not built in here";
    if (overlap->style == RANK_STYLE_SERVER && backend->take)
        return "a server adds on the processor, and the gradients are on a GPU";
    return backend->lacks(&call);
}

/* Rank 0 takes in the gradients of one rank after the other, adds them, and sends each the sum. */
static int serve(struct overlap *overlap, const struct rank_call *call, struct wf_status *status)
{
    const struct rank_backend *backend = overlap->world->backend;
    float *sum = call->recv, *other = overlap->scratch;
    uint64_t bytes = call->count * sizeof *sum;
    int result = 0;

    for (uint32_t rank = 1; rank < overlap->world->ranks && result == 0; rank++) {
        result = backend->receive(rank, other, bytes, status);
        for (uint64_t i = 0; i < call->count && result == 0; i++)
            sum[i] += other[i];
    }
    for (uint32_t rank = 1; rank < overlap->world->ranks && result == 0; rank++)
        result = backend->send(rank, sum, bytes, status);
    return result;
}

static int ask_server(struct overlap *overlap, const struct rank_call *call, struct wf_status *status)
{
    const struct rank_backend *backend = overlap->world->backend;
    uint64_t bytes = call->count * sizeof(float);
    int result = backend->send(0, call->recv, bytes, status);

    return result ? result : backend->receive(0, call->recv, bytes, status);
}

int overlap_synchronise(void *context, const struct rank_bucket *bucket, struct wf_status *status)
{
    struct overlap *overlap = context;
    struct rank_call call = call_of(overlap, bucket);

    if (overlap->style == RANK_STYLE_ALL_REDUCE)
        return overlap->world->backend->run(&call, status);
    return overlap->world->rank == 0 ? serve(overlap, &call, status) : ask_server(overlap, &call, status);
}
