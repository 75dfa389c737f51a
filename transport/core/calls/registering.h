/*
 * registering.h: the step behind weft_deregister(), for tests that must not wait.
 */
#ifndef WF_CORE_CALLS_REGISTERING_H
#define WF_CORE_CALLS_REGISTERING_H

struct weft_registration;

/* No new operation, peers' operations are refused; `uses` sinks to WF_REGISTRATION_ENDED. Does not wait. */
void wf_registration_end(struct weft_registration *registration);

#endif
