/* Medians, spreads and paired ratios, with rounds that have no value. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "peers/peers.h"
#include "peers/statistics.h"

#define NONE (-1.0)

static void figures_of_rounds(void **state)
{
    static const struct {
        double values[5];
        int rounds, count;
        double median, min, max, spread;
    } rows[] = {
        {{3, 1, 2}, 3, 3, 2, 1, 3, 1},
        {{4, 1, 2, 3}, 4, 4, 2.5, 1, 4, 1.2},
        {{NONE, 8, NONE, 10, 12}, 5, 3, 10, 8, 12, 0.4},
        {{7}, 1, 1, 7, 7, 7, 0},
        {{NONE, NONE}, 2, 0, 0, 0, 0, 0},
        {{0, 0}, 2, 2, 0, 0, 0, 0},
        {{0}, 0, 0, 0, 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct peer_figures figures;
        peer_summarize(rows[i].values, rows[i].rounds, &figures);
        assert_int_equal(figures.count, rows[i].count);
        assert_float_equal(figures.median, rows[i].median, 1e-9);
        assert_float_equal(figures.min, rows[i].min, 1e-9);
        assert_float_equal(figures.max, rows[i].max, 1e-9);
        assert_float_equal(figures.spread, rows[i].spread, 1e-9);
    }
}

/* A machine that is half as fast in one round is so for both sides: the ratio does not notice. */
static void ratios_are_taken_within_rounds(void **state)
{
    const double ours[] = {6, 3, 12, 6, 6}, theirs[] = {3, 1.5, 6, 3, 1};

    (void)state;
    assert_float_equal(peer_paired_ratio(ours, theirs, 5), 2, 1e-9);
    /* the ratio of the medians would be the same here, and not here: */
    const double uneven[] = {1, 10, 100}, other[] = {10, 100, 1};
    assert_float_equal(peer_paired_ratio(uneven, other, 3), 0.1, 1e-9);
}

static void a_ratio_needs_both(void **state)
{
    const double ours[] = {NONE, 4, 6}, theirs[] = {1, NONE, 3}, none[] = {NONE, NONE, NONE}, zero[] = {0, 0, 0};

    (void)state;
    assert_float_equal(peer_paired_ratio(ours, theirs, 3), 2, 1e-9);
    assert_true(peer_paired_ratio(ours, none, 3) < 0);
    assert_true(peer_paired_ratio(none, ours, 3) < 0);
    assert_true(peer_paired_ratio(ours, zero, 3) < 0);
    assert_true(peer_median(none, 3) < 0);
}

/* ------------------------------------------------------------------------------------------- what a row comes to */

static const struct peer_tool fake = {.name = "fake", .program = "fake"}, weft = {.name = "weft", .program = "weft"};

/* A block of three rounds: Weft with one variant, the other tool with two. */
struct table {
    struct peers_plan plan;
    struct peers_block block;
    struct peers_result result;
    struct peers_variant ours[1], theirs[2];
    struct peer_reading readings[3][3];
};

static void fill(struct table *table, enum peer_metric metric)
{
    *table = (struct table){.plan = {.tools = {&weft, &fake}, .tool_count = 2, .rounds = 3}};
    table->block = (struct peers_block){.asked = {.metric = metric, .size = 8}, .rounds_done = 3};
    table->block.rows[0] = (struct peers_row){.tool = &weft, .variants = table->ours, .variant_count = 1};
    table->block.rows[1] = (struct peers_row){.tool = &fake, .variants = table->theirs, .variant_count = 2};
    table->ours[0].rounds = table->readings[0];
    table->theirs[0].rounds = table->readings[1];
    table->theirs[1].rounds = table->readings[2];
    table->result = (struct peers_result){.plan = &table->plan, .blocks = &table->block, .block_count = 1};
    for (int v = 0; v < 3; v++)
        for (int i = 0; i < 3; i++)
            table->readings[v][i] = (struct peer_reading){-1, -1, -1, -1, -1, -1};
}

static void the_best_variant_stands_for_its_tool(void **state)
{
    static const double gb[3][3] = {{6, 8, 7}, {3, 4, 3.5}, {5, 4, 6}};
    struct peers_summary summary;
    struct table table;

    (void)state;
    fill(&table, PEER_BANDWIDTH);
    for (int v = 0; v < 3; v++)
        for (int i = 0; i < 3; i++)
            table.readings[v][i].gb_per_s = gb[v][i];
    peers_sum_up(&table.result, &table.block, &table.block.rows[1], &summary);
    assert_int_equal(summary.variant, 1);
    assert_float_equal(summary.median, 5, 1e-9);
    assert_float_equal(summary.ratio, 1.2, 1e-9); /* of 6/5, 8/4, 7/6 */
    assert_true(summary.cpu_s_per_gb < 0);
}

/* The lower, the better; and what has no median is compared with Weft's mean, not with its median. */
static void latencies_compare_like_with_like(void **state)
{
    struct peers_summary summary;
    struct table table;

    (void)state;
    fill(&table, PEER_LATENCY);
    for (int i = 0; i < 3; i++) {
        table.readings[0][i].p50_us = 4;
        table.readings[0][i].mean_us = 6;
        table.readings[1][i].mean_us = 5;
        table.readings[2][i].mean_us = 7;
    }
    peers_sum_up(&table.result, &table.block, &table.block.rows[1], &summary);
    assert_int_equal(summary.variant, 0);
    assert_true(summary.mean);
    assert_float_equal(summary.ratio, 1.2, 1e-9);
    for (int i = 0; i < 3; i++)
        table.readings[1][i].p50_us = 8;
    peers_sum_up(&table.result, &table.block, &table.block.rows[0], &summary);
    assert_false(summary.mean);
    assert_float_equal(summary.median, 4, 1e-9);
}

static void a_variant_that_mostly_failed_does_not_win(void **state)
{
    struct peers_summary summary;
    struct table table;

    (void)state;
    fill(&table, PEER_RATE);
    table.readings[1][2].messages_per_s = 9e6;
    for (int i = 0; i < 3; i++)
        table.readings[2][i].messages_per_s = 2e6;
    peers_sum_up(&table.result, &table.block, &table.block.rows[1], &summary);
    assert_int_equal(summary.variant, 1);
    table.theirs[1].rounds = table.readings[0]; /* nothing */
    peers_sum_up(&table.result, &table.block, &table.block.rows[1], &summary);
    assert_int_equal(summary.variant, 0);
    table.theirs[0].rounds = table.readings[0];
    peers_sum_up(&table.result, &table.block, &table.block.rows[1], &summary);
    assert_int_equal(summary.variant, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_of_rounds),
        cmocka_unit_test(ratios_are_taken_within_rounds),
        cmocka_unit_test(a_ratio_needs_both),
        cmocka_unit_test(the_best_variant_stands_for_its_tool),
        cmocka_unit_test(latencies_compare_like_with_like),
        cmocka_unit_test(a_variant_that_mostly_failed_does_not_win),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
