/* The registry of symbols of statically linked models. */
#define _GNU_SOURCE /* dladdr */
#include "library/registered.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/segment.h"
#include "dso_system_symbol.h"
#include "elf/layout.h"
#include "library/provided.h"

enum { MAX_TEXT = 64 << 20 };

static const dso_system_symbol *own_list;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

/* The innermost dlopen of this thread; a library's constructor may load another library. */
static _Thread_local struct refused_registration *opening;

/* ---- Registering */

void registration_begin(struct refused_registration *refusal) {
  refusal->outer = opening;
  refusal->text[0] = '\0';
  opening = refusal;
}

int registration_end(const struct refused_registration *refusal) {
  opening = refusal->outer;
  return refusal->text[0] != '\0';
}

static const char *file_of(const void *address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fname : "this process";
}

static void refuse(const char *name, const void *address) {
  struct refused_registration unopened, *refusal = opening != NULL ? opening : &unopened;
  snprintf(refusal->text, sizeof refusal->text,
           "registers symbol '%.200s', already registered by %.400s; give each model a different "
           "prefix (packer export --c-symbol-prefix)",
           name, file_of(address));
  if (opening == NULL) fprintf(stderr, "dso-packer: %s\n", refusal->text);
}

/* Registered symbols can be found until the process ends, so their image must stay mapped. */
static void keep_mapped(const void *address) {
  Dl_info info;
  if (dladdr(address, &info) != 0) /* of the program itself: loads nothing */
    (void)dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_NOW | RTLD_NODELETE);
}

int TVMBackendRegisterSystemLibSymbol(const char *name, void *address) {
  pthread_mutex_lock(&writing);
  int status = dso_system_symbol_add(&own_list, name, address);
  pthread_mutex_unlock(&writing);
  if (status == 0) keep_mapped(address);
  else if (status > 0) refuse(name, registered_find(name).address);
  return status == 0 ? 0 : -1;
}

int TVMFFIEnvModRegisterSystemLibSymbol(const char *name, void *address) {
  return TVMBackendRegisterSystemLibSymbol(name, address);
}

/* ---- Looking up */

/* dso_packer_system_lib.h. Weak: it is linked with libdso.a, or absent. */
extern const dso_system_symbol *dso_system_lib_symbols(void) __attribute__((weak));

/* Return the symbols that registered with the program, which the program's linker or, if it
 * exports its symbols, the loader finds. */
static const dso_system_symbol *list_of_program(void) {
  if (dso_system_lib_symbols != NULL) return dso_system_lib_symbols();
  const dso_system_symbol *(*symbols)(void);
  void *program = dlopen(NULL, RTLD_NOW);
  void *found = program != NULL ? dlsym(program, "dso_system_lib_symbols") : NULL;
  if (program != NULL) dlclose(program);
  memcpy(&symbols, &found, sizeof symbols); /* ISO C has no cast from data to function */
  return symbols != NULL ? symbols() : NULL;
}

static int visit_list(const dso_system_symbol *symbol,
                      int (*visit)(const dso_system_symbol *, void *), void *arg) {
  int status = 0;
  for (; symbol != NULL && status == 0; symbol = symbol->next) status = visit(symbol, arg);
  return status;
}

static int visit_all(int (*visit)(const dso_system_symbol *, void *), void *arg) {
  int status = visit_list(__atomic_load_n(&own_list, __ATOMIC_ACQUIRE), visit, arg);
  return status != 0 ? status : visit_list(list_of_program(), visit, arg);
}

struct search {
  const char *name;
  const void *address;
};

static int is_searched(const dso_system_symbol *symbol, void *arg) {
  struct search *search = arg;
  if (strcmp(symbol->name, search->name) != 0) return 0;
  search->address = symbol->address;
  return 1;
}

struct registered_symbol registered_find(const char *name) {
  struct search search = {.name = name};
  if (visit_all(is_searched, &search) == 0) return (struct registered_symbol){.address = NULL};
  struct segment_part part = segment_part_from(search.address);
  return (struct registered_symbol){search.address, part.nbytes, part.flags};
}

struct registered_symbol registered_find_in(const char *start, const char *prefix,
                                            const char *name) {
  struct registered_symbol symbol = {.address = NULL};
  char *text = heap_format("%s%s%s", start, prefix, name);
  if (text != NULL) symbol = registered_find(text);
  free(text);
  return symbol;
}

void *registered_variable(const void *prefix, const char *name) {
  struct registered_symbol symbol = registered_find_in("", prefix, name);
  int is_variable = symbol.address != NULL && (symbol.flags & PF_W) != 0 &&
                    symbol.nbytes >= sizeof(void *) &&
                    (uintptr_t)symbol.address % sizeof(void *) == 0;
  return is_variable ? (void *)(uintptr_t)symbol.address : NULL;
}

int registered_listed(const void *library, const char *name, int is_code, const uint8_t **bytes,
                      size_t *nbytes) {
  struct registered_symbol symbol = registered_find(name);
  (void)library;
  if (symbol.address == NULL) return 0;
  if (is_code) return (symbol.flags & PF_X) != 0;
  *bytes = symbol.address;
  return registered_text(&symbol, nbytes) == NULL;
}

/* ---- Sizes of data */

/* True for a blob: a u64 count, then that many bytes (docs/format.md). */
static int is_counted(const char *name) {
  return strcmp(name, "__tvm_dev_mblob") == 0 || strcmp(name, "__tvm_ffi__library_bin") == 0;
}

static const char *size_of_counted(const struct registered_symbol *symbol, size_t *nbytes) {
  uint64_t count;
  if (symbol->nbytes < sizeof count) return "ends within its header";
  memcpy(&count, symbol->address, sizeof count);
  if (count > symbol->nbytes - sizeof count) return "is longer than its segment";
  *nbytes = sizeof count + (size_t)count;
  return NULL;
}

const char *registered_text(const struct registered_symbol *symbol, size_t *nbytes) {
  size_t most = symbol->nbytes < MAX_TEXT ? symbol->nbytes : MAX_TEXT;
  const uint8_t *end = memchr(symbol->address, 0, most);
  if (end == NULL) return "has no final NUL";
  *nbytes = (size_t)(end - symbol->address) + 1;
  return NULL;
}

const char *registered_data(const char *name, const struct registered_symbol *symbol,
                            size_t *nbytes) {
  return is_counted(name) ? size_of_counted(symbol, nbytes) : registered_text(symbol, nbytes);
}

/* ---- All names */

struct visitor {
  int (*visit)(const char *name, void *arg);
  void *arg;
};

static int visit_name(const dso_system_symbol *symbol, void *arg) {
  const struct visitor *visitor = arg;
  return visitor->visit(symbol->name, visitor->arg);
}

int registered_visit(int (*visit)(const char *name, void *arg), void *arg) {
  struct visitor visitor = {visit, arg};
  return visit_all(visit_name, &visitor);
}

struct part_visitor {
  const char *start, *prefix;
  int (*visit)(const char *start, const char *name, void *arg);
  void *arg;
};

static int visit_part(const char *symbol, void *arg) {
  const struct part_visitor *self = arg;
  size_t start = strlen(self->start), prefix = strlen(self->prefix);
  if (strncmp(symbol, self->start, start) != 0 ||
      strncmp(symbol + start, self->prefix, prefix) != 0)
    return 0;
  return self->visit(self->start, symbol + start + prefix, self->arg);
}

int registered_visit_in(const char *start, const char *prefix,
                        int (*visit)(const char *start, const char *name, void *arg), void *arg) {
  struct part_visitor visitor = {start, prefix, visit, arg};
  return registered_visit(visit_part, &visitor);
}
