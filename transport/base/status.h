/*
 * status.h: the description of a failure. Functions return 0 or a negative errno. If a reader needs more, they fill a
 * wf_status with one line: what happened, to which value, and what to do.
 */
#ifndef WF_BASE_STATUS_H
#define WF_BASE_STATUS_H

#define WF_STATUS_TEXT 320 /* WEFT_TEXT_BYTES */

/* Same layout as struct weft_error: the public type is a view of this one (asserted in core/calls/context.c). */
struct wf_status {
    int code;                  /* negative errno; 0: nothing went wrong */
    char text[WF_STATUS_TEXT]; /* one line without a newline; always terminated, cut if too long */
};

/* Sets `status` (NULL is allowed) and returns `code`, so that the failing line reads
 * `return wf_fail(status, -EINVAL, "…")`. */
int wf_fail(struct wf_status *status, int code, const char *format, ...) __attribute__((cold, format(printf, 3, 4)));

/* Puts "prefix: " before the text that `status` already has. Returns the code of `status`; -EINVAL if it is NULL. */
int wf_fail_prefix(struct wf_status *status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How many bytes a control character has that stands at `text`: 1 for C0 and DEL, 2 for C1 in UTF-8; 0: none is there.
 */
int wf_text_control(const char *text);

/* Replaces each byte of a control character by '?': no line break and no terminal sequence is left. */
void wf_text_plain(char *text);

/* Replaces each byte that is no part of a UTF-8 letter by '?': JSON takes such text alone. */
void wf_text_utf8(char *text);

/* A short description of a negative (or positive) errno, thread-safe, never NULL. */
const char *wf_strerror(int code);

#endif
