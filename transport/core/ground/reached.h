/*
 * reached.h: marks where the events of the tables of states in docs/protocol.md happen.
 *
 *     WF_REACHED("session UP: a channel is lost");
 *
 * names table, state and event as the page does; where a row has several events, parted by ';', each has a mark of its
 * own. An event may be marked in several places. In the library a mark is nothing. The model test is built from sources
 * of its own in which marks count: it fails when one was never met, tests/scripts/protocol_test.sh when a row has none.
 */
#ifndef WF_CORE_GROUND_REACHED_H
#define WF_CORE_GROUND_REACHED_H

#include <stdint.h>

#ifdef WF_COUNT_REACHED

/* The linker gathers pointers to all of them: from __start_wf_reached to __stop_wf_reached. Owner: the one thread of
 * the model test. */
struct wf_reached {
    const char *row;
    uint64_t count;
};

#define WF_REACHED(row)                                                                                                \
    do {                                                                                                               \
        static struct wf_reached wf_reached_here = {row, 0};                                                           \
        static struct wf_reached *const wf_reached_entry __attribute__((section("wf_reached"), used)) =                \
            &wf_reached_here;                                                                                          \
        wf_reached_here.count += 1;                                                                                    \
    } while (0)

/* The same where the event is one of several that take this way. */
#define WF_REACHED_IF(condition, row)                                                                                  \
    do {                                                                                                               \
        if (condition)                                                                                                 \
            WF_REACHED(row);                                                                                           \
    } while (0)

#else

#define WF_REACHED(row) ((void)0)
#define WF_REACHED_IF(condition, row) ((void)sizeof(condition))

#endif

#endif
