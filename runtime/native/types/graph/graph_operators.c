/* The functions that an executor finds in its library. */
#include <string.h>

#include "abi/raised.h"
#include "types/graph/graph_executor.h"
#include "module/library.h"

struct search {
  const char *name;
  struct operator *found;
};

/* Host code declares what its functions write. */
static int find_in(void *context, dso_module *module) {
  const struct search *search = context;
  const struct host_function *code;
  int status = module_find_own(module, search->name, &search->found->function);
  if (status <= 0 || !is_library_module(module)) return status;
  struct origin *origin = origin_of(module);
  if (origin == NULL || origin_function(origin, search->name, &code) <= 0) return 1;
  search->found->declared = &code->found.facts;
  search->found->direct = library_code_of(code);
  return 1;
}

static int find(void *context, const char *name, struct operator *found) {
  dso_module *const *imports;
  size_t count = module_imports(context, &imports);
  struct search search = {.name = name, .found = found};
  for (size_t i = 0; i < count; i++) {
    int status = module_visit(imports[i], find_in, &search);
    if (status != 0) return status;
  }
  return 0;
}

static enum access access(const void *declared, int32_t param) {
  const struct facts *facts = declared;
  if (facts == NULL || param >= facts->num_params) return ACCESS_UNKNOWN;
  return facts->params[param].code[0] == '*' ? ACCESS_WRITE : ACCESS_READ;
}

struct operator_finder graph_operators(dso_module *factory) {
  return (struct operator_finder){.context = factory, .find = find, .access = access};
}

int call_for_address(dso_function *function, const char *name, const int64_t *argument,
                     const void **address) {
  dso_any value = {.type_index = DSO_INT}, result = dso_none();
  if (argument != NULL) value.v_int64 = *argument;
  uint64_t raised = raised_count();
  *address = NULL;
  if (dso_call_function(&function->object, &result, &value, argument != NULL) != 0)
    return raised_at() > raised
               ? -1
               : raised_format("RuntimeError", "%s: returned -1 without raising", name);
  if (result.type_index == DSO_OPAQUE_PTR) *address = result.v_ptr;
  if (result.type_index == DSO_NONE || result.type_index == DSO_OPAQUE_PTR) return 0;
  int type_index = result.type_index;
  dso_release(&result);
  return raised_format("TypeError", "%s: result, expected an address, found type index %d", name,
                       type_index);
}
