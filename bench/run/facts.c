#include "facts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/machine/gpus.h"
#include "bench/plan/names.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"

json_t *bench_host_facts(const struct bench_link *link, uint32_t endpoints)
{
    json_t *states = bench_gpu_states(&link->gpus, endpoints);
    struct utsname system;
    char name[16], sharing[600];

    uname(&system);
    snprintf(name, sizeof name, "node%d", bench_link_number(link));
    json_t *facts = json_pack("{s:s, s:o, s:s, s:s, s:I, s:I, s:s, s:s, s:s, s:o, s:s}", "node", name, "name",
                              bench_heard_string(system.nodename), "kernel", system.release, "machine", system.machine,
                              "cpus", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes",
                              (json_int_t)sysconf(_SC_PHYS_PAGES) * (json_int_t)sysconf(_SC_PAGESIZE), "engine",
                              weft_context_engine(link->context), "weft", weft_version(), "memory",
                              bench_memory_name(link->gpus.memory), "gpus", bench_gpus_to_json(&link->gpus, endpoints),
                              "gpu_sharing", bench_gpus_sharing(&link->gpus, endpoints, sharing, sizeof sharing));
    bench_gpu_states_into(facts, states, "before");
    json_decref(states);
    return facts;
}

static void add_line(json_t *lines, int node, const char *line)
{
    char text[1024];

    snprintf(text, sizeof text, "node%d: %s", node, line);
    json_array_append_new(lines, bench_heard_string(text));
}

static void add_lines(json_t *lines, int node, const char *text)
{
    char *copy = strdup(text);
    char *rest = copy, *line;

    while (copy && (line = bench_next_word(&rest, '\n')) != NULL)
        if (line[0])
            add_line(lines, node, line);
    free(copy);
}

json_t *bench_fallback_facts(const struct bench_link *link)
{
    json_t *lines = json_array();

    add_lines(lines, bench_link_number(link), link->context ? weft_context_fallbacks(link->context) : "");
    add_lines(lines, bench_link_number(link), link->gave_way ? link->gave_way : "");
    if (link->gpus.fallback[0])
        add_line(lines, bench_link_number(link), link->gpus.fallback);
    return lines;
}

/* What the system says of a rail's interface, all unknown where the peer's session has rails that this context has not.
 */
static struct weft_rail_info about_rail(const struct bench_link *link, const char *name)
{
    struct weft_rail_info rails[BENCH_RAILS_MAX];
    int count = link->context ? weft_context_rails(link->context, rails, BENCH_RAILS_MAX) : 0;

    for (int i = 0; i < count && i < BENCH_RAILS_MAX; i++)
        if (strcmp(rails[i].name, name) == 0)
            return rails[i];
    return (struct weft_rail_info){.mtu = -1, .speed_mbit = -1};
}

static json_t *known(int32_t number)
{
    return number > 0 ? json_integer(number) : json_null();
}

static json_t *rail_to_json(const struct bench_link *link, const struct weft_rail_stats *rail)
{
    struct weft_rail_info about = about_rail(link, rail->name);

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:i, s:i}",
                     "node", json_sprintf("node%d", bench_link_number(link)), "name", bench_heard_string(rail->name),
                     "local", bench_heard_string(rail->local), "remote", bench_heard_string(rail->remote), "speed_mbit",
                     known(about.speed_mbit), "mtu", known(about.mtu), "device_bound", rail->device_bound, "bytes",
                     (json_int_t)(rail->sent_bytes + rail->received_bytes), "sent_bytes", (json_int_t)rail->sent_bytes,
                     "received_bytes", (json_int_t)rail->received_bytes, "stalls", (json_int_t)rail->stalls, "failures",
                     (json_int_t)rail->failures, "resent_bytes", (json_int_t)rail->resent_bytes, "retransmits",
                     (json_int_t)rail->retransmits, "damaged", (json_int_t)rail->damaged, "retired", rail->retired,
                     "channels", rail->channels, "channels_up", rail->channels_up);
}

json_t *bench_rail_facts(const struct bench_link *link)
{
    struct weft_rail_stats stats[BENCH_RAILS_MAX];
    int count = bench_link_rails(link, stats);
    json_t *all = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(all, rail_to_json(link, &stats[i]));
    return all;
}

/* null: none are injected here. */
static json_t *fault_totals(const struct bench_link *link)
{
    struct weft_fault_stats stats;

    if (!link->context || !weft_context_faults(link->context, &stats))
        return json_null();
    const struct weft_fault_stats *before = &link->faults_before;
    return json_pack(
        "{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "node", json_sprintf("node%d", bench_link_number(link)), "resets",
        (json_int_t)(stats.resets - before->resets), "flips", (json_int_t)(stats.flips - before->flips), "shortened",
        (json_int_t)(stats.shortened - before->shortened), "stalls", (json_int_t)(stats.stalls - before->stalls),
        "drops", (json_int_t)(stats.drops - before->drops), "cut", (json_int_t)(stats.cut - before->cut), "refused",
        (json_int_t)(stats.refused - before->refused));
}

/* Less what was there before the run: a GPU that is in use stays, and so does its place. */
static void subtract_before(const struct bench_link *link, int at, struct weft_gpu_stats *stats)
{
    const struct weft_gpu_stats *before = &link->gpus_before[at];

    if (at >= link->gpus_before_count || before->index != stats->index)
        return;
    stats->out_bytes -= before->out_bytes;
    stats->in_bytes -= before->in_bytes;
    stats->direct_bytes -= before->direct_bytes;
    stats->copies -= before->copies;
    stats->copying_ns -= before->copying_ns;
}

/* What the GPUs of the link's context have copied: time in which they did, beside the time of the run, tells how much
 * of it was hidden behind the network. */
static json_t *gpu_copies(const struct bench_link *link)
{
    struct weft_gpu_stats stats[BENCH_GPUS_MAX];
    int count = link->context ? weft_context_gpu_stats(link->context, stats, BENCH_GPUS_MAX) : 0;
    json_t *all = json_array();

    for (int i = 0; i < count && i < BENCH_GPUS_MAX; i++) {
        subtract_before(link, i, &stats[i]);
        json_array_append_new(all,
                              json_pack("{s:i, s:I, s:I, s:I, s:I, s:f}", "gpu", stats[i].index, "out_bytes",
                                        (json_int_t)stats[i].out_bytes, "in_bytes", (json_int_t)stats[i].in_bytes,
                                        "direct_bytes", (json_int_t)stats[i].direct_bytes, "copies",
                                        (json_int_t)stats[i].copies, "copying_s", (double)stats[i].copying_ns * 1e-9));
    }
    return all;
}

/* What network cards have read and written in GPU memory themselves, since the context was made. */
static json_t *devmem_totals(const struct bench_link *link)
{
    struct weft_devmem_stats stats[BENCH_GPUS_MAX];
    int count = link->context ? weft_context_devmem_stats(link->context, stats, BENCH_GPUS_MAX) : 0;
    json_t *all = json_array();

    for (int i = 0; i < count && i < BENCH_GPUS_MAX; i++)
        json_array_append_new(all, json_pack("{s:i, s:i, s:I, s:I, s:I, s:I, s:I}", "gpu", stats[i].index, "inlets",
                                             stats[i].inlets, "fragment_bytes", (json_int_t)stats[i].fragment_bytes,
                                             "host_bytes", (json_int_t)stats[i].host_bytes, "sent_bytes",
                                             (json_int_t)stats[i].sent_bytes, "sends_copied",
                                             (json_int_t)stats[i].sends_copied, "fragments_held",
                                             (json_int_t)stats[i].fragments_held));
    return all;
}

json_t *bench_totals(const struct bench_link *link)
{
    json_t *states = link->gpu_states, *memory = link->memory_watch;

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "gpu_copies", gpu_copies(link), "devmem",
                     devmem_totals(link), "rails", bench_rail_facts(link), "fallbacks", bench_fallback_facts(link),
                     "faults", fault_totals(link), "footprint", bench_footprint_to_json(&link->footprint), "affinity",
                     bench_placement_to_json(&link->placement, link->context), "gpus",
                     states ? json_incref(states) : json_null(), "backends",
                     link->backends ? json_incref(link->backends) : json_array(), "memory_watch",
                     memory ? json_incref(memory) : json_null());
}
