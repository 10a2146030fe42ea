/* Calls on shapes, numbers and the heap of symbolic extents. */
#include <string.h>

#include "abi/dtype.h"
#include "scope.h"

enum { EQUAL_TO_IMMEDIATE, STORE, NO_CHECK, EQUAL_TO_SLOT };
enum { IMMEDIATE, SLOT };

static int alloc_shape_heap(struct scope *scope) {
  struct value heap = {.kind = HEAP, .ndim = 1 + scope_draw(scope, 8)};
  int64_t args[] = {VM_CONTEXT_REGISTER, immediate(heap.ndim)};
  call_named(scope, "vm.builtin.alloc_shape_heap", draw_dst(scope), args, 2, &heap);
  return 1;
}

/* Two arguments that a number matches; without a heap no slot can be asked for. A slot is stored to
 * before it is compared with. */
static int match_pair(const struct scope *scope, int64_t *args, const struct value *heap,
                      int64_t number, int is_known) {
  int64_t slot = heap != NULL ? scope_draw(scope, (unsigned)heap->ndim) : 0;
  unsigned code = scope_draw(scope, heap != NULL ? 3 : 2);
  if (code == 0 && is_known) code = EQUAL_TO_IMMEDIATE;
  else code = code == 2 ? STORE : NO_CHECK;
  args[0] = immediate(code);
  args[1] = immediate(code == STORE ? slot : number);
  return code == STORE;
}

static int64_t heap_argument(const struct scope *scope, const struct value **heap) {
  int index = find_kind(scope, HEAP);
  *heap = index >= 0 ? &scope->known[index] : NULL;
  return index >= 0 ? index : VM_VOID_REGISTER;
}

static int match_shape(struct scope *scope) {
  const struct value *heap;
  int index = find_kind(scope, scope_draw(scope, 2) ? TENSOR : SHAPE), count = 3;
  if (index < 0) return 0;
  const struct value *matched = &scope->known[index];
  int64_t args[4 + 2 * MOST_EXTENTS] = {index, heap_argument(scope, &heap),
                                        immediate(matched->ndim)};
  int is_known = matched->kind == TENSOR || matched->is_constant;
  for (int64_t i = 0; i < matched->ndim; i++, count += 2)
    (void)match_pair(scope, args + count, heap, matched->dims[i], is_known);
  args[count++] = text_constant(scope->program);
  call_named(scope, "vm.builtin.match_shape", VM_VOID_REGISTER, args, count, NULL);
  return 1;
}

/* The same extent stored, and compared with its slot. */
static int match_twice(struct scope *scope) {
  const struct value *heap;
  int64_t extents[] = {3, 3}, slot, at;
  if ((at = heap_argument(scope, &heap)) == VM_VOID_REGISTER) return 0;
  slot = immediate(draw_excess(scope) ? heap->ndim : scope_draw(scope, (unsigned)heap->ndim));
  int64_t args[] = {shape_constant(scope->program, 2, extents), at, immediate(2), immediate(STORE),
                    slot, immediate(EQUAL_TO_SLOT), slot, text_constant(scope->program)};
  call_named(scope, "vm.builtin.match_shape", VM_VOID_REGISTER, args, 8, NULL);
  return 1;
}

static int match_prim_value(struct scope *scope) {
  const struct value *heap;
  int index = find_kind(scope, scope_draw(scope, 4) ? INT : BOOL);
  if (index < 0) return 0;
  int64_t args[5] = {index, heap_argument(scope, &heap)};
  (void)match_pair(scope, args + 2, heap, 0, 0);
  args[4] = text_constant(scope->program);
  call_named(scope, "vm.builtin.match_prim_value", VM_VOID_REGISTER, args, 5, NULL);
  return 1;
}

static int make_prim_value(struct scope *scope) {
  const struct value *heap, number = {.kind = INT};
  int64_t args[3] = {heap_argument(scope, &heap)};
  int is_slot = heap != NULL && scope_draw(scope, 2);
  args[1] = immediate(is_slot ? SLOT : IMMEDIATE);
  args[2] = immediate(scope_draw(scope, is_slot ? (unsigned)heap->ndim : 9));
  call_named(scope, "vm.builtin.make_prim_value", draw_dst(scope), args, 3, &number);
  return 1;
}

static int make_shape(struct scope *scope) {
  const struct value *heap;
  struct value shape = {
      .kind = SHAPE, .ndim = scope_draw(scope, MOST_EXTENTS + 1), .is_constant = 1};
  int64_t args[2 + 2 * MOST_EXTENTS] = {heap_argument(scope, &heap), immediate(shape.ndim)};
  for (int64_t i = 0; i < shape.ndim; i++) {
    int is_slot = heap != NULL && scope_draw(scope, 3) == 0;
    shape.dims[i] = scope_draw(scope, is_slot ? (unsigned)heap->ndim : 9);
    shape.is_constant &= !is_slot;
    args[2 + 2 * i] = immediate(is_slot ? SLOT : IMMEDIATE);
    args[3 + 2 * i] = immediate(shape.dims[i]);
  }
  call_named(scope, "vm.builtin.make_shape", draw_dst(scope), args, 2 + 2 * (int)shape.ndim,
             &shape);
  return 1;
}

static int shape_of(struct scope *scope) {
  int index = find_kind(scope, TENSOR);
  if (index < 0) return 0;
  struct value shape = scope->known[index];
  int64_t args[] = {index};
  shape.kind = SHAPE;
  shape.is_constant = 1;
  call_named(scope, "vm.builtin.shape_of", draw_dst(scope), args, 1, &shape);
  return 1;
}

static int is_vector(const struct value *value) {
  return value->kind == TENSOR && value->ndim == 1 && value->dims[0] <= MOST_EXTENTS &&
         value->dtype.code == DTYPE_INT && value->dtype.lanes == 1 &&
         (value->dtype.bits == 32 || value->dtype.bits == 64);
}

/* A heap is a vector of int64, too. */
static int tensor_to_shape(struct scope *scope) {
  for (int64_t index = 0; index < NUM_REGISTERS; index++) {
    const struct value *vector = &scope->known[index];
    if (!is_vector(vector) && vector->kind != HEAP) continue;
    struct value shape = {.kind = ANYTHING};
    call_named(scope, "vm.builtin.tensor_to_shape", draw_dst(scope), &index, 1, &shape);
    return 1;
  }
  return 0;
}

static int check_shape_info(struct scope *scope) {
  int index = find_kind(scope, SHAPE);
  if (index < 0) return 0;
  int64_t args[] = {index, immediate(scope_draw(scope, 2) ? scope->known[index].ndim : -1),
                    text_constant(scope->program)};
  call_named(scope, "vm.builtin.check_shape_info", VM_VOID_REGISTER, args, 3, NULL);
  return 1;
}

int (*const shape_calls[])(struct scope *scope) = {
    alloc_shape_heap, match_shape, match_shape, match_twice,     match_prim_value,
    make_prim_value,  make_shape,  shape_of,    tensor_to_shape, check_shape_info,
};
