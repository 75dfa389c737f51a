#include "core/calls/context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/key_file.h"
#include "base/limits.h"
#include "core/calls/choices.h"
#include "core/calls/engines.h"
#include "core/calls/peer.h"
#include "core/calls/placement.h"
#include "core/cards/cards_tcp.h"
#include "core/device/registration.h"
#include "core/drive/worker.h"
#include "core/ground/holders.h"
#include "core/ground/refusal.h"
#include "core/join/door.h"
#include "core/message/connection.h"
#include "core/request/queue.h"
#include "core/session/session.h"
#include "wire/handshake.h"

#define CLOSE_NS WF_NS_PER_S   /* the end of a context waits so long for its peers */
#define STREAMS_NS WF_NS_PER_S /* the end of a context waits so long for users' streams to reach their marks */
#define STREAMS_LOOK_NS (20 * WF_NS_PER_US)

_Static_assert(sizeof(struct weft_error) == sizeof(struct wf_status), "the public error is a view of wf_status");
_Static_assert(WEFT_TEXT_BYTES == WF_STATUS_TEXT, "one size of texts");
_Static_assert(WF_KEY_BYTES == WF_KEY_FILE_BYTES, "files hold whole keys");
_Static_assert(offsetof(struct weft_error, text) == offsetof(struct wf_status, text), "same layout");

const char *weft_version(void)
{
    return WEFT_VERSION;
}

const char *weft_last_error(void)
{
    return wf_refusal_text();
}

/* --- settings --- */

static int make_config(weft_log_function *log, void *user, struct weft_config **out, struct wf_status *status)
{
    struct weft_config *config = calloc(1, sizeof *config);
    if (!config)
        return wf_fail(status, -ENOMEM, "no memory for the settings");
    wf_log_init(&config->log, WF_LOG_WARN);
    wf_log_hand_over(&config->log, log, user);
    wf_config_init(&config->values);
    int result = wf_config_load_environment(&config->values, NULL, &config->log, status);
    if (result < 0) {
        free(config);
        return result;
    }
    *out = config;
    return 0;
}

int weft_config_create(struct weft_config **out, struct weft_error *err)
{
    return WF_IS_NULL(wf_status_of(err), out) ? -EINVAL : make_config(NULL, NULL, out, wf_status_of(err));
}

int weft_config_create_logged(weft_log_function *log, void *user, struct weft_config **out, struct weft_error *err)
{
    return WF_IS_NULL(wf_status_of(err), out) ? -EINVAL : make_config(log, user, out, wf_status_of(err));
}

void weft_config_destroy(struct weft_config *config)
{
    free(config);
}

int weft_config_set(struct weft_config *config, const char *name, const char *value, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), config) || WF_IS_NULL(wf_status_of(err), name) ||
        WF_IS_NULL(wf_status_of(err), value))
        return -EINVAL;
    int id = wf_setting_find(name, wf_status_of(err));
    if (id < 0)
        return id;
    const struct wf_setting *setting = wf_setting((enum wf_setting_id)id);
    if (setting->group == WF_GROUP_BENCH)
        return wf_fail(wf_status_of(err), -EINVAL,
                       "%s is a setting of the program weft and does nothing in the library: leave it out, or give it "
                       "to the program",
                       setting->name);
    return wf_config_set(&config->values, (enum wf_setting_id)id, value, WF_ORIGIN_COMMAND, "weft_config_set()",
                         wf_status_of(err));
}

const char *weft_config_get(const struct weft_config *config, const char *name)
{
    if (WF_IS_NULL(wf_refusal(), config) || WF_IS_NULL(wf_refusal(), name))
        return NULL;
    int id = wf_setting_find(name, NULL);
    return id < 0 ? NULL : wf_config_text(&config->values, (enum wf_setting_id)id);
}

int weft_config_is_set(const struct weft_config *config, const char *name)
{
    if (WF_IS_NULL(wf_refusal(), config) || WF_IS_NULL(wf_refusal(), name))
        return -EINVAL;
    int id = wf_setting_find(name, NULL);
    return id < 0 ? id : config->values.values[id].origin != WF_ORIGIN_DEFAULT;
}

/* --- creation --- */

static void init_base(struct weft_context *context, const struct wf_config *config,
                      const struct wf_environment *environment)
{
    wf_world_init(&context->world, (enum wf_log_level)wf_config_number(config, WF_SET_LOG), environment->seed);
    if (environment->log)
        wf_log_hand_over(&context->world.log, environment->log->taker, environment->log->user);
    context->crew.world = &context->world;
    wf_waiting_init(&context->waiting, &context->crew);
    wf_endpoints_init(&context->endpoints);
    wf_registry_init(&context->registry, &context->cards);
    context->sessions.world = &context->world;
    context->sessions.rails = &context->rails;
    context->sessions.crew = &context->crew;
    context->sessions.devices = &context->devices;
    context->sessions.cards = &context->cards;
    context->sessions.registry = &context->registry;
    context->sessions.waiting = &context->waiting;
    context->sessions.endpoints = &context->endpoints;
    wf_sessions_init(&context->sessions);
    wf_crew_disposals(&context->crew, wf_channels_tell);
    context->rails.world = &context->world;
    wf_choose_tuning(config, &context->world.tuning);
    context->world.engine_ops = environment->engine;
    context->world.engine_host = environment->engine_host;
    context->world.clock = environment->clock ? environment->clock : &wf_clock_monotonic;
    context->world.manual = environment->manual;
    context->world.simulated = environment->manual || environment->engine;
    wf_cards_init(&context->cards, &context->world, environment->cards, environment->cards_host);
    wf_devices_init(&context->devices, &context->crew, environment->memory ? environment->memory : &wf_memory_cuda,
                    environment->memory_host, context->world.simulated && !environment->memory);
}

static int start_threads(struct weft_context *context, struct wf_status *status)
{
    int result = 0;
    if (context->world.manual)
        return 0;
    for (int i = 0; i < context->crew.count && result == 0; i++)
        result = wf_worker_start(context->crew.workers[i], status);
    return result < 0 ? result : wf_door_start(context->door, status);
}

static int take_key(struct weft_context *context, const struct wf_config *config, struct wf_status *status)
{
    const char *path = wf_config_text(config, WF_SET_KEY_FILE);
    uint8_t key[WF_KEY_BYTES];
    if (!path[0] && context->world.tuning.encrypt) /* without a key every peer would be let in, and encryption would
                                                    * hide nothing from it */
        return wf_fail(status, -EINVAL,
                       "encrypt = on needs a key: set key_file (weft key makes one), the same on every "
                       "node, or encrypt = off");
    if (!path[0])
        return 0;
    int result = wf_key_file_read(path, key, status);
    if (result == 0)
        result = wf_handshake_key_create(key, &context->key, status);
    explicit_bzero(key, sizeof key);
    return result;
}

/* Finds the rails, and notes a fallback for every rail that is worse than a network card with an address. */
static int find_rails(struct weft_context *context, const struct wf_config *config, struct wf_status *status)
{
    static const char *const texts[] = {
        [WF_RULE_LINK_LOCAL] = "by its link-local address, no card has another one: peers must share its link",
        [WF_RULE_VIRTUAL] = "though it is of containers, virtual machines or a VPN: nothing else is usable",
        [WF_RULE_LOOPBACK] = "no network card is usable: only processes on this machine can be reached",
    };
    int count = wf_rails_find(wf_config_text(config, WF_SET_RAILS), wf_config_alias(config, WF_SET_RAILS),
                              wf_chosen_family(config), context->rails.each, WF_RAILS_MAX, status);
    for (int i = 0; i < count; i++)
        if (context->rails.each[i].rule != WF_RULE_CARD)
            wf_world_fallback(&context->world, "rails: %s (%s) is taken, %s", context->rails.each[i].name,
                              context->rails.each[i].text, texts[context->rails.each[i].rule]);
    context->rails.count = count;
    return count < 0 ? count : 0;
}

/* The number of this machine, new at each start; most containers have the number of their machine. 0: the kernel has
 * none. */
static uint64_t machine_number(void)
{
    char id[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    uint64_t number = 0;
    if (file && !fgets(id, sizeof id, file))
        id[0] = '\0';
    if (file)
        fclose(file);
    for (const char *at = id; *at; at++)
        number = (number ^ (uint8_t)*at) * 0x100000001B3ull; /* FNV-1a's prime: every character counts */
    return number >> (64 - WF_MACHINE_BITS);
}

static int choose_nonce(struct weft_context *context, struct wf_status *status)
{
    uint64_t machine = context->world.simulated ? 0 : machine_number(), own;
    if (wf_world_random(&context->world, &own, sizeof own) < 0)
        return wf_fail(status, -EIO, "the system gives no random numbers");
    context->world.boot_nonce = machine << (64 - WF_MACHINE_BITS) | own >> WF_MACHINE_BITS;
    return 0;
}

static void name_card(struct wf_cards *cards, int rail, const struct wf_rail *the)
{
    snprintf(cards->interfaces[rail], sizeof cards->interfaces[rail], "%s", the->device);
    cards->rates[rail] = wf_rail_line_rate(the);
}

/* Tells the cards of the rails, and opens their inlets for the GPUs that are in use already. */
static int begin_cards(struct weft_context *context, const struct wf_config *config, struct wf_status *status)
{
    struct wf_cards *cards = &context->cards;
    const struct wf_tuning *tuning = &context->world.tuning;
    int64_t choice = wf_config_number(config, WF_SET_DEVMEM), result = 0;
    if (!context->world.simulated) {
        context->card_host = wf_card_host_create((uint64_t)wf_config_number(config, WF_SET_DEVMEM_POOL));
        cards->ops = context->card_host ? &wf_cards_tcp : NULL;
        cards->host = context->card_host;
    }
    const char *in_host = tuning->encrypt ? "encrypt" : tuning->crc ? "crc" : NULL;
    if (choice == 2 && (in_host || !cards->ops))
        return wf_fail(status, -EOPNOTSUPP, "devmem = require, but %s%s", in_host ? in_host : "there is no memory",
                       in_host ? " = on needs the bytes in host memory: turn one of the two off" : "");
    cards->required = choice == 2;
    if (choice == 1 || in_host)
        cards->ops = NULL;
    cards->rail_count = context->rails.count;
    for (int i = 0; i < context->rails.count; i++)
        name_card(cards, i, &context->rails.each[i]);
    context->world.tuning.devmem = cards->ops != NULL;
    for (int i = 0; result == 0 && i < atomic_load(&context->devices.used_count); i++)
        result = wf_cards_use(cards, context->devices.ops, atomic_load(&context->devices.memory),
                              atomic_load(&context->devices.used[i])->index, status);
    return (int)result;
}

static int build(struct weft_context *context, const struct wf_config *config, struct wf_status *status)
{
    int result = wf_sessions_open(&context->sessions, status);
    if (result == 0)
        result = choose_nonce(context, status);
    if (result < 0)
        return result;
    result = take_key(context, config, status);
    if (result == 0)
        result = wf_choose_congestion(context, config, status);
    if (result == 0)
        result = wf_choose_dscp(config, context->world.tuning.dscp, status);
    if (result < 0)
        return result;
    result = find_rails(context, config, status);
    if (result < 0)
        return result;
    wf_choose_workers(context, config);
    result = wf_placement_plan(context, config, status);
    if (result == 0)
        result = wf_engines_choose(context, config, status);
    if (result == 0)
        result = wf_choose_call(context, status);
    if (result == 0)
        result = wf_check_descriptors(context, status);
    int workers = context->crew.count;
    context->crew.count = 0;
    if (result == 0)
        result = wf_engines_create(context, config, workers, status);
    if (result == 0)
        result = wf_devices_begin(&context->devices, config, status);
    if (result == 0)
        result = begin_cards(context, config, status);
    return result < 0 ? result : start_threads(context, status);
}

static bool copies_left(const struct weft_context *context)
{
    bool left = false;
    for (int i = 0; i < context->crew.count; i++)
        left |= wf_devices_busy(&context->devices, context->crew.workers[i]);
    return left;
}

/* Waits for the marks of operations that are over: the user's stream reads our flag behind the mark, so the flag must
 * exist until then. */
static void await_streams(struct weft_context *context)
{
    int64_t until_ns = wf_world_now(&context->world) + STREAMS_NS;
    while (copies_left(context) && wf_world_now(&context->world) < until_ns)
        for (int i = 0; i < context->crew.count; i++)
            wf_worker_drive(context->crew.workers[i], STREAMS_LOOK_NS);
}

/* The threads have ended: this thread drives until every channel has let go of its descriptor. */
static void wind_down(struct weft_context *context)
{
    WF_LIST_EACH (link, following, &context->sessions.all) {
        struct wf_session *session = WF_CONTAINER(link, struct wf_session, link);
        wf_session_lock(session);
        wf_guard_fail(&session->guard, -ESHUTDOWN, "the context of %s was destroyed", session->peer.name);
        if (session->guard.state == WF_SESSION_DEAD) /* ends receives that waited for their streams */
            wf_session_start_close(session);
        wf_session_unlock(session);
        while (session->guard.holders > 0)
            for (int i = 0; i < context->crew.count; i++)
                wf_worker_drive(context->crew.workers[i], 0);
    }
    await_streams(context);
}

static void demolish(struct weft_context *context)
{
    if (context->door)
        wf_door_stop(context->door);
    for (int i = 0; i < context->crew.count; i++)
        wf_worker_stop(context->crew.workers[i]);
    wind_down(context);
    WF_LIST_EACH (link, following, &context->sessions.all) {
        wf_session_destroy(WF_CONTAINER(link, struct wf_session, link));
    }
    wf_registry_fini(&context->registry);
    wf_cards_fini(&context->cards);
    wf_card_host_destroy(context->card_host);
    wf_devices_fini(&context->devices);
    wf_engines_destroy(context);
    wf_seal_destroy(context->seal);
    wf_fault_destroy(context->fault);
    wf_endpoints_fini(&context->endpoints);
    wf_queues_free(&context->waiting);
    wf_placement_free(&context->crew.placement);
    wf_handshake_key_destroy(context->key);
    wf_sessions_fini(&context->sessions);
    wf_waiting_fini(&context->waiting);
    wf_world_fini(&context->world);
    free(context);
}

int wf_context_create(const struct wf_config *config, const struct wf_environment *environment,
                      struct weft_context **out, struct wf_status *status)
{
    static const struct wf_environment process = {0};
    struct weft_context *context = calloc(1, sizeof *context);
    if (!context) {
        wf_fail(status, -ENOMEM, "no memory for a context");
        wf_blame_memory_limit(status);
        return -ENOMEM;
    }
    init_base(context, config, environment ? environment : &process);
    int result = build(context, config, status);
    if (result < 0) {
        demolish(context);
        wf_blame_memory_limit(status);
        return result;
    }
    *out = context;
    return 0;
}

int weft_context_create(const struct weft_config *config, struct weft_context **out, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), out))
        return -EINVAL;
    struct weft_config *own = NULL;
    int result = config ? 0 : weft_config_create(&own, err);
    if (result < 0)
        return result;
    if (!config)
        config = own;
    struct wf_environment environment = {.log = &config->log};
    struct wf_status unheard = {0}, *status = err ? wf_status_of(err) : &unheard;
    result = wf_context_create(&config->values, &environment, out, status);
    weft_config_destroy(own);
    return result;
}

/* --- the end --- */

/* A session that is not over, with a reference; `asked`: or one that was asked to close. NULL: there is none. */
static struct wf_session *any_session(struct weft_context *context, bool asked)
{
    struct wf_session *found = NULL;
    pthread_mutex_lock(&context->world.lock);
    WF_LIST_EACH (link, following, &context->sessions.all) {
        struct wf_session *session = WF_CONTAINER(link, struct wf_session, link);
        wf_session_lock(session);
        if (session->guard.state != WF_SESSION_DEAD && (asked || !session->life.dismissed)) {
            wf_session_dismiss(session, session->life.closing);
            wf_guard_refer(&session->guard);
            found = session;
        }
        wf_session_unlock(session);
        if (found)
            break;
    }
    pthread_mutex_unlock(&context->world.lock);
    return found;
}

/* All are asked before the first one is waited for: many that do not answer take no longer than one. */
static void close_sessions(struct weft_context *context)
{
    int64_t until_ns = wf_world_now(&context->world) + CLOSE_NS;
    struct wf_session *session;
    atomic_store(&context->sessions.ending, true); /* a peer that comes back at once would never be the last */
    while ((session = any_session(context, false))) {
        wf_session_ask_to_close(session);
        wf_session_push(session);
        wf_session_release(session);
    }
    while ((session = any_session(context, true))) {
        int64_t left_ms = (until_ns - wf_world_now(&context->world)) / 1000000;
        weft_peer_close(&session->peer, left_ms > 1 ? (int)left_ms : 1, NULL); /* drops the reference */
    }
}

void weft_context_destroy(struct weft_context *context)
{
    if (!context)
        return;
    wf_lobby_cancel(&context->sessions.lobby, -ESHUTDOWN);
    if (!context->world.manual)
        close_sessions(context);
    demolish(context);
}

/* --- queues --- */

int weft_queue_create(struct weft_context *context, struct weft_queue **out, struct weft_error *err)
{
    if (WF_IS_NULL(wf_status_of(err), context) || WF_IS_NULL(wf_status_of(err), out))
        return -EINVAL;
    return wf_queue_create(&context->waiting, out, wf_status_of(err));
}

/* --- what is in force --- */

int weft_context_rails(const struct weft_context *context, struct weft_rail_info *rails, int max)
{
    if (WF_IS_NULL(wf_refusal(), context) || (max > 0 && WF_IS_NULL(wf_refusal(), rails)))
        return -EINVAL;
    for (int i = 0; i < context->rails.count && i < max; i++) {
        struct wf_rail rail;
        wf_rails_read((struct wf_rails *)&context->rails, i, &rail);
        snprintf(rails[i].name, sizeof rails[i].name, "%s", rail.name);
        snprintf(rails[i].address, sizeof rails[i].address, "%s", rail.text);
        snprintf(rails[i].interface, sizeof rails[i].interface, "%s", rail.device);
        rails[i].mtu = rail.mtu;
        rails[i].speed_mbit = rail.speed_mbit;
        rails[i].numa_node = context->crew.placement.rail_nodes[i];
    }
    return context->rails.count;
}

const char *weft_context_engine(const struct weft_context *context)
{
    if (WF_IS_NULL(wf_refusal(), context))
        return "";
    return context->world.engine_ops->name;
}

const char *weft_context_fallbacks(const struct weft_context *context)
{
    if (WF_IS_NULL(wf_refusal(), context))
        return "";
    return context->world.fallbacks;
}

int weft_context_faults(const struct weft_context *context, struct weft_fault_stats *stats)
{
    if (WF_IS_NULL(wf_refusal(), context) || WF_IS_NULL(wf_refusal(), stats))
        return -EINVAL;
    struct wf_fault_counts counts;
    if (!context->fault)
        return 0;
    wf_fault_count(context->fault, &counts);
    *stats = (struct weft_fault_stats){
        .resets = counts.resets,
        .flips = counts.flips,
        .shortened = counts.shortened,
        .stalls = counts.stalls,
        .drops = counts.drops,
        .cut = counts.cut,
        .refused = counts.refused,
    };
    return 1;
}
