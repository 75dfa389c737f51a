#include "wire/spread.h"

#define SAMPLE_NS 4000000LL       /* a sample is no shorter than this, for acknowledgements come in lumps; */
#define EARLY_SAMPLE_NS 1000000LL /* but the first ones; */
#define SAMPLE_BYTES (64 * 1024)  /* and has so many bytes, */
#define SAMPLE_MAX_NS 8000000LL   /* or takes so long: a token bucket lets the first bytes pass for nothing */
#define WEIGHT 0.4                /* of a new sample in the estimate; */
#define SETTLED 4                 /* the first ones, which may be quite wrong, are soon forgotten */
#define EARLY_WEIGHT 0.7
#define LAG_WEIGHT 0.25
#define STEP 2.0             /* the most by which one sample raises it */
#define STALE_NS 100000000LL /* a rail that has recovered is tried after this */
#define SLACK_NS 2000000.0   /* lateness that does not matter, */
#define SLACK_PART 0.125     /* nor does this part of the time that is left */
#define AHEAD_NS 5000000.0   /* what a lane may have under way: so much, */
#define AHEAD_PART 0.125     /* and this part of the time that is left, */
#define AHEAD_LAGS 1.5       /* or as many of its lags, so that a long way is kept full */
#define PIECE_BYTES 8192     /* smaller chunks would be mostly headers */
#define PIECE_NS 100000.0    /* with many lanes, than what all of them carry in this time */
#define TRIAL_WORK 4         /* work worth a trial of an idle lane, in probes; */
#define PROBE_WORK 2         /* of an unknown one, which is lost for ever if it is never tried */

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

bool wf_rate_busy(struct wf_rate *rate, int64_t now_ns)
{
    if (rate->since_ns != 0)
        return false;
    rate->since_ns = now_ns;
    rate->waits = true;
    return true;
}

void wf_rate_began(struct wf_rate *rate, int64_t began_ns)
{
    if (rate->waits && began_ns > rate->since_ns)
        rate->since_ns = began_ns;
}

/* The way there and back again, apart from the time that the bytes themselves take. */
static void note_lag(struct wf_rate *rate, int64_t now_ns, uint64_t bytes)
{
    rate->waits = false;
    if (rate->samples < SETTLED)
        return;
    double all = (double)(now_ns - rate->since_ns), own = smaller((double)bytes / rate->bytes_per_ns, all / 2);
    double change = all - own - (double)rate->lag_ns;
    rate->lag_ns += (int64_t)(rate->lag_ns == 0 ? change : LAG_WEIGHT * change);
}

static void take_sample(struct wf_rate *rate, double sample)
{
    double before = rate->bytes_per_ns, weight = rate->samples < SETTLED ? EARLY_WEIGHT : WEIGHT;
    rate->bytes_per_ns = before > 0 ? smaller(before + weight * (sample - before), STEP * before) : sample;
    rate->samples += rate->samples < SETTLED;
    rate->bytes = 0;
    rate->worked_ns = 0;
}

void wf_rate_acknowledged(struct wf_rate *rate, int64_t now_ns, uint64_t bytes, bool busy)
{
    if (rate->waits)
        note_lag(rate, now_ns, bytes);
    rate->bytes += bytes;
    rate->worked_ns += now_ns - rate->since_ns;
    rate->since_ns = busy ? now_ns : 0;
    rate->heard_ns = now_ns;
    int64_t least = rate->samples < SETTLED ? EARLY_SAMPLE_NS : SAMPLE_NS;
    bool enough = rate->worked_ns >= least && (rate->bytes >= SAMPLE_BYTES || rate->worked_ns >= SAMPLE_MAX_NS);
    bool first = rate->bytes_per_ns <= 0;
    if (rate->bytes > 0 && (enough || first))
        take_sample(rate, (double)rate->bytes / larger((double)rate->worked_ns, 1));
}

double wf_rate_estimate(const struct wf_rate *rate, int64_t news_ns, uint64_t outstanding)
{
    if (rate->since_ns == 0 || rate->bytes_per_ns <= 0)
        return rate->bytes_per_ns;
    /* Were everything under way acknowledged right now, it would still not be faster than this. */
    double elapsed = (double)rate->worked_ns + larger((double)(news_ns - rate->since_ns), 1);
    return smaller(rate->bytes_per_ns, ((double)rate->bytes + (double)outstanding) / elapsed);
}

bool wf_rate_is_stale(const struct wf_rate *rate, int64_t now_ns)
{
    return rate->bytes_per_ns > 0 && rate->since_ns == 0 && now_ns - rate->heard_ns >= STALE_NS;
}

/* The work at hand, and how it would be done by the lanes whose rates are known. */
struct work {
    double rates;         /* of all of them together, bytes per ns */
    double left_ns;       /* until all is done, */
    double slack_ns;      /* lateness that does not matter */
    double piece;         /* the least in one piece, unless less is left; */
    double chunk;         /* the most */
    double most;          /* the most that can be taken now */
    double all;           /* all the bytes that are left, under way or not */
    uint64_t outstanding; /* of all lanes */
    bool many;            /* lanes: they are compared with some others only */
};

static struct work survey(const struct wf_lane_total *total, uint64_t waiting, uint64_t chunk)
{
    struct work work = {.piece = WF_SPREAD_LEAST_BYTES, .chunk = (double)chunk, .outstanding = total->outstanding};
    if (total->known > 0) {
        work.rates = (double)total->rates / 1e9;
        work.left_ns = (double)(waiting + total->bytes) / work.rates;
    }
    work.many = total->lanes > WF_RIVALS;
    if (work.many)
        work.piece = larger(PIECE_NS * work.rates, WF_SPREAD_PROBE_BYTES);
    work.most = smaller((double)waiting, work.chunk);
    work.all = (double)(waiting + total->outstanding);
    if (work.left_ns >= AHEAD_NS) /* less work is handed out at once: slack would only make a lane end later */
        work.slack_ns = smaller(SLACK_PART * work.left_ns, SLACK_NS);
    return work;
}

/* Rounded up, so that a known rate is not 0. */
static uint64_t per_second(double bytes_per_ns)
{
    return (uint64_t)(bytes_per_ns * 1e9) + 1;
}

void wf_lane_total_add(struct wf_lane_total *total, const struct wf_lane *lane)
{
    total->lanes += 1;
    total->outstanding += lane->outstanding;
    if (lane->rate <= 0)
        return;
    total->known += 1;
    total->rates += per_second(lane->rate);
    total->bytes += lane->outstanding;
}

void wf_lane_total_remove(struct wf_lane_total *total, const struct wf_lane *lane)
{
    total->lanes -= 1;
    total->outstanding -= lane->outstanding;
    if (lane->rate <= 0)
        return;
    total->known -= 1;
    total->rates -= per_second(lane->rate);
    total->bytes -= lane->outstanding;
}

void wf_lane_total_join(struct wf_lane_total *total, const struct wf_lane_total *other)
{
    total->lanes += other->lanes;
    total->known += other->known;
    total->rates += other->rates;
    total->bytes += other->bytes;
    total->outstanding += other->outstanding;
}

/* The bytes that a lane may have under way. */
static double reach(const struct wf_lane *lane, const struct work *work)
{
    double ahead = larger(AHEAD_PART * work->left_ns + AHEAD_NS, AHEAD_LAGS * (double)lane->lag_ns);
    return larger(lane->rate * ahead, larger(PIECE_BYTES, work->piece));
}

/* What it takes at a time: half of that, so that acknowledgements come while more is under way. */
static double piece(const struct wf_lane *lane, const struct work *work)
{
    return smaller(larger(reach(lane, work) / 2, larger(PIECE_BYTES, work->piece)), work->chunk);
}

static bool has_room(const struct wf_lane *lane, const struct work *work)
{
    return lane->outstanding == 0 || reach(lane, work) - (double)lane->outstanding >= piece(lane, work) / 2;
}

/* With nothing under way the fastest lane that is ready takes the work; of equals the first. Returns the index of a
 * better one, or -1. */
static int find_faster(const struct wf_lane *lane, const struct wf_lane *const *rivals, int count)
{
    for (int i = 0; i < count; i++) {
        const struct wf_lane *rival = rivals[i];
        bool ahead = rival->rate > lane->rate || (rival->rate >= lane->rate && rival < lane);
        if (rival->ready && rival != lane && ahead)
            return i;
    }
    return -1;
}

/* Bytes of its trial: it has nothing under way, and its rate is unknown or may have changed. 0: none is due. */
static double trial(const struct wf_lane *lane, const struct work *work)
{
    bool known = lane->rate > 0;
    double least = (work->rates <= 0 ? 0 : known ? TRIAL_WORK : PROBE_WORK) * WF_SPREAD_PROBE_BYTES;
    if (!lane->ready || lane->outstanding > 0 || (known && !lane->stale) || work->all < least)
        return 0;
    return known ? WF_SPREAD_LEAST_BYTES : WF_SPREAD_PROBE_BYTES;
}

/* Lanes that are to be tried before the others go on. Where there are many, only those that never were: some are idle
 * for long then because others are enough. */
struct trials {
    double bytes; /* for all of them */
    int count, one;
};

static struct trials find_trials(const struct wf_lane *lane, const struct wf_lane *const *rivals, int count,
                                 const struct work *work)
{
    struct trials trials = {.one = -1};
    for (int i = 0; i < count; i++) {
        double bytes = rivals[i] != lane ? trial(rivals[i], work) : 0;
        if (bytes <= 0 || (work->many && rivals[i]->rate > 0))
            continue;
        trials.bytes += bytes;
        trials.count++;
        trials.one = i;
    }
    return trials;
}

/* Would another lane finish `bytes` more before this one? Though it has no room at the moment: it will. */
static bool beaten(const struct wf_lane *lane, const struct wf_lane *const *rivals, int count, double bytes)
{
    double mine = ((double)lane->outstanding + bytes) / lane->rate;
    for (int i = 0; i < count; i++) {
        const struct wf_lane *rival = rivals[i];
        if (rival != lane && rival->rate > 0 && ((double)rival->outstanding + bytes) / rival->rate < mine)
            return true;
    }
    return false;
}

/* Rounded up, and with what would be left, if that is too little for another piece. */
static uint64_t whole(double share, const struct work *work)
{
    if (work->most - share < WF_SPREAD_LEAST_BYTES)
        return (uint64_t)work->most;
    uint64_t down = (uint64_t)share;
    return down + (share > (double)down);
}

uint64_t wf_spread_share_of(const struct wf_lane_total *total, const struct wf_lane *lane,
                            const struct wf_lane *const *rivals, int count, uint64_t waiting, uint64_t chunk,
                            int *better)
{
    struct work work = survey(total, waiting, chunk);
    double least = smaller(work.most, work.piece);
    bool first = work.outstanding == 0;
    *better = first ? find_faster(lane, rivals, count) : -1;
    if (*better >= 0)
        return 0;
    if (lane->rate <= 0)
        return first || trial(lane, &work) > 0 ? (uint64_t)smaller(work.most, WF_SPREAD_PROBE_BYTES) : 0;

    struct trials trials = find_trials(lane, rivals, count, &work);
    if (trials.count > 0 && lane->outstanding > 0) { /* it has begun: now they do */
        *better = trials.one;
        return 0;
    }
    if (!has_room(lane, &work))
        return 0;
    double under_way = (double)lane->outstanding, room = larger(reach(lane, &work) - under_way, least);
    double share = lane->rate * (work.left_ns + work.slack_ns) - under_way;
    share = smaller(share, larger((double)waiting - trials.bytes, (double)waiting / (trials.count + 1)));
    if (share >= least)
        return whole(smaller(smaller(share, work.most), smaller(piece(lane, &work), room)), &work);
    return first || trial(lane, &work) > 0 || !beaten(lane, rivals, count, least) ? (uint64_t)least : 0;
}
