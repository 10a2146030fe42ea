/* The virtual machine: verified bytecode, bound to what it calls and made ready to run. No Python.h.
 *
 * A machine does not change while it runs: each call from outside has a stack of its own, so any
 * number of threads may call. Values in registers are owned, but for tensors by pointer, which are
 * the caller's: they are lent for the call, and copied before anything keeps them. */
#ifndef DSO_PACKER_VM_VM_H
#define DSO_PACKER_VM_VM_H

#include <stdatomic.h>
#include <stddef.h>

#include "vm/code.h"
#include "vm/object.h"
#include "vm/pool.h"

struct vm;
struct vm_run;

/* A function of the machine's own: as a safe call, but for its first argument. */
typedef int (*vm_builtin)(struct vm_run *run, const dso_any *args, int32_t num_args,
                          dso_any *result);

struct vm_builtin_row {
  const char *name;
  vm_builtin call;
  int32_t least, most; /* how many arguments it takes */
};

/* The row of a name, or NULL; and all of them, ended by one without a name. */
const struct vm_builtin_row *vm_find_builtin(const char *name);
extern const struct vm_builtin_row vm_builtins[];

/* What bytecode becomes: calls are told apart by what is called. */
enum vm_operation {
  VM_RUN_BUILTIN,  /* a function of the machine's own */
  VM_RUN_FUNCTION, /* a Function object */
  VM_RUN_ROUTINE,  /* a function of the bytecode */
  VM_RUN_CLOSURE,  /* whichever the second argument is */
  VM_MAKE_CLOSURE, /* a function of the bytecode, as a Function object */
  VM_RETURN,
  VM_JUMP,
  VM_JUMP_IF_ZERO,
  VM_JUMP_BACK, /* to itself or ahead of it: a loop, which may have no end */
  VM_JUMP_BACK_IF_ZERO,
};

/* A value to pass: a register, or an entry of the machine's values. */
struct vm_operand {
  uint32_t is_value : 1, index : 31;
};

struct vm_instruction {
  enum vm_operation operation;
  int32_t dst; /* a register; -1: the result is not wanted. Of a return or jump: what it reads. */
  int32_t num_args;
  uint32_t operands; /* the first of them */
  union {
    vm_builtin builtin;
    dso_function_object *function;
    const struct vm_routine *routine;
    const struct vm_instruction *target;
  };
};

/* One function of the bytecode. */
struct vm_routine {
  struct vm *machine;
  const char *name;
  int32_t num_args, num_registers;
  int32_t most_args;                  /* of any call in it: they lie behind its registers */
  const struct vm_instruction *first; /* NULL: it is not of bytecode */
};

struct vm {
  atomic_size_t references;
  size_t num_functions, num_values, num_pools;
  struct vm_routine *routines; /* by index in the table of functions */
  dso_object **callees;        /* likewise: Function objects, or NULL */
  struct vm_instruction *instructions;
  struct vm_operand *operands;
  dso_any *values;        /* constants first */
  struct vm_pool **pools; /* one for each device; the last is the CPU's */
  char *names;            /* of the routines */
};

/* ---- The machine (vm_bind.c) */

/* A new machine with one reference. `callees` has a Function object for each packed function, or
 * NULL for one of the machine's own; they and the constants are retained. Constants are copied
 * where they lie on another device than the first, or as compiled code may not read them. The code
 * is not needed any more afterwards. NULL with an error raised. */
struct vm *vm_new(const struct vm_code *code, const dso_any *constants, dso_object *const *callees,
                  const DLDevice *devices, size_t num_devices);
void vm_retain(struct vm *vm);
void vm_release(struct vm *vm);

/* ---- What comes in (vm_admit.c) */

/* Take an argument from outside into a register, owned but for tensors by pointer. Tensors that
 * compiled operators may not be given are copied. 0, or -1 with an error raised. */
int vm_admit(const struct vm *vm, const dso_any *argument, dso_any *value);

/* ---- Running (vm_run.c) */

/* Call a routine from outside: a safe call. */
int vm_call(const struct vm_routine *routine, const dso_any *args, int32_t num_args,
            dso_any *result);

/* Call a Function object; 0, or -1 with an error raised. What it returns can be kept. */
int vm_call_function(dso_function_object *function, const dso_any *args, int32_t num_args,
                     dso_any *result);

/* The machine of a run. */
struct vm *vm_of_run(const struct vm_run *run);

/* A view of a lent tensor that is lent as well, until the run ends; NULL with MemoryError. */
DLTensor *vm_lend_view(struct vm_run *run, const DLTensor *tensor, int32_t ndim,
                       const int64_t *dims);

/* ---- Closures (vm_closure.c) */

/* A Function object that has the last arguments of what it calls: of a routine, whose machine it
 * keeps, or of another Function object. */
struct vm_closure {
  dso_function_object function;
  const struct vm_routine *routine; /* or NULL */
  dso_function_object *called;      /* or NULL */
  struct ending ending;
  int32_t num_saved;
  dso_any saved[];
};

/* A closure without saved arguments; NULL with MemoryError raised. */
dso_object *vm_closure_new(const struct vm_routine *routine);

/* The same of `function` and further arguments, which are retained. */
dso_object *vm_closure_bind(dso_object *function, const dso_any *saved, int32_t num_saved);

/* The closure behind a Function object, or NULL: it is of another kind. */
const struct vm_closure *vm_closure_of(const dso_object *function);

/* ---- Tensors (vm_tensor.c) */

/* dtype_nbytes: 0, or -1 with a ValueError about `what` raised. */
int vm_nbytes(const char *what, DLDataType dtype, int64_t ndim, const int64_t *dims,
              size_t *nbytes);

/* A new Tensor object on one of the machine's devices; NULL with an error raised. */
dso_tensor_object *vm_tensor_new(struct vm_pool *pool, DLDataType dtype, int32_t ndim,
                                 const int64_t *dims);

/* A compact copy on the pool's device; NULL with an error raised. */
dso_tensor_object *vm_tensor_copy(struct vm_pool *pool, const DLTensor *tensor);

/* A copy that stands for the tensor of a value, and so is read-only where that is; likewise. */
dso_tensor_object *vm_tensor_stand_in(struct vm_pool *pool, const dso_any *value);

/* Whether compiled operators may be given this tensor as it is. */
int vm_tensor_is_fit(const DLTensor *tensor);

/* The pool of the CPU. */
struct vm_pool *vm_host_pool(const struct vm *vm);

/* Make a value one that can be kept: a lent tensor is copied. The reference of `value` is used up,
 * also when it is refused; 0, or -1 with an error raised. */
int vm_own(const struct vm *vm, dso_any *value);

#endif
