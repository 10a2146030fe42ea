/* dso_packer_system_lib.h: models that are linked into a program (packer export --system-lib).
 *
 *     packer export net1.o --system-lib --c-symbol-prefix net1_ ...
 *     packer export net2.o --system-lib --c-symbol-prefix net2_ ...
 *     cc main.c net1.o net2.o -o main        (or net1.a: -Wl,--whole-archive net1.a net2.a
 *                                             -Wl,--no-whole-archive)
 *
 * In exactly one file of the program, for example main.c:
 *
 *     #define DSO_SYSTEM_LIB_IMPLEMENTATION
 *     #include "dso_packer_system_lib.h"
 *
 *     dso_any result = dso_none(), args[] = {dso_int(40), dso_int(2)};
 *     if (dso_system_lib_call("net1_", "add", &result, args, 2))
 *       fprintf(stderr, "%s\n", dso_system_lib_error());
 *
 * The objects register their exported symbols before main begins; this header contains the
 * registry. It needs neither Python nor another library. The imports of a model, such as kernels,
 * need a runtime: in a program that embeds Python and is linked with -rdynamic,
 * runtime.system_lib("net1_") returns the tree. C99 and C++11, GCC and Clang. */
#ifndef DSO_PACKER_SYSTEM_LIB_H
#define DSO_PACKER_SYSTEM_LIB_H

#include "dso_packer.h"
#include "dso_system_symbol.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All registered symbols of the program, the latest first. */
DSO_EXPORT const dso_system_symbol *dso_system_lib_symbols(void);

/* The objects call these when the program starts. Returns 0, or -1 if the name is registered with
 * another address: then it prints a message to stderr, and keeps the first address. */
DSO_EXPORT int TVMBackendRegisterSystemLibSymbol(const char *name, void *address);
DSO_EXPORT int TVMFFIEnvModRegisterSystemLibSymbol(const char *name, void *address);

/* The function of a model, or NULL: first prefix and name are tried, then the name alone. */
dso_safe_call dso_system_lib_find(const char *prefix, const char *name);

/* Call a function of a model. Returns 0, or -1 with the reason in dso_system_lib_error(). The
 * caller owns the result (dso_release); `result` may be NULL. */
int dso_system_lib_call(const char *prefix, const char *name, dso_any *result, const dso_any *args,
                        int32_t num_args);

/* "ValueError: ...": the error of the last call in this thread that returned -1. */
const char *dso_system_lib_error(void);

/* Raise an error; dso_raise calls this function. */
DSO_EXPORT void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);

#ifdef DSO_SYSTEM_LIB_IMPLEMENTATION

#include <stdio.h>

static const dso_system_symbol *dso_system_lib_list;
static __thread char dso_system_lib_text[2048]; /* longer texts are truncated */

const dso_system_symbol *dso_system_lib_symbols(void) {
  return __atomic_load_n(&dso_system_lib_list, __ATOMIC_ACQUIRE);
}

int TVMBackendRegisterSystemLibSymbol(const char *name, void *address) {
  int status = dso_system_symbol_add(&dso_system_lib_list, name, address);
  if (status > 0)
    fprintf(stderr,
            "dso-packer: '%s' is registered twice, expected once: give each model a different "
            "prefix (packer export --c-symbol-prefix)\n",
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

/* Return 1 if a symbol is the function `name` of the model with this prefix. */
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
        dso_safe_call function; /* ISO C has no cast from a data pointer to a function pointer */
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
             "FunctionNotFoundError: no function '%s%s' and no '%s' is linked into this program; "
             "link all members of an archive (-Wl,--whole-archive)",
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
