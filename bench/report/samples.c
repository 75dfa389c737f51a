/* The samples of a result. The JSON of them is let go when all are taken. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/stamp.h"
#include "run.h"

static int refuse(size_t index, const char *what, struct wf_status *status)
{
    return wf_fail(status, -EBADMSG, "it is damaged: its sample %zu has no %s", index + 1, what);
}

static struct report_flow *flow_of(struct report_run *run, const struct report_sample *sample, uint32_t rail)
{
    /* Samples of a set stand together, so it is among the last. */
    for (size_t i = run->flow_count; i-- > 0;) {
        struct report_flow *flow = &run->flows[i];
        if (flow->rail == rail && flow->backend == sample->backend && flow->mode == sample->mode &&
            flow->size == sample->size)
            return flow;
    }
    if (run->flow_count == run->flow_room) {
        size_t room = run->flow_room ? 2 * run->flow_room : 64;
        struct report_flow *wider = realloc(run->flows, room * sizeof *wider);
        if (!wider)
            return NULL;
        run->flows = wider;
        run->flow_room = room;
    }
    struct report_flow *flow = &run->flows[run->flow_count++];
    *flow = (struct report_flow){.backend = sample->backend, .rail = rail, .mode = sample->mode, .size = sample->size};
    return flow;
}

static bool has_carried(struct report_run *run, struct report_sample *sample, const char *rail, double bytes)
{
    uint32_t name;

    if (report_text_index(&run->names, rail, &name))
        return false;
    if (run->carried_count == run->carried_room) {
        size_t room = 2 * run->carried_room + 64;
        struct bench_carried *wider = realloc(run->carried, room * sizeof *wider);
        if (!wider)
            return false;
        run->carried = wider;
        run->carried_room = room;
    }
    run->carried[run->carried_count++] = (struct bench_carried){name, bytes};
    sample->carried_count++;
    return true;
}

/* What came over each rail to the receiver; of a ping-pong back to the sender. */
static int take_rails(struct report_run *run, struct report_sample *sample, const json_t *rails,
                      struct wf_status *status)
{
    int node = report_node_of(run->ends.list[sample->latency ? sample->src : sample->dst]);
    const json_t *rail;
    size_t index;

    sample->carried = run->carried_count;
    json_array_foreach(rails, index, rail)
    {
        double bytes = report_number(rail, "bytes");
        char name[160];
        uint32_t at;
        if (isnan(bytes) || bytes < 0)
            continue;
        if (run->flow_count == REPORT_FLOWS_MOST)
            return wf_fail(status, -E2BIG, "it has more rails and sizes than a report can show");
        snprintf(name, sizeof name, "node%d %.120s", node, report_text(rail, "name"));
        struct report_flow *flow = report_text_index(&run->rails, name, &at) ? NULL : flow_of(run, sample, at);
        if (!flow || !has_carried(run, sample, report_text(rail, "name"), bytes))
            return wf_fail(status, -ENOMEM, "no memory to read it");
        flow->bytes += bytes;
    }
    return 0;
}

static double zero_or(double value)
{
    return isnan(value) ? 0 : value;
}

static int take(struct report_run *run, const json_t *json, size_t index, struct report_sample *sample,
                struct wf_status *status)
{
    const json_t *time = json_object_get(json, "time_us");
    double size = report_number(json, "size_bytes");
    const char *src = report_text(json, "src"), *dst = report_text(json, "dst"), *mode = report_text(json, "mode");

    *sample = (struct report_sample){.p50 = report_number(time, "p50")};
    if (!src[0] || !dst[0])
        return refuse(index, src[0] ? "dst" : "src", status);
    if (!(size >= 0 && size < 0x1p62))
        return refuse(index, "size_bytes", status);
    if (!(sample->p50 >= 0))
        return refuse(index, "time_us.p50", status);
    if (strcmp(mode, "loaded") != 0 && strcmp(mode, "isolated") != 0)
        return refuse(index, "mode that is known", status);
    if (report_text_index(&run->ends, src, &sample->src) || report_text_index(&run->ends, dst, &sample->dst) ||
        report_text_index(&run->backends, report_text(json, "backend"), &sample->backend))
        return wf_fail(status, -ENOMEM, "no memory to read it");
    if (run->ends.count > REPORT_ENDS_MOST || run->backends.count > REPORT_BACKENDS_MOST)
        return wf_fail(status, -E2BIG,
                       "it has more than %d endpoints or %d backends, which are more than a report can show",
                       REPORT_ENDS_MOST, REPORT_BACKENDS_MOST);
    sample->mode = mode[0] == 'l' ? REPORT_LOADED : REPORT_ISOLATED;
    sample->latency = strcmp(report_text(json, "test"), "latency") == 0;
    sample->size = (uint64_t)size;
    sample->p10 = report_number(time, "p10");
    sample->p90 = report_number(time, "p90");
    sample->cv = report_number(time, "cv");
    sample->rate = report_number(json, "bw_gb_per_s");
    sample->cpu = report_number(json, "cpu_s_per_gb");
    sample->iters = zero_or(report_number(json, "iters"));
    /* As bench_sample_counted() has it. */
    sample->counted = !sample->latency && sample->iters > 0 && report_number(json, "grouped") == sample->iters &&
                      sample->iters > report_number(json, "inflight");
    sample->failures = zero_or(report_number(json, "failures"));
    sample->retransmits = zero_or(report_number(json, "retransmits"));
    sample->wrong = zero_or(report_number(json, "wrong_bytes"));
    sample->stamps = bench_stamps_from_json(json_object_get(json, "stamp"));
    return take_rails(run, sample, json_object_get(json, "rails"), status);
}

int report_run_take_samples(struct report_run *run, struct wf_status *status)
{
    json_t *samples = json_object_get(run->root, "samples");
    int result = 0;

    if (!json_is_array(samples))
        return wf_fail(status, -EBADMSG, "it is damaged: it has no samples");
    run->samples = calloc(json_array_size(samples) + 1, sizeof *run->samples);
    if (!run->samples)
        return wf_fail(status, -ENOMEM, "no memory to read it");
    for (size_t i = 0; result == 0 && i < json_array_size(samples); i++) {
        result = take(run, json_array_get(samples, i), i, &run->samples[i], status);
        run->sample_count += result == 0;
    }
    json_object_del(run->root, "samples");
    return result;
}
