#include "lobby.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bench/words/interrupt.h"
#include "hello.h"

#define SLICE_MS 50    /* how soon a change in the line is told */
#define SEND_AWAY_MS 0 /* for the session of one who is not there, or does not speak, to end */
#define LAST_WORD_MS 100

/* Somebody in the lobby: in line as soon as there is a control. */
struct seat {
    struct bench_guest guest;
    int64_t until_ns; /* when the control connection has to be there */
    int told;         /* how many are before it, as it was told last; 0: nothing was */
};

struct bench_lobby {
    struct bench_link *house;
    FILE *news;
    pthread_t thread;
    atomic_bool stopped;
    pthread_mutex_t lock; /* for what follows */
    pthread_cond_t came;  /* somebody is in line */
    struct seat *seats;   /* in the order in which they came */
    int count, room;
    bool busy; /* somebody has their turn */
};

/* --- seats; all with the lock held --- */

static void remove_seat(struct bench_lobby *lobby, int at)
{
    lobby->count--;
    memmove(&lobby->seats[at], &lobby->seats[at + 1], (size_t)(lobby->count - at) * sizeof *lobby->seats);
}

/* Its session, and all that goes with it. */
static void end_guest(struct bench_guest *guest, int timeout_ms)
{
    weft_peer_close(guest->peer, timeout_ms, NULL);
    bench_control_collect(guest->control);
    bench_control_destroy(guest->control);
}

static void send_away(struct bench_lobby *lobby, int at, const char *why)
{
    struct seat *seat = &lobby->seats[at];

    if (lobby->news) {
        fprintf(lobby->news, "%s has left the line: %s\n", weft_peer_name(seat->guest.peer), why);
        fflush(lobby->news);
    }
    end_guest(&seat->guest, SEND_AWAY_MS);
    remove_seat(lobby, at);
}

static void let_in(struct bench_lobby *lobby, struct weft_peer *peer)
{
    if (lobby->count == lobby->room) {
        int room = lobby->room ? 2 * lobby->room : 8;
        struct seat *grown = realloc(lobby->seats, (size_t)room * sizeof *grown);
        if (!grown) {
            weft_peer_close(peer, SEND_AWAY_MS, NULL);
            return;
        }
        lobby->seats = grown;
        lobby->room = room;
    }
    lobby->seats[lobby->count++] = (struct seat){
        .guest = {.peer = peer},
        .until_ns = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), lobby->house->connect_timeout_ms)};
}

/* Whether the control connection is there now. */
static int seat_down(struct bench_lobby *lobby, struct seat *seat, struct wf_status *status)
{
    struct bench_guest *guest = &seat->guest;
    struct weft_error err = {0};
    int result = weft_connection_accept(lobby->house->endpoint, guest->peer, BENCH_CONTROL_ENDPOINT, 0,
                                        &guest->connection, &err);

    if (result == -ETIMEDOUT && weft_peer_status(guest->peer, NULL) == 0) {
        if (wf_clock_now(&wf_clock_monotonic) < seat->until_ns)
            return 0;
        return wf_fail(status, -ETIMEDOUT, "it has said nothing for %d s (--connect-timeout)",
                       lobby->house->connect_timeout_ms / 1000);
    }
    if (result)
        return bench_weft_failed(status, &err, NULL);
    return bench_control_create(guest->connection, guest->peer, lobby->house->node, &guest->control, status);
}

static void tell_place(struct seat *seat, int before)
{
    json_t *text;

    if (before == 0 || before == seat->told)
        return;
    text = json_pack("{s:s, s:i}", "hello", BENCH_HELLO, "before", before);
    if (bench_control_notify(seat->guest.control, text) == 0)
        seat->told = before;
    json_decref(text);
}

/* Goes through all seats. */
static void look_around(struct bench_lobby *lobby)
{
    int before = lobby->busy ? 1 : 0;

    for (int at = 0; at < lobby->count;) {
        struct seat *seat = &lobby->seats[at];
        struct wf_status status = {0};
        int result =
            seat->guest.control ? bench_control_check(seat->guest.control, &status) : seat_down(lobby, seat, &status);
        if (result && result != -EINTR) {
            send_away(lobby, at, status.text);
            continue;
        }
        if (seat->guest.control) {
            tell_place(seat, before++);
            pthread_cond_signal(&lobby->came);
        }
        at++;
    }
}

static void *attend(void *context)
{
    struct bench_lobby *lobby = context;

    while (!atomic_load(&lobby->stopped)) {
        struct weft_peer *peer;
        int result = weft_accept(lobby->house->context, SLICE_MS, &peer, NULL);
        pthread_mutex_lock(&lobby->lock);
        if (result == 0)
            let_in(lobby, peer);
        look_around(lobby);
        pthread_mutex_unlock(&lobby->lock);
    }
    return NULL;
}

/* --- the line --- */

/* The first one in line; false: there is none. With the lock held. */
static bool take_first(struct bench_lobby *lobby, struct bench_guest *out)
{
    for (int at = 0; at < lobby->count; at++) {
        if (!lobby->seats[at].guest.control)
            continue;
        *out = lobby->seats[at].guest;
        remove_seat(lobby, at);
        lobby->busy = true;
        look_around(lobby); /* the others have moved up */
        return true;
    }
    return false;
}

/* Until somebody is in line, or so soon that a signal is noticed. With the lock held. */
static void await_guest(struct bench_lobby *lobby)
{
    int64_t until_ns = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), SLICE_MS);
    const struct timespec until = {until_ns / WF_NS_PER_S, until_ns % WF_NS_PER_S};

    pthread_cond_timedwait(&lobby->came, &lobby->lock, &until);
}

int bench_lobby_next(struct bench_lobby *lobby, int timeout_ms, struct bench_guest *out, struct wf_status *status)
{
    int64_t deadline = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), timeout_ms);
    int result;

    pthread_mutex_lock(&lobby->lock);
    while ((result = bench_interrupted(status)) == 0 && !take_first(lobby, out)) {
        if (wf_clock_now(&wf_clock_monotonic) >= deadline) {
            result = wf_fail(status, -ETIMEDOUT, "no client came within %d s (--idle-timeout)", timeout_ms / 1000);
            break;
        }
        await_guest(lobby);
    }
    pthread_mutex_unlock(&lobby->lock);
    return result;
}

void bench_lobby_done(struct bench_lobby *lobby)
{
    pthread_mutex_lock(&lobby->lock);
    lobby->busy = false;
    pthread_mutex_unlock(&lobby->lock);
}

/* --- its beginning and end --- */

/* Deadlines are of the clock that does not jump. */
static void init_waiting(struct bench_lobby *lobby)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&lobby->came, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&lobby->lock, NULL);
}

static void fini_waiting(struct bench_lobby *lobby)
{
    pthread_cond_destroy(&lobby->came);
    pthread_mutex_destroy(&lobby->lock);
}

int bench_lobby_open(struct bench_link *house, FILE *news, struct bench_lobby **out, struct wf_status *status)
{
    struct bench_lobby *lobby = calloc(1, sizeof *lobby);

    if (!lobby)
        return wf_fail(status, -ENOMEM, "no memory for the line of clients");
    lobby->house = house;
    lobby->news = news;
    init_waiting(lobby);
    int result = pthread_create(&lobby->thread, NULL, attend, lobby);
    if (result) {
        fini_waiting(lobby);
        free(lobby);
        return wf_fail(status, -result, "cannot start the thread that lets clients in: %s", wf_strerror(result));
    }
    *out = lobby;
    return 0;
}

void bench_lobby_close(struct bench_lobby *lobby, const char *reason, int signal)
{
    if (!lobby)
        return;
    atomic_store(&lobby->stopped, true);
    pthread_join(lobby->thread, NULL);
    for (int at = 0; at < lobby->count; at++)
        if (lobby->seats[at].guest.control)
            bench_control_abort(lobby->seats[at].guest.control, reason, BENCH_FAILED, signal);
    for (int at = 0; at < lobby->count; at++)
        end_guest(&lobby->seats[at].guest, LAST_WORD_MS);
    free(lobby->seats);
    fini_waiting(lobby);
    free(lobby);
}
