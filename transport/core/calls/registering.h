/*
 * registering.h: the step behind weft_deregister(), for tests that must not wait.
 */
#ifndef WF_CORE_CALLS_REGISTERING_H
#define WF_CORE_CALLS_REGISTERING_H

struct weft_registration;

/* Ends the registration: no new operation can hold it, operations of peers are refused, and `uses` falls to
 * WF_REGISTRATION_ENDED. Does not wait. */
void wf_registration_end(struct weft_registration *registration);

#endif
