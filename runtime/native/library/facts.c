/* Parser of a function's metadata, the text of __packer_fn_<name> (docs/format.md). */
#include "library/facts.h"

#include <string.h>

#include "abi/heap.h"

/* Cut *rest at the first `separator` and return the piece before it. */
static char *cut(char **rest, char separator) {
  char *piece = *rest, *end = strchr(piece, separator);
  *rest = end != NULL ? end + 1 : piece + strlen(piece);
  if (end != NULL) *end = '\0';
  return piece;
}

static int count_params(const char *text) {
  int count = *text != '\0';
  for (; *text != '\0'; text++) count += *text == ' ';
  return count;
}

static const char *parse_params(char *text, struct facts *facts) {
  int count = count_params(text);
  if (facts->params != NULL) return "params given twice";
  if (count == 0) return NULL;
  facts->params = heap_new_zeroed((size_t)count, sizeof *facts->params);
  if (facts->params == NULL) return HEAP_NO_MEMORY;
  for (; facts->num_params < count; facts->num_params++) {
    char *code = cut(&text, ' ');
    struct param *param = &facts->params[facts->num_params];
    param->name = cut(&code, ':');
    param->code = code;
    if (*param->name == '\0' || *param->code == '\0') return "params, expected name:code";
    if (*param->code != '*') continue;
    if (facts->end_written == 0) facts->first_written = facts->num_params;
    facts->end_written = facts->num_params + 1;
  }
  return NULL;
}

static const char *parse_abi(const char *value, struct facts *facts) {
  facts->is_packed = strcmp(value, "packed_c") == 0;
  return facts->is_packed || strcmp(value, "safe_call") == 0
             ? NULL
             : "abi, expected safe_call or packed_c";
}

static const char *parse_gil(const char *value, struct facts *facts) {
  facts->gil_keep = strcmp(value, "keep") == 0;
  return facts->gil_keep || strcmp(value, "release") == 0 ? NULL : "gil, expected release or keep";
}

static const char *parse_type(const char *value, struct facts *facts) {
  facts->type = value;
  return strchr(value, '(') != NULL ? NULL : "type, expected a C declaration";
}

static const char *parse_line(const char *key, char *value, struct facts *facts) {
  if (strcmp(key, "abi") == 0) return parse_abi(value, facts);
  if (strcmp(key, "gil") == 0) return parse_gil(value, facts);
  if (strcmp(key, "type") == 0) return parse_type(value, facts);
  if (strcmp(key, "params") == 0) return parse_params(value, facts);
  return NULL;
}

/* The doc is the last key and extends to the end, without the final newline. */
static void take_doc(char *text, struct facts *facts) {
  size_t length = strlen(text);
  if (length > 0 && text[length - 1] == '\n') text[length - 1] = '\0';
  facts->doc = text;
}

const char *facts_parse(char *text, struct facts *facts) {
  const char *wrong = NULL;
  if (strcmp(cut(&text, '\n'), "packer-function 1") != 0)
    return "first line, expected 'packer-function 1'";
  while (*text != '\0' && wrong == NULL) {
    if (strncmp(text, "doc ", 4) == 0) {
      take_doc(text + 4, facts);
      break;
    }
    char *value = cut(&text, '\n');
    const char *key = cut(&value, ' ');
    wrong = parse_line(key, value, facts);
  }
  return wrong;
}
