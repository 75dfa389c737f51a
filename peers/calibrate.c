#include "calibrate.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "forecast.h"
#include "listening.h"

#define TIMEOUT_S 20             /* of a run, and */
#define TIMEOUT_SLOWER 40        /* so many times what Weft takes: message rates differ that much */
#define TIMEOUT_UNKNOWN_S 180    /* where that is not known, and at least where the user says how many messages */
#define TIMEOUT_MOST_S 3600      /* where the user says of no messages how many */
#define FIRST_BYTES (256u << 20) /* of the run that finds out how fast Weft is */
#define FIRST_MOST 20000         /* and its messages */
#define MESSAGES_MOST 100000000  /* of a case */
#define PORTS_MOST 5             /* to try: another program may take a port between the search for it and its use */

/* One measurement on its way. */
struct once {
    const struct peers_plan *plan;
    const struct peer_tool *tool;
    const struct peer_case *asked;
    int timeout_ms;
    struct peer_commands *commands;
    struct peer_outcome outcome;
    int port;
};

static int choose_port(struct once *once, int variant, struct wf_status *status)
{
    const struct peers_plan *plan = once->plan;

    if (plan->far)
        return plan->far->begin(plan->far_context, once->tool, once->asked, variant, &once->port, status);
    int result = plan->place.port ? plan->place.port : peer_free_port(status);
    once->port = result > 0 ? result : 0;
    return result > 0 ? 0 : result;
}

static int make_commands(struct once *once, int variant, struct wf_status *status)
{
    struct peer_place place = once->plan->place;

    place.port = once->port;
    memset(once->commands, 0, sizeof *once->commands);
    int result = once->tool->commands(once->asked, &place, variant, once->commands);
    if (result)
        return wf_fail(status, result, "the command line of %s is too long: name fewer rails or settings",
                       once->tool->name);
    if (once->plan->far) {
        memset(&once->commands->server, 0, sizeof once->commands->server);
        once->plan->far->tell_command(once->plan->far_context, &once->commands->server);
    }
    return 0;
}

/* The server elsewhere may explain why the client failed; and it has to end either way. */
static int end_far(struct once *once, int result, struct wf_status *status)
{
    struct wf_status other = {0};
    int there = once->plan->far->end(once->plan->far_context, result == 0, &once->outcome.server, &other);

    if (other.code && (there || result))
        *status = other;
    return result ? result : there;
}

int peers_timeout_ms(const struct peers_plan *plan, const struct peers_block *block)
{
    double limit = block->weft_s > 0 ? TIMEOUT_S + TIMEOUT_SLOWER * block->weft_s : TIMEOUT_UNKNOWN_S;
    double most = plan->fixed_messages || plan->fixed_warmup ? INT_MAX / 1000 : TIMEOUT_MOST_S;

    if (plan->fixed_messages && limit < TIMEOUT_UNKNOWN_S)
        limit = TIMEOUT_UNKNOWN_S;
    return (int)(1000 * (limit < most ? limit : most));
}

static int run_and_read(struct once *once, struct peer_reading *found, struct wf_status *status)
{
    const struct peers_plan *plan = once->plan;
    struct peer_run run = {
        .commands = once->commands,
        .port = once->port,
        .timeout_ms = once->timeout_ms,
        .stop = plan->stop,
        .context = plan->context,
        .client_only = plan->far != NULL,
    };
    int result = peer_run(&run, &once->outcome, status);

    if (plan->far)
        result = end_far(once, result, status);
    if (result == 0)
        result = once->tool->read(once->asked, once->outcome.server.text ? &once->outcome.server : NULL,
                                  &once->outcome.client, found, status);
    if (result == 0 && peers_value(found, once->asked->metric, false) < 0)
        result = wf_fail(status, -EPROTO, "%s told no result", once->tool->name);
    return result;
}

static int try_port(struct once *once, int variant, struct peer_reading *found, struct wf_status *status)
{
    int result = choose_port(once, variant, status);

    if (result)
        return result;
    result = make_commands(once, variant, status);
    if (result == 0)
        result = run_and_read(once, found, status);
    else if (once->plan->far)
        end_far(once, result, status);
    peer_outcome_fini(&once->outcome);
    return result;
}

int peers_run_once(const struct peers_plan *plan, const struct peers_block *block, const struct peer_tool *tool,
                   int variant, struct peer_commands *commands, struct peer_reading *reading, struct wf_status *status)
{
    struct once once = {.plan = plan,
                        .tool = tool,
                        .asked = &block->asked,
                        .timeout_ms = peers_timeout_ms(plan, block),
                        .commands = commands};
    struct peer_reading found;
    int left = plan->place.port && !plan->far ? 1 : PORTS_MOST, result;

    do {
        found = (struct peer_reading){-1, -1, -1, -1, -1, -1};
        result = try_port(&once, variant, &found, status);
    } while (result == -EADDRINUSE && --left > 0);
    if (result == 0)
        *reading = found;
    return result;
}

static uint64_t clamp(double value, uint64_t least, uint64_t most)
{
    return value < (double)least ? least : value > (double)most ? most : (uint64_t)value;
}

/* The number that fills `seconds`, in whole rounds of what may be in flight. */
static uint64_t messages_for(const struct peer_case *asked, double seconds, double per_second)
{
    uint64_t inflight = asked->inflight ? asked->inflight : 1;
    uint64_t least = inflight > PEERS_MESSAGES_LEAST ? inflight : PEERS_MESSAGES_LEAST;
    uint64_t wanted = clamp(seconds * per_second, least, MESSAGES_MOST);

    return (wanted + inflight - 1) / inflight * inflight;
}

static uint64_t warmup_for(const struct peer_case *asked)
{
    return clamp((double)asked->messages / 10, asked->inflight, MESSAGES_MOST);
}

struct peer_case peers_first_case(const struct peer_case *asked)
{
    struct peer_case first = *asked;

    first.messages = clamp((double)FIRST_BYTES / (double)(asked->size ? asked->size : 1), 2, FIRST_MOST);
    if (first.inflight > first.messages)
        first.inflight = (uint32_t)first.messages;
    if (first.buffers > first.inflight)
        first.buffers = first.inflight;
    first.warmup = warmup_for(&first);
    return first;
}

bool peers_has_first_run(const struct peers_plan *plan, const struct peer_case *asked)
{
    const struct peer_case first = peers_first_case(asked);

    return !plan->fixed_messages || asked->messages + asked->warmup > first.messages + first.warmup;
}

/* What Weft moves per second in a short run: messages, or both ways of a ping-pong. */
static int run_first(const struct peers_plan *plan, const struct peer_case *asked, double *per_second,
                     struct wf_status *status)
{
    struct peers_block trial = {.asked = peers_first_case(asked)};
    struct peer_commands commands;
    struct peer_reading reading;
    int result = peers_run_once(plan, &trial, &peer_weft, 0, &commands, &reading, status);

    if (result)
        return result;
    *per_second = asked->metric == PEER_LATENCY ? 5e5 / reading.mean_us : reading.messages_per_s;
    return 0;
}

/* Nothing but the timeout depends on it: where Weft cannot tell, an estimate has to do. */
static int time_fixed(const struct peers_plan *plan, struct peers_block *block, struct wf_status *status)
{
    const struct peer_case *asked = &block->asked;
    double messages = (double)asked->messages + (double)asked->warmup, per_second;
    struct wf_status why = {0};

    block->weft_s = peers_guess_seconds(asked, messages);
    if (!peers_has_first_run(plan, asked))
        return 0;
    if (run_first(plan, asked, &per_second, &why) == 0)
        block->weft_s = messages / per_second;
    return plan->stop ? plan->stop(plan->context, status) : 0;
}

int peers_calibrate(const struct peers_plan *plan, struct peers_block *block, struct wf_status *status)
{
    struct peer_case *asked = &block->asked;
    double per_second;

    if (plan->fixed_messages)
        return time_fixed(plan, block, status);
    int result = run_first(plan, asked, &per_second, status);
    if (result) {
        wf_fail_prefix(status, "Weft, to find how many messages to send");
        return result;
    }
    asked->messages = messages_for(asked, plan->seconds, per_second);
    if (!plan->fixed_warmup)
        asked->warmup = warmup_for(asked);
    block->weft_s = (double)(asked->messages + asked->warmup) / per_second;
    return 0;
}
