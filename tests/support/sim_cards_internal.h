/* sim_cards_internal.h: what the simulated engine asks of simulated cards. */
#ifndef WEFT_TESTS_SUPPORT_SIM_CARDS_INTERNAL_H
#define WEFT_TESTS_SUPPORT_SIM_CARDS_INTERNAL_H

#include "sim_internal.h"

/* May a RECV with control messages bring something? */
bool sim_cards_can_read(const struct sim_socket *socket);
/* As sim_read(), into the inlet of the socket, or ordinarily where there is none. */
int64_t sim_cards_read(struct sim_socket *socket, struct wf_op *op, size_t bytes);
/* A RECV without control messages is about to bring bytes. */
void sim_cards_check_plain(const struct sim_socket *socket);
/* As sim_write(), from what is bound. */
int64_t sim_cards_write(struct sim_socket *socket, const struct wf_op *op, size_t bytes);
/* Member of wf_engine_ops. */
int sim_cards_give_back(void *host, int fd, const struct wf_tokens *ranges, int count);
/* The socket closes: all its buffers come back. */
void sim_cards_closed(struct sim_socket *socket);

#endif
