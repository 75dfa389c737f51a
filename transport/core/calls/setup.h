/*
 * setup.h: the steps that all calls share that begin to set up or end a peer or a connection.
 */
#ifndef WF_CORE_CALLS_SETUP_H
#define WF_CORE_CALLS_SETUP_H

#include <stdint.h>

#include "weft.h"

/* Checks the options of such a call, whose name is `call`, and its flags against `allowed`. 0 or -EINVAL. */
int wf_setup_check(const struct weft_context *context, const struct weft_options *options, uint32_t allowed,
                   const char *call, struct weft_error *err);

#endif
