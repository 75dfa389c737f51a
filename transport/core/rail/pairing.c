#include "core/rail/pairing.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/rail/address.h"

#define RAILS_MAX 64
#define ANOTHER_FAMILY (-1)
#define BEST 5
#define IN_SUBNET 4 /* this likeness and BEST: in one subnet */
#define PREFIX_MAX 128

struct pairing {
    const struct wf_pairing_rail *ours, *theirs;
    int our_count, their_count;
    int our_pairs[RAILS_MAX], their_pairs[RAILS_MAX]; /* number of pairs of each rail so far */
    struct wf_rail_pair *pairs;
    int count, max;
};

/* How well two rails suit each other: 0 .. BEST. ANOTHER_FAMILY: they cannot be a pair. */
static int likeness(const struct wf_pairing_rail *ours, const struct wf_pairing_rail *theirs)
{
    const struct sockaddr_storage *a = &ours->address, *b = &theirs->address;
    if (a->ss_family != b->ss_family)
        return ANOTHER_FAMILY;
    bool same_name = ours->name[0] && strcmp(ours->name, theirs->name) == 0;
    bool local = wf_address_is_link_local(a);
    if (local != wf_address_is_link_local(b))
        return 0;
    if (!local && ours->prefix > 0 && wf_address_in_subnet(a, b, ours->prefix))
        return same_name ? BEST : IN_SUBNET;
    return same_name ? 2 : 1;
}

static void add(struct pairing *pairing, int ours, int theirs)
{
    if (pairing->count == pairing->max)
        return;
    pairing->pairs[pairing->count++] = (struct wf_rail_pair){ours, theirs};
    pairing->our_pairs[ours] += 1;
    pairing->their_pairs[theirs] += 1;
}

static void match_one(struct pairing *pairing, int i, int least)
{
    for (int k = 0; k < pairing->their_count && pairing->our_pairs[i] == 0; k++)
        if (pairing->their_pairs[k] == 0 && likeness(&pairing->ours[i], &pairing->theirs[k]) >= least)
            add(pairing, i, k);
}

/* Gives each rail one pair, as long as both sides have a rail without one; `least`: the least likeness of a pair. A
 * subnet may contain a narrower one, whose rails have less choice: the rails of the narrowest subnet choose first. */
static void match(struct pairing *pairing, int least)
{
    for (int prefix = PREFIX_MAX; prefix > 0 && least >= IN_SUBNET; prefix--)
        for (int i = 0; i < pairing->our_count; i++)
            if (pairing->ours[i].prefix == prefix)
                match_one(pairing, i, least);
    for (int i = 0; i < pairing->our_count; i++)
        match_one(pairing, i, least);
}

/* For the rail `index`, which has no pair: the rail of the other side that suits it best; of equal rails the one with
 * the fewest pairs. -1: there is none of its family. */
static int choose(const struct pairing *pairing, int index, bool is_ours)
{
    int best = -1, best_likeness = ANOTHER_FAMILY;
    const int *used = is_ours ? pairing->their_pairs : pairing->our_pairs;
    for (int k = 0; k < (is_ours ? pairing->their_count : pairing->our_count); k++) {
        int ours = is_ours ? index : k, theirs = is_ours ? k : index;
        int found = likeness(&pairing->ours[ours], &pairing->theirs[theirs]);
        if (found > best_likeness || (best >= 0 && found == best_likeness && used[k] < used[best])) {
            best = k;
            best_likeness = found;
        }
    }
    return best;
}

static int in_order(const void *a, const void *b)
{
    const struct wf_rail_pair *x = a, *y = b;
    return x->ours != y->ours ? x->ours - y->ours : x->theirs - y->theirs;
}

int wf_pair_rails(const struct wf_pairing_rail *ours, int our_count, const struct wf_pairing_rail *theirs,
                  int their_count, struct wf_rail_pair *pairs, int max)
{
    struct pairing pairing = {
        .ours = ours,
        .theirs = theirs,
        .our_count = our_count < RAILS_MAX ? our_count : RAILS_MAX,
        .their_count = their_count < RAILS_MAX ? their_count : RAILS_MAX,
        .pairs = pairs,
        .max = max,
    };
    for (int least = BEST; least >= 0; least--)
        match(&pairing, least);
    for (int i = 0, partner; i < pairing.our_count; i++)
        if (pairing.our_pairs[i] == 0 && (partner = choose(&pairing, i, true)) >= 0)
            add(&pairing, i, partner);
    for (int k = 0, partner; k < pairing.their_count; k++)
        if (pairing.their_pairs[k] == 0 && (partner = choose(&pairing, k, false)) >= 0)
            add(&pairing, partner, k);
    qsort(pairs, (size_t)pairing.count, sizeof(*pairs), in_order);
    return pairing.count;
}
