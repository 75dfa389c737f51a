/*
 * hot_fixture.h: an epoll engine with a stream for small messages and one for large ones, for the tests of its hot
 * descriptors. Calls are seen on their way to the kernel: send, sendmsg, recv and epoll_ctl stand before the C
 * library's.
 */
#ifndef WEFT_TESTS_UNIT_HOT_FIXTURE_H
#define WEFT_TESTS_UNIT_HOT_FIXTURE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/uio.h>

#include "base/clock.h"
#include "io/engine.h"

#define LARGE (1u << 20)
#define CALL (512u * 1024)
#define PATIENCE_NS (5 * WF_NS_PER_S)
#define NO_FD (-1)

/* [0] is the engine's end. */
struct fixture {
    struct wf_engine *engine;
    int small[2], large[2];
    uint8_t *data; /* LARGE */
    uint8_t bytes[2];
    struct iovec small_piece, large_piece;
    struct wf_op recv, send;
};

extern int epoll_forgot;    /* the last descriptor that epoll was told to forget, or NO_FD: told of it again since */
extern int epoll_forgets;   /* how often it was told to */
extern int epoll_refuses;   /* the errno that an attempt to tell epoll of a descriptor gets; 0: the truth */
extern int recv_calls;      /* of any descriptor */
extern int recv_interrupts; /* so many of the next calls are interrupted */

int set_up(void **state);
int tear_down(void **state);

/* Another stream like these, and its end. */
void make_pair(struct fixture *fixture, int fds[2]);
void end_pair(struct fixture *fixture, int fds[2]);

/* Asks for more than will come, as the read-ahead of a channel does. */
void post_receive(struct fixture *fixture, bool urgent);

/* Until operations have ended, without sleep; at most PATIENCE_NS. Returns how many. */
int poll_until_ended(struct fixture *fixture, struct wf_op *finished[4]);

/* A byte comes by an operation that is urgent or not, and another such operation waits for the next. */
void receive(struct fixture *fixture, bool urgent);

/* Sends a large message and tells the most that one call was asked to take of it. */
size_t send_large(struct fixture *fixture);

#endif
