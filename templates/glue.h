/* glue.h: what all generated safe-call wrappers need.
 *
 * The generated glue.c contains data (one dso_function per wrapper), and calls of the functions in
 * the files glue_*.h. It includes the files that its wrappers need, since every export compiles it:
 *
 *     glue_take.h, glue_give.h          arguments and results: numbers, arrays, text, handles
 *     glue_buffer.h                     arguments that may be bytes or addresses; extents
 *     glue_number.h                     half precision and complex numbers
 *     glue_array.h, glue_callback.h     Array objects; functions that C code calls
 *     glue_errno.h                      failures that errno describes
 *     glue_value.h                      structs and unions whose bytes are passed
 *     glue_examine.h, glue_message.h    what the others include
 *
 * The success path is inline. Each refusal is one call of a cold function, which examines the
 * argument again to describe the error. C11 and C++17, GCC and Clang. Layouts: dso_abi.h; rules:
 * docs/format.md, "Codes of types". */
#ifndef DSO_PACKER_GLUE_H
#define DSO_PACKER_GLUE_H

#include "dso_abi.h"

#include <stddef.h>
#include <stdint.h>

/* A function's facts are one string literal, which a long doc may extend beyond the limit of
 * C11. */
#pragma GCC diagnostic ignored "-Woverlength-strings"

#define DSO_COLD __attribute__((cold, noinline, unused))
#define DSO_UNUSED __attribute__((unused))
#define DSO_INLINE DSO_UNUSED static inline
/* Inline at every level of optimisation. */
#define DSO_FAST __attribute__((always_inline)) DSO_INLINE
#define DSO_WEAK __attribute__((weak))
#define DSO_LIKELY(condition) __builtin_expect(!!(condition), 1)

/* Give a C name another symbol: user functions may be named index, read or a.b$c. */
#define DSO_QUOTE_(text) #text
#define DSO_QUOTE(text) DSO_QUOTE_(text)
#define DSO_SYMBOL(name) __asm__(DSO_QUOTE(__USER_LABEL_PREFIX__) name)

/* A wrapped function must be defined in the same library: the linker reports an undefined protected
 * symbol by name, and no other definition can replace a defined one at load time. An assembler
 * directive, since GCC drops a visibility attribute beside an assembler name. */
#ifdef __ELF__
#define DSO_OWN(name) __asm__(".protected " DSO_QUOTE(__USER_LABEL_PREFIX__) name)
#else
#define DSO_OWN(name) __asm__("")
#endif

#include "exceptions.h"

#ifdef __cplusplus
#define DSO_ASSERT(condition) static_assert(condition, #condition)
extern "C" {
#else
#define DSO_ASSERT(condition) _Static_assert(condition, #condition)
#endif

/* ---- Static linking: registering symbols in the system library ---- */

#define DSO_CONSTRUCTOR __attribute__((constructor))

#ifdef DSO_REGISTER /* the function of the TVM that looks the symbols up */
extern int DSO_REGISTER(const char *name, void *address);

/* An undefined weak symbol has the address NULL. */
static inline void dso_add(const char *name, void *address) {
  if (address) (void)DSO_REGISTER(name, address);
}
#endif

typedef struct {
  const char *name;
  const char *type; /* as declared, without the name */
} dso_parameter;

/* The kinds of places that `dso_function.parameters` describes. */
typedef enum { DSO_ARGUMENT, DSO_FIELD, DSO_ITEM, DSO_CALLBACK_RESULT } dso_place;

/* A function; or the fields or items of one value of `outer`, which messages name after it. */
typedef struct dso_function {
  const char *name;
  const char *declaration;
  const dso_parameter *parameters;
  int32_t num_parameters;
  int32_t num_required; /* parameters without a default */
  dso_place place;
  int32_t outer_index;
  const struct dso_function *outer;
} dso_function;

/* An Array object: TVMFFISeqCell follows the header. */
typedef struct {
  dso_object object;
  const dso_any *items;
  int64_t size;
} dso_sequence;

/* TVM's const_loader passes its arrays to an initialiser as one Array: replace it by its items. */
static inline void dso_spread(const dso_any **args, int32_t *num_args) {
  if (*num_args != 1 || (*args)->type_index != DSO_ARRAY) return;
  const dso_sequence *sequence = (const dso_sequence *)(*args)->v_ptr;
  *args = sequence->items;
  *num_args = (int32_t)sequence->size;
}

#ifdef __cplusplus
}
#endif

#endif
