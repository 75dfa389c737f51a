/* What rank 0 writes: a JSON object a line. Nothing in it needs escapes but what a backend says of itself. */
#include "measure.h"

static void put_call(const struct rank_call *call, uint64_t bytes)
{
    printf(
        "\"op\": \"%s\", \"size_bytes\": %llu, \"count\": %llu, \"type\": \"%s\", \"redop\": \"%s\", \"in_place\": %s",
        rank_op_name(call->op), (unsigned long long)bytes, (unsigned long long)call->count, rank_type_name(call->type),
        rank_op_reduces(call->op) ? rank_redop_name(call->redop) : "none", call->in_place ? "true" : "false");
}

void rank_say_facts(const struct rank_world *world)
{
    const char *memory = world->backend->memory;

    printf("{\"schema\": \"weft.rank/1\", \"backend\": \"%s\", \"ranks\": %u, \"facts\": {\"memory\": \"%s\", ",
           world->backend->name, world->ranks, memory ? memory : "host");
    world->backend->facts(stdout);
    printf("}}\n");
    fflush(stdout);
}

void rank_say_sample(const struct rank_sample *sample)
{
    printf("{");
    put_call(&sample->call, sample->bytes);
    printf(", \"iters\": %llu, \"mean_us\": %.3f, \"min_us\": %.3f, \"p50_us\": %.3f, \"max_us\": %.3f, "
           "\"cpu_s\": %.6f, \"wrong\": %llu, \"checked\": %llu}\n",
           (unsigned long long)sample->iters, sample->mean_us, sample->min_us, sample->p50_us, sample->max_us,
           sample->cpu_s, (unsigned long long)sample->wrong, (unsigned long long)sample->checked);
    fflush(stdout);
}

void rank_say_lack(const struct rank_call *call, uint64_t bytes, const char *why)
{
    printf("{");
    put_call(call, bytes);
    printf(", \"lacks\": \"%s\"}\n", why);
    fflush(stdout);
}

void rank_say_nothing(void)
{
    printf("\n");
    fflush(stdout);
}

void rank_say_done(void)
{
    printf(RANK_DONE);
    fflush(stdout);
}
