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

#endif
