/*
 * model_faults_parts.h: what model_faults.c (what may go wrong, and when), model_inject.c (what it is) and model_mend.c
 * (how it ends) share.
 */
#ifndef WEFT_TESTS_MODEL_FAULTS_PARTS_H
#define WEFT_TESTS_MODEL_FAULTS_PARTS_H

#include "model.h"

#define MODEL_ENDS 1024 /* of connections at a time */

bool model_is_silence(enum model_action action);
/* Tells the network how this rail is now. */
void model_apply_rail(struct model_world *world, int node, int rail);

/* A node's kernel tells it what is wrong with a rail, or that nothing is any more. */
void model_tell_rail(struct model_world *world, int node, int rail, enum wf_rail_trouble trouble);

/* Does it, wherever the seed says. False: there is no place for it at present. */
bool model_inject(struct model_world *world, enum model_action action);
void model_inject_one(struct model_world *world, int fd, enum model_action action);
/* Cuts device channels, now and then, while messages are on them. */
void model_cut_devices(struct model_world *world);

void model_mend_later(struct model_world *world, struct model_mend mend, int64_t after_ns);
/* Mends what is due. */
void model_mend_due(struct model_world *world, int64_t now);
/* Both ends of every connection; returns how many. */
int model_list_ends(struct model_world *world, int fds[MODEL_ENDS]);
/* Is it still an end of the same connection? */
bool model_is_there(struct model_world *world, int fd, uint64_t stream);
/* The process stands still until a time; 0: it goes on. */
void model_stop_until(struct model_world *world, int node, int64_t until_ns);

#endif
