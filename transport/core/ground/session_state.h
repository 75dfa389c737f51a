/*
 * session_state.h: the states of a session (docs/protocol.md says what leads from one to the next).
 */
#ifndef WF_CORE_GROUND_SESSION_STATE_H
#define WF_CORE_GROUND_SESSION_STATE_H

enum wf_session_state {
    WF_SESSION_JOINING, /* channels are being joined */
    WF_SESSION_UP,
    WF_SESSION_CLOSING, /* BYE is sent or due; channels end in an orderly way */
    WF_SESSION_FAILED,  /* halves let go of the memory; then every request ends with `error` */
    WF_SESSION_DEAD,    /* no channel, no request under way */
};

#endif
