/* Calls that make, move and read storages and tensors. */
#include <string.h>

#include "abi/dtype.h"
#include "scope.h"

enum { MOST_STORAGE = 700 };

static int64_t device_argument(const struct scope *scope) {
  return immediate(scope_draw(scope, 3) == 0 ? -1 : 0);
}

/* A memory scope: mostly the one that every device has. */
static int64_t memory_scope(struct program *program) {
  static const char global[] = "global";
  dso_any value;
  if (draw(program->draws, 16) == 0) return text_constant(program);
  return object_make_string(&value, 1, global, sizeof global - 1) == 0
             ? add_constant(program, value)
             : VM_VOID_REGISTER;
}

/* A storage of as many elements of a byte, or of another data type. */
static int alloc_storage(struct scope *scope) {
  struct program *program = scope->program;
  DLDataType dtype = scope_draw(scope, 2) ? (DLDataType){1, 8, 1} : draw_dtype(program->draws);
  int64_t count = scope_draw(scope, scope_draw(scope, 5) == 0 ? 9 : MOST_STORAGE);
  struct value storage = {.kind = STORAGE, .number = (int64_t)expected_nbytes(dtype, 1, &count)};
  int64_t args[] = {VM_CONTEXT_REGISTER, shape_constant(program, 1, &count), device_argument(scope),
                    dtype_constant(program, dtype), memory_scope(program)};
  call_named(scope, "vm.builtin.alloc_storage", draw_dst(scope), args, 5, &storage);
  return 1;
}

/* A tensor that fits, up to the last byte of its storage. */
static int alloc_tensor(struct scope *scope) {
  struct program *program = scope->program;
  struct value tensor = {.kind = TENSOR, .dtype = draw_dtype(program->draws)};
  int storage = find_kind(scope, STORAGE);
  if (storage < 0) return 0;
  int64_t room = scope->known[storage].number, nbytes;
  draw_extents(program->draws, &tensor.ndim, tensor.dims);
  while ((nbytes = (int64_t)expected_nbytes(tensor.dtype, tensor.ndim, tensor.dims)) > room) {
    if (tensor.ndim == 0) return 0;
    tensor.ndim--;
  }
  int64_t offset = room - nbytes;
  if (scope_draw(scope, 2)) offset = scope_draw(scope, (unsigned)offset + 1);
  if (scope_draw(scope, 2)) offset = offset / 64 * 64;
  else offset += draw_excess(scope);
  int64_t args[] = {storage, immediate(offset), shape_constant(program, tensor.ndim, tensor.dims),
                    dtype_constant(program, tensor.dtype), memory_scope(program)};
  int num_args = scope_draw(scope, 2) ? 5 : 4;
  call_named(scope, "vm.builtin.alloc_tensor", draw_dst(scope), args, num_args, &tensor);
  return 1;
}

static int constant_tensor(struct scope *scope) {
  struct program *program = scope->program;
  struct value tensor = {.kind = NOTHING};
  int64_t args[] = {add_constant(program, any_of_object(readonly_tensor(program->draws, &tensor)))};
  call_named(scope, "vm.builtin.copy", draw_dst(scope), args, 1, &tensor);
  return 1;
}

/* A weight, whose name is sometimes a second one's too. */
static int weight(struct scope *scope) {
  struct program *program = scope->program;
  struct value tensor = {.kind = NOTHING};
  int64_t args[] = {text_constant(program)}, twice = scope_draw(scope, 2);
  if (args[0] == VM_VOID_REGISTER) return 0;
  dso_object *object = readonly_tensor(program->draws, &tensor);
  program->weights[program->num_constants - 1] = any_of_object(object);
  for (int64_t i = 0; i <= twice; i++)
    call_named(scope, "dso.weight", draw_dst(scope), args, 1, &tensor);
  return 1;
}

static int64_t count_elements(const struct value *tensor) {
  int64_t count = 1;
  for (int64_t i = 0; i < tensor->ndim; i++) count *= tensor->dims[i];
  return count;
}

/* All elements in one dimension, or in more of them. A strided tensor cannot be viewed. */
static int reshape(struct scope *scope) {
  struct program *program = scope->program;
  int index = find_kind(scope, TENSOR);
  if (index < 0) return 0;
  struct value view = scope->known[index];
  int64_t count = count_elements(&view);
  view.ndim = 1 + scope_draw(scope, MOST_EXTENTS);
  for (int64_t i = 0; i < view.ndim; i++) view.dims[i] = 1;
  view.dims[scope_draw(scope, (unsigned)view.ndim)] = count + draw_excess(scope);
  int64_t args[] = {index, shape_constant(program, view.ndim, view.dims)};
  call_named(scope, "vm.builtin.reshape", draw_dst(scope), args, 2, &view);
  return 1;
}

/* Bytes of a tensor in one dimension, from an offset on. */
static int view(struct scope *scope) {
  static const DLDataType bytes = {DTYPE_UINT, 8, 1};
  struct program *program = scope->program;
  int index = find_kind(scope, TENSOR);
  if (index < 0) return 0;
  struct value view = {.kind = TENSOR, .dtype = bytes, .ndim = 1};
  int64_t offset = scope_draw(scope, 3) * 32 + draw_excess(scope);
  view.dims[0] = scope_draw(scope, 65);
  int64_t args[] = {index, shape_constant(program, 1, view.dims), dtype_constant(program, bytes),
                    immediate(offset)};
  call_named(scope, "runtime.TVMTensorCreateView", draw_dst(scope), args, 4, &view);
  return 1;
}

static int to_device(struct scope *scope) {
  int index = find_kind(scope, TENSOR);
  if (index < 0) return 0;
  int64_t args[] = {index, immediate(1), immediate(0), VM_VOID_REGISTER};
  call_named(scope, "vm.builtin.to_device", draw_dst(scope), args, 3 + (int)scope_draw(scope, 2),
             &scope->known[index]);
  return 1;
}

static int ensure_zero_offset(struct scope *scope) {
  int index = find_kind(scope, TENSOR);
  if (index < 0) return 0;
  int64_t args[] = {index};
  call_named(scope, "vm.builtin.ensure_zero_offset", draw_dst(scope), args, 1,
             &scope->known[index]);
  return 1;
}

static int is_condition(const struct value *value) {
  static const uint8_t bits[] = {1, 8, 16, 32, 64};
  if (value->kind == INT || value->kind == BOOL) return 1;
  if (value->kind != TENSOR || count_elements(value) != 1 || value->dtype.lanes != 1) return 0;
  if (value->dtype.code > DTYPE_UINT && value->dtype.code != DTYPE_BOOL) return 0;
  return memchr(bits, value->dtype.bits, sizeof bits) != NULL;
}

static int read_if_cond(struct scope *scope) {
  static const struct value boolean = {.kind = BOOL};
  for (int tries = 0; tries < 4; tries++) {
    int64_t index = scope_draw(scope, NUM_REGISTERS);
    if (!is_condition(&scope->known[index])) continue;
    call_named(scope, "vm.builtin.read_if_cond", draw_dst(scope), &index, 1, &boolean);
    return 1;
  }
  return 0;
}

static int check_tensor_info(struct scope *scope) {
  struct program *program = scope->program;
  int index = find_kind(scope, TENSOR), count = 0;
  if (index < 0) return 0;
  const struct value *tensor = &scope->known[index];
  int64_t args[4];
  args[count++] = index;
  args[count++] = immediate(scope_draw(scope, 2) ? tensor->ndim : -1);
  if (scope_draw(scope, 2)) args[count++] = dtype_constant(program, tensor->dtype);
  args[count++] = text_constant(program);
  call_named(scope, "vm.builtin.check_tensor_info", VM_VOID_REGISTER, args, count, NULL);
  return 1;
}

int (*const memory_calls[])(struct scope *scope) = {
    alloc_storage, alloc_tensor, alloc_tensor,       alloc_tensor, constant_tensor,   reshape,
    view,          to_device,    ensure_zero_offset, read_if_cond, check_tensor_info, weight,
};
