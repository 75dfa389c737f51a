/* Chooses the engine of a context, and makes the workers and the door, each with an engine of its own. */
#include "core/calls/engines.h"

#include <errno.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/drive/worker.h"
#include "core/join/door.h"

/*
 * Takes the engine that the setting names. Without one: io_uring where each engine has a thread of its own, epoll where
 * callers drive as well (docs/decisions/0004-engine-choice.md); sockets are the same to both.
 */
static int choose(struct weft_context *context, const struct wf_config *config, struct wf_status *status)
{
    const char *choice = wf_config_text(config, WF_SET_ENGINE);
    if (!context->world.engine_ops && strcmp(choice, "auto") == 0) {
        struct wf_status reason = {0};
        bool able = wf_engine_uring.probe(NULL, &reason) == 0;
        if (!able)
            wf_world_fallback(&context->world, "engine: epoll, %s", reason.text);
        context->world.engine_ops = able && !context->world.shared ? &wf_engine_uring : &wf_engine_epoll;
        if (context->world.engine_ops == &wf_engine_uring) {
            context->crew.express_engine = &wf_engine_epoll;
            return 0; /* do not probe again: the kernel takes time to free the memory of a ring */
        }
    } else if (!context->world.engine_ops) {
        context->world.engine_ops = strcmp(choice, "uring") == 0 ? &wf_engine_uring : &wf_engine_epoll;
    }
    int result = context->world.engine_ops->probe(context->world.engine_host, status);
    return result < 0 ? wf_fail_prefix(status, "engine = %s", context->world.engine_ops->name) : 0;
}

/* Wraps the engine in faults, and faults in encryption: so faults hit the bytes that are on the wire. */
static void stand_around(struct weft_context *context)
{
    if (context->fault || context->seal)
        context->crew.express_engine = NULL; /* what stands around one engine knows no other */
    if (context->fault) {
        context->world.engine_ops =
            wf_fault_around(context->fault, context->world.engine_ops, context->world.engine_host);
        context->world.engine_host = context->fault;
    }
    if (context->seal) {
        context->world.engine_ops =
            wf_seal_around(context->seal, context->world.engine_ops, context->world.engine_host);
        context->world.engine_host = context->seal;
    }
}

/* Creates the faults that the setting asks for; a fallback and a line in the log say so to readers of the results. */
static int inject_faults(struct weft_context *context, const char *spec, struct wf_status *status)
{
    struct wf_fault_options options = {
        .spec = spec,
        .rails = context->fault_rails,
        .rail_count = context->rails.count,
        .clock = context->world.clock,
        .log = &context->world.log,
    };
    for (int i = 0; i < context->rails.count; i++)
        context->fault_rails[i] = (struct wf_fault_rail){.name = context->rails.each[i].name,
                                                         .device = context->rails.each[i].device,
                                                         .address = context->rails.each[i].address};
    int result = wf_fault_create(&options, &context->fault, status);
    if (result < 0)
        return result;
    wf_world_fallback(&context->world, "fault: faults are injected: %s", spec);
    wf_log(&context->world.log, WF_LOG_WARN, "faults are injected, as the setting fault asks: %s", spec);
    return 0;
}

int wf_engines_choose(struct weft_context *context, const struct wf_config *config, struct wf_status *status)
{
    const char *faults = wf_config_text(config, WF_SET_FAULT);
    int result = choose(context, config, status);
    if (result == 0 && faults[0])
        result = inject_faults(context, faults, status);
    if (result == 0 && context->world.tuning.encrypt && !(context->seal = wf_seal_create()))
        result = wf_fail(status, -ENOMEM, "encrypt = on: out of memory");
    if (result == 0)
        stand_around(context);
    return result;
}

/* Notes a fallback if zero copy was asked for and cannot be used, or would change nothing. */
static void check_zero_copy(struct weft_context *context)
{
    struct wf_status reason = {0};
    const struct wf_engine_ops *ops = context->world.engine_ops;
    if (context->world.tuning.zero_copy == 0)
        return;
    if (context->seal)
        wf_fail(&reason, -EOPNOTSUPP, "they are encrypted (setting encrypt)");
    else if (!ops->zero_copy)
        wf_fail(&reason, -EOPNOTSUPP, "the engine %s always does", ops->name);
    if (reason.code == 0 && ops->zero_copy(context->world.engine_host, &reason) == 0) {
        for (int i = 0; i < context->rails.count; i++)
            if (strcmp(context->rails.each[i].device, "lo") == 0)
                wf_world_fallback(&context->world,
                                  "zero_copy: sends on rail %s are copied, the loopback interface does",
                                  context->rails.each[i].name);
        return;
    }
    context->world.tuning.zero_copy = 0;
    wf_world_fallback(&context->world, "zero_copy: sends are copied, %s", reason.text);
}

void wf_engines_destroy(struct weft_context *context)
{
    wf_door_destroy(context->door);
    context->door = NULL;
    while (context->crew.count > 0)
        wf_worker_destroy(context->crew.workers[--context->crew.count]);
}

/* Makes the workers and the door, each with an engine of its own. */
static int create_engines(struct weft_context *context, int workers, struct wf_status *status)
{
    int result = 0;
    while (context->crew.count < workers && result == 0) {
        result =
            wf_worker_create(&context->crew, context->crew.count, &context->crew.workers[context->crew.count], status);
        context->crew.count += result == 0;
    }
    return result < 0 ? result
                      : wf_door_create(&context->sessions, context->key, context->seal, &context->door, status);
}

/* Makes workers and door; falls back to epoll if needed: one ring may fit into the limit of locked memory, but not the
 * rings of all workers. */
int wf_engines_create(struct weft_context *context, const struct wf_config *config, int workers,
                      struct wf_status *status)
{
    check_zero_copy(context);
    int result = create_engines(context, workers, status);
    bool ours = strcmp(wf_config_text(config, WF_SET_ENGINE), "auto") == 0;
    if (result == 0 || !ours || strcmp(context->world.engine_ops->name, wf_engine_uring.name) != 0)
        return result;
    wf_world_fallback(&context->world, "engine: epoll, %s", status->text);
    wf_engines_destroy(context);
    context->world.engine_ops = &wf_engine_epoll;
    context->crew.express_engine = NULL;
    context->world.engine_host = NULL;
    stand_around(context);
    check_zero_copy(context);
    return create_engines(context, workers, status);
}
