#include "wire/spread.h"

#define SAMPLE_NS 1000000LL    /* shortest sample */
#define RECOVER_NS 100000000.0 /* an idle estimate reaches the highest rate in this time */
#define WEIGHT 0.4             /* of a new sample in the estimate */

void wf_rate_busy(struct wf_rate *rate, int64_t now_ns)
{
    if (rate->since_ns != 0)
        return;
    rate->since_ns = now_ns;
    rate->bytes = 0;
}

void wf_rate_acknowledged(struct wf_rate *rate, int64_t now_ns, uint64_t bytes, bool busy)
{
    rate->bytes += bytes;
    int64_t elapsed = now_ns - rate->since_ns;
    if (elapsed >= SAMPLE_NS && rate->bytes > 0) {
        double sample = (double)rate->bytes / (double)elapsed;
        rate->bytes_per_ns =
            rate->bytes_per_ns > 0 ? rate->bytes_per_ns + WEIGHT * (sample - rate->bytes_per_ns) : sample;
        rate->measured_ns = now_ns;
        rate->since_ns = now_ns;
        rate->bytes = 0;
    }
    if (!busy)
        rate->since_ns = 0;
}

double wf_rate_estimate(const struct wf_rate *rate, int64_t now_ns, uint64_t outstanding, double highest)
{
    if (rate->bytes_per_ns <= 0)
        return highest;
    double estimate = rate->bytes_per_ns;
    if (rate->since_ns != 0) {
        /* Were everything under way acknowledged right now, it would still not be faster than this. */
        double elapsed = (double)(now_ns - rate->since_ns);
        double most = ((double)rate->bytes + (double)outstanding) / (elapsed > 1 ? elapsed : 1);
        return most < estimate ? most : estimate;
    }
    double idle = (double)(now_ns - rate->measured_ns) / RECOVER_NS;
    if (estimate >= highest || idle <= 0)
        return estimate;
    return idle >= 1 ? highest : estimate + idle * (highest - estimate);
}

/* Would another lane finish `bytes` more before this one? */
static bool beaten(const struct wf_lane *lanes, int count, int index, double bytes)
{
    double mine = ((double)lanes[index].outstanding + bytes) / lanes[index].rate;
    for (int i = 0; i < count; i++)
        if (i != index && ((double)lanes[i].outstanding + bytes) / lanes[i].rate < mine)
            return true;
    return false;
}

uint64_t wf_spread_share(const struct wf_lane *lanes, int count, int index, uint64_t waiting, uint64_t chunk)
{
    double rates = 0, bytes = (double)waiting;
    uint64_t most = waiting < chunk ? waiting : chunk;
    for (int i = 0; i < count; i++) {
        rates += lanes[i].rate;
        bytes += (double)lanes[i].outstanding;
    }
    double share = lanes[index].rate * (bytes / rates + WF_SPREAD_SLACK_NS) - (double)lanes[index].outstanding;
    uint64_t least = most < WF_SPREAD_LEAST_BYTES ? most : WF_SPREAD_LEAST_BYTES;
    if (share >= (double)most)
        return most;
    if (share >= (double)least)
        return (uint64_t)share;
    return beaten(lanes, count, index, (double)least) ? 0 : least;
}
