#include "core/calls/choices.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/whole_words.h"
#include "core/calls/context.h"
#include "io/socket.h"

#define CALL_MIN 4096
#define CALL_SHARED (256u * 1024)
#define CALL_MOST (8u * 1024 * 1024)

static uint32_t number(const struct wf_config *config, enum wf_setting_id id)
{
    return (uint32_t)wf_config_number(config, id);
}

static int usable_cores(void)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        return CPU_COUNT(&cores);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* the system has more cores than a cpu_set_t can hold */
    return online > 0 ? (int)online : 1;
}

/* With a single core, spinning would only keep the thread that makes the event from running. */
static int64_t spin_ns(const struct wf_config *config)
{
    return usable_cores() < 2 ? 0 : wf_config_number(config, WF_SET_SPIN_US) * WF_NS_PER_US;
}

void wf_choose_tuning(const struct wf_config *config, struct wf_tuning *tuning)
{
    *tuning = (struct wf_tuning){
        .channels = number(config, WF_SET_CHANNELS),
        .window = number(config, WF_SET_WINDOW),
        .chunk = number(config, WF_SET_CHUNK),
        .eager = number(config, WF_SET_EAGER),
        .first_burst = number(config, WF_SET_FIRST_BURST) / WF_LINE_BYTES * WF_LINE_BYTES,
        .introductions = number(config, WF_SET_INTRODUCTIONS),
        .header_pad = number(config, WF_SET_HEADER_PAD),
        .call = number(config, WF_SET_CALL),
        .zero_copy = number(config, WF_SET_ZERO_COPY),
        .read_ahead = (enum wf_read_ahead_when)wf_config_number(config, WF_SET_READ_AHEAD),
        .unexpected = (uint64_t)wf_config_number(config, WF_SET_UNEXPECTED),
        .small_pool = (uint64_t)wf_config_number(config, WF_SET_SMALL_POOL),
        .staging = (uint64_t)wf_config_number(config, WF_SET_STAGING),
        .requests = (uint64_t)wf_config_number(config, WF_SET_REQUESTS),
        .peers = number(config, WF_SET_PEERS),
        .socket_buffer = (int)wf_config_number(config, WF_SET_SOCKET_BUFFER),
        .port = (int)wf_config_number(config, WF_SET_PORT),
        .spin_ns = spin_ns(config),
        .timeout_ns = wf_config_number(config, WF_SET_TIMEOUT) * WF_NS_PER_S,
        .connect_timeout_ns = wf_config_number(config, WF_SET_CONNECT_TIMEOUT) * WF_NS_PER_S,
        .rail_timeout_ns = wf_config_number(config, WF_SET_RAIL_TIMEOUT_MS) * WF_NS_PER_MS,
        .crc = wf_config_number(config, WF_SET_CRC) == 1,
        .encrypt = wf_config_number(config, WF_SET_ENCRYPT) == 1,
        .crc_limit = number(config, WF_SET_CRC_LIMIT),
    };
}

int wf_check_descriptors(const struct weft_context *context, struct wf_status *status)
{
    struct rlimit limit;
    uint64_t channels = (uint64_t)context->rails.count * (1 + context->world.tuning.channels);
    uint64_t engines = 2 * ((uint64_t)context->crew.count + 1);
    uint64_t needed = channels + engines + (uint64_t)context->rails.count + 16;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || needed <= limit.rlim_cur)
        return 0;
    return wf_fail(status, -EMFILE,
                   "%llu file descriptors are needed (%d rails, channels = %u), the limit is %llu: raise it "
                   "(ulimit -n %llu) or lower channels",
                   (unsigned long long)needed, context->rails.count, context->world.tuning.channels,
                   (unsigned long long)limit.rlim_cur, (unsigned long long)needed);
}

int wf_chosen_family(const struct wf_config *config)
{
    static const int families[] = {AF_UNSPEC, AF_INET, AF_INET6}; /* in the order of the setting's words */
    return families[wf_config_number(config, WF_SET_FAMILY)];
}

/* A TX and an RX worker for each rail if there is a core for each of these and for a caller, who then drives the one of
 * the express channels; else one worker for all. */
void wf_choose_workers(struct weft_context *context, const struct wf_config *config)
{
    const char *choice = wf_config_text(config, WF_SET_WORKERS);
    bool split = strcmp(choice, "split") == 0;
    if (strcmp(choice, "auto") == 0)
        split = usable_cores() >= 2 * context->rails.count + 2;
    context->world.shared = !split || context->world.manual;
    if (split && context->world.manual)
        context->world.shared = false;
    context->crew.express = context->world.shared ? 0 : 2 * context->rails.count;
    context->crew.count = context->world.shared ? 1 : context->crew.express + 1;
    if (context->world.shared && strcmp(choice, "auto") == 0)
        wf_world_fallback(&context->world,
                          "workers: one shared worker, %d cores are too few for a TX and an RX worker on each "
                          "of %d rails and a caller",
                          usable_cores(), context->rails.count);
}

int wf_choose_congestion(struct weft_context *context, const struct wf_config *config, struct wf_status *status)
{
    const char *name = wf_config_text(config, WF_SET_CONGESTION);
    int result = 0;
    if (strlen(name) >= sizeof context->world.tuning.congestion)
        result = wf_fail(status, -EINVAL, "no name is that long");
    else if (name[0] && !context->world.simulated)
        result = wf_socket_congestion(name, status);
    if (result == -ENOENT && status) /* to callers -ENOENT is a key file that is not there */
        status->code = -EINVAL;
    if (result < 0)
        return wf_fail_prefix(status, "congestion = %.60s", name);
    snprintf(context->world.tuning.congestion, sizeof context->world.tuning.congestion, "%s", name);
    return 0;
}

int wf_choose_dscp(const struct wf_config *config, int dscp[WF_CLASSES], struct wf_status *status)
{
    const char *text = wf_config_text(config, WF_SET_DSCP), *at = text;
    for (int traffic = 0; traffic < WF_CLASSES; traffic++)
        dscp[traffic] = 0;
    for (int traffic = 0; *at; traffic++) {
        char *end;
        long value = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : -1;
        if (value < 0 || value > 63)
            return wf_fail(status, -EINVAL, "dscp = %.60s: '%.20s' is no number from 0 to 63", text, at);
        if (traffic == WF_CLASSES || (*end && *end != ','))
            return wf_fail(status, -EINVAL, "dscp = %.60s: write up to %d numbers, separated by commas", text,
                           WF_CLASSES);
        dscp[traffic] = (int)value;
        at = *end ? end + 1 : end;
    }
    return 0;
}

/* A call has as many chunks as the kernel has room for. It has one chunk with a checksum, so that the kernel finds in
 * the cache the bytes that the checksum was made of, and with an engine whose calls are not cut, so that small messages
 * do not wait for a long call. Calls are short where several streams share a thread and the engine does not tell when
 * the first call for a stream was made (io_uring, encryption): a long call of one stream would make the others look
 * slow (docs/decisions/0010-call-size.md). */
int wf_choose_call(struct weft_context *context, struct wf_status *status)
{
    struct wf_tuning *tuning = &context->world.tuning;
    bool large = context->rails.count * (int)tuning->channels == 1 || context->world.engine_ops->tells_start;
    uint32_t whole = tuning->chunk + tuning->header_pad;
    if (tuning->call > 0 && tuning->call < CALL_MIN)
        return wf_fail(status, -EINVAL, "call = %u: use 4K or more, or 0", tuning->call);
    if (tuning->call > 0)
        return 0;
    if (context->world.engine_ops->cuts_calls && !tuning->crc && whole < CALL_MOST)
        whole = CALL_MOST / whole * whole;
    tuning->call = large && whole > CALL_SHARED ? whole : CALL_SHARED;
    return 0;
}
