/* Reader of __packer_left_out: the functions that an export left out (docs/format.md). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LEFT_OUT_SYMBOL "__packer_left_out"

/* "; <name>: not exported: <declaration>: <reason>" if the record names the function, freed by
 * free(). NULL if it does not, if the bytes are not such a record, or without memory. */
char *left_out_hint(const uint8_t *bytes, size_t nbytes, const char *name);
