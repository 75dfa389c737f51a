/*
 * trial.h: a device channel is tried before it carries a message. The pattern that its payload stream begins with is
 * read back from where the card has put it; where it is another one, or the card has put none of it into the GPU's
 * memory, the inlet is left. What the peer has sent behind it meanwhile is not read, and goes on other channels.
 */
#ifndef WF_CORE_SESSION_TRIAL_H
#define WF_CORE_SESSION_TRIAL_H

#include <stdbool.h>

struct wf_channel;

/* wf_channel_ops.take_pattern. */
int wf_session_take_pattern(struct wf_channel *channel, bool all);

#endif
