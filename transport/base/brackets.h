/*
 * brackets.h: an IPv6 address and a port without the brackets that tell one from the other, as in "::1:18555".
 */
#ifndef WF_BASE_BRACKETS_H
#define WF_BASE_BRACKETS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes "[::1]:18555" for "::1:18555": the text without what stands behind its last colon is an IPv6 address, and that
 * could be a port of at least two digits. False: it is nothing of that kind. The text may be an address as it stands:
 * "::1:8555" is one. */
bool wf_brackets_meant(const char *text, char *meant, size_t room);

#endif
