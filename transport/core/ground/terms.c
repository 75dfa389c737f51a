#include "core/ground/terms.h"

/* A rail of 25 Gbit/s takes 42 us for it: about as long as two threads take to wake. */
#define BRIEF_BYTES (128u * 1024)

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void wf_terms_init(struct wf_terms *terms, const struct wf_world *world, bool dialer, const struct wf_hello *peer)
{
    const struct wf_tuning *tuning = &world->tuning;
    terms->dialer = dialer;
    terms->greets = (peer->features & WF_FEATURE_GREETING) != 0;
    terms->peer_boot = peer->boot_nonce;
    terms->features = peer->features & ~(tuning->devmem ? UINT64_C(0) : WF_FEATURE_DEVICE);
    terms->limits = peer->limits;
    terms->chunk = smaller(tuning->chunk, peer->limits.chunk);
    terms->eager = smaller(tuning->eager, terms->chunk);
    terms->first_burst = tuning->first_burst;
    terms->brief = world->shared ? 0 : smaller(BRIEF_BYTES, terms->chunk);
    /* The peer reduces its own `eager` by the same rule. */
    terms->limits.eager = smaller(peer->limits.eager, terms->chunk);
}
