#include "asked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/words/random.h"

#define BARRIERS "200"
#define DELAY_MS "50"
#define EVERY "20"
#define THRESHOLD_MS "10"
#define INTERVAL_MS "0"
#define HOUR_MS 3600000

/* A whole number; what nobody has said is `fallback`. */
static int read_number(const char *option, const char *said, const char *fallback, uint64_t least, uint64_t most,
                       uint64_t *out, struct wf_status *status)
{
    const char *text = said ? said : fallback;
    char *end;

    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || number < least || number > most)
        return wf_fail(status, -EINVAL, "--%s '%.40s': expected a number from %llu to %llu", option, text,
                       (unsigned long long)least, (unsigned long long)most);
    *out = number;
    return 0;
}

static int read_rank(struct straggler_asked *asked, const char *said, struct wf_status *status)
{
    uint64_t rank = 0;

    asked->delayed_rank = STRAGGLER_ANY;
    if (!said || strcmp(said, "any") == 0)
        return 0;
    int result = read_number("delayed-rank", said, NULL, 0, BENCH_NODES_MOST - 1, &rank, status);
    if (result)
        return wf_fail(status, -EINVAL, "--delayed-rank '%.40s': expected the number of a rank, from 0, or any", said);
    asked->delayed_rank = (int)rank;
    return 0;
}

int straggler_read_asked(struct straggler_asked *asked, const struct bench_options *options, struct wf_status *status)
{
    const struct bench_straggler_words *words = &options->straggler;

    memset(asked, 0, sizeof *asked);
    asked->seed = (uint64_t)wf_config_number(options->config, WF_SET_SEED);
    asked->timeout_ms = (int)wf_config_number(options->config, WF_SET_TIMEOUT) * 1000;
    int result = read_number("barriers", words->barriers, BARRIERS, 1, 1000000000, &asked->barriers, status);
    if (result == 0)
        result = read_number("delay-ms", words->delay_ms, DELAY_MS, 0, HOUR_MS, &asked->delay_ms, status);
    if (result == 0)
        result = read_number("every", words->every, EVERY, 1, 1000000000, &asked->every, status);
    if (result == 0)
        result =
            read_number("threshold-ms", words->threshold_ms, THRESHOLD_MS, 1, HOUR_MS, &asked->threshold_ms, status);
    if (result == 0)
        result = read_number("interval-ms", words->interval_ms, INTERVAL_MS, 0, HOUR_MS, &asked->interval_ms, status);
    return result ? result : read_rank(asked, words->delayed_rank, status);
}

int straggler_delayed(const struct straggler_asked *asked, uint64_t number, uint32_t ranks)
{
    if (asked->delay_ms == 0 || number % asked->every)
        return STRAGGLER_NOBODY;
    if (asked->delayed_rank != STRAGGLER_ANY)
        return asked->delayed_rank;
    return (int)(bench_random_mix(asked->seed + number * BENCH_GOLDEN) % ranks);
}

uint64_t straggler_step(const struct straggler_asked *asked)
{
    return (asked->barriers + STRAGGLER_CURVE - 1) / STRAGGLER_CURVE;
}
