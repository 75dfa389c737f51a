/* As node0: answers what node1 asks (path.c). */
#include <errno.h>
#include <string.h>

#include "bench/nodes/answering.h"
#include "bench/nodes/hello.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"
#include "parts.h"

/* Owner: doctor_serve(). */
struct serving {
    struct doctor *doctor;
    const struct bench_asking *asking;
    size_t own; /* findings of this machine: those before any node came */
};

static json_t *answer_hello(struct serving *serving, const json_t *question)
{
    char home[DOCTOR_HOME];

    doctor_home(home, sizeof home);
    doctor_judge_version(serving->doctor, bench_heard_text(question, "version"));
    return json_pack("{s:s, s:s, s:s, s:i}", "hello", BENCH_HELLO_DOCTOR, "version", weft_version(), "home", home,
                     "port", serving->doctor->port);
}

static json_t *answer_finding(const struct serving *serving, const json_t *number)
{
    json_int_t at = json_integer_value(number);

    if (at < 0 || (size_t)at >= serving->own)
        return json_pack("{s:n}", "finding_is");
    return json_pack("{s:O}", "finding_is", json_array_get(serving->doctor->findings, (size_t)at));
}

/* Nobody is to have the ports of others examined by this node: the way leads to a rail of the node that asks, or, where
 * that rail has not been met yet, to the one port that nodes listen on. */
static bool leads_to_node(const struct serving *serving, const struct doctor_way *way)
{
    struct weft_rail_stats rails[DOCTOR_RAILS_MAX];
    int count = weft_peer_rails(serving->asking->link.peer, rails, DOCTOR_RAILS_MAX);

    if (way->port == serving->doctor->port)
        return true;
    for (int i = 0; i < count && i < DOCTOR_RAILS_MAX; i++)
        if (strcmp(rails[i].remote, way->to) == 0)
            return true;
    return false;
}

static json_t *answer_probe(struct serving *serving, const json_t *json)
{
    struct doctor *doctor = serving->doctor;
    struct doctor_way way;
    struct doctor_probe probe;

    if (doctor_way_from_json(json, &way) != 0 || !leads_to_node(serving, &way))
        return NULL;
    for (int i = 0; i < doctor->interface_count; i++)
        if (strcmp(doctor->interfaces[i].address, way.from) == 0)
            bench_copy_text(way.interface, sizeof way.interface, doctor->interfaces[i].interface);
    doctor_probe(&way, &probe);
    return json_pack("{s:o, s:o}", "probed", doctor_probe_to_json(&probe), "interface",
                     bench_heard_string(way.interface));
}

/* What node1 has found counts here, too: both end with the same status. */
static json_t *answer_verdict(struct serving *serving, const json_t *number)
{
    int faults = (int)json_integer_value(number);

    if (faults > serving->doctor->faults)
        doctor_fault(serving->doctor, "path", "see what weft doctor says at node1", "node1 has found %d of them",
                     faults);
    return json_pack("{s:b}", "heard", 1);
}

static json_t *answer_to(void *context, const json_t *question)
{
    struct serving *serving = context;

    if (json_object_get(question, "hello"))
        return answer_hello(serving, question);
    if (json_object_get(question, "clock"))
        return json_pack("{s:I}", "wall_ns", (json_int_t)doctor_wall_ns());
    if (json_object_get(question, "finding"))
        return answer_finding(serving, json_object_get(question, "finding"));
    if (json_object_get(question, "probe"))
        return answer_probe(serving, json_object_get(question, "probe"));
    if (json_object_get(question, "verdict"))
        return answer_verdict(serving, json_object_get(question, "verdict"));
    return NULL;
}

int doctor_serve(struct doctor *doctor, struct wf_status *status)
{
    struct bench_asking asking = {0};
    struct serving serving = {.doctor = doctor, .asking = &asking, .own = json_array_size(doctor->findings)};
    int result = bench_asking_await(&asking, doctor->options, "nothing else", &doctor->port, status);

    if (result == 0)
        result = bench_asking_serve(&asking, "doctor", answer_to, &serving, status);
    bench_asking_close(&asking, result ? status->text : NULL);
    return result;
}
