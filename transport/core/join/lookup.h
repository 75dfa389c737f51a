/*
 * lookup.h: names are looked up by a thread of their own, since the system's call for that waits. There is at most one,
 * it is started when a name waits and ends when none does. It may be in that call for long: the door does not wait for
 * it, also not at its end.
 */
#ifndef WF_CORE_JOIN_LOOKUP_H
#define WF_CORE_JOIN_LOOKUP_H

#include "base/status.h"
#include "core/join/door.h"

struct wf_lookup;

/* `bell`: its wake() tells of answers. NULL: no memory. */
struct wf_lookup *wf_lookup_create(struct wf_engine *bell);
/* Forgets all names. A look-up under way ends by itself, and frees what is left. */
void wf_lookup_destroy(struct wf_lookup *lookup);

/* --- the door's thread --- */

/* Asks for the addresses of `dial->name`. 0, or -errno with `status`. */
int wf_lookup_ask(struct wf_lookup *lookup, struct wf_dial *dial, int default_port, struct wf_status *status);
/* The dial does not want an answer any more. */
void wf_lookup_forget(struct wf_lookup *lookup, struct wf_dial *dial);
/* A dial whose answer has come: its addresses are filled in, or its status. NULL: there is none. */
struct wf_dial *wf_lookup_answered(struct wf_lookup *lookup);

#endif
