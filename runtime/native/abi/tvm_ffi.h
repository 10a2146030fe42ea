/* A real libtvm_ffi in the same process, if there is one; its error slot. No Python.h. */
#ifndef DSO_PACKER_ABI_TVM_FFI_H
#define DSO_PACKER_ABI_TVM_FFI_H

#include "dso_abi.h"

/* Set its error too: a file that both runtimes loaded has one setter, and either may be calling. */
void tvm_ffi_forward_error(const char *kind, const char *message);

/* Take its error of this thread, or NULL; owned by the caller (object_release). */
dso_object *tvm_ffi_take_error(void);

/* Ask it for an imported function, by a context of its own: 1 with its status, 0 if there is none. */
int tvm_ffi_look_up(void *context, const char *name, void **function, int *status);

/* What an error object says: TVMFFIErrorCell begins with these two, behind the header. */
typedef struct {
  dso_byte_array kind, message;
} tvm_ffi_error_cell;

static inline const tvm_ffi_error_cell *tvm_ffi_error(const dso_object *error) {
  return (const tvm_ffi_error_cell *)(error + 1);
}

#endif
