/* dso.h: load packed libraries and run them, from C, C++ or Rust; link with -ldso. C99 and C++11.
 *
 *     dso_module *m = dso_load("model.so", NULL);
 *     dso_any y = dso_none(), args[] = {dso_tensor(&x)};
 *     if (!m || dso_module_call(m, "main", &y, args, 1)) return puts(dso_last_error()), 1;
 *     dso_release(&y);
 *     dso_module_release(m);
 *
 * Functions that return int return 0, or -1 with the error raised; functions that return a pointer
 * return NULL instead. dso_last_error() is the text. "Owned" means that the caller releases it,
 * "borrowed" that another object keeps it alive. A pointer may be NULL only where a comment says so;
 * any other one that is NULL is a TypeError. `context` and `handle` are the program's.
 *
 * Any thread may call any function. A module may be released while another thread calls one of its
 * functions, if that thread holds a reference to the module or to the function. */
#ifndef DSO_H
#define DSO_H

#include <stddef.h>

#include "dso_value.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DSO_API /* libdso defines it where it exports these functions */
#define DSO_API
#endif

/* A node of a module tree: a type key, functions, named tensors, imports. */
typedef struct dso_module dso_module;

/* A function, of TVM FFI's layout. It keeps its module alive. */
typedef dso_function_object dso_function;

/* The version of libdso, "0.2.0". */
DSO_API const char *dso_version(void);

/* ---- Errors. Each thread has its own. ---- */

/* "<Kind>: <message>" of this thread's last error, in UTF-8, or "" without one. Borrowed until the
 * next call of this library in this thread. */
DSO_API const char *dso_last_error(void);

/* Its kind: "LibraryLoadError" and "BlobFormatError" of a file, "FunctionNotFoundError",
 * "TypeError", "ValueError", "KeyError", "DeviceError", "OutOfMemoryError", or what a function
 * raised; "" without an error. Borrowed like the text. */
DSO_API const char *dso_last_error_kind(void);

/* Raise an error in a function of the program (dso_function_new, dso_options, dso_type), and return
 * -1. Both strings are copied; NULL is "RuntimeError" and "". */
DSO_API int dso_set_error(const char *kind, const char *message);

/* ---- Loading ---- */

/* Zeroed members mean the default; set `size` to sizeof(dso_options). */
typedef struct dso_options {
  size_t size;

  /* Decides whether a library may run: return 0 to allow it; or raise an error (dso_set_error, any
   * kind and text, which dso_load then has) and return another number. NULL asks nothing.
   *
   * With it, the file is opened once and copied to sealed memory; `verify` gets the copy, and the
   * copy is what runs: no process can change it in between. Next come the libraries that it needs
   * outside the folders of the system, each in the same way, and opened before it. Libraries within
   * a verified one belong to its bytes. There is no other way to load: without sealed memory
   * (memfd_create, /proc) the load is an error. `path` is absolute, unless a library is
   * found in a run path that is not; NULL for bytes in memory. `path` and `bytes` are borrowed during the call, `context`
   * during dso_load, whose thread makes all calls, without a lock: the function may call libdso, and
   * several at once if several threads load. It must not throw. A library that is in use is asked
   * of again. */
  int (*verify)(void *context, const char *path, const void *bytes, size_t nbytes);
  void *verify_context;

  /* The devices that the library may use, beside the CPU; NULL allows all, and an array with
   * num_devices 0 none. Copied. */
  const DLDevice *devices;
  int32_t num_devices;

  /* The number of threads of parallel loops. For the whole process: another number than that of an
   * earlier load is an error. 0 takes TVM_NUM_THREADS, else one per core. */
  int32_t num_threads;

  /* Memory for tensors on the CPU: of graphs, virtual machines, workspaces and results. `allocate`
   * returns NULL without memory; `alignment` is a power of two. For the whole process, like
   * num_threads. */
  void *(*allocate)(void *context, size_t nbytes, size_t alignment);
  void (*deallocate)(void *context, void *block, size_t nbytes);
  void *allocate_context;
} dso_options;

/* Load a library: check the file, open it, and build its module tree. Owned: dso_module_release.
 * `options` may be NULL. While a file is in use, another load of it gives the same tree. The file
 * is closed when the last reference to its modules, functions and objects is released. */
DSO_API dso_module *dso_load(const char *path, const dso_options *options);

/* Load the bytes of a library file. They are copied to a sealed file in memory. */
DSO_API dso_module *dso_load_bytes(const void *bytes, size_t nbytes, const dso_options *options);

/* The model that was linked into this program with a prefix ("" for none), and is never closed:
 * `packer export --system-lib`, and dso_packer_system_lib.h in one file of the program. Owned. A
 * prefix that nothing is registered under gives a module without functions. */
DSO_API dso_module *dso_system_library(const char *prefix);

DSO_API void dso_module_retain(dso_module *module);  /* NULL is ignored */
DSO_API void dso_module_release(dso_module *module); /* NULL is ignored */

/* ---- Functions ---- */

/* Call a function by its name: of the module, else of its imports, depth first in import order.
 * *result need not be initialised, and is owned by the caller: dso_release; NULL drops it.
 * Arguments are borrowed during the call. */
DSO_API int dso_module_call(dso_module *module, const char *name, dso_any *result,
                            const dso_any *args, int32_t num_args);

/* Find a function, to call it often, from any thread. Owned: dso_function_release. */
DSO_API dso_function *dso_module_function(dso_module *module, const char *name);

/* The name of the function that runs the model: usually "main", which the library may lack.
 * Borrowed from the module. */
DSO_API const char *dso_module_entry(dso_module *module);

/* Call `visit` for each function of the module, without its imports, until it returns nonzero;
 * return that value, or 0, or -1 with the error raised. `signature` is the declaration without the
 * name, "double(double x)", or NULL if it is not known. */
typedef int (*dso_visit_function)(void *context, const char *name, const char *signature);
DSO_API int dso_module_functions(dso_module *module, dso_visit_function visit, void *context);

static inline int dso_function_call(dso_function *function, dso_any *result, const dso_any *args,
                                    int32_t num_args) {
  if (!function)
    return dso_set_error("TypeError", "dso_function_call: expected a function, found NULL");
  if (num_args > 0 && !args)
    return dso_set_error("TypeError", "dso_function_call: expected arguments, found NULL");
  return dso_call_function(&function->object, result, args, num_args);
}

static inline void dso_function_release(dso_function *function) {
  if (function) dso_object_release(&function->object);
}

/* Make a function of the program, to pass it as an argument (dso_object_value(&f->object)) or to
 * register it. `call` gets `handle` as its first argument, arguments that are borrowed, and a
 * result to set, which its caller will own; it returns 0, or -1 after dso_set_error. `end`, unless
 * NULL, gets the handle when the last reference is dropped, in whichever thread that is. Owned. */
DSO_API dso_function *dso_function_new(dso_safe_call call, void *handle, void (*end)(void *handle));

/* Give a function a global name: code of libraries finds it after the functions of their imports.
 * The caller keeps its reference, and libdso has another until the process ends. A name that is
 * taken is an error. */
DSO_API int dso_register_function(const char *name, dso_function *function);

/* ---- Sessions: what a model keeps from call to call ---- */

/* The state of a model, as the keys and values of the tokens so far (packer export --state). It
 * keeps its module alive. One call uses a session at a time: a second one is a RuntimeError. */
typedef struct dso_session dso_session;

/* A session without rows. With a `maximum`, memory for so many rows is allocated once, and more are
 * a ValueError; 0: memory grows. Owned: dso_session_release. */
DSO_API dso_session *dso_session_new(dso_module *module, int64_t maximum);

/* As dso_module_call and dso_module_function. A call that fails leaves the state as it was. */
DSO_API int dso_session_call(dso_session *session, const char *name, dso_any *result,
                             const dso_any *args, int32_t num_args);
DSO_API dso_function *dso_session_function(dso_session *session, const char *name);

/* A session with the same state, which is copied when one of both changes it. Owned. */
DSO_API dso_session *dso_session_fork(dso_session *session);

/* Forget the state, and keep its memory. */
DSO_API int dso_session_reset(dso_session *session);

/* Store the number of rows that calls appended; 0 if they only replace the state. */
DSO_API int dso_session_length(dso_session *session, int64_t *length);

DSO_API void dso_session_release(dso_session *session); /* NULL is ignored */

/* ---- The tree ---- */

DSO_API const char *dso_module_type_key(const dso_module *module); /* borrowed */

/* Store the metadata of the library that the module was loaded from: JSON text (docs/format.md) that
 * is borrowed from the module, and is not parsed. NULL without metadata, and for a module that was
 * not loaded. */
DSO_API int dso_module_metadata(const dso_module *module, const char **json);

/* Store the imports, in import order, and return their number. Borrowed until they change; another
 * thread must not change them meanwhile. `imports` may be NULL. */
DSO_API size_t dso_module_imports(const dso_module *module, dso_module *const **imports);

/* Append an import, and retain it. A cycle is an error. */
DSO_API int dso_module_import(dso_module *module, dso_module *imported);

/* The module that a value holds, borrowed from it; NULL with the error raised if it holds none. */
DSO_API dso_module *dso_module_of(const dso_any *value);

/* The module as a value to pass; borrowed. */
DSO_API dso_any dso_module_value(dso_module *module);

/* ---- Weights ---- */

/* Find a named tensor of the module or of its imports, depth first in import order. All of *tensor
 * is borrowed from the module: its data is where the library is mapped, and read-only. Functions of
 * this library that are declared to write to an argument refuse it; other code that writes to it
 * ends the process (SIGSEGV). */
DSO_API int dso_module_weight(dso_module *module, const char *name, DLTensor *tensor);

/* Call `visit` for each named tensor of the module and its imports, as dso_module_functions. A tensor
 * whose data the file does not have in full ends it with ValueError (old versions of TVM wrote
 * vectors so). */
typedef int (*dso_visit_weight)(void *context, const char *name, const DLTensor *tensor);
DSO_API int dso_module_weights(dso_module *module, dso_visit_weight visit, void *context);

/* ---- Tensors in new memory, also of a device: kernels take no tensor of another memory ---- */

/* Store a new contiguous tensor in *result: owned, dso_release. Its elements are not initialised.
 * dso_tensor_of(result) is its DLTensor, borrowed from it. The dtype {2, 32, 1} is float32; the
 * device {1, 0} is the CPU, {2, 0} cuda:0, {4, 0} opencl:0. Only the CPU's `data` is an address of
 * the program. A missing driver or device is a DeviceError. */
DSO_API int dso_tensor_new(dso_any *result, DLDevice device, DLDataType dtype, int32_t ndim,
                           const int64_t *shape);

/* Copy the elements to a tensor of the same shape and dtype, on any devices. The copy is complete
 * on return, after all work that was launched on these devices before. On a device both must be
 * contiguous. `to` must be writeable. */
DSO_API int dso_tensor_copy(const DLTensor *to, const DLTensor *from);

/* ---- The program's own module types ---- */

typedef struct dso_type {
  size_t size; /* sizeof(dso_type) */
  const char *type_key;

  /* Read a payload that begins at `bytes`, store in *used how many of the `nbytes` bytes up to the
   * end of the blob it takes, and in *self what the other functions get. `bytes` is valid as long
   * as the module. Return 0, or -1 with the error raised. */
  int (*load)(const void *bytes, size_t nbytes, size_t *used, void **self);

  /* Find a function. Return 1 with *function owned by the caller, 0 if there is none, or -1 with
   * the error raised. NULL: the type has no functions. */
  int (*find)(void *self, const char *name, dso_function **function);

  void (*end)(void *self); /* the last reference was dropped; may be NULL */
} dso_type;

/* Register a loader for modules of a type key. The strings and functions must stay valid. A key
 * that has a loader is an error. */
DSO_API int dso_register_loader(const dso_type *type);

#ifdef __cplusplus
}
#endif

#endif
