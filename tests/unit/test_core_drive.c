/* A worker's round: notices, finished operations, chores and bells; the token; and the end of a session's notices. */
#include "core_scene.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define AT_ONCE 32                    /* operations that a round takes from its engine at once */
#define ROUNDS_UNTOLD 8               /* a busy worker tells of disposals in the round after so many */
#define COPIES_NS 20000               /* the longest rest beside a copy that rings no bell */
#define REST_NS 5000000               /* a rest that is longer */
#define MOMENT_NS (20 * WF_NS_PER_MS) /* in which a thread that does not wait would have gone on */

/* The notices of a session, and what happens when one is served. */
struct notices {
    struct wf_kicks kicks;
    struct scene *scene;
    int served[SCENE_WORKERS];
    int place;            /* among all that were served, from 1 */
    struct notices *next; /* kicked while this one is served, or NULL: */
    int next_worker;      /* which of its workers, */
    int next_times;       /* and how often */
    int wakes_seen;       /* of that worker's engine, right after that */
    uint32_t token_seen;  /* of the worker, while this one was served */
};

static int places;

static void leave_next(struct notices *notices, struct wf_worker *worker)
{
    for (int i = 0; i < notices->next_times; i++)
        wf_kicks_one(&notices->next->kicks, notices->next_worker, worker);
    notices->wakes_seen = notices->scene->engines[notices->next_worker]->wakes;
}

static void serve(struct wf_kicks *kicks, struct wf_worker *worker)
{
    struct notices *notices = WF_CONTAINER(kicks, struct notices, kicks);
    notices->served[worker->index] += 1;
    notices->place = ++places;
    notices->token_seen = atomic_load(&worker->token);
    if (notices->next)
        leave_next(notices, worker);
    notices->next = NULL;
}

static struct notices *make(struct scene *scene)
{
    struct notices *notices = calloc(1, sizeof *notices);
    assert_non_null(notices);
    notices->scene = scene;
    wf_kicks_init(&notices->kicks, &scene->crew, serve);
    return notices;
}

static void end(struct notices *notices)
{
    wf_kicks_fini(&notices->kicks);
    free(notices);
}

/* --- notices --- */

static void test_a_kick_is_served_once(void **state)
{
    struct scene *scene = *state;
    struct notices *notices = make(scene);
    struct wf_worker *worker = scene->crew.workers[0];
    for (int i = 0; i < 3; i++)
        wf_kicks_one(&notices->kicks, 0, NULL);
    assert_int_equal(scene->engines[0]->wakes, 1); /* nor is the bell rung for those that are there already */
    assert_int_equal(wf_worker_drive(worker, 0), 1);
    assert_int_equal(notices->served[0], 1);
    assert_int_equal(wf_worker_drive(worker, 0), 0);
    assert_int_equal(notices->served[0], 1);
    wf_kicks_one(&notices->kicks, 0, NULL);
    assert_int_equal(scene->engines[0]->wakes, 2);
    assert_int_equal(wf_worker_drive(worker, 0), 1);
    assert_int_equal(notices->served[0], 2);
    end(notices);
}

static void test_kicks_are_for_their_worker(void **state)
{
    struct scene *scene = *state;
    struct notices *first = make(scene), *second = make(scene);
    places = 0;
    wf_kicks_one(&second->kicks, 1, NULL);
    assert_int_equal(scene->engines[0]->wakes, 0);
    assert_int_equal(scene->engines[1]->wakes, 1);
    wf_kicks_all(&first->kicks, NULL);
    assert_int_equal(scene->engines[0]->wakes, 1);
    assert_int_equal(scene->engines[1]->wakes, 2);
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 1);
    assert_int_equal(first->served[0], 1);
    assert_int_equal(second->served[0], 0);
    assert_int_equal(wf_worker_drive(scene->crew.workers[1], 0), 2);
    assert_int_equal(second->place, 2); /* in the order in which they were left */
    assert_int_equal(first->place, 3);
    end(first);
    end(second);
}

/* A pair of workers that no rail needs. */
static void test_a_kick_for_no_worker(void **state)
{
    struct scene *scene = *state;
    struct notices *notices = make(scene);
    notices->kicks.each[1].worker = NULL;
    wf_kicks_all(&notices->kicks, NULL);
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 1);
    assert_int_equal(wf_worker_drive(scene->crew.workers[1], 0), 0);
    end(notices);
}

static void test_its_own_kick_is_served_in_the_round(void **state)
{
    struct scene *scene = *state;
    struct notices *first = make(scene), *second = make(scene);
    first->next = second;
    first->next_times = 1;
    wf_kicks_one(&first->kicks, 0, NULL);
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 2);
    assert_int_equal(second->served[0], 1);
    assert_int_equal(scene->engines[0]->wakes, 1); /* that of the first: nobody rings for himself */
    end(first);
    end(second);
}

/* What is left while a notice is served may be of something that its serving has passed already. */
static void test_a_kick_left_while_it_is_served(void **state)
{
    struct scene *scene = *state;
    struct notices *notices = make(scene);
    notices->next = notices;
    notices->next_times = 2;
    wf_kicks_one(&notices->kicks, 0, NULL);
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 2);
    assert_int_equal(notices->served[0], 2);
    end(notices);
}

/* --- bells --- */

static void test_bells_are_rung_after_the_work(void **state)
{
    struct scene *scene = *state;
    struct notices *first = make(scene), *second = make(scene);
    first->next = second;
    first->next_worker = 1;
    first->next_times = 3;
    wf_kicks_one(&first->kicks, 0, NULL);
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 1);
    assert_int_equal(first->wakes_seen, 0); /* the one that leaves a notice may hold a lock that the other wants */
    assert_int_equal(scene->engines[1]->wakes, 1);
    assert_int_equal(second->served[1], 0);
    assert_int_equal(wf_worker_drive(scene->crew.workers[1], 0), 1);
    assert_int_equal(second->served[1], 1);
    end(first);
    end(second);
}

/* An operation, what stands behind it, and the notice that its end leaves for a worker. */
struct operation {
    struct wf_op op;
    struct wf_task task;
    struct wf_worker *worker; /* that drives it */
    struct notices *notices;  /* or NULL: none is left */
    int ended;
    int wakes_seen; /* of worker 1's engine, when it ended */
};

static void operation_ended(struct wf_task *task)
{
    struct operation *operation = WF_CONTAINER(task, struct operation, task);
    operation->ended += 1;
    if (!operation->notices)
        return;
    wf_kicks_one(&operation->notices->kicks, 1, operation->worker);
    operation->wakes_seen = operation->notices->scene->engines[1]->wakes;
}

static struct operation operation_of(struct scene *scene, struct notices *notices)
{
    return (struct operation){
        .task = {operation_ended}, .worker = scene->crew.workers[0], .notices = notices, .wakes_seen = -1};
}

static void finish(struct scene *scene, struct operation *operation)
{
    operation->op.context = &operation->task;
    scene_finish(scene, 0, &operation->op);
}

static void test_bells_of_what_ended(void **state)
{
    struct scene *scene = *state;
    struct notices *notices = make(scene);
    struct operation operation = operation_of(scene, notices);
    finish(scene, &operation);
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 1);
    assert_int_equal(operation.wakes_seen, 0);
    assert_int_equal(scene->engines[1]->wakes, 1);
    end(notices);
}

/* --- operations --- */

static void test_what_ended_is_told_its_task(void **state)
{
    struct scene *scene = *state;
    struct operation operations[AT_ONCE + 3];
    for (int i = 0; i < AT_ONCE + 3; i++) {
        operations[i] = operation_of(scene, NULL);
        finish(scene, &operations[i]);
    }
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], REST_NS), AT_ONCE);
    assert_int_equal(operations[AT_ONCE - 1].ended, 1);
    assert_int_equal(operations[AT_ONCE].ended, 0);
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], REST_NS), 3);
    for (int i = 0; i < AT_ONCE + 3; i++)
        assert_int_equal(operations[i].ended, 1);
}

/* Leaves the notice for its own worker. */
static void kick_own(struct wf_task *task)
{
    struct operation *operation = WF_CONTAINER(task, struct operation, task);
    wf_kicks_one(&operation->notices->kicks, 0, operation->worker);
}

static void test_what_ends_makes_possible(void **state)
{
    struct scene *scene = *state;
    struct notices *notices = make(scene);
    struct operation operation = operation_of(scene, notices);
    operation.task.ended = kick_own;
    finish(scene, &operation);
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 2);
    assert_int_equal(notices->served[0], 1);

    scene->engines[0]->late = &operation.op; /* the same after a rest */
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], REST_NS), 2);
    assert_int_equal(notices->served[0], 2);
    assert_int_equal(scene->engines[0]->wakes, 0);
    end(notices);
}

/* --- chores --- */

/* Chores of the test's own. */
static struct chores {
    struct notices *notices; /* told: a notice for worker 1, or NULL */
    int copies;              /* that the next drive() of devices has ended; each leaves a notice, too */
    bool busy;
    int told, token_free;
    uint32_t token_seen; /* of worker 0 when its token was free */
    struct wf_worker *worker;
} chores;

static int drive_copies(void *devices, struct wf_worker *worker)
{
    int copies = chores.copies;
    if (chores.notices && copies > 0)
        wf_kicks_one(&chores.notices->kicks, 1, worker);
    assert_ptr_equal(devices, &chores);
    chores.copies = 0;
    return copies;
}

static bool copies_busy(void *devices, const struct wf_worker *worker)
{
    (void)worker;
    assert_ptr_equal(devices, &chores);
    return chores.busy;
}

static void tell(struct wf_worker *worker, struct wf_list *untold)
{
    if (wf_list_empty(untold))
        return;
    while (wf_list_pop_front(untold))
        continue;
    chores.told += 1;
    if (chores.notices)
        wf_kicks_one(&chores.notices->kicks, 1, worker);
}

static bool token_is_free(void *waiting)
{
    assert_ptr_equal(waiting, &chores);
    chores.token_free += 1;
    chores.token_seen = atomic_load(&chores.worker->token);
    return false;
}

static int set_up_chores(void **state)
{
    int result = scene_set_up(state);
    struct scene *scene = *state;
    chores = (struct chores){.worker = scene->crew.workers[0]};
    scene->crew.chores = (struct wf_chores){.drive = drive_copies,
                                            .busy = copies_busy,
                                            .devices = &chores,
                                            .tell = tell,
                                            .token_free = token_is_free,
                                            .waiting = &chores};
    return result;
}

static void test_rests_only_when_idle(void **state)
{
    struct scene *scene = *state;
    struct scene_engine *engine = scene->engines[0];
    struct wf_worker *worker = scene->crew.workers[0];
    struct operation operation = operation_of(scene, NULL);
    assert_int_equal(wf_worker_drive(worker, 0), 0);
    assert_int_equal(engine->polls, 1);
    assert_int_equal(engine->timeout_ns, 0);
    assert_int_equal(wf_worker_drive(worker, REST_NS), 0);
    assert_int_equal(engine->polls, 3);
    assert_int_equal(engine->timeout_ns, REST_NS);
    finish(scene, &operation);
    assert_int_equal(wf_worker_drive(worker, REST_NS), 1);
    assert_int_equal(engine->polls, 4);
    chores.copies = 2; /* a copy that ended is work, too */
    assert_int_equal(wf_worker_drive(worker, REST_NS), 2);
    assert_int_equal(engine->polls, 5);
    assert_int_equal(engine->timeout_ns, 0);
}

/* A ring may be taken by the look before the rest. */
static void test_rests_only_where_nobody_calls(void **state)
{
    struct scene *scene = *state;
    struct scene_engine *engine = scene->engines[0];
    struct wf_worker *worker = scene->crew.workers[0];
    _Atomic uint32_t call = 0;
    wf_worker_drive_until(worker, REST_NS, &call);
    assert_int_equal(engine->timeout_ns, REST_NS);
    atomic_store(&call, 1);
    wf_worker_drive_until(worker, REST_NS, &call);
    assert_int_equal(engine->timeout_ns, 0);
    atomic_store(&call, 0);
    atomic_store(&worker->stopping, true);
    wf_worker_drive_until(worker, REST_NS, &call);
    assert_int_equal(engine->timeout_ns, 0);
}

static void test_rests_little_beside_copies(void **state)
{
    static const struct {
        bool busy;
        int64_t timeout_ns, rest_ns;
    } cases[] = {
        {false, -1, -1},
        {true, -1, COPIES_NS},
        {true, REST_NS, COPIES_NS},
        {true, COPIES_NS - 1, COPIES_NS - 1},
    };
    struct scene *scene = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        chores.busy = cases[i].busy;
        wf_worker_drive(scene->crew.workers[0], cases[i].timeout_ns);
        assert_int_equal(scene->engines[0]->timeout_ns, cases[i].rest_ns);
    }
}

/* The worker that sends what a copy has made ready sleeps until its bell is rung. */
static void test_bells_of_copies(void **state)
{
    struct scene *scene = *state;
    chores.notices = make(scene);
    chores.copies = 1;
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 1);
    assert_int_equal(scene->engines[1]->wakes, 1);
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 0);
    assert_int_equal(scene->engines[1]->wakes, 1);
    end(chores.notices);
}

static void test_the_untold_is_told_when_idle(void **state)
{
    struct scene *scene = *state;
    struct notices *notices = make(scene);
    struct wf_link link;
    wf_link_init(&link);
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 0);
    assert_int_equal(chores.told, 0);
    wf_list_push_back(&scene->crew.workers[0]->untold, &link);
    chores.notices = notices;
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], 0), 0);
    assert_int_equal(chores.told, 1);
    assert_int_equal(scene->engines[1]->wakes, 1); /* the bell for the worker that is to send it */
    end(notices);
}

/* A round in which an operation ends. */
static void busy_round(struct scene *scene)
{
    struct operation operation = operation_of(scene, NULL);
    finish(scene, &operation);
    assert_int_equal(wf_worker_drive(scene->crew.workers[0], REST_NS), 1);
    assert_int_equal(operation.ended, 1);
}

static void test_the_untold_is_told_by_a_busy_worker(void **state)
{
    struct scene *scene = *state;
    struct wf_worker *worker = scene->crew.workers[0];
    struct wf_link link;
    wf_link_init(&link);
    for (int again = 0; again < 2; again++) {
        wf_list_push_back(&worker->untold, &link);
        for (int i = 0; i < ROUNDS_UNTOLD; i++) {
            busy_round(scene);
            assert_int_equal(chores.told, again);
        }
        busy_round(scene);
        assert_int_equal(chores.told, again + 1);
    }
    /* Rounds count only while there is something to tell. */
    wf_list_push_back(&worker->untold, &link);
    for (int i = 0; i < ROUNDS_UNTOLD; i++)
        busy_round(scene);
    wf_link_remove(&link);
    busy_round(scene);
    wf_list_push_back(&worker->untold, &link);
    busy_round(scene);
    assert_int_equal(chores.told, 2);
}

/* A user who drives a lent worker sends soon: frames carry what no sender waits for. */
static void test_a_lent_worker_leaves_the_untold_for_a_while(void **state)
{
    struct scene *scene = *state;
    struct wf_worker *worker = scene->crew.workers[0];
    struct wf_link untold, awaited;
    wf_link_init(&untold);
    wf_link_init(&awaited);
    wf_list_push_back(&worker->untold, &untold);
    wf_list_push_back(&worker->awaited, &awaited);
    assert_int_equal(wf_worker_drive_lent(worker), 0);
    assert_true(wf_link_in_list(&untold));
    assert_false(wf_link_in_list(&awaited));
    assert_int_equal(chores.told, 1);
    atomic_store(&worker->tell_all, true); /* its thread has rested once */
    assert_int_equal(wf_worker_drive_lent(worker), 0);
    assert_false(wf_link_in_list(&untold));
    assert_int_equal(chores.told, 2);
    wf_list_push_back(&worker->untold, &untold);
    assert_int_equal(wf_worker_drive(worker, 0), 0); /* nobody else will */
    assert_false(wf_link_in_list(&untold));
}

/* --- the token --- */

static void test_the_token_has_one_holder(void **state)
{
    struct scene *scene = *state;
    struct wf_worker *worker = scene->crew.workers[0];
    assert_true(wf_worker_try(worker));
    assert_false(wf_worker_try(worker));
    assert_true(wf_worker_try(scene->crew.workers[1]));
    wf_worker_leave(worker);
    assert_int_equal(chores.token_free, 1);
    assert_int_equal(chores.token_seen, WF_TOKEN_FREE);
    assert_true(wf_worker_try(worker));
    wf_worker_leave(worker);
}

/* Its leaver has looked for the last time when the notice comes, and nobody else could get the token. */
static void test_leaving_serves_what_came(void **state)
{
    struct scene *scene = *state;
    struct notices *first = make(scene), *second = make(scene);
    struct wf_worker *worker = scene->crew.workers[0];
    assert_true(wf_worker_try(worker));
    assert_int_equal(wf_worker_drive(worker, 0), 0);
    wf_kicks_one(&first->kicks, 0, NULL);
    first->next = second;
    first->next_times = 1;
    wf_worker_leave(worker);
    assert_int_equal(first->served[0], 1);
    assert_int_equal(second->served[0], 1);
    assert_int_equal(first->token_seen, WF_TOKEN_CALLER);
    assert_int_equal(chores.token_free, 1);
    assert_int_equal(atomic_load(&worker->token), WF_TOKEN_FREE);

    atomic_store(&worker->token, WF_TOKEN_THREAD); /* and as the worker's thread it is taken again by that */
    wf_kicks_one(&first->kicks, 0, NULL);
    wf_worker_leave(worker);
    assert_int_equal(first->token_seen, WF_TOKEN_THREAD);
    end(first);
    end(second);
}

static void test_a_thread_is_asked_for_the_token(void **state)
{
    struct scene *scene = *state;
    struct wf_worker *worker = scene->crew.workers[0];
    wf_worker_want(worker);
    atomic_store(&worker->token, WF_TOKEN_CALLER);
    wf_worker_want(worker);
    assert_int_equal(atomic_load(&worker->wanted), 0);
    assert_int_equal(scene->engines[0]->wakes, 0);
    atomic_store(&worker->token, WF_TOKEN_THREAD);
    wf_worker_want(worker);
    assert_int_equal(atomic_load(&worker->wanted), 1);
    assert_int_equal(scene->engines[0]->wakes, 1);
}

/* --- the end of a session --- */

static void test_the_end_takes_unseen_kicks_off(void **state)
{
    struct scene *scene = *state;
    struct notices *gone = make(scene), *other = make(scene);
    wf_kicks_all(&gone->kicks, NULL);
    wf_kicks_all(&other->kicks, NULL);
    end(gone);
    for (int i = 0; i < SCENE_WORKERS; i++) {
        assert_int_equal(wf_worker_drive(scene->crew.workers[i], 0), 1);
        assert_int_equal(other->served[i], 1);
    }
    end(other);
}

/* A notice that is being served in one thread while another ends the session. */
struct overlap {
    struct wf_kicks kicks;
    struct wf_worker *worker;
    sem_t begun, go_on, ended;
};

static void serve_slowly(struct wf_kicks *kicks, struct wf_worker *worker)
{
    struct overlap *overlap = WF_CONTAINER(kicks, struct overlap, kicks);
    (void)worker;
    sem_post(&overlap->begun);
    while (sem_wait(&overlap->go_on) != 0)
        continue;
}

static void *drive(void *argument)
{
    struct overlap *overlap = argument;
    wf_worker_drive(overlap->worker, 0);
    return NULL;
}

static void *fini(void *argument)
{
    struct overlap *overlap = argument;
    wf_kicks_fini(&overlap->kicks);
    sem_post(&overlap->ended);
    return NULL;
}

/* That something does not happen can only be waited for; that it does ends the wait at once. */
static bool ends_within_a_moment(struct overlap *overlap)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += MOMENT_NS;
    until.tv_sec += until.tv_nsec / WF_NS_PER_S;
    until.tv_nsec %= WF_NS_PER_S;
    int result;
    while ((result = sem_timedwait(&overlap->ended, &until)) != 0 && errno == EINTR)
        continue;
    return result == 0;
}

static void test_the_end_waits_for_what_is_served(void **state)
{
    struct scene *scene = *state;
    struct overlap overlap = {.worker = scene->crew.workers[0]};
    pthread_t driver, ender;
    sem_init(&overlap.begun, 0, 0);
    sem_init(&overlap.go_on, 0, 0);
    sem_init(&overlap.ended, 0, 0);
    wf_kicks_init(&overlap.kicks, &scene->crew, serve_slowly);
    wf_kicks_one(&overlap.kicks, 0, NULL);
    assert_int_equal(pthread_create(&driver, NULL, drive, &overlap), 0);
    while (sem_wait(&overlap.begun) != 0)
        continue;
    assert_int_equal(pthread_create(&ender, NULL, fini, &overlap), 0);
    bool early = ends_within_a_moment(&overlap);
    sem_post(&overlap.go_on);
    pthread_join(driver, NULL);
    pthread_join(ender, NULL);
    assert_false(early);
    sem_destroy(&overlap.begun);
    sem_destroy(&overlap.go_on);
    sem_destroy(&overlap.ended);
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, scene_set_up, scene_tear_down)
#define WITH_CHORES(test) cmocka_unit_test_setup_teardown(test, set_up_chores, scene_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(test_a_kick_is_served_once),
        IN_SCENE(test_kicks_are_for_their_worker),
        IN_SCENE(test_a_kick_for_no_worker),
        IN_SCENE(test_its_own_kick_is_served_in_the_round),
        IN_SCENE(test_a_kick_left_while_it_is_served),
        IN_SCENE(test_bells_are_rung_after_the_work),
        IN_SCENE(test_bells_of_what_ended),
        IN_SCENE(test_what_ended_is_told_its_task),
        IN_SCENE(test_what_ends_makes_possible),
        WITH_CHORES(test_rests_only_when_idle),
        WITH_CHORES(test_rests_only_where_nobody_calls),
        WITH_CHORES(test_rests_little_beside_copies),
        WITH_CHORES(test_bells_of_copies),
        WITH_CHORES(test_the_untold_is_told_when_idle),
        WITH_CHORES(test_the_untold_is_told_by_a_busy_worker),
        WITH_CHORES(test_a_lent_worker_leaves_the_untold_for_a_while),
        WITH_CHORES(test_the_token_has_one_holder),
        WITH_CHORES(test_leaving_serves_what_came),
        WITH_CHORES(test_a_thread_is_asked_for_the_token),
        IN_SCENE(test_the_end_takes_unseen_kicks_off),
        IN_SCENE(test_the_end_waits_for_what_is_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
