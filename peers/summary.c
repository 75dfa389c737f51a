/* What the rounds of a tool come to. */
#include "peers.h"
#include "statistics.h"

double peers_value(const struct peer_reading *reading, enum peer_metric metric, bool mean)
{
    if (metric == PEER_BANDWIDTH)
        return reading->gb_per_s;
    if (metric == PEER_RATE)
        return reading->messages_per_s;
    return mean || reading->p50_us < 0 ? reading->mean_us : reading->p50_us;
}

static int values_of(const struct peers_variant *variant, const struct peers_block *block, bool mean, double *values)
{
    for (int i = 0; i < block->rounds_done; i++)
        values[i] = peers_value(&variant->rounds[i], block->asked.metric, mean);
    return block->rounds_done;
}

static int trial_values(const struct peers_variant *variant, const struct peers_block *block, double *values)
{
    for (int i = 0; i < block->trials_done; i++)
        values[i] = peers_value(&variant->trials[i], block->asked.metric, false);
    return block->trials_done;
}

/* A variant that failed more often than not does not win by what is left of its `times`. */
static bool better(const struct peer_figures *one, const struct peer_figures *other, int times, enum peer_metric metric)
{
    bool firm = 2 * one->count >= times, other_firm = 2 * other->count >= times;

    if (firm != other_firm)
        return firm;
    return metric == PEER_LATENCY ? one->median < other->median : one->median > other->median;
}

/* In the trials, a variant that is given up does not count. */
static int best_variant(const struct peers_block *block, const struct peers_row *row, bool trials)
{
    struct peer_figures best = {0};
    int index = -1;

    for (int i = 0; i < row->variant_count; i++) {
        const struct peers_variant *variant = &row->variants[i];
        double values[PEERS_ROUNDS_MAX];
        struct peer_figures figures;
        int times = trials ? trial_values(variant, block, values) : values_of(variant, block, false, values);
        peer_summarize(values, times, &figures);
        if (!figures.count || (trials && variant->given_up))
            continue;
        if (index < 0 || better(&figures, &best, times, block->asked.metric)) {
            best = figures;
            index = i;
        }
    }
    return index;
}

int peers_best_variant(const struct peers_block *block, const struct peers_row *row)
{
    return best_variant(block, row, false);
}

int peers_best_in_trials(const struct peers_block *block, const struct peers_row *row)
{
    return best_variant(block, row, true);
}

const char *peers_failure(const struct peers_block *block, const struct peers_row *row)
{
    bool stopped = block->rounds_done == 0;

    if (!row->error[0] || (stopped && peers_best_in_trials(block, row) >= 0))
        return NULL;
    return row->error;
}

static bool tells_no_median(const struct peers_variant *variant, const struct peers_block *block)
{
    for (int i = 0; i < block->rounds_done; i++)
        if (variant->rounds[i].p50_us >= 0)
            return false;
    return block->asked.metric == PEER_LATENCY;
}

/* The median over the rounds of one member of the readings. */
static double median_of(const struct peers_variant *variant, int rounds, size_t offset)
{
    double values[PEERS_ROUNDS_MAX];

    for (int i = 0; i < rounds; i++)
        values[i] = *(const double *)((const char *)&variant->rounds[i] + offset);
    return peer_median(values, rounds);
}

static double ratio_to_weft(const struct peers_result *result, const struct peers_block *block, const double *values,
                            bool mean)
{
    double ours[PEERS_ROUNDS_MAX];

    for (int i = 0; i < result->plan->tool_count; i++) {
        const struct peers_row *row = &block->rows[i];
        int best = row->tool && peers_is_weft(row->tool) ? peers_best_variant(block, row) : -1;
        if (best >= 0)
            return peer_paired_ratio(ours, values, values_of(&row->variants[best], block, mean, ours));
    }
    return -1;
}

void peers_sum_up(const struct peers_result *result, const struct peers_block *block, const struct peers_row *row,
                  struct peers_summary *summary)
{
    int best = peers_best_variant(block, row), rounds = block->rounds_done;
    double values[PEERS_ROUNDS_MAX];
    struct peer_figures figures;

    *summary = (struct peers_summary){.variant = best};
    for (int i = 0; i < row->variant_count; i++) {
        summary->runs += row->variants[i].runs;
        summary->failures += row->variants[i].failures;
    }
    if (best < 0)
        return;
    const struct peers_variant *variant = &row->variants[best];
    summary->mean = tells_no_median(variant, block);
    peer_summarize(values, values_of(variant, block, summary->mean, values), &figures);
    summary->median = figures.median;
    summary->min = figures.min;
    summary->max = figures.max;
    summary->spread = figures.spread;
    summary->ratio = ratio_to_weft(result, block, values, summary->mean);
    summary->p50_us = median_of(variant, rounds, offsetof(struct peer_reading, p50_us));
    summary->p99_us = median_of(variant, rounds, offsetof(struct peer_reading, p99_us));
    summary->mean_us = median_of(variant, rounds, offsetof(struct peer_reading, mean_us));
    summary->gb_per_s = median_of(variant, rounds, offsetof(struct peer_reading, gb_per_s));
    summary->messages_per_s = median_of(variant, rounds, offsetof(struct peer_reading, messages_per_s));
    summary->cpu_s_per_gb = median_of(variant, rounds, offsetof(struct peer_reading, cpu_s_per_gb));
}
