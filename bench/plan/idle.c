#include "idle.h"

#include <stdio.h>

static const struct idle {
    enum wf_setting_id id;
    const char *why;
} of_latency[] = {
    {WF_SET_INFLIGHT, "a ping-pong has one message under way"},
    {WF_SET_DURATION, "--iters says how many half round trips are measured"},
};

#define COUNT (sizeof of_latency / sizeof of_latency[0])

bool bench_is_idle(const struct bench_options *options, enum wf_setting_id id)
{
    bool idle = false;

    for (size_t i = 0; options->latency && i < COUNT; i++)
        idle |= of_latency[i].id == id;
    return idle;
}

/* A child of --local has all of them as arguments, wherever they were said. */
void bench_tell_idle(const struct bench_options *options)
{
    for (size_t i = 0; options->latency && !options->child && i < COUNT; i++)
        if (options->config->values[of_latency[i].id].origin == WF_ORIGIN_COMMAND)
            fprintf(stderr, "weft %s: --%s does nothing for latency: %s\n", bench_command_name(options->command),
                    wf_setting(of_latency[i].id)->name, of_latency[i].why);
}
