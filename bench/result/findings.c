#include "findings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cause.h"

/* Said of isolated already; what is in both says so. */
static bool is_said(struct bench_findings *findings, const struct bench_slow *next, uint32_t backend)
{
    for (size_t i = 0; i < findings->count; i++) {
        struct bench_finding *before = &findings->list[i];
        if (before->backend != backend || before->in_loaded)
            continue;
        if (bench_slow_same(&before->slow, next))
            before->loaded = next->odd.of_peers;
        if (bench_slow_within(next, &before->slow))
            return true;
    }
    return false;
}

static void keep(struct bench_findings *findings, const struct bench_known *known, const struct bench_slow *slow,
                 uint32_t backend, bool loaded)
{
    if (loaded && is_said(findings, slow, backend))
        return;
    if (findings->count == BENCH_FINDINGS_MAX) {
        findings->more++;
        return;
    }
    struct bench_finding *next = &findings->list[findings->count++];
    *next = (struct bench_finding){.slow = *slow, .backend = backend, .in_loaded = loaded, .loaded = NAN};
    if (slow->rail != BENCH_EVERY_RAIL)
        snprintf(next->rail, sizeof next->rail, "%.60s", known->names[slow->rail]);
    bench_cause_of(known, slow, next->cause, sizeof next->cause);
}

int bench_findings_look(struct bench_findings *findings, struct bench_readings *readings,
                        const struct bench_known_nodes *nodes, uint32_t backend, bool loaded)
{
    struct bench_slow slow[BENCH_FINDINGS_MAX];

    /* When all send at once, what the rails of a node carried is counted for all that it receives together. */
    readings->rails_compare &= !loaded;
    int count = bench_slow_find(readings, slow, BENCH_FINDINGS_MAX);
    size_t kept = count < 0 ? 0 : count < BENCH_FINDINGS_MAX ? (size_t)count : BENCH_FINDINGS_MAX;
    struct bench_known known = {readings, slow, kept, nodes->hosts, nodes->rails, nodes->names};

    for (size_t i = 0; i < kept; i++)
        keep(findings, &known, &slow[i], backend, loaded);
    findings->more += count > BENCH_FINDINGS_MAX ? (size_t)count - BENCH_FINDINGS_MAX : 0;
    return count == -ENOMEM ? count : 0;
}

const char *bench_finding_word(const struct bench_finding *finding)
{
    const struct bench_slow *slow = &finding->slow;

    if (slow->rail != BENCH_EVERY_RAIL)
        return "Slow rail";
    if (finding->in_loaded && slow->odd.kind != BENCH_ODD_PAIR)
        return "Straggler";
    return slow->odd.one_way ? "Asymmetric" : "Slow";
}

const char *bench_finding_text(const struct bench_finding *finding, const char *backend, char *text, size_t room)
{
    char what[256], loaded[32] = "";

    if (!isnan(finding->loaded))
        snprintf(loaded, sizeof loaded, "; loaded: %.0f %%", 100 * finding->loaded);
    snprintf(text, room, "%s (%s%s%s%s)", bench_slow_text(&finding->slow, finding->rail, what, sizeof what), backend,
             backend[0] ? ", " : "", finding->in_loaded ? "loaded" : "isolated", loaded);
    return text;
}

double *bench_rail_lines(const json_t *rails, const char *const *names, uint32_t count, uint32_t nodes)
{
    double *lines = calloc((size_t)nodes * count + 1, sizeof *lines);
    bool known = lines && json_array_size(rails);
    const json_t *rail;
    size_t index;
    uint32_t node;

    json_array_foreach(rails, index, rail)
    {
        double speed = json_number_value(json_object_get(rail, "speed_mbit"));
        const char *name = json_string_value(json_object_get(rail, "name"));
        const char *of = json_string_value(json_object_get(rail, "node"));
        known = known && speed > 0 && name && of && sscanf(of, "node%9u", &node) == 1 && node < nodes;
        for (uint32_t i = 0; known && i < count; i++)
            if (strcmp(names[i], name) == 0)
                lines[(size_t)node * count + i] = speed;
    }
    if (known)
        return lines;
    free(lines);
    return NULL;
}
