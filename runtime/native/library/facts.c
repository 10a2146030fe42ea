/* Parser of a function's metadata, the text of __packer_fn_<name> (docs/format.md). */
#include "library/facts.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"

/* Cut *rest at the first `separator` and return the piece before it. */
static char *cut(char **rest, char separator) {
  char *piece = *rest, *end = strchr(piece, separator);
  *rest = end != NULL ? end + 1 : piece + strlen(piece);
  if (end != NULL) *end = '\0';
  return piece;
}

/* Append an entry to a list; 0, or -1 without memory. */
static int append(struct param **list, int *count, struct param entry) {
  struct param *more = heap_resize(*list, ((size_t)*count + 1) * sizeof entry);
  if (more == NULL) return -1;
  *list = more;
  more[(*count)++] = entry;
  return 0;
}

static int find(const struct param *list, int count, const char *name, size_t length) {
  for (int i = 0; i < count; i++)
    if (strlen(list[i].name) == length && memcmp(list[i].name, name, length) == 0) return i;
  return -1;
}

int facts_find(const struct facts *facts, const char *name, size_t length) {
  return find(facts->params, facts->num_params, name, length);
}

/* Cut "name:code" into an entry; NULL or the text of an error. */
static const char *cut_pair(char *piece, struct param *entry) {
  entry->name = cut(&piece, ':');
  entry->code = piece;
  entry->kind = code_kind_of(piece);
  entry->kept = KEPT_NOT;
  return *entry->name != '\0' && *piece != '\0' ? NULL : "expected name:code";
}

static const char *parse_params(char *text, struct facts *facts) {
  if (facts->has_params) return "params given twice";
  facts->has_params = 1;
  for (char *rest = *text != '\0' ? text : NULL; rest != NULL;) {
    int is_last = strchr(rest, ' ') == NULL;
    struct param entry;
    if (cut_pair(cut(&rest, ' '), &entry) != NULL) return "params, expected name:code";
    if (facts_find(facts, entry.name, strlen(entry.name)) >= 0)
      return "params, expected different names";
    if (append(&facts->params, &facts->num_params, entry) != 0) return HEAP_NO_MEMORY;
    if (is_last) rest = NULL;
    if (*entry.code != '*') continue;
    if (facts->end_written == 0) facts->first_written = facts->num_params - 1;
    facts->end_written = facts->num_params;
  }
  return NULL;
}

static const char *parse_out(char *text, struct facts *facts) {
  if (facts->outs != NULL) return "out given twice";
  for (char *rest = text; rest != NULL;) {
    int is_last = strchr(rest, ' ') == NULL;
    struct param entry;
    if (cut_pair(cut(&rest, ' '), &entry) != NULL) return "out, expected name:code";
    if (append(&facts->outs, &facts->num_outs, entry) != 0) return HEAP_NO_MEMORY;
    if (is_last) rest = NULL;
  }
  return NULL;
}

static const char *parse_default(char *text, struct facts *facts) {
  struct param entry = {.name = cut(&text, ' '), .code = text};
  if (*entry.name == '\0' || *text == '\0') return "default, expected a name and a value";
  if (find(facts->defaults, facts->num_defaults, entry.name, strlen(entry.name)) >= 0)
    return "default given twice";
  return append(&facts->defaults, &facts->num_defaults, entry) == 0 ? NULL : HEAP_NO_MEMORY;
}

/* Skip a decimal number and the separator after it; NULL if there is none. */
static const char *skip_number(const char *text, const char *separators) {
  size_t digits = strspn(text, "0123456789");
  text += digits;
  if (digits == 0 || digits > 9 || (*text != '\0' && strchr(separators, *text) == NULL))
    return NULL;
  return *text != '\0' ? text + 1 : text;
}

/* "field:code@offset ..." */
static int fields_are_valid(const char *text) {
  while (text != NULL && *text != '\0') {
    size_t name = strcspn(text, ": ");
    if (name == 0 || text[name] != ':') return 0;
    const char *code = text + name + 1, *end = code + strcspn(code, " ");
    const char *at = end;
    while (at > code && *at != '@') at--;
    if (at == code) return 0;
    text = skip_number(at + 1, " ");
  }
  return text != NULL;
}

static const char *parse_struct(char *text, struct facts *facts) {
  struct param entry = {.name = cut(&text, ' '), .code = text};
  const char *fields = skip_number(text, " ");
  fields = fields != NULL ? skip_number(fields, " ") : NULL;
  if (*entry.name == '\0' || fields == NULL || !fields_are_valid(fields))
    return "struct, expected 'name size alignment field:code@offset ...'";
  return append(&facts->structs, &facts->num_structs, entry) == 0 ? NULL : HEAP_NO_MEMORY;
}

/* "name text": append it to a list, or return `wrong`. */
static const char *parse_pair(char *text, struct param **list, int *count, const char *wrong) {
  struct param entry = {.name = cut(&text, ' '), .code = text};
  if (*entry.name == '\0' || *text == '\0') return wrong;
  return append(list, count, entry) == 0 ? NULL : HEAP_NO_MEMORY;
}

const char *facts_callback(const struct facts *facts, const char *name) {
  int place = find(facts->callbacks, facts->num_callbacks, name, strlen(name));
  return place >= 0 ? facts->callbacks[place].code : NULL;
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
  facts->returns_const = strncmp(value, "const ", 6) == 0;
  return strchr(value, '(') != NULL ? NULL : "type, expected a C declaration";
}

static const char *parse_word(const char *value, const char **word, const char *wrong) {
  *word = value;
  return *value != '\0' && strchr(value, ' ') == NULL ? NULL : wrong;
}

static const char *parse_line(const char *key, char *value, struct facts *facts) {
  if (strcmp(key, "abi") == 0) return parse_abi(value, facts);
  if (strcmp(key, "gil") == 0) return parse_gil(value, facts);
  if (strcmp(key, "type") == 0) return parse_type(value, facts);
  if (strcmp(key, "params") == 0) return parse_params(value, facts);
  if (strcmp(key, "out") == 0) return parse_out(value, facts);
  if (strcmp(key, "default") == 0) return parse_default(value, facts);
  if (strcmp(key, "struct") == 0) return parse_struct(value, facts);
  if (strcmp(key, "callback") == 0)
    return parse_pair(value, &facts->callbacks, &facts->num_callbacks,
                      "callback, expected a name and codes");
  if (strcmp(key, "kept") == 0)
    return parse_pair(value, &facts->kept, &facts->num_kept,
                      "kept, expected a name and a lifetime");
  if (strcmp(key, "result") == 0)
    return parse_word(value, &facts->result, "result, expected a code");
  if (strcmp(key, "free") == 0) return parse_word(value, &facts->free, "free, expected a name");
  if (strcmp(key, "lifetime") == 0)
    return parse_word(value, &facts->lifetime, "lifetime, expected a name");
  return NULL;
}

/* The doc is the last key and extends to the end, without the final newline. */
static void take_doc(char *text, struct facts *facts) {
  size_t length = strlen(text);
  if (length > 0 && text[length - 1] == '\n') text[length - 1] = '\0';
  facts->doc = text;
}

/* Store how long each kept parameter is kept. */
static const char *resolve_kept(struct facts *facts) {
  for (int i = 0; i < facts->num_kept; i++) {
    const char *name = facts->kept[i].name, *until = facts->kept[i].code;
    int place = facts_find(facts, name, strlen(name));
    int handle = *until == '@' ? facts_find(facts, until + 1, strlen(until + 1)) : KEPT_NOT;
    if (strcmp(until, "call") == 0) handle = KEPT_CALL;
    if (strcmp(until, "forever") == 0) handle = KEPT_FOREVER;
    if (place < 0 || handle == KEPT_NOT) return "kept, expected a parameter's name and a lifetime";
    facts->params[place].kept = handle;
  }
  return NULL;
}

/* Each name in the lines must name a parameter, whose own line may follow. */
static const char *check_names(const struct facts *facts) {
  const char *lifetime = facts->lifetime;
  for (int i = 0; i < facts->num_defaults; i++) {
    const char *name = facts->defaults[i].name;
    if (facts_find(facts, name, strlen(name)) < 0) return "default, expected a parameter's name";
  }
  return lifetime == NULL || facts_find(facts, lifetime, strlen(lifetime)) >= 0
             ? NULL
             : "lifetime, expected a parameter's name";
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
  if (wrong == NULL) wrong = resolve_kept(facts);
  return wrong != NULL ? wrong : check_names(facts);
}

void facts_free(struct facts *facts) {
  free(facts->params);
  free(facts->outs);
  free(facts->defaults);
  free(facts->structs);
  free(facts->kept);
  free(facts->callbacks);
}
