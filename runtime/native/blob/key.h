/* Keys of the entries of a blob. */
#pragma once

#include "blob/reader.h"

enum { KEY_MOST_NBYTES = 255 };

/* True for 1 to 255 ASCII letters, digits, '_', '.', '-', of which at least one is a letter or a
 * digit. */
int key_is_valid(struct span key);

/* True if a key is this text. */
int key_is(struct span key, const char *text);

/* Read the key of an entry. Returns 0, or -1 with the error raised. */
int key_read(struct reader *reader, struct span *key);
