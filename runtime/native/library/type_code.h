/* Codes of C types (docs/format.md): the kinds that a caller converts in a special way. */
#pragma once

#include <stddef.h>

enum code_kind {
  CODE_PLAIN,          /* all others: the value's own type decides */
  CODE_HANDLE,         /* "@foo" */
  CODE_VOID,           /* "*void", "&void" */
  CODE_BYTES,          /* pointers to 8-bit integers: "*char", "*u8", "&i8[n]" */
  CODE_STRUCT,         /* "{point}" */
  CODE_STRUCT_POINTER, /* "*{point}", "&{point}" */
  CODE_VALUE,          /* "={number}": the bytes of a struct or union */
  CODE_POINTERS,       /* pointers to pointers: "**u8", "*@foo[n]" */
  CODE_STRINGS,        /* "strs", "strs[n]" */
  CODE_COMPLEX,        /* "c64", "c128" */
  CODE_ANY,            /* "any" */
  CODE_TEXT            /* "str" */
};

enum code_kind code_kind_of(const char *code);

/* Return the name in "@foo", "{foo}", "*{foo}", "&{foo}" or "={foo}", and its length; NULL for others. */
const char *code_name(const char *code, size_t *length);
