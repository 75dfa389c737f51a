#include "core_scene.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/request/book.h"
#include "wire/frame.h"

/* --- the engine --- */

static struct scene_engine *engine_of(struct wf_engine *engine)
{
    return WF_CONTAINER(engine, struct scene_engine, base);
}

static const struct wf_engine_ops engine_ops;

static int engine_open(void *host, const struct wf_engine_limits *limits, struct wf_engine **out,
                       struct wf_status *status)
{
    struct scene *scene = host;
    struct scene_engine *engine = calloc(1, sizeof *engine);
    (void)status;
    assert_non_null(engine);
    engine->base.ops = &engine_ops;
    engine->limits = *limits;
    int index = 0;
    while (scene->engines[index])
        index += 1;
    assert_true(index < SCENE_WORKERS);
    scene->engines[index] = engine;
    *out = &engine->base;
    return 0;
}

static void engine_close(struct wf_engine *engine)
{
    free(engine_of(engine));
}

static int engine_attach(struct wf_engine *engine, int fd)
{
    (void)engine, (void)fd;
    return 0;
}

static void engine_detach(struct wf_engine *engine, int fd)
{
    (void)engine, (void)fd;
}

static void engine_post(struct wf_engine *engine, struct wf_op *op)
{
    struct scene_engine *own = engine_of(engine);
    assert_true(own->posted_count < SCENE_OPS);
    own->posted[own->posted_count++] = op;
}

static int engine_poll(struct wf_engine *engine, struct wf_op **finished, int max, int64_t timeout_ns)
{
    struct scene_engine *own = engine_of(engine);
    own->polls += 1;
    own->timeout_ns = timeout_ns;
    int count = own->finished_count < max ? own->finished_count : max;
    memcpy(finished, own->finished, (size_t)count * sizeof *finished);
    own->finished_count -= count;
    memmove(own->finished, own->finished + count, (size_t)own->finished_count * sizeof *finished);
    if (count == 0 && timeout_ns != 0 && own->late) {
        finished[count++] = own->late;
        own->late = NULL;
    }
    return count;
}

static void engine_wake(struct wf_engine *engine)
{
    engine_of(engine)->wakes += 1;
}

static uint64_t engine_retransmits(void *host, int fd)
{
    (void)fd;
    return ((struct scene *)host)->retransmits;
}

static const struct wf_engine_ops engine_ops = {
    .name = "scene",
    .open = engine_open,
    .close = engine_close,
    .attach = engine_attach,
    .detach = engine_detach,
    .post = engine_post,
    .poll = engine_poll,
    .wake = engine_wake,
    .retransmits = engine_retransmits,
};

void scene_finish(struct scene *scene, int worker, struct wf_op *op)
{
    struct scene_engine *engine = scene->engines[worker];
    assert_true(engine->finished_count < SCENE_OPS);
    engine->finished[engine->finished_count++] = op;
}

/* --- the guard --- */

static struct scene *scene_of(struct wf_guard *guard)
{
    return WF_CONTAINER(guard, struct scene, guard);
}

static void assert_locked(struct wf_guard *guard, bool locked)
{
    int result = pthread_mutex_trylock(&guard->lock);
    if (result == 0)
        pthread_mutex_unlock(&guard->lock);
    assert_int_equal(result, locked ? EBUSY : 0);
}

static void failed(struct wf_guard *guard)
{
    assert_locked(guard, true);
    wf_guard_enter(guard, WF_SESSION_FAILED);
    scene_of(guard)->failures += 1;
}

static void unheld(struct wf_guard *guard)
{
    assert_locked(guard, true);
    scene_of(guard)->unheld += 1;
}

static void kick(struct wf_guard *guard, struct wf_worker *self)
{
    (void)self;
    assert_locked(guard, true);
    scene_of(guard)->kicked += 1;
}

static void push(struct wf_guard *guard)
{
    assert_locked(guard, false);
    scene_of(guard)->pushed += 1;
    scene_of(guard)->references_at_push = guard->references;
}

static const struct wf_guard_ops guard_ops = {.failed = failed, .unheld = unheld, .kick = kick, .push = push};

static void serve(struct wf_kicks *kicks, struct wf_worker *worker)
{
    WF_CONTAINER(kicks, struct scene, kicks)->served[worker->index] += 1;
}

static struct wf_desk *hold_no_twin(struct wf_desk *desk)
{
    (void)desk;
    return NULL;
}

/* --- the scene --- */

static int64_t now_ns(const struct wf_clock *clock)
{
    struct scene *scene = WF_CONTAINER(clock, struct scene, clock);
    scene->now_ns += scene->step_ns;
    return scene->now_ns;
}

struct wf_tuning scene_tuning(void)
{
    return (struct wf_tuning){
        .channels = 1,
        .window = SCENE_WINDOW,
        .chunk = SCENE_CHUNK,
        .eager = SCENE_EAGER,
        .first_burst = SCENE_FIRST_BURST,
        .introductions = SCENE_INTRODUCTIONS,
        .header_pad = SCENE_PAD,
        .call = SCENE_CHUNK,
        .unexpected = SCENE_POOL,
        .small_pool = 16 * SCENE_EAGER,
        .requests = SCENE_REQUESTS,
        .peers = 1,
        .spin_ns = WF_NS_PER_S,
        .timeout_ns = 10 * WF_NS_PER_S,
    };
}

static void begin_context(struct scene *scene, const struct wf_tuning *tuning)
{
    struct wf_status status = {0};
    struct wf_world *world = &scene->world;
    scene->clock.now_ns = now_ns;
    scene->now_ns = SCENE_START_NS;
    wf_world_init(world, WF_LOG_ERROR, 1);
    world->tuning = *tuning;
    world->clock = &scene->clock;
    world->engine_ops = &engine_ops;
    world->engine_host = scene;
    world->manual = true;
    world->boot_nonce = 1;
    scene->door.base.ops = &engine_ops;
    atomic_init(&world->alarm.due_ns, WF_NEVER);
    atomic_init(&world->alarm.engine, &scene->door.base);
    scene->crew.world = world;
    for (int i = 0; i < SCENE_WORKERS; i++)
        assert_int_equal(wf_worker_create(&scene->crew, i, &scene->crew.workers[i], &status), 0);
    scene->crew.count = SCENE_WORKERS;
    wf_devices_init(&scene->devices, &scene->crew, NULL, NULL, true);
    scene->crew.chores.tell = wf_channels_tell;
    wf_registry_init(&scene->registry, NULL);
    wf_waiting_init(&scene->waiting, &scene->crew);
    wf_endpoints_init(&scene->endpoints);
}

static void begin_session(struct scene *scene, const struct wf_tuning *tuning)
{
    const struct wf_hello peer = {
        .boot_nonce = 2,
        .limits = {.chunk = tuning->chunk,
                   .eager = tuning->eager,
                   .first_burst = tuning->first_burst,
                   .header_pad = tuning->header_pad,
                   .unsolicited = SCENE_POOL},
    };
    wf_guard_init(&scene->guard, &scene->world, &guard_ops, "peer");
    wf_guard_enter(&scene->guard, WF_SESSION_UP);
    wf_terms_init(&scene->terms, &scene->world, true, &peer);
    assert_int_equal(wf_kicks_init(&scene->kicks, &scene->crew, serve), 0);
    wf_book_init(&scene->book, &scene->guard, &scene->terms, &scene->waiting);
    wf_shares_init(&scene->shares, &scene->guard, &scene->kicks);
    assert_int_equal(wf_lines_init(&scene->lines, &scene->guard, &scene->terms, &scene->kicks), 0);
    const struct wf_desk_neighbours neighbours = {.guard = &scene->guard,
                                                  .terms = &scene->terms,
                                                  .book = &scene->book,
                                                  .shares = &scene->shares,
                                                  .lines = &scene->lines,
                                                  .kicks = &scene->kicks,
                                                  .registry = &scene->registry,
                                                  .endpoints = &scene->endpoints,
                                                  .hold_twin = hold_no_twin};
    assert_int_equal(wf_desk_init(&scene->desk, &neighbours), 0);
}

void scene_begin(struct scene *scene, const struct wf_tuning *tuning)
{
    struct wf_tuning usual = scene_tuning();
    memset(scene, 0, sizeof *scene);
    begin_context(scene, tuning ? tuning : &usual);
    begin_session(scene, tuning ? tuning : &usual);
}

void scene_end(struct scene *scene)
{
    wf_kicks_fini(&scene->kicks);
    wf_desk_fini(&scene->desk);
    wf_lines_fini(&scene->lines);
    wf_shares_fini(&scene->shares);
    wf_book_fini(&scene->book);
    wf_guard_fini(&scene->guard);
    wf_endpoints_fini(&scene->endpoints);
    wf_waiting_fini(&scene->waiting);
    wf_registry_fini(&scene->registry);
    wf_devices_fini(&scene->devices);
    for (int i = 0; i < SCENE_WORKERS; i++)
        wf_worker_destroy(scene->crew.workers[i]);
    wf_world_fini(&scene->world);
}

int scene_set_up(void **state)
{
    struct scene *scene = malloc(sizeof *scene);
    if (!scene)
        return -1;
    scene_begin(scene, NULL);
    *state = scene;
    return 0;
}

int scene_tear_down(void **state)
{
    scene_end(*state);
    free(*state);
    return 0;
}

int scene_set_up_locked(void **state)
{
    int result = scene_set_up(state);
    if (result == 0)
        wf_guard_lock(&((struct scene *)*state)->guard);
    return result;
}

int scene_tear_down_locked(void **state)
{
    wf_guard_unlock(&((struct scene *)*state)->guard);
    return scene_tear_down(state);
}

struct weft_connection *scene_connect(struct scene *scene, uint32_t number, uint64_t limit)
{
    struct weft_connection *connection = wf_connection_create(&scene->desk, number, true, 1, 2);
    assert_non_null(connection);
    struct wf_frame opened = {.type = WF_OPENED, .conn = number, .offset = limit};
    assert_int_equal(wf_connection_take_opened(&scene->desk, &opened), 0);
    assert_int_equal(connection->state, WF_CONNECTION_OPEN);
    return connection;
}
