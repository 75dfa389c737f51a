/* One rank. Rank 0 writes JSON lines: the ranks, who was late, the curve, and the end. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "asked.h"
#include "base/clock.h"
#include "bench/collective/member.h"
#include "bench/nodes/link.h"
#include "bench/words/heard.h"
#include "rule.h"

#define WARM_UP 16 /* tellings before the first barrier: sessions are opened, pages are touched */
#define TOLD ((uint64_t)(sizeof(struct straggler_told) / sizeof(double)))

/* Of this process, which is one rank and then ends. */
struct member {
    struct straggler_asked asked;
    struct coll_membership own;
    uint32_t rank, ranks;
    int schedstat;              /* of this thread; -1: the kernel does not say */
    int64_t starved_ns;         /* in the life of this thread, as it was last looked at */
    struct straggler_told told; /* of the barrier that is next, or under way */
    struct straggler_told *all; /* of each rank */
    struct straggler_rule rule;
    struct straggler_judged *judged;
    double curve_ms; /* the largest usual lateness since the last point, and whose */
    uint32_t curve_rank;
    bool over; /* a barrier's deadline has passed, and the group has ended */
};

static double ms_since(int64_t begun_ns)
{
    return (double)(wf_clock_now(&wf_clock_monotonic) - begun_ns) / (double)WF_NS_PER_MS;
}

static void say(json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;

    if (text)
        puts(text);
    fflush(stdout);
    free(text);
    json_decref(line);
}

/* How long this thread could run and was not let, since the last call; 0 where that is not known. */
static double starved_ms(struct member *member)
{
    char text[96];
    long long ran, waited;
    ssize_t length = member->schedstat < 0 ? -1 : pread(member->schedstat, text, sizeof text - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    if (sscanf(text, "%lld %lld", &ran, &waited) != 2)
        return 0;
    double since_ms = (double)(waited - member->starved_ns) / (double)WF_NS_PER_MS;
    member->starved_ns = waited;
    return since_ms;
}

static void rest(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    while (ms && nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* --- one barrier --- */

static void delay(struct member *member, uint64_t number, struct straggler_told *told)
{
    rest(member->asked.interval_ms);
    if (straggler_delayed(&member->asked, number, member->ranks) != (int)member->rank)
        return;
    int64_t begun_ns = wf_clock_now(&wf_clock_monotonic);
    rest(member->asked.delay_ms);
    told->delayed_ms = ms_since(begun_ns);
}

static int enter(struct member *member, struct straggler_told *told, struct weft_error *err)
{
    told->later_starved_ms = starved_ms(member);
    int64_t entered_ns = wf_clock_now(&wf_clock_monotonic);
    int result = weft_group_barrier(member->own.group, member->asked.timeout_ms, err);
    told->wait_ms = ms_since(entered_ns);
    told->starved_ms = starved_ms(member);
    return result;
}

/* What was told is what all know; how long it took is told the next time. */
static int tell(struct member *member, struct weft_error *err)
{
    int64_t begun_ns = wf_clock_now(&wf_clock_monotonic);
    int result = weft_group_all_gather(member->own.group, &member->told, member->all, TOLD, WEFT_FLOAT64,
                                       member->asked.timeout_ms, err);

    member->told = (struct straggler_told){.tell_ms = ms_since(begun_ns), .tell_starved_ms = starved_ms(member)};
    return result;
}

static void say_late(const struct member *member, uint64_t number, uint32_t rank, double after_ms)
{
    const struct straggler_judged *judged = &member->judged[rank];

    say(json_pack("{s:I, s:i, s:f, s:f, s:f, s:b, s:f}", "barrier", (json_int_t)number, "rank", (int)rank, "late_ms",
                  judged->late_ms, "processor_ms", judged->kept_ms, "delayed_ms", member->all[rank].delayed_ms, "named",
                  judged->verdict == STRAGGLER_NAMED, "after_ms", after_ms));
}

/* Neither late nor delayed: others have a line of their own. */
static bool is_usual(const struct member *member, uint32_t rank)
{
    return member->judged[rank].verdict == STRAGGLER_IN_TIME && !(member->all[rank].delayed_ms > 0);
}

static void put_curve(struct member *member, uint64_t number)
{
    for (uint32_t i = 0; i < member->ranks; i++)
        if (is_usual(member, i) && member->judged[i].late_ms > member->curve_ms) {
            member->curve_ms = member->judged[i].late_ms;
            member->curve_rank = i;
        }
    if (number % straggler_step(&member->asked) && number != member->asked.barriers)
        return;
    say(json_pack("{s:I, s:i, s:f, s:f}", "to", (json_int_t)number, "rank", (int)member->curve_rank, "late_ms",
                  member->curve_ms, "usual_ms", straggler_usual_ms(&member->rule)));
    member->curve_ms = 0;
}

/* At rank 0, once all have told: it left the barrier at `left_ns`. */
static int judge(struct member *member, uint64_t number, int64_t left_ns, struct wf_status *status)
{
    double longest_ms = 0;

    if (straggler_look(&member->rule, member->all, member->ranks, member->judged) != 0)
        return wf_fail(status, -ENOMEM, "no memory for %u ranks", member->ranks);
    for (uint32_t i = 0; i < member->ranks; i++)
        longest_ms = fmax(longest_ms, member->all[i].wait_ms);
    for (uint32_t i = 0; i < member->ranks; i++)
        if (member->judged[i].verdict != STRAGGLER_IN_TIME || member->all[i].delayed_ms > 0)
            say_late(member, number, i, longest_ms + ms_since(left_ns));
    put_curve(member, number);
    return 0;
}

/* A late rank is named by the group itself once the deadline of the barrier is over, and the group has ended. If rank 0
 * is the late one, it hears at once what the others know since the deadline. */
static int past_deadline(struct member *member, uint64_t number, const struct weft_error *err)
{
    member->over = true;
    if (member->rank == 0)
        say(json_pack("{s:{s:I, s:o, s:f}}", "deadline", "barrier", (json_int_t)number, "text",
                      bench_heard_string(err->text), "after_ms", fmax(member->told.wait_ms, member->asked.timeout_ms)));
    return 0;
}

static int one_barrier(struct member *member, uint64_t number, struct wf_status *status)
{
    struct weft_error err = {0};

    delay(member, number, &member->told);
    int result = enter(member, &member->told, &err);
    int64_t left_ns = wf_clock_now(&wf_clock_monotonic);
    if (result == -ETIMEDOUT)
        return past_deadline(member, number, &err);
    if (result == 0)
        result = tell(member, &err);
    if (result)
        return bench_weft_failed(status, &err, NULL);
    return member->rank == 0 ? judge(member, number, left_ns, status) : 0;
}

/* --- from options to an exit status --- */

static void say_ranks(const struct member *member)
{
    json_t *names = json_array();

    for (uint32_t i = 0; i < member->ranks; i++)
        json_array_append_new(names, bench_heard_string(weft_group_member_name(member->own.group, i)));
    say(json_pack("{s:o, s:o, s:o, s:s}", "names", names, "ranks_by",
                  bench_heard_string(weft_group_source(member->own.group)), "rails",
                  bench_heard_string(weft_config_get(member->own.settings, "rails")), "processor_time",
                  member->schedstat < 0 ? "not known" : "/proc/thread-self/schedstat"));
}

static int prepare(struct member *member, struct wf_status *status)
{
    member->rank = weft_group_rank(member->own.group);
    member->ranks = weft_group_size(member->own.group);
    member->rule.threshold_ms = (double)member->asked.threshold_ms;
    member->schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    member->all = calloc(member->ranks, sizeof *member->all);
    member->judged = calloc(member->ranks, sizeof *member->judged);
    if (member->asked.delayed_rank >= (int)member->ranks)
        return wf_fail(status, -EINVAL, "--delayed-rank %d: the ranks are 0 to %u", member->asked.delayed_rank,
                       member->ranks - 1);
    if (member->ranks < 2)
        return wf_fail(status, -EINVAL, "one rank alone waits for nobody: start at least 2");
    return member->all && member->judged ? 0 : wf_fail(status, -ENOMEM, "no memory for %u ranks", member->ranks);
}

static int warm_up(struct member *member, struct wf_status *status)
{
    struct weft_error err = {0};

    for (int i = 0; i < WARM_UP; i++)
        if (tell(member, &err) != 0)
            return bench_weft_failed(status, &err, NULL);
    return 0;
}

static int all_barriers(struct member *member, struct wf_status *status)
{
    if (member->rank == 0)
        say_ranks(member);
    int result = warm_up(member, status);
    int64_t begun_ns = wf_clock_now(&wf_clock_monotonic);
    for (uint64_t number = 1; number <= member->asked.barriers && result == 0 && !member->over; number++)
        result = one_barrier(member, number, status);
    if (result == 0 && member->rank == 0 && !member->over)
        say(json_pack("{s:f, s:f}", "took_s", ms_since(begun_ns) / 1e3, "barrier_ms",
                      straggler_usual_ms(&member->rule)));
    return result;
}

static void finish(struct member *member)
{
    if (member->schedstat >= 0)
        close(member->schedstat);
    coll_leave(&member->own);
    free(member->all);
    free(member->judged);
}

int straggler_member(const struct bench_options *options)
{
    struct member member = {.schedstat = -1};
    struct wf_status status = {0};
    struct weft_error ignored;
    int result = straggler_read_asked(&member.asked, options, &status);

    if (result == 0)
        result = coll_join(options, &member.own, &status);
    if (result == 0)
        result = prepare(&member, &status);
    if (result == 0)
        result = all_barriers(&member, &status);
    if (result == 0 && !member.over) /* the last messages lie in the memory of others until they are done, too */
        weft_group_barrier(member.own.group, member.asked.timeout_ms, &ignored);
    if (result)
        fprintf(stderr, "weft: %s\n", status.text);
    finish(&member);
    return result == 0 ? BENCH_PASSED : result == -EINVAL ? BENCH_USAGE : BENCH_FAILED;
}
