/*
 * lease_fixture.h: a card as 'weft nic prepare' leaves it, in a kernel that is played; an empty folder for records; and
 * streams over loopback, accepted at one port.
 */
#ifndef LEASE_FIXTURE_H
#define LEASE_FIXTURE_H

#include "devmem/lease.h"
#include "devmem_fixture.h"

#define LEASE_STREAMS 3

extern struct fake_kernel fake;
extern struct wf_lease_place place;
extern struct wf_lease *lease; /* NULL: none */
extern struct wf_status status;
extern char folder[64];
extern int callers[LEASE_STREAMS], streams[LEASE_STREAMS]; /* the ends that dial, and that accept */

/* The card is as it was at first: 4 queues, other traffic to the first two. */
void lease_set_card(void);

int lease_start(void **state);
int lease_end(void **state);

/* Fails with the words of `status`. */
void must(int result);

/* Rules in the card. */
int rules(void);

#endif
