/*
 * reached.h: marks the places in the code where the events of the state tables in docs/protocol.md happen.
 *
 *     WF_REACHED("session UP: a channel is lost");
 *
 * names the table, the state and the event as the page does. Where a row has several events, separated by ';', each
 * event has its own mark. An event may be marked in several places. In the library a mark compiles to nothing. The
 * model test is built from sources of its own in which marks count: it fails when a mark was never reached, and
 * tests/scripts/protocol_test.sh fails when a row has no mark. Under the sanitizer of addresses marks count everywhere;
 * only the model reads them.
 */
#ifndef WF_CORE_GROUND_REACHED_H
#define WF_CORE_GROUND_REACHED_H

#include <stdint.h>

#ifdef WF_COUNT_REACHED

/* One mark. The linker gathers pointers to all marks, from __start_wf_reached to __stop_wf_reached. Owner: the one
 * thread of the model test; where tests have more of them the counts mean nothing. */
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

/* A mark that counts only if `condition` holds: several events pass this line. */
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
