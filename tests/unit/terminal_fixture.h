/*
 * terminal_fixture.h: what a process shows on a terminal.
 */
#ifndef WEFT_TESTS_UNIT_TERMINAL_FIXTURE_H
#define WEFT_TESTS_UNIT_TERMINAL_FIXTURE_H

#include <stddef.h>

/*
 * Calls `act` in a process of its own with a descriptor of a terminal of so many columns. Returns in `text`, which has
 * room for `most` bytes, what was written to it; lines end as they were written.
 */
void terminal_show(unsigned short columns, void (*act)(int terminal, void *context), void *context, char *text,
                   size_t most);

#endif
