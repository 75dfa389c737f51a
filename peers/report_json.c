/* The comparison as samples of a result (schema weft.result/1). */
#include <stdio.h>
#include <string.h>

#include "foresee.h"
#include "peers.h"
#include "reading.h"
#include "report.h"
#include "statistics.h"

static json_t *number_or_null(double value)
{
    return value < 0 ? json_null() : json_real(value);
}

static const char *unit_of_value(enum peer_metric metric)
{
    return metric == PEER_LATENCY ? "us" : metric == PEER_RATE ? "messages/s" : "GB/s";
}

/* Of a command, whose words are what users have named: paths, too. */
static json_t *setting_to_json(const char *setting)
{
    char text[sizeof(((struct peer_command *)NULL)->text)];

    snprintf(text, sizeof text, "%s", setting);
    return json_string(peer_make_utf8(text));
}

/* null: nothing was run at that side. */
static json_t *command_to_json(const struct peer_command *command)
{
    char text[2 * sizeof command->text];
    json_t *settings = json_array();

    if (!command->words[0]) {
        json_decref(settings);
        return json_null();
    }
    for (int i = 0; command->settings[i]; i++)
        json_array_append_new(settings, setting_to_json(command->settings[i]));
    peer_command_text(command, text, sizeof text);
    return json_pack("{s:s, s:o}", "command", peer_make_utf8(text), "environment", settings);
}

static json_t *values_to_json(const struct peer_reading *readings, int count, enum peer_metric metric, bool mean)
{
    json_t *array = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(array, number_or_null(peers_value(&readings[i], metric, mean)));
    return array;
}

static json_t *rounds_to_json(const struct peers_variant *variant, const struct peers_block *block, bool mean)
{
    return values_to_json(variant->rounds, block->rounds_done, block->asked.metric, mean);
}

static json_t *variant_to_json(const struct peers_variant *variant, const struct peers_block *block, int trials,
                               bool mean)
{
    double values[PEERS_ROUNDS_MAX];

    for (int i = 0; i < block->rounds_done; i++)
        values[i] = peers_value(&variant->rounds[i], block->asked.metric, mean);
    return json_pack(
        "{s:o, s:o, s:o, s:i, s:i, s:b, s:s, s:o, s:o}", "median",
        number_or_null(peer_median(values, block->rounds_done)), "rounds", rounds_to_json(variant, block, mean),
        "trials", values_to_json(variant->trials, trials, block->asked.metric, mean), "runs", variant->runs, "failures",
        variant->failures, "given_up", variant->given_up, "note", variant->commands.note, "server",
        command_to_json(&variant->commands.server), "client", command_to_json(&variant->commands.client));
}

static void put_json_figures(json_t *sample, const struct peers_block *block, const struct peers_row *row,
                             const struct peers_summary *summary)
{
    const struct peers_variant *best = &row->variants[summary->variant];

    json_object_set_new(sample, "rounds", rounds_to_json(best, block, summary->mean));
    json_object_set_new(sample, "median", json_real(summary->median));
    json_object_set_new(sample, "min", json_real(summary->min));
    json_object_set_new(sample, "max", json_real(summary->max));
    json_object_set_new(sample, "spread", json_real(summary->spread));
    json_object_set_new(sample, "ratio", peers_is_weft(row->tool) ? json_real(1) : number_or_null(summary->ratio));
    json_object_set_new(sample, "bw_gb_per_s", number_or_null(summary->gb_per_s));
    json_object_set_new(sample, "messages_per_s", number_or_null(summary->messages_per_s));
    json_object_set_new(sample, "time_us",
                        json_pack("{s:o, s:o, s:o}", "p50", number_or_null(summary->p50_us), "p99",
                                  number_or_null(summary->p99_us), "mean", number_or_null(summary->mean_us)));
    json_object_set_new(sample, "cpu_s_per_gb", number_or_null(summary->cpu_s_per_gb));
    json_object_set_new(sample, "note", json_string(best->commands.note));
    json_object_set_new(sample, "server", command_to_json(&best->commands.server));
    json_object_set_new(sample, "client", command_to_json(&best->commands.client));
    json_object_set_new(sample, "variant", json_integer(summary->variant));
}

static json_t *row_to_json(const struct peers_result *result, const struct peers_block *block,
                           const struct peers_row *row)
{
    const struct peer_case *asked = &block->asked;
    json_t *sample = json_object(), *variants = json_array();
    const char *error = peers_failure(block, row);
    int trials = row->variant_count > PEERS_FINALISTS ? block->trials_done : 0;
    struct peers_summary summary;

    peers_sum_up(result, block, row, &summary);
    for (int i = 0; i < row->variant_count; i++)
        json_array_append_new(variants, variant_to_json(&row->variants[i], block, trials, summary.mean));
    json_object_set_new(sample, "backend", json_string(row->tool->name));
    json_object_set_new(sample, "metric", json_string(peers_metric_name(asked->metric)));
    json_object_set_new(sample, "unit", json_string(unit_of_value(asked->metric)));
    json_object_set_new(sample, "size_bytes", json_integer((json_int_t)asked->size));
    json_object_set_new(sample, "inflight", json_integer(asked->inflight));
    json_object_set_new(sample, "buffers", json_integer(asked->buffers));
    json_object_set_new(sample, "messages", json_integer((json_int_t)asked->messages));
    json_object_set_new(sample, "warmup", json_integer((json_int_t)asked->warmup));
    json_object_set_new(sample, "measured", json_boolean(summary.variant >= 0));
    json_object_set_new(sample, "installed", json_boolean(!row->absent));
    json_object_set_new(sample, "reason",
                        row->why[0]           ? json_string(row->why)
                        : error               ? json_string(error)
                        : summary.variant < 0 ? json_string("not measured")
                                              : json_null());
    json_object_set_new(sample, "package", row->tool->package ? json_string(row->tool->package) : json_null());
    json_object_set_new(sample, "failures", json_integer(summary.failures));
    if (summary.variant >= 0)
        put_json_figures(sample, block, row, &summary);
    json_object_set_new(sample, "variants", variants);
    return sample;
}

json_t *peers_samples(const struct peers_result *result)
{
    json_t *samples = json_array();

    for (int b = 0; b < result->block_count; b++)
        for (int i = 0; i < result->plan->tool_count; i++)
            if (result->blocks[b].rows[i].tool)
                json_array_append_new(samples, row_to_json(result, &result->blocks[b], &result->blocks[b].rows[i]));
    return samples;
}

static json_t *candidate_to_json(const struct peers_candidate *candidate)
{
    const struct peer_tool *tool = candidate->tool;

    return json_pack("{s:s, s:b, s:o, s:i, s:o, s:o}", "name", tool->name, "installed", !candidate->absent, "version",
                     candidate->version[0] ? json_string(candidate->version) : json_null(), "cases", candidate->cases,
                     "reason", candidate->why[0] ? json_string(candidate->why) : json_null(), "package",
                     tool->package ? json_string(tool->package) : json_null());
}

json_t *peers_forecast_to_json(const struct peers_plan *plan, const struct peers_forecast *forecast)
{
    json_t *tools = json_array();

    for (int i = 0; i < plan->tool_count && forecast->tools[i].tool; i++)
        json_array_append_new(tools, candidate_to_json(&forecast->tools[i]));
    return json_pack("{s:i, s:f, s:o}", "runs", forecast->runs, "seconds", forecast->seconds, "tools", tools);
}
