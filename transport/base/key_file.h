/*
 * key_file.h: files that hold a pre-shared key: one line with 64 hexadecimal digits. Empty lines, and any text after
 * a '#', are comments.
 *
 * Only the file's owner may be able to read or write the file, and the owner must be this process's user or root. No
 * message contains any text of the file, because the text may be a part of a key.
 */
#ifndef WF_BASE_KEY_FILE_H
#define WF_BASE_KEY_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define WF_KEY_FILE_BYTES 32   /* bytes of the key */
#define WF_KEY_FILE_DIGITS 64  /* characters of its text */
#define WF_KEY_FILE_MOST 4096  /* bytes of a file */

/* 0; else `status` names the file, the line or mode, the mistake and the remedy: -ENOENT and the like (the file cannot
 * be opened), -EACCES (mode, owner), -EINVAL (content). */
int wf_key_file_read(const char *path, uint8_t key[WF_KEY_FILE_BYTES], struct wf_status *status);

/* Writes the digits of a key, terminated. */
void wf_key_file_text(const uint8_t key[WF_KEY_FILE_BYTES], char text[WF_KEY_FILE_DIGITS + 1]);

/* Is `text`, given as the name of a key file, a key by itself? Then no message may contain it. */
bool wf_key_file_is_key(const char *text);

#endif
