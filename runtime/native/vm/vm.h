/* The virtual machine: verified bytecode, bound to the functions that it calls.
 *
 * A machine does not change while it runs. Each call from outside has a separate stack, so any
 * number of threads may call. Values in registers are owned, except tensors passed by pointer:
 * these are borrowed from the caller for the call, and are copied before an object retains them. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "vm/code.h"
#include "vm/object.h"
#include "vm/allocator.h"
#include "vm/profile.h"

struct vm;
struct vm_run;
struct session;

/* A built-in function: a safe call, but its first argument is the run. */
typedef int (*vm_builtin)(struct vm_run *run, const dso_any *args, int32_t num_args,
                          dso_any *result);

struct vm_builtin_row {
  const char *name;
  vm_builtin call;
  int32_t least, most; /* number of arguments */
};

/* The row of a name, or NULL; and all rows, ended by a row without a name. */
const struct vm_builtin_row *vm_find_builtin(const char *name);
extern const struct vm_builtin_row vm_builtins[];

/* The operations of bound bytecode. Calls are distinguished by the kind of callee. */
enum vm_operation {
  VM_RUN_BUILTIN,  /* a built-in function */
  VM_RUN_FUNCTION, /* a Function object */
  VM_RUN_ROUTINE,  /* a function of the bytecode */
  VM_RUN_CLOSURE,  /* the closure in the second argument */
  VM_MAKE_CLOSURE, /* a function of the bytecode, as a Function object */
  VM_RETURN,
  VM_JUMP,
  VM_JUMP_IF_ZERO,
  VM_JUMP_BACK, /* to itself or an earlier instruction: a loop, which may not end */
  VM_JUMP_BACK_IF_ZERO,
};

/* An argument: the index of a register, or of one of the machine's values. */
struct vm_operand {
  uint32_t is_value : 1, index : 31;
};

struct vm_instruction {
  enum vm_operation operation;
  int32_t dst; /* register of the result, or -1; for returns and jumps: the register they read */
  int32_t num_args;
  uint32_t operands; /* index of the first operand */
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
  int32_t most_args;                  /* of any call in it: stored after its registers */
  const struct vm_instruction *first; /* NULL if the function is not bytecode */
};

struct vm {
  atomic_size_t references;
  size_t num_functions, num_instructions, num_values, num_allocators;
  size_t alignment;            /* of arguments, in bytes */
  struct vm_routine *routines; /* by index in the table of functions */
  dso_object **callees;        /* likewise: Function objects, or NULL */
  struct vm_instruction *instructions;
  int32_t *rows;         /* by instruction: the row of the function that it calls, or -1 */
  struct vm_cost *costs; /* by instruction: its calls so far; NULL unless the machine measures */
  struct vm_operand *operands;
  dso_any *values;                  /* constants first */
  struct vm_allocator **allocators; /* one for each device; the last one is the CPU's */
  char *names;                      /* of the routines */
  atomic_int has_instrument;
  dso_function_object *instrument; /* or NULL; guarded by `lock` */
  pthread_mutex_t lock;
};

/* ---- The machine (machine.c) */

/* The values that a machine is made of, by index in the tables of the code. All are retained. */
struct vm_parts {
  const dso_any *constants;
  const dso_any *weights;     /* for each constant the tensor that it names, or None; or NULL */
  dso_object *const *callees; /* a Function object for each packed function; NULL: built in */
};

/* A new machine with one reference. A constant or weight is copied if it is on another device than
 * the first, or if compiled code cannot read its layout. The machine does not refer to the code
 * afterwards. NULL with an error raised. */
struct vm *vm_new(const struct vm_code *code, const struct vm_parts *parts, const DLDevice *devices,
                  size_t num_devices);
void vm_retain(struct vm *vm);
void vm_release(struct vm *vm);

/* Raise MemoryError for a machine. Returns -1. */
int vm_out_of_memory(void);

/* Bind verified code to a new machine, whose allocators exist (bind.c). Returns 0, or -1 with an error
 * raised. */
int vm_bind(struct vm *vm, const struct vm_code *code, const struct vm_parts *parts);

/* ---- The instrument (run_instrumented.c) */

/* Let all later calls run `instrument` before and after each call instruction, as TVM does: with the
 * called Function object or None, its name, whether it is before, the result or None, and the
 * arguments. If it returns 1 before a call, the call is skipped. NULL removes it. */
void vm_set_instrument(struct vm *vm, dso_function_object *instrument);

/* ---- Measuring (profile.c) */

/* Let all later calls measure each call instruction (vm_cost). Returns 0, or -1 with MemoryError
 * raised. */
int vm_measure(struct vm *vm);

/* The routine of an instruction. */
const struct vm_routine *vm_routine_at(const struct vm *vm, size_t index);

/* ---- Weights (weights.c) */

/* The row of dso.weight in the table of functions, or -1. It is built in, and looked up nowhere
 * else. */
int64_t vm_weight_row(const struct vm_code *code);

/* Set the mark, one for each constant, of the constants that verified code passes to dso.weight. */
void vm_mark_weights(const struct vm_code *code, unsigned char *marks);

/* The number of weights among the parts. */
size_t vm_count_weights(const struct vm_code *code, const struct vm_parts *parts);

/* Append the weights to the machine's values, read-only, and store the index of each by constant.
 * Returns 0, or -1 with an error raised. */
int vm_bind_weights(struct vm *vm, const struct vm_code *code, const struct vm_parts *parts,
                    uint32_t *indices);

/* The text of a str value; a NUL follows it. Returns 0 if the value is not a str. */
int vm_read_text(const dso_any *value, const char **text, size_t *nbytes);

/* ---- Arguments from outside (admit.c) */

/* Store an argument from outside in a register: owned, except a tensor by pointer, which stays
 * borrowed. Tensors that compiled operators cannot take are copied. Returns 0, or -1 with an error
 * raised. */
int vm_admit(const struct vm *vm, const dso_any *argument, dso_any *value);

/* ---- Running (run.c, stack.c) */

/* Call a routine from outside: a safe call. */
int vm_call(const struct vm_routine *routine, const dso_any *args, int32_t num_args,
            dso_any *result);

/* The same with the session whose states the code uses; NULL: none. */
int vm_call_with(const struct vm_routine *routine, struct session *session, const dso_any *args,
                 int32_t num_args, dso_any *result);

/* Call a Function object. Returns 0 with an owned result, or -1 with an error raised. */
int vm_call_function(dso_function_object *function, const dso_any *args, int32_t num_args,
                     dso_any *result);

/* The machine of a run. */
struct vm *vm_of_run(const struct vm_run *run);

/* The session of a run, or NULL. */
struct session *vm_session_of_run(const struct vm_run *run);

/* Count memory that a built-in function allocates, fills or copies as work of the run. */
void vm_count_bytes(struct vm_run *run, size_t nbytes);

/* A view of a borrowed tensor with another shape, valid until the run ends; NULL with MemoryError
 * raised. */
DLTensor *vm_borrow_view(struct vm_run *run, const DLTensor *tensor, int32_t ndim,
                         const int64_t *dims);

/* ---- Closures (closure.c) */

/* A Function object that holds the last arguments of its callee: a routine, whose machine it
 * retains, or another Function object. */
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

/* A closure of `function` and further arguments, which are retained; NULL with MemoryError
 * raised. */
dso_object *vm_closure_bind(dso_object *function, const dso_any *saved, int32_t num_saved);

/* The closure of a Function object, or NULL if it is of another kind. */
const struct vm_closure *vm_closure_of(const dso_object *function);

/* ---- Sessions (session_function.c) */

/* A Function object that calls a routine with a session; it retains both. NULL with MemoryError
 * raised. */
dso_object *vm_session_function(const struct vm_routine *routine, struct session *session);

/* ---- Tensors (tensor.c) */

/* dtype_nbytes for the machine. Returns 0, or -1 with a ValueError about `what` raised. */
int vm_nbytes(const char *what, DLDataType dtype, int64_t ndim, const int64_t *dims,
              size_t *nbytes);

/* A new Tensor object on one of the machine's devices; NULL with an error raised. */
dso_tensor_object *vm_tensor_new(struct vm_allocator *allocator, DLDataType dtype, int32_t ndim,
                                 const int64_t *dims);

/* A compact copy on the allocator's device; NULL with an error raised. */
dso_tensor_object *vm_tensor_copy(struct vm_allocator *allocator, const DLTensor *tensor);

/* A compact copy of a value's tensor, which inherits its read-only mark; NULL with an error
 * raised. */
dso_tensor_object *vm_tensor_copy_value(struct vm_allocator *allocator, const dso_any *value);

/* Return 1 if compiled operators can take this tensor: it is compact and, on the CPU, aligned and
 * without offset. */
int vm_tensor_is_compatible(const DLTensor *tensor, size_t alignment);

/* A constant as compiled code reads it: the same, or a copy that is compact, aligned and on the first
 * device. Returns 0, or -1 with an error raised. */
int vm_bind_constant(const struct vm *vm, const dso_any *constant, dso_any *value);

/* The allocator of the CPU. */
struct vm_allocator *vm_host_allocator(const struct vm *vm);

/* Make a value owned: a tensor by pointer is copied. Takes over the reference of `value`, also on
 * failure. Returns 0, or -1 with an error raised. */
int vm_own(const struct vm *vm, dso_any *value);
