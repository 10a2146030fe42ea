/* The functions of a library by name: the symbols that have their code and their metadata. */
#include "library/found_function.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "elf/layout.h"
#include "library/registered.h"
#include "scan/utf8.h"

static const char SAFE[] = "__tvm_ffi_", FACTS[] = "__packer_fn_";

const char *found_function_read(struct found_function *self, const uint8_t *facts, size_t nbytes) {
  struct utf8_error error;
  if (memchr(facts, 0, nbytes) != facts + nbytes - 1)
    return "expected text that ends with its only NUL";
  if (utf8_check((const char *)facts, nbytes - 1, &error) != 0) return "expected UTF-8 text";
  self->text = heap_new(nbytes);
  if (self->text == NULL) return HEAP_NO_MEMORY;
  memcpy(self->text, facts, nbytes);
  return facts_parse(self->text, &self->facts);
}

void found_function_free(struct found_function *self) {
  facts_free(&self->facts);
  free(self->text);
}

static int refuse(struct found_function *found, const char *name, const char *wrong,
                  struct load_error *error) {
  found_function_free(found);
  if (wrong == HEAP_NO_MEMORY) return load_error_memory(error);
  return load_error_set(error, "malformed", "%s%s: %s", FACTS, name, wrong);
}

/* ---- Of a file. Each returns 1, 0, or -1 with *error filled. */

static int find(const struct loaded *library, const char *prefix, const char *name,
                struct elf_symbol *symbol, struct load_error *error) {
  char few[256], *text = few;
  size_t begin = strlen(prefix), size = begin + strlen(name) + 1;
  *symbol = (struct elf_symbol){.value = 0};
  if (size > sizeof few && (text = heap_new(size)) == NULL) return load_error_memory(error);
  memcpy(text, prefix, begin);
  memcpy(text + begin, name, size - begin);
  int found = loaded_symbol(library, text, symbol);
  if (text != few) free(text);
  return found;
}

static int refuse_symbol(const char *prefix, const char *name, const struct elf_symbol *symbol,
                         const char *wrong, struct load_error *error) {
  return load_error_set(error, "malformed", "%s%s at 0x%" PRIx64 ": %s", prefix, name,
                        symbol->value, wrong);
}

static int find_code(const struct loaded *library, const char *prefix, const char *name,
                     const uint8_t **code, struct load_error *error) {
  struct elf_symbol symbol;
  int status = find(library, prefix, name, &symbol, error);
  const char *wrong = status > 0 ? loaded_code(library, &symbol, code) : NULL;
  return wrong == NULL ? status : refuse_symbol(prefix, name, &symbol, wrong, error);
}

static int find_facts(const struct loaded *library, const char *name, struct found_function *found,
                      struct load_error *error) {
  struct elf_symbol symbol;
  const uint8_t *bytes;
  int status = find(library, FACTS, name, &symbol, error);
  if (status <= 0) return status;
  const char *wrong = loaded_data(library, &symbol, &bytes);
  if (wrong != NULL) return refuse_symbol(FACTS, name, &symbol, wrong, error);
  wrong = found_function_read(found, bytes, (size_t)symbol.size);
  return wrong == NULL ? 1 : refuse(found, name, wrong, error);
}

static int find_declared(const struct loaded *library, const char *name,
                         struct found_function *found, struct load_error *error) {
  int status = find_code(library, "", name, &found->code, error);
  if (status == 0)
    status = load_error_set(error, "malformed",
                            "%s%s: declares a packed C function, found no symbol '%s'", FACTS, name,
                            name);
  if (status < 0) found_function_free(found);
  return status;
}

/* <name> without metadata. Its symbol may also be data. */
static int find_plain(const struct loaded *library, const char *name, struct found_function *found,
                      struct load_error *error) {
  struct elf_symbol symbol;
  int status = find(library, "", name, &symbol, error);
  if (status <= 0) return status;
  return loaded_code(library, &symbol, &found->code) == NULL && loaded_is_tvm(library);
}

int loaded_function(const struct loaded *library, const char *name, struct found_function *found,
                    struct load_error *error) {
  *found = (struct found_function){.code = NULL};
  int has_code = find_code(library, SAFE, name, &found->code, error);
  int has_facts = has_code >= 0 ? find_facts(library, name, found, error) : -1;
  if (has_facts < 0 || has_code > 0) return has_facts < 0 ? -1 : 1;
  int is_declared = has_facts && found->facts.is_packed;
  if (!is_declared) {
    found_function_free(found);
    *found = (struct found_function){.code = NULL};
  }
  found->is_packed = 1;
  return is_declared ? find_declared(library, name, found, error)
                     : find_plain(library, name, found, error);
}

/* ---- Of models in the process */

/* Names that begin with "__" are data of the models, not packed C functions. */
static int find_registered(const char *prefix, const char *name, struct found_function *found,
                           struct load_error *error) {
  struct registered_symbol code = registered_find_in(SAFE, prefix, name);
  struct registered_symbol facts = registered_find_in(FACTS, prefix, name);
  size_t nbytes;
  *found = (struct found_function){.is_packed = code.address == NULL};
  if (found->is_packed && strncmp(name, "__", 2) != 0) code = registered_find_in("", prefix, name);
  if (code.address == NULL || !(code.flags & PF_X)) return 0;
  found->code = code.address;
  if (facts.address == NULL) return 1;
  const char *wrong = registered_text(&facts, &nbytes);
  if (wrong == NULL) wrong = found_function_read(found, facts.address, nbytes);
  return wrong == NULL ? 1 : refuse(found, name, wrong, error);
}

int registered_function(const char *prefix, const char *name, struct found_function *found,
                        struct load_error *error) {
  int status = find_registered(prefix, name, found, error);
  return status == 0 ? find_registered("", name, found, error) : status;
}
