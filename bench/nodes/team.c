#include "team.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/words/interrupt.h"
#include "team_parts.h"

#define LEAST_PATIENCE_MS 1000

/* --- rails --- */

static void count_rail(struct weft_rail_stats *sum, const struct weft_rail_stats *now,
                       const struct weft_rail_stats *before)
{
    sum->sent_bytes += now->sent_bytes - before->sent_bytes;
    sum->received_bytes += now->received_bytes - before->received_bytes;
    sum->resent_bytes += now->resent_bytes - before->resent_bytes;
    sum->stalls += now->stalls - before->stalls;
    sum->failures += now->failures - before->failures;
    sum->damaged += now->damaged - before->damaged;
    sum->retransmits += now->retransmits - before->retransmits;
    sum->device_bound |= now->device_bound;
    sum->retired |= now->retired;
    sum->channels += now->channels;
    sum->channels_up += now->channels_up;
}

static int rails_of(const struct weft_peer *peer, struct weft_rail_stats *stats)
{
    int count = weft_peer_rails(peer, stats, BENCH_RAILS_MAX);

    return count > BENCH_RAILS_MAX ? BENCH_RAILS_MAX : count < 0 ? 0 : count;
}

/* Adds what a session has carried since it was met. A rail that it has met since then had carried nothing. */
static void count_partner(const struct bench_team *team, const struct bench_partner *partner,
                          struct weft_rail_stats *sums)
{
    struct weft_rail_stats now[BENCH_RAILS_MAX];
    int count = rails_of(partner->peer, now);

    for (int i = 0; i < count; i++) {
        struct weft_rail_stats none = {0};
        const struct weft_rail_stats *before = i < partner->rails ? &partner->before[i] : &none;
        for (int rail = 0; rail < team->rail_count; rail++)
            if (strcmp(sums[rail].name, now[i].name) == 0)
                count_rail(&sums[rail], &now[i], before);
    }
}

int bench_team_rails(struct bench_team *team, struct weft_rail_stats *stats)
{
    pthread_mutex_lock(&team->lock);
    memcpy(stats, team->carried, (size_t)team->rail_count * sizeof *stats);
    for (const struct bench_partner *at = team->partners; at; at = at->next)
        if (at->counts)
            count_partner(team, at, stats);
    pthread_mutex_unlock(&team->lock);
    return team->rail_count;
}

static void note_rails(struct bench_team *team)
{
    struct weft_rail_info rails[BENCH_RAILS_MAX];
    int count = weft_context_rails(team->link->context, rails, BENCH_RAILS_MAX);

    team->rail_count = count > BENCH_RAILS_MAX ? BENCH_RAILS_MAX : count < 0 ? 0 : count;
    for (int i = 0; i < team->rail_count; i++) {
        memcpy(team->carried[i].name, rails[i].name, sizeof rails[i].name);
        memcpy(team->carried[i].local, rails[i].address, sizeof rails[i].address);
    }
}

/* --- partners --- */

static struct bench_partner *find(struct bench_team *team, int node)
{
    struct bench_partner *at = team->partners;

    while (at && at->node != node)
        at = at->next;
    return at;
}

static int converse(struct bench_team *team, struct bench_partner *partner, struct weft_connection *connection,
                    struct wf_status *status)
{
    struct bench_control *control;
    int result = bench_control_create(connection, partner->peer, team->rank < partner->node ? 0 : 1, &control, status);

    if (result)
        return result;
    bench_control_set_other(control, partner->node);
    bench_control_look_after(control, bench_team_look, team);
    pthread_mutex_lock(&team->lock);
    partner->control = control;
    pthread_mutex_unlock(&team->lock);
    return 0;
}

/* The member's connection, with signals and the team looked at while it is waited for. */
static int reach(struct bench_team *team, int node, struct weft_connection **connection, struct wf_status *status)
{
    int patience = team->link->connect_timeout_ms;
    struct weft_error err = {0};
    int result = weft_group_connection(team->group, (uint32_t)node, patience, connection, &err);

    if (result == 0)
        return 0;
    result = bench_interrupted(status);
    if (result == 0)
        result = bench_team_look(team, status);
    return result ? result : bench_weft_failed(status, &err, NULL);
}

static struct bench_partner *add_partner(struct bench_team *team, int node)
{
    struct bench_partner *partner = find(team, node);

    if (partner)
        return partner;
    partner = calloc(1, sizeof *partner);
    if (!partner)
        return NULL;
    partner->node = node;
    pthread_mutex_lock(&team->lock);
    partner->next = team->partners;
    team->partners = partner;
    pthread_mutex_unlock(&team->lock);
    return partner;
}

static int open_partner(struct bench_team *team, int node, struct bench_partner **out, struct wf_status *status)
{
    struct bench_partner *partner = add_partner(team, node);
    struct weft_connection *connection;

    if (!partner)
        return wf_fail(status, -ENOMEM, "no memory for node%d", node);
    int result = partner->control ? 0 : reach(team, node, &connection, status);
    if (result == 0 && !partner->control) {
        partner->peer = weft_group_peer(team->group, (uint32_t)node);
        result = converse(team, partner, connection, status);
    }
    *out = partner;
    return result;
}

int bench_team_meet(struct bench_team *team, int other, struct wf_status *status)
{
    struct weft_rail_stats stats[BENCH_RAILS_MAX];
    struct bench_partner *partner;
    int result = open_partner(team, other, &partner, status);

    if (result)
        return result;
    int count = rails_of(partner->peer, stats);
    struct weft_rail_stats *before = calloc((size_t)count + 1, sizeof *before);
    if (!before)
        return wf_fail(status, -ENOMEM, "no memory for node%d", other);
    memcpy(before, stats, (size_t)count * sizeof *before);
    pthread_mutex_lock(&team->lock);
    free(partner->before);
    partner->before = before;
    partner->rails = count;
    partner->counts = true;
    pthread_mutex_unlock(&team->lock);
    team->link->peer = partner->peer;
    team->link->other = other;
    team->link->control = partner->control;
    return 0;
}

void bench_team_hang_up(struct bench_team *team, int other)
{
    struct bench_partner *partner = find(team, other);
    struct bench_control *control = partner && !partner->near ? partner->control : NULL;

    if (!control)
        return;
    pthread_mutex_lock(&team->lock);
    partner->control = NULL;
    pthread_mutex_unlock(&team->lock);
    bench_control_close(control);
}

static void take_out(struct bench_team *team, struct bench_partner *partner)
{
    struct bench_partner **at = &team->partners;

    while (*at != partner)
        at = &(*at)->next;
    *at = partner->next;
}

void bench_team_part(struct bench_team *team, int other)
{
    struct bench_partner *partner = find(team, other);

    if (!partner)
        return;
    bench_team_hang_up(team, other);
    team->link->peer = NULL;
    pthread_mutex_lock(&team->lock);
    if (partner->counts)
        count_partner(team, partner, team->carried);
    for (int i = 0; i < team->rail_count; i++)
        team->carried[i].channels = team->carried[i].channels_up = 0; /* of sessions that are no more */
    partner->counts = false;
    if (!partner->near)
        take_out(team, partner);
    pthread_mutex_unlock(&team->lock);
    if (partner->near)
        return;
    weft_group_release(team->group, (uint32_t)other);
    free(partner->before);
    free(partner);
}

/* --- join and leave --- */

static int open_tree(struct bench_team *team, struct wf_status *status)
{
    int result = 0;

    if (team->rank > 0) {
        result = open_partner(team, (team->rank - 1) / 2, &team->up, status);
        if (result == 0)
            team->up->near = true;
    }
    for (int i = 0; result == 0 && i < 2 && 2 * team->rank + 1 + i < team->size; i++) {
        result = open_partner(team, 2 * team->rank + 1 + i, &team->down[i], status);
        if (result == 0)
            team->down[i]->near = true;
    }
    return result;
}

static int join(struct bench_team *team, const struct weft_group_options *options, struct wf_status *status)
{
    struct weft_error err = {0};
    int patience =
        team->link->connect_timeout_ms > LEAST_PATIENCE_MS ? team->link->connect_timeout_ms : LEAST_PATIENCE_MS;

    if (weft_group_create(team->link->context, options, patience, &team->group, &err) != 0)
        return bench_weft_failed(status, &err, NULL);
    team->rank = (int)weft_group_rank(team->group);
    team->size = (int)weft_group_size(team->group);
    note_rails(team);
    int result = bench_control_create_for(&bench_team_of_all, team, &team->all, status);
    if (result == 0)
        result = bench_control_create_for(&bench_team_of_one, team, &team->alone, status);
    return result ? result : open_tree(team, status);
}

int bench_team_join(struct bench_link *link, const struct weft_group_options *options, struct bench_team **out,
                    struct wf_status *status)
{
    struct bench_team *team = calloc(1, sizeof *team);

    if (!team)
        return wf_fail(status, -ENOMEM, "no memory for a team");
    pthread_mutex_init(&team->lock, NULL);
    team->link = link;
    team->culprit = -1;
    *out = team;
    int result = join(team, options, status);
    if (result)
        return result;
    link->node = team->rank;
    link->control = team->all;
    link->team = team;
    return 0;
}

void bench_team_leave(struct bench_team *team)
{
    if (!team)
        return;
    weft_group_destroy(team->group);
    team->link->team = NULL;
    team->link->peer = NULL;
}

void bench_team_free(struct bench_team *team)
{
    while (team && team->partners) {
        struct bench_partner *partner = team->partners;
        team->partners = partner->next;
        bench_control_destroy(partner->control);
        free(partner->before);
        free(partner);
    }
    if (!team)
        return;
    bench_control_destroy(team->all);
    bench_control_destroy(team->alone);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

int bench_team_size(const struct bench_team *team)
{
    return team->size;
}

uint32_t bench_team_sessions(const struct bench_team *team)
{
    return weft_group_sessions(team->group);
}

const char *bench_team_source(const struct bench_team *team)
{
    return weft_group_source(team->group);
}

const char *bench_team_refused(const struct bench_team *team)
{
    return weft_group_refused(team->group);
}

struct bench_control *bench_team_control(const struct bench_team *team)
{
    return team->all;
}

struct bench_control *bench_team_alone(const struct bench_team *team)
{
    return team->alone;
}
