/* Kernels of device modules: what all drivers share. No Python.h.
 *
 * A kernel is a Function object (TVM FFI): whoever calls it, Python or host code, gives the
 * kernel's arguments and one integer per launch tag behind them. A driver is a table. */
#ifndef DSO_PACKER_DEVICE_KERNEL_H
#define DSO_PACKER_DEVICE_KERNEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "abi/object.h"

/* ---- Signatures (kernel_signature.c) */

/* What the launch integers mean. */
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

/* One parameter; its value is packed at `offset`. */
struct kernel_parameter {
  DLDataType type;
  size_t offset, nbytes;
};

/* A handle as it is packed: where, and for OpenCL's handles the offset from it. */
struct kernel_handle {
  void *data;
  uint64_t byte_offset;
};

struct kernel_signature {
  char *name;      /* by which it is looked up */
  char *code_name; /* in its code */
  int device_type; /* where its tensors lie */
  int num_parameters, num_launch;
  struct kernel_parameter *parameters;
  enum launch_slot *launch; /* what each launch integer is */
  int uses_shared;          /* dynamic shared memory is among them */
  int num_dims;             /* of the grid, as far as tags say: 1 to 3 */
  size_t packed_nbytes;
};

/* Fill everything but the names and the device type; 0, or -1 with a DeviceError raised that names
 * kernel and tag or type. */
int kernel_signature_set(struct kernel_signature *signature, const DLDataType *types, int num_types,
                         const char *const *tags, int num_tags);
void kernel_signature_clear(struct kernel_signature *signature);

static inline int is_handle(DLDataType type) { return type.code == 3; /* kDLOpaqueHandle */ }

/* ---- Arguments (kernel_arguments.c) */

struct kernel_launch {
  int device_id; /* that of the tensors, or -1: there was none */
  uint64_t extents[NUM_EXTENTS];
  uint64_t shared_nbytes;
};

/* True if an extent is 0: there is no thread to run, as for the elements of an empty tensor. (TVM
 * counts 0 as 1, and writes to a tensor without elements.) */
static inline int launch_is_empty(const struct kernel_launch *launch) {
  for (int i = 0; i < NUM_EXTENTS; i++)
    if (launch->extents[i] == 0) return 1;
  return 0;
}

/* Check and pack all arguments of a call; 0, or -1 with TypeError, ValueError, OverflowError or
 * DeviceError raised. No driver is asked. */
int kernel_pack(const struct kernel_signature *signature, const dso_any *args, int32_t num_args,
                char *packed, struct kernel_launch *launch);

/* Raise "<kernel>: <text>"; returns -1. */
int kernel_error(const struct kernel_signature *signature, const char *kind, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));

/* ---- Modules and kernels (kernel.c) */

struct kernel;

/* What a driver makes for one device, of a module or of a kernel; it begins with this. */
struct kernel_binding {
  struct kernel_binding *next;
  int device_id;
};

/* The code that some kernels share. The lock is held while anything is built. */
struct kernel_module {
  atomic_int references;
  const struct kernel_driver *driver;
  char *fmt;
  const unsigned char *data; /* borrowed, or NULL once its owner is gone */
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
  /* Whether there is one on this machine. */
  int (*is_there)(void);
  /* Build the code for a device, unless it is, and take the kernel out of it. Called with the
   * module's lock held and its data there. NULL with a DeviceError raised. */
  struct kernel_binding *(*bind)(struct kernel *kernel, int device_id);
  int (*launch)(struct kernel *kernel, char *packed, struct kernel_launch *launch);
  void (*unbind)(struct kernel_binding *binding);
  void (*unload)(struct kernel_binding *program);
};

/* The driver of a type key, or NULL: its kernels cannot run here. */
const struct kernel_driver *kernel_driver(const char *type_key);

/* A module with one reference, that borrows the data until kernel_module_forget; NULL without
 * memory. */
struct kernel_module *kernel_module_new(const struct kernel_driver *driver, const char *fmt,
                                        const void *data, size_t nbytes);
void kernel_module_release(struct kernel_module *module);

/* The data goes. Kernels that someone still has run where they ran before, and nowhere else. */
void kernel_module_forget(struct kernel_module *module);

/* The Function object of a kernel, which takes over the signature in any case and keeps the module;
 * NULL without memory. */
dso_object *kernel_new(struct kernel_module *module, const struct kernel_signature *signature);

/* What the driver made of a kernel for a device, making it at the first use; NULL with a
 * DeviceError raised. */
struct kernel_binding *kernel_bind(struct kernel *kernel, int device_id);

/* The binding of a device in a list, or NULL. */
struct kernel_binding *kernel_binding_find(struct kernel_binding *first, int device_id);

/* Raise a DeviceError "<device>: kernel '<name>': <text>"; returns -1. */
int kernel_device_error(const struct kernel *kernel, int device_id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

extern const struct kernel_driver opencl_kernel_driver, cuda_kernel_driver;

#endif
