#include "work.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/limits.h"
#include "bench/plan/options.h"
#include "bench/words/interrupt.h"
#include "collective/weft_coll.h"

void coll_note_time(struct coll_time *noted)
{
    time_t now = time(NULL);
    struct tm utc;

    gmtime_r(&now, &utc);
    strftime(noted->started, sizeof noted->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    strftime(noted->stamp, sizeof noted->stamp, "%Y%m%d_%H%M%S", &utc);
}

static int heard(void *context, int signal)
{
    (void)context;
    (void)signal;
    return BENCH_LAST_WORDS_MS;
}

static void waiting(void *context, int signal)
{
    (void)context;
    fprintf(stderr, "weft: ending the ranks after %s: a second signal ends weft at once\n", bench_signal_name(signal));
}

/* What still runs has a keeper, which notices that this process has gone. */
static void last_words(void *context, bool again)
{
    (void)context;
    fprintf(stderr, "weft: interrupted by %s%s\n", bench_signal_name(bench_interrupt_signal()),
            again ? ", and ended at once by a second signal" : "");
}

int coll_with_signals(int (*work)(void *context, struct wf_status *status), void *context, struct wf_status *status)
{
    static const struct bench_interrupt_ops ops = {heard, waiting, last_words};
    int result = bench_interrupt_start(&ops, context, status);

    if (result == 0) {
        result = work(context, status);
        bench_interrupt_stop();
    }
    return result;
}

bool coll_has_first(bool found)
{
    return found && weft_group_launched() == 1;
}

int coll_refused(struct wf_status *status)
{
    wf_blame_memory_limit(status);
    fprintf(stderr, "weft: %s\n", status->text);
    return status->code == -EINVAL ? BENCH_USAGE : status->code == -EOPNOTSUPP ? BENCH_UNAVAILABLE : BENCH_FAILED;
}
