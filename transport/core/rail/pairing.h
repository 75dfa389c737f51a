/*
 * pairing.h: which rail of ours is used with which rail of the peer. Every rail of both sides is in a pair if the other
 * side has a rail of its family; a rail of the side with fewer rails is in several. Pure.
 *
 * The best pairs come first: rails in one subnet and of one name (two machines of one model give the same card the same
 * name); in one subnet; of one name; in the order of the lists. Where a subnet contains a narrower one, the rails of
 * the narrower one choose first. The subnet of link-local addresses says nothing: link-local rails are paired with each
 * other.
 */
#ifndef WF_CORE_RAIL_PAIRING_H
#define WF_CORE_RAIL_PAIRING_H

#include <sys/socket.h>

/* What pairing needs to know of a rail. */
struct wf_pairing_rail {
    struct sockaddr_storage address;
    int prefix;       /* bits of its subnet; 0: unknown, as for the peer's rails */
    const char *name; /* the interface's; "": unknown */
};

struct wf_rail_pair {
    int ours, theirs; /* indexes of the lists */
};

/* Returns how many pairs there are, at most `max`, in the order of our list; 0: the lists have no family in common. */
int wf_pair_rails(const struct wf_pairing_rail *ours, int our_count, const struct wf_pairing_rail *theirs,
                  int their_count, struct wf_rail_pair *pairs, int max);

#endif
