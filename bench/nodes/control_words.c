/* What two nodes say in small numbers: the start barrier, what became of a phase, and what their clocks show. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "control_parts.h"

#define WORD_VALUES 10
#define CLOCK_MOST_NS (INT64_MAX / 4)      /* a clock shows less: differences of two of them fit */
#define ANSWER_SLACK_NS (1 * WF_NS_PER_MS) /* clocks of one speed differ by less within a round trip */

/* A small message: little-endian. */
struct word {
    uint64_t number; /* counts the words of this direction from 1 */
    uint64_t values[WORD_VALUES];
};

static int send_values(struct bench_control *control, const uint64_t *values, size_t count, struct wf_status *status)
{
    struct word word = {.number = htole64(++control->words_sent)};

    for (size_t i = 0; i < count; i++)
        word.values[i] = htole64(values[i]);
    return bench_control_send(control, &word, sizeof word, TAG_WORD, status);
}

static int send_word(struct bench_control *control, const struct bench_news *news, struct wf_status *status)
{
    const struct bench_news none = {0};

    if (!news)
        news = &none;
    const uint64_t values[] = {
        news->cpu_ns,       news->retransmits, news->elapsed_ns,          news->wrong_bytes,   news->failures,
        news->resent_bytes, news->page_faults, news->background_messages, news->background_ns, news->verified_bytes,
    };
    return send_values(control, values, sizeof values / sizeof values[0], status);
}

/* What a word says, once it has come. */
static int read_values(struct bench_control *control, const struct word *word, size_t length,
                       uint64_t values[WORD_VALUES], struct wf_status *status)
{
    control->words_taken++;
    if (length != sizeof *word || le64toh(word->number) != control->words_taken)
        return wf_fail(status, -EPROTO, "the nodes are out of step (word %" PRIu64 "): use the same build on both",
                       control->words_taken);
    for (int i = 0; i < WORD_VALUES; i++)
        values[i] = le64toh(word->values[i]);
    return 0;
}

static int read_word(struct bench_control *control, const struct word *word, size_t length, struct bench_news *news,
                     struct wf_status *status)
{
    uint64_t values[WORD_VALUES];
    int result = read_values(control, word, length, values, status);

    if (result)
        return result;
    *news = (struct bench_news){
        .cpu_ns = values[0],
        .retransmits = values[1],
        .elapsed_ns = values[2],
        .wrong_bytes = values[3],
        .failures = values[4],
        .resent_bytes = values[5],
        .page_faults = values[6],
        .background_messages = values[7],
        .background_ns = values[8],
        .verified_bytes = values[9],
    };
    return 0;
}

static int take_values(struct bench_control *control, uint64_t values[WORD_VALUES], struct wf_status *status)
{
    struct word word;
    size_t length = 0;
    int result = bench_control_take(control, &word, sizeof word, TAG_WORD, &length, status);

    return result ? result : read_values(control, &word, length, values, status);
}

static int take_word(struct bench_control *control, struct wf_status *status)
{
    uint64_t values[WORD_VALUES];

    return take_values(control, values, status);
}

int bench_control_start(struct bench_control *control, bool leader, int64_t *start_ns, struct wf_status *status)
{
    int64_t start;
    int result;

    if (control->ops)
        return control->ops->start(control->context, start_ns, status);
    if (leader) {
        result = take_word(control, status);
        start = wf_clock_now(&wf_clock_monotonic);
        if (result == 0)
            result = send_word(control, NULL, status);
        if (result == 0)
            result = take_word(control, status);
    } else {
        result = send_word(control, NULL, status);
        if (result == 0)
            result = take_word(control, status);
        start = wf_clock_now(&wf_clock_monotonic);
        if (result == 0)
            result = send_word(control, NULL, status);
    }
    if (result == 0)
        *start_ns = start;
    return result;
}

int bench_control_tell(struct bench_control *control, const struct bench_news *mine, struct wf_status *status)
{
    return send_word(control, mine, status);
}

int bench_control_learn(struct bench_control *control, struct bench_news *theirs, struct wf_status *status)
{
    struct word word;
    size_t length = 0;
    int result = bench_control_take(control, &word, sizeof word, TAG_WORD, &length, status);

    return result ? result : read_word(control, &word, length, theirs, status);
}

int bench_control_swap(struct bench_control *control, const struct bench_news *mine, struct bench_news *theirs,
                       struct wf_status *status)
{
    struct weft_completion completion;
    struct weft_request *request;
    struct word word;

    if (control->ops)
        return control->ops->swap(control->context, mine, theirs, status);
    /* Both nodes speak at once: a send may wait for the other side's receive, so that one stands first. */
    int result = bench_control_post(control, &word, sizeof word, TAG_WORD, &request, status);

    if (result)
        return result;
    result = send_word(control, mine, status);
    if (result) {
        bench_control_withdraw(request);
        return result;
    }
    result = bench_control_finish(control, request, &completion, status);
    return result ? result : read_word(control, &word, completion.bytes, theirs, status);
}

static int64_t raw_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (int64_t)now.tv_sec * WF_NS_PER_S + now.tv_nsec;
}

static int answer_clocks(struct bench_control *control, struct wf_status *status)
{
    int result = take_word(control, status);
    int64_t heard = wf_clock_now(&wf_clock_monotonic), raw = raw_now();
    const uint64_t values[] = {(uint64_t)heard, (uint64_t)raw, (uint64_t)wf_clock_now(&wf_clock_monotonic)};

    return result ? result : send_values(control, values, 3, status);
}

int bench_control_read_clocks(struct bench_control *control, struct bench_clock_reading *reading,
                              struct wf_status *status)
{
    uint64_t theirs[WORD_VALUES];

    if (control->node == 1)
        return answer_clocks(control, status);
    int64_t before = wf_clock_now(&wf_clock_monotonic), raw = raw_now(), asked = wf_clock_now(&wf_clock_monotonic);
    int result = send_values(control, NULL, 0, status);
    if (result == 0)
        result = take_values(control, theirs, status);
    int64_t back = wf_clock_now(&wf_clock_monotonic);
    if (result)
        return result;
    if (theirs[0] > theirs[2] || theirs[2] > CLOCK_MOST_NS || theirs[1] > CLOCK_MOST_NS ||
        (int64_t)(theirs[2] - theirs[0]) > back - asked + ANSWER_SLACK_NS)
        return wf_fail(status, -EPROTO, "the other node's clock shows what no clock can: use the same build on both");
    *reading = (struct bench_clock_reading){
        .asked_ns = asked,
        .back_ns = back,
        .heard_ns = (int64_t)theirs[0],
        .answered_ns = (int64_t)theirs[2],
        .raw_ns = {raw, (int64_t)theirs[1]},
        .at_ns = {before + (asked - before) / 2, (int64_t)(theirs[0] + (theirs[2] - theirs[0]) / 2)},
        .gap_ns = {asked - before, (int64_t)(theirs[2] - theirs[0])},
    };
    return 0;
}

static uint64_t larger(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

void bench_news_join(const struct bench_news *one, const struct bench_news *other, struct bench_news *both)
{
    memset(both, 0, sizeof *both);
    both->cpu_ns = one->cpu_ns + other->cpu_ns;
    both->retransmits = one->retransmits + other->retransmits;
    both->elapsed_ns = larger(one->elapsed_ns, other->elapsed_ns);
    both->wrong_bytes = one->wrong_bytes + other->wrong_bytes;
    both->verified_bytes = one->verified_bytes + other->verified_bytes;
    both->failures = larger(one->failures, other->failures);
    both->resent_bytes = one->resent_bytes + other->resent_bytes;
    both->page_faults = one->page_faults + other->page_faults;
}
