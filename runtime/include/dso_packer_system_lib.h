/* dso_packer_system_lib.h: models that are linked into a program (packer export --system-lib).
 *
 *     packer export net1.o --system-lib --c-symbol-prefix net1_ ...
 *     packer export net2.o --system-lib --c-symbol-prefix net2_ ...
 *     cc main.c net1.o net2.o -o main        (or net1.a: -Wl,--whole-archive net1.a net2.a
 *                                             -Wl,--no-whole-archive)
 *
 * In exactly one file of the program, say main.c:
 *
 *     #define DSO_SYSTEM_LIB_IMPLEMENTATION
 *     #include "dso_packer_system_lib.h"
 *
 *     dso_any result = dso_none(), args[] = {dso_int(40), dso_int(2)};
 *     if (dso_system_lib_call("net1_", "add", &result, args, 2))
 *       fprintf(stderr, "%s\n", dso_system_lib_error());
 *
 * The objects register what they export before main begins; here is the registry. It needs no
 * Python and no other library. What a model imports, such as kernels, needs a runtime: in a program
 * that embeds Python, runtime.system_lib("net1_") gives the tree, if it is linked with -rdynamic.
 * C99 and C++11, GCC and Clang. */
#ifndef DSO_PACKER_SYSTEM_LIB_H
#define DSO_PACKER_SYSTEM_LIB_H

#include "dso_packer.h"
#include "dso_system_symbol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All symbols of the program, the latest first. */
DSO_EXPORT const dso_system_symbol *dso_system_lib_symbols(void);

/* What the objects call when the program starts; 0, or -1 if the name is taken: then it says so on
 * stderr, and the first one stays. */
DSO_EXPORT int TVMBackendRegisterSystemLibSymbol(const char *name, void *address);
DSO_EXPORT int TVMFFIEnvModRegisterSystemLibSymbol(const char *name, void *address);

/* The function of a model, or NULL: prefix and name are tried, then the name alone. */
dso_safe_call dso_system_lib_find(const char *prefix, const char *name);

/* Call it: 0, or -1 with dso_system_lib_error() saying why. The result is the caller's
 * (dso_release); NULL: it is not wanted. */
int dso_system_lib_call(const char *prefix, const char *name, dso_any *result, const dso_any *args,
                        int32_t num_args);

/* "ValueError: ..." of the last call in this thread that gave -1. */
const char *dso_system_lib_error(void);

/* How a function says why it gives -1 (dso_raise calls it). */
DSO_EXPORT void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);

#ifdef DSO_SYSTEM_LIB_IMPLEMENTATION

#include <stdio.h>

static const dso_system_symbol *dso_system_lib_list;
static __thread char dso_system_lib_text[2048]; /* what does not fit is cut */

const dso_system_symbol *dso_system_lib_symbols(void) {
  return __atomic_load_n(&dso_system_lib_list, __ATOMIC_ACQUIRE);
}

int TVMBackendRegisterSystemLibSymbol(const char *name, void *address) {
  int status = dso_system_symbol_add(&dso_system_lib_list, name, address);
  if (status > 0)
    fprintf(stderr,
            "dso-packer: '%s' is registered twice, expected once: give each model a prefix of its "
            "own (packer export --c-symbol-prefix)\n",
            name);
  return status ? -1 : 0;
}

int TVMFFIEnvModRegisterSystemLibSymbol(const char *name, void *address) {
  return TVMBackendRegisterSystemLibSymbol(name, address);
}

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) {
  snprintf(dso_system_lib_text, sizeof dso_system_lib_text, "%s: %s", kind, message);
}

const char *dso_system_lib_error(void) { return dso_system_lib_text; }

/* Whether a symbol is the function `name` of the model with this prefix. */
static int dso_system_lib_is(const char *symbol, const char *prefix, const char *name) {
  static const char start[] = "__tvm_ffi_";
  size_t length = strlen(prefix);
  if (strncmp(symbol, start, sizeof start - 1)) return 0;
  symbol += sizeof start - 1;
  return !strncmp(symbol, prefix, length) && !strcmp(symbol + length, name);
}

dso_safe_call dso_system_lib_find(const char *prefix, const char *name) {
  const char *prefixes[2];
  prefixes[0] = prefix;
  prefixes[1] = "";
  for (int i = 0; i < 2; i++)
    for (const dso_system_symbol *s = dso_system_lib_symbols(); s; s = s->next)
      if (dso_system_lib_is(s->name, prefixes[i], name)) {
        dso_safe_call function; /* ISO C has no cast from data to function */
        memcpy(&function, &s->address, sizeof function);
        return function;
      }
  return NULL;
}

int dso_system_lib_call(const char *prefix, const char *name, dso_any *result, const dso_any *args,
                        int32_t num_args) {
  dso_any own = dso_none();
  dso_safe_call function = dso_system_lib_find(prefix, name);
  int status = -1;
  if (!function)
    snprintf(dso_system_lib_text, sizeof dso_system_lib_text,
             "FunctionNotFoundError: no function '%s%s' and no '%s' is linked into this program "
             "(of an archive, link all: -Wl,--whole-archive)",
             prefix, name, name);
  else status = function(NULL, args, num_args, &own);
  if (result) *result = own;
  else dso_release(&own);
  return status;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
