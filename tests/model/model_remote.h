/*
 * model_remote.h: one-sided operations of the model test; called by the schedule as model_messages.c is.
 */
#ifndef WEFT_TESTS_MODEL_REMOTE_H
#define WEFT_TESTS_MODEL_REMOTE_H

#include "model.h"

void model_remote_open(struct model_world *world);
void model_remote_act(struct model_world *world);
void model_remote_collect(struct model_world *world, int connection, int from);
bool model_remote_drain(struct model_world *world, int connection, int from);
/* After the connections are closed, or the sessions dead, and before the contexts go: nobody uses a registration any
 * more. */
void model_remote_close(struct model_world *world);
bool model_remote_all_ended(const struct model_world *world, int connection, int from);
/* As model_forget(), before the node's context goes. */
void model_remote_forget(struct model_world *world, int node);
void model_remote_judge(struct model_world *world);
void model_remote_free(struct model_world *world);

/* --- model_notices.c: notifications of no operation --- */
/* One action of a user; all that is drawn comes from `bits`. */
void model_notices_act(struct model_world *world, uint64_t bits);
void model_notices_collect(struct model_world *world, int connection, int from);
struct model_notice *model_notice_of(struct model_side *side, uint64_t tag);
/* A receive has ended with this notice. */
void model_notice_told(const struct model_world *world, struct model_side *side, struct model_notice *notice,
                       const struct model_note_receive *receive, const struct weft_completion *completion);
bool model_notices_ended(const struct model_side *side);
/* Must some still be told? */
bool model_notices_owed(const struct model_side *side);
void model_notices_forget(struct model_side *side);
void model_notices_free(struct model_side *side);

#endif
