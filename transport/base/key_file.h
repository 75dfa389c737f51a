/*
 * key_file.h: files that hold a pre-shared key: 64 hexadecimal digits on a line of their own; empty lines, and what
 * follows a '#', are comments.
 *
 * A key is only taken from a file that its owner alone can read or write; the owner must be this process's user or
 * root. No message contains any text of the file, for it may be a part of a key.
 */
#ifndef WF_BASE_KEY_FILE_H
#define WF_BASE_KEY_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define WF_KEY_FILE_BYTES 32   /* of the key */
#define WF_KEY_FILE_DIGITS 64  /* of its text */
#define WF_KEY_FILE_MOST 4096  /* of a file */

/* 0, or what is wrong with which file, line or mode, and what to do: -ENOENT and the like, -EACCES (mode, owner),
 * -EINVAL (content). */
int wf_key_file_read(const char *path, uint8_t key[WF_KEY_FILE_BYTES], struct wf_status *status);

/* The digits of a key, terminated. */
void wf_key_file_text(const uint8_t key[WF_KEY_FILE_BYTES], char text[WF_KEY_FILE_DIGITS + 1]);

/* Is this text itself a key? It was to be the name of a file, and must not be told on. */
bool wf_key_file_is_key(const char *text);

#endif
