/* Codes of C types: their kinds and the names in them. */
#include "library/type_code.h"

#include <string.h>

/* True if the code is the word, alone or with extents. */
static int is_word(const char *code, const char *word) {
  size_t length = strlen(word);
  return strncmp(code, word, length) == 0 && (code[length] == '\0' || code[length] == '[');
}

static enum code_kind pointer_kind(const char *target) {
  if (is_word(target, "void")) return CODE_VOID;
  if (*target == '{') return CODE_STRUCT_POINTER;
  if (*target == '*' || *target == '&' || *target == '@') return CODE_POINTERS;
  if (is_word(target, "char") || is_word(target, "u8") || is_word(target, "i8")) return CODE_BYTES;
  return CODE_PLAIN;
}

enum code_kind code_kind_of(const char *code) {
  if (*code == '*' || *code == '&') return pointer_kind(code + 1);
  if (*code == '@') return CODE_HANDLE;
  if (*code == '{') return CODE_STRUCT;
  if (*code == '=') return CODE_VALUE;
  if (is_word(code, "strs")) return CODE_STRINGS;
  if (is_word(code, "any")) return CODE_ANY;
  if (is_word(code, "str")) return CODE_TEXT;
  return is_word(code, "c64") || is_word(code, "c128") ? CODE_COMPLEX : CODE_PLAIN;
}

const char *code_name(const char *code, size_t *length) {
  if ((*code == '*' || *code == '&' || *code == '=') && code[1] == '{') code++;
  if (*code != '@' && *code != '{') return NULL;
  *length = strcspn(code + 1, "}[");
  return code + 1;
}
