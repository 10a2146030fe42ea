/* Kernels of device modules: the part that all drivers share.
 *
 * A kernel is a Function object (TVM FFI). Its caller, Python or host code, passes the kernel's
 * arguments, followed by one integer per launch tag. A driver is a table of functions. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "abi/object.h"

/* ---- Signatures (kernel_signature.c) */

/* The meaning of a launch integer. */
enum launch_slot {
  GRID_X,
  GRID_Y,
  GRID_Z,
  BLOCK_X,
  BLOCK_Y,
  BLOCK_Z,
  NUM_EXTENTS,
  SHARED_NBYTES = NUM_EXTENTS,
  NUM_SLOTS,
};

/* One parameter. Its value is stored at `offset` in the packed arguments. */
struct kernel_parameter {
  DLDataType type;
  size_t offset, nbytes;
};

/* A packed handle. Only OpenCL needs the offset apart from the address. */
struct kernel_handle {
  void *data;
  uint64_t byte_offset;
};

struct kernel_signature {
  char *name;      /* the name for look-up */
  char *code_name; /* its name in the code */
  int device_type; /* the device type of its tensors */
  int num_parameters, num_launch;
  struct kernel_parameter *parameters;
  enum launch_slot *launch; /* the meaning of each launch integer */
  int uses_shared;          /* 1 if one of them is dynamic shared memory */
  int num_dims;             /* of the grid, from the tags: 1 to 3 */
  size_t packed_nbytes;
};

/* Fill everything but the names and the device type. Returns 0, or -1 with a DeviceError raised
 * that contains the kernel's name and the invalid tag or type. */
int kernel_signature_set(struct kernel_signature *signature, const DLDataType *types, int num_types,
                         const char *const *tags, int num_tags);
void kernel_signature_clear(struct kernel_signature *signature);

static inline int is_handle(DLDataType type) { return type.code == 3; /* kDLOpaqueHandle */ }

/* ---- Arguments (kernel_arguments.c) */

struct kernel_launch {
  int device_id; /* the device of the tensors; -1 if no argument is a tensor */
  uint64_t extents[NUM_EXTENTS];
  uint64_t shared_nbytes;
};

/* Return 1 if an extent is 0, as for an empty tensor: then there is no thread to run. (TVM takes 0
 * as 1, and writes to a tensor without elements.) */
static inline int launch_is_empty(const struct kernel_launch *launch) {
  for (int i = 0; i < NUM_EXTENTS; i++)
    if (launch->extents[i] == 0) return 1;
  return 0;
}

/* Check and pack all arguments of a call, without calling a driver. Returns 0, or -1 with
 * TypeError, ValueError, OverflowError or DeviceError raised. */
int kernel_pack(const struct kernel_signature *signature, const dso_any *args, int32_t num_args,
                char *packed, struct kernel_launch *launch);

/* Raise "<kernel>: <text>". Returns -1. */
int kernel_error(const struct kernel_signature *signature, const char *kind, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));

/* ---- Modules and kernels (kernel.c) */

struct kernel;

/* A module or a kernel on one device. The driver's own structure begins with this one. */
struct kernel_binding {
  struct kernel_binding *next;
  int device_id;
};

/* The code of one or more kernels. The lock is held while code is built. */
struct kernel_module {
  atomic_int references;
  const struct kernel_driver *driver;
  char *fmt;
  const unsigned char *data; /* borrowed; NULL after kernel_module_forget */
  size_t nbytes;
  pthread_mutex_t lock;
  struct kernel_binding *programs;
};

struct kernel {
  dso_function_object function;
  struct kernel_module *module;
  struct kernel_signature signature;
  struct kernel_binding *_Atomic bindings;
};

struct kernel_driver {
  const char *type_key;
  int device_type;
  /* Return 1 if this machine has the driver. */
  int (*is_there)(void);
  /* Build the module's code for a device, if it is not built yet, and get the kernel from it.
   * Called with the module's lock held and its data present. NULL with a DeviceError raised. */
  struct kernel_binding *(*bind)(struct kernel *kernel, int device_id);
  int (*launch)(struct kernel *kernel, char *packed, struct kernel_launch *launch);
  void (*unbind)(struct kernel_binding *binding);
  void (*unload)(struct kernel_binding *program);
};

/* The driver of a type key, or NULL if the core has none. */
const struct kernel_driver *kernel_driver(const char *type_key);

/* A module with one reference. It borrows the data until kernel_module_forget. NULL if memory is
 * exhausted. */
struct kernel_module *kernel_module_new(const struct kernel_driver *driver, const char *fmt,
                                        const void *data, size_t nbytes);
void kernel_module_release(struct kernel_module *module);

/* Drop the borrowed data. The module's kernels still run on devices that they are bound to, and on
 * no other device. */
void kernel_module_forget(struct kernel_module *module);

/* The Function object of a kernel. It takes over the signature, also on failure, and retains the
 * module. NULL if memory is exhausted. */
dso_object *kernel_new(struct kernel_module *module, const struct kernel_signature *signature);

/* The kernel's binding to a device, made at the first use. NULL with a DeviceError raised. */
struct kernel_binding *kernel_bind(struct kernel *kernel, int device_id);

/* The binding of a device in a list, or NULL. */
struct kernel_binding *kernel_binding_find(struct kernel_binding *binding, int device_id);

/* Raise a DeviceError "<device>: kernel '<name>': <text>". Returns -1. */
int kernel_device_error(const struct kernel *kernel, int device_id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

extern const struct kernel_driver opencl_kernel_driver, cuda_kernel_driver;
