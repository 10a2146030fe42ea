/* Names for dlopen, which compares names before inodes: new spellings of a path. */
#pragma once

/* Return a spelling of an absolute path that was never used, or NULL without memory. The caller
 * holds the lock of loaded.c, and frees it. */
char *spelling_new(const char *path);

/* True if the path contains $ORIGIN, $LIB or $PLATFORM. dlopen(3) replaces these by folders
 * (ld.so(8), "Dynamic string tokens"), and they cannot be escaped. */
int spelling_has_token(const char *path);
