/* test_collectives_gpu.c: collectives on memory of a GPU, which passes through host memory. */
#include "calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *on_gpu(struct group_process *process, const void *from, uint64_t bytes, struct weft_error *err)
{
    void *memory;
    LOOP_CALL(weft_gpu_alloc(process->context, 0, bytes + 1, &memory, err), err);
    LOOP_CALL(weft_gpu_copy(process->context, memory, from, bytes, err), err);
    return memory;
}

/* `in` on the GPU, or `out`, or both. */
static int one(struct group_process *process, struct weft_group *group, struct call *call, int which,
               struct weft_error *err)
{
    uint64_t width = weft_type_bytes(call->what.type);
    uint64_t in_bytes = reference_in(&call->what) * width, out_bytes = reference_out(&call->what) * width;
    call_init(call, process->rank);
    void *host_in = call->in, *host_out = call->out;
    memcpy(host_in, call->kept[process->rank], in_bytes);
    void *in = which & 1 ? on_gpu(process, host_in, in_bytes, err) : NULL;
    void *out = which & 2 ? on_gpu(process, host_out, out_bytes, err) : NULL;
    call->in = in ? in : host_in;
    call->out = out ? out : host_out;
    int result = call_post(call, group, true, err);
    if (out)
        LOOP_CALL(weft_gpu_copy(process->context, host_out, out, out_bytes, err), err);
    call->in = host_in;
    call->out = host_out;
    if (result == 0)
        call_check(call, process->rank);
    call_fini(call);
    weft_gpu_free(process->context, 0, in);
    weft_gpu_free(process->context, 0, out);
    return result;
}

static int each(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    static const uint64_t counts[] = {1, 999, 50021};
    int result = 0;
    for (int i = 0; i < 18 && result == 0; i++) {
        struct call call = {
            .what = {.kind = (enum weft_collective)(i % 6),
                     .type = WEFT_FLOAT32,
                     .op = WEFT_SUM,
                     .size = process->size,
                     .root = 1,
                     .by = 1,
                     .count = counts[i / 6]},
        };
        for (int which = 0; which < 4 && result == 0; which++)
            result = one(process, group, &call, which, err);
    }
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void through_host_memory(void)
{
    group_run_all(3, each);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(through_host_memory, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
