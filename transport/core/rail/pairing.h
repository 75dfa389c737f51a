/*
 * pairing.h: which rail of ours meets which of theirs. Every rail of both sides is in a pair, as far as the other side
 * has one of its family; a rail of the shorter side is in several. Pure.
 *
 * Best first: in one subnet and of one name (two machines of a kind call the same card the same); in one subnet; of one
 * name; in the order of the lists. Where a subnet holds another one, the rails of the narrower choose first. Link-local
 * addresses are in no subnet that would say anything, and meet their like.
 */
#ifndef WF_CORE_RAIL_PAIRING_H
#define WF_CORE_RAIL_PAIRING_H

#include <sys/socket.h>

/* A rail as far as this goes. */
struct wf_pairing_rail {
    struct sockaddr_storage address;
    int prefix;       /* bits of its subnet; 0: unknown, as of theirs */
    const char *name; /* the interface's; "": unknown */
};

struct wf_rail_pair {
    int ours, theirs; /* indexes of the lists */
};

/* Returns how many pairs there are, at most `max`, in the order of our list; 0: the lists have no family in common. */
int wf_pair_rails(const struct wf_pairing_rail *ours, int our_count, const struct wf_pairing_rail *theirs,
                  int their_count, struct wf_rail_pair *pairs, int max);

#endif
