/* A real libtvm_ffi in the same process, if there is one: its look-ups, error slot and streams. */
#pragma once

#include "dso_abi.h"

/* Store an error in its slot as well: a file that both runtimes loaded has one setter, and either
 * runtime may be the caller. */
void tvm_ffi_forward_error(const char *kind, const char *message);

/* Take its error of this thread, owned by the caller (object_release), or return NULL. */
dso_object *tvm_ffi_take_error(void);

/* Look up an imported function by one of its contexts. Return 1 with *status filled, or 0
 * if there is no tvm_ffi or the context is not one of its modules. */
int tvm_ffi_look_up(void *context, const char *name, void **function, int *status);

/* Its functions for the current stream of a thread and device. */
struct tvm_ffi_streams {
  int (*set)(int32_t device_type, int32_t device_id, void *stream, void **original);
  void *(*get)(int32_t device_type, int32_t device_id);
};

/* Find them. Return 0 if there is no tvm_ffi. */
int tvm_ffi_streams(struct tvm_ffi_streams *found);

/* The first two fields of TVMFFIErrorCell, which follows the object header. */
typedef struct {
  dso_byte_array kind, message;
} tvm_ffi_error_cell;

static inline const tvm_ffi_error_cell *tvm_ffi_error(const dso_object *error) {
  return (const tvm_ffi_error_cell *)(error + 1);
}
