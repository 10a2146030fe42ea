/* Functions of elements: broadcasting, and the loops over what the inner loop leaves. One file, since
 * each step reads the plan of the one before. */
#include "ufunc.h"

#include <string.h>

typedef struct {
  char *data;
  nrt_meminfo *copy;           /* of an array that is converted; else NULL */
  int64_t steps[NB_MOST_DIMS]; /* along the dimensions of the loops, in bytes; 0 if broadcast */
  int64_t core_steps[NB_MOST_CORE];
  double number[2]; /* the value of a scalar */
} operand;

typedef struct {
  const nb_ufunc *self;
  const dso_any *args;
  int32_t ndim; /* of the loops */
  int64_t shape[NB_MOST_DIMS];
  int64_t core[NB_MOST_CORE]; /* -1 if unknown */
  operand operands[NB_MOST_OPERANDS];
} plan;

/* ---- Shapes */

static int refuse(const plan *self, const char *text) {
  dso_message message = {.length = 0};
  dso_say(&message, "%s: %s, found ", self->self->function->name, text);
  for (int32_t i = 0; i < self->self->num_inputs + self->self->num_outputs; i++) {
    if (self->args[i].type_index == DSO_NONE) continue;
    dso_say(&message, "%s", i == 0 ? "" : ", ");
    dso_say_value(&message, &self->args[i]);
  }
  return dso_raise_message(&message, self->self->function, "ValueError");
}

/* True if an integer type has the value of an int; bits that it lacks are copies of the sign. */
static int has_value(const nb_operand *as, const dso_any *value) {
  int64_t number = value->v_int64;
  if (as->code == DSO_DT_INT)
    return !dso_is_beyond_int64(value) && number >> (as->bits - 1) == number >> 63;
  if (number < 0 && !dso_is_beyond_int64(value)) return 0;
  return as->bits == 64 || (uint64_t)number >> as->bits == 0;
}

static int store_number(const plan *self, int32_t index, operand *out) {
  const nb_operand *as = &self->self->operands[index];
  const dso_any *value = &self->args[index];
  double parts[2] = {0, 0};
  if (as->code == DSO_DT_FLOAT || as->code == DSO_DT_COMPLEX) {
    (void)nb_read_complex(value, parts);
    float singles[2] = {(float)parts[0], (float)parts[1]};
    int is_single = as->bits == (as->code == DSO_DT_FLOAT ? 32 : 64);
    memcpy(out->number, is_single ? (void *)singles : parts, as->bits / 8u);
  } else {
    if (as->code != DSO_DT_BOOL && !has_value(as, value))
      return nb_refuse(self->self->function, value, index, NB_BEYOND);
    memcpy(out->number, &value->v_int64, sizeof value->v_int64); /* the low bytes come first */
  }
  out->data = (char *)out->number;
  return 0;
}

/* Join the extents of one tensor to the loops' extents; -1 if they differ. */
static int join(plan *self, const nb_operand *as, const DLTensor *tensor) {
  int32_t outer = tensor->ndim - as->num_core;
  for (int32_t i = 0; i < outer; i++) {
    int64_t *extent = &self->shape[self->ndim - outer + i];
    if (*extent == 1) *extent = tensor->shape[i];
    else if (tensor->shape[i] != 1 && tensor->shape[i] != *extent) return -1;
  }
  for (int32_t i = 0; i < as->num_core; i++) {
    int64_t *extent = &self->core[as->core[i]];
    if (*extent < 0) *extent = tensor->shape[outer + i];
    else if (*extent != tensor->shape[outer + i]) return -1;
  }
  return 0;
}

static int find_shape(plan *self) {
  const nb_ufunc *function = self->self;
  for (int32_t i = 0; i < function->num_inputs; i++) {
    const DLTensor *tensor = dso_tensor_of(&self->args[i]);
    int32_t outer = tensor ? tensor->ndim - function->operands[i].num_core : 0;
    if (outer > self->ndim) self->ndim = outer;
  }
  for (int32_t i = 0; i < self->ndim; i++) self->shape[i] = 1;
  for (int32_t i = 0; i < function->num_core; i++) self->core[i] = -1;
  for (int32_t k = 0; k < function->num_inputs + function->num_outputs; k++)
    for (int32_t i = 0; i < self->ndim; i++) self->operands[k].steps[i] = 0;
  for (int32_t i = 0; i < function->num_inputs; i++) {
    const DLTensor *tensor = dso_tensor_of(&self->args[i]);
    if (tensor && join(self, &function->operands[i], tensor))
      return refuse(self, "expected shapes that broadcast");
  }
  return 0;
}

/* The steps of a tensor, and of an array that has no strides yet. */
static void find_steps(plan *self, const nb_operand *as, const DLTensor *tensor, operand *out) {
  int32_t outer = tensor->ndim - as->num_core, skipped = self->ndim - outer;
  out->data = (char *)dso_address_of(tensor);
  for (int32_t i = 0; i < outer; i++)
    if (tensor->shape[i] != 1 || self->shape[skipped + i] == 1)
      out->steps[skipped + i] = nb_step_of(tensor, i);
  for (int32_t i = 0; i < as->num_core; i++) out->core_steps[i] = nb_step_of(tensor, outer + i);
}

/* ---- Arrays of other types */

static DLDataType type_of(const nb_operand *as) { return (DLDataType){as->code, as->bits, 1}; }

static int is_as(const nb_operand *as, const DLTensor *tensor) {
  return dso_has_dtype(tensor, as->code, as->bits) && dso_address_of(tensor) % as->align == 0;
}

/* Allocate an array of an operand's type, and of the shape of a tensor. */
static int make_copy(const nb_operand *as, const DLTensor *tensor, operand *out, DLTensor *made) {
  int64_t nbytes = as->bits / 8;
  *made = *tensor;
  made->dtype = type_of(as);
  made->strides = NULL;
  made->byte_offset = 0;
  for (int32_t i = 0; i < tensor->ndim; i++) nbytes *= tensor->shape[i];
  out->copy = NRT_MemInfo_alloc_aligned((size_t)nbytes, 64);
  if (out->copy == NULL) return dso_raise("MemoryError", "no memory to convert an array");
  made->data = out->copy->data;
  return 0;
}

static int use_input(plan *self, const nb_operand *as, const DLTensor *tensor, operand *out) {
  DLTensor copy;
  if (is_as(as, tensor)) find_steps(self, as, tensor, out);
  else {
    if (make_copy(as, tensor, out, &copy)) return -1;
    nb_cast(tensor, &copy);
    find_steps(self, as, &copy, out);
  }
  return 0;
}

/* ---- Outputs */

static int allocate(plan *self, const nb_operand *as, operand *out, dso_any *result) {
  NB_ARRAY(NB_MOST_DIMS) array = {.itemsize = as->bits / 8};
  int64_t *dims = array.dims, nbytes = as->bits / 8;
  int32_t ndim = self->ndim + as->num_core;
  if (ndim > NB_MOST_DIMS) return refuse(self, "expected fewer dimensions");
  for (int32_t i = 0; i < ndim; i++) {
    dims[i] = i < self->ndim ? self->shape[i] : self->core[as->core[i - self->ndim]];
    if (dims[i] < 0) return refuse(self, "expected outputs, whose extents the inputs do not give");
    if (__builtin_mul_overflow(nbytes, dims[i] > 0 ? dims[i] : 1, &nbytes))
      return refuse(self, "expected a smaller result");
  }
  int64_t step = as->bits / 8;
  for (int32_t i = ndim - 1; i >= 0; i--) {
    dims[ndim + i] = step;
    if (i < self->ndim) out->steps[i] = self->shape[i] == 1 ? 0 : step;
    else out->core_steps[i - self->ndim] = step;
    step *= dims[i];
  }
  array.meminfo = NRT_MemInfo_alloc_aligned((size_t)nbytes, 64);
  if (array.meminfo == NULL) return dso_raise("MemoryError", "no memory for a result");
  out->data = array.data = array.meminfo->data;
  DLDataType dtype = {as->code, as->bits, 1};
  return nb_give_array(result, (const nb_array *)(const void *)&array, ndim, dtype, NULL, 0);
}

static int is_output(const nb_operand *as, const DLTensor *tensor) {
  DLDataType type = tensor->dtype;
  if (!dso_is_on_cpu(tensor) || tensor->ndim < as->num_core) return 0;
  if (dso_has_dtype(tensor, as->code, as->bits)) return 1;
  int is_known = type.code <= DSO_DT_UINT || type.code == DSO_DT_COMPLEX ||
                 (type.code == DSO_DT_FLOAT && (type.bits == 32 || type.bits == 64));
  return is_known && type.lanes == 1 && type.bits % 8 == 0 && nb_is_same_kind(type_of(as), type);
}

/* An array that the caller passes for an output has the shape of the loops. */
static int use_output(plan *self, const nb_operand *as, const dso_any *value, operand *out) {
  const DLTensor *tensor = dso_tensor_of(value);
  if (!tensor || nb_is_readonly(value) || !is_output(as, tensor))
    return refuse(self, "expected a writable output that the result can be converted to");
  int is_same = tensor->ndim == self->ndim + as->num_core;
  for (int32_t i = 0; is_same && i < self->ndim; i++) is_same = tensor->shape[i] == self->shape[i];
  if (!is_same || join(self, as, tensor))
    return refuse(self, "expected an output of the shape of the result");
  DLTensor copy = *tensor;
  if (!is_as(as, tensor)) {
    if (make_copy(as, tensor, out, &copy)) return -1;
    if (nb_is_same_kind(tensor->dtype, copy.dtype)) nb_cast(tensor, &copy); /* code may read it */
  }
  find_steps(self, as, &copy, out);
  return 0;
}

/* Convert the results whose outputs have other types. */
static void store_outputs(const plan *self) {
  for (int32_t i = 0; i < self->self->num_outputs; i++) {
    int32_t k = self->self->num_inputs + i;
    const DLTensor *tensor = dso_tensor_of(&self->args[k]);
    if (!tensor || !self->operands[k].copy) continue;
    DLTensor copy = *tensor;
    copy.data = self->operands[k].copy->data;
    copy.dtype = type_of(&self->self->operands[k]);
    copy.strides = NULL;
    copy.byte_offset = 0;
    nb_cast(&copy, tensor);
  }
}

static int prepare(plan *self, dso_any *results) {
  const nb_ufunc *function = self->self;
  for (int32_t i = 0; i < function->num_inputs; i++) {
    const DLTensor *tensor = dso_tensor_of(&self->args[i]);
    const nb_operand *as = &function->operands[i];
    if (tensor ? use_input(self, as, tensor, &self->operands[i])
               : store_number(self, i, &self->operands[i]))
      return -1;
  }
  for (int32_t i = 0; i < function->num_outputs; i++) {
    int32_t k = function->num_inputs + i;
    const nb_operand *as = &function->operands[k];
    if (self->args[k].type_index != DSO_NONE &&
        use_output(self, as, &self->args[k], &self->operands[k]))
      return -1;
  }
  for (int32_t i = 0; i < function->num_outputs; i++) { /* those given may have core extents */
    int32_t k = function->num_inputs + i;
    if (self->args[k].type_index == DSO_NONE &&
        allocate(self, &function->operands[k], &self->operands[k], &results[i]))
      return -1;
  }
  return 0;
}

/* ---- Loops */

/* Join dimensions that every operand passes through in equal steps. */
static void merge(plan *self, int32_t count) {
  int32_t kept = -1;
  for (int32_t i = 0; i < self->ndim; i++) {
    if (self->shape[i] == 1) continue;
    int is_one = kept >= 0;
    for (int32_t k = 0; is_one && k < count; k++)
      is_one = self->operands[k].steps[kept] == self->operands[k].steps[i] * self->shape[i];
    if (!is_one) kept++;
    self->shape[kept] = is_one ? self->shape[kept] * self->shape[i] : self->shape[i];
    for (int32_t k = 0; k < count; k++) self->operands[k].steps[kept] = self->operands[k].steps[i];
  }
  self->ndim = kept + 1;
}

static void run_loops(plan *self) {
  const nb_ufunc *function = self->self;
  int32_t count = function->num_inputs + function->num_outputs, inner = self->ndim - 1;
  int64_t dims[1 + NB_MOST_CORE] = {inner < 0 ? 1 : self->shape[inner]};
  int64_t steps[NB_MOST_OPERANDS * (1 + NB_MOST_CORE)], index[NB_MOST_DIMS] = {0};
  char *data[NB_MOST_OPERANDS];
  int32_t at = count;
  for (int32_t i = 0; i < function->num_core; i++) dims[1 + i] = self->core[i];
  for (int32_t k = 0; k < count; k++) {
    data[k] = self->operands[k].data;
    steps[k] = inner < 0 ? 0 : self->operands[k].steps[inner];
    for (int32_t i = 0; i < function->operands[k].num_core; i++)
      steps[at++] = self->operands[k].core_steps[i];
  }
  for (int32_t i = 0; i < self->ndim; i++)
    if (self->shape[i] == 0) return;
  for (int32_t axis = 0; axis >= 0;) {
    char *passed[NB_MOST_OPERANDS];
    memcpy(passed, data, sizeof passed);
    function->loop(passed, dims, steps, NULL);
    for (axis = inner - 1; axis >= 0; axis--) { /* the next place of the outer loops */
      int is_over = ++index[axis] == self->shape[axis];
      for (int32_t k = 0; k < count; k++)
        data[k] += self->operands[k].steps[axis] * (is_over ? 1 - self->shape[axis] : 1);
      if (!is_over) break;
      index[axis] = 0;
    }
  }
}

/* A result without dimensions is a number, as NumPy returns it. */
static int as_number(const nb_operand *as, dso_any *result) {
  const DLTensor *tensor = dso_tensor_of(result);
  if (!tensor || tensor->ndim > 0) return 0;
  const char *data = tensor->data;
  dso_any number = dso_none();
  int64_t integer = 0;
  double parts[2] = {0, 0};
  float singles[2];
  if (as->code == DSO_DT_FLOAT && as->bits == 64) memcpy(parts, data, sizeof *parts);
  else if (as->code == DSO_DT_FLOAT) {
    memcpy(singles, data, sizeof *singles);
    parts[0] = (double)singles[0];
  } else if (as->code == DSO_DT_COMPLEX) {
    int is_single = as->bits == 64;
    memcpy(is_single ? (void *)singles : parts, data, as->bits / 8u);
    for (int i = 0; is_single && i < 2; i++) parts[i] = (double)singles[i];
    dso_release(result);
    return dso_give_complex128(result, __builtin_complex(parts[0], parts[1]));
  }
  memcpy(&integer, data, as->bits / 8u);
  if (as->code == DSO_DT_INT) {
    integer = (int64_t)((uint64_t)integer << (64 - as->bits)) >> (64 - as->bits);
    (void)dso_give_signed(&number, integer);
  } else if (as->code == DSO_DT_UINT) (void)dso_give_unsigned(&number, (uint64_t)integer);
  else if (as->code == DSO_DT_BOOL) (void)dso_give_bool(&number, (uint8_t)integer);
  else (void)dso_give_float(&number, parts[0]);
  dso_release(result);
  *result = number;
  return 0;
}

static int run(const nb_ufunc *self, const dso_any *args, dso_any *results) {
  plan made; /* what is not used is not set: it is large */
  made.self = self;
  made.args = args;
  made.ndim = 0;
  int32_t count = self->num_inputs + self->num_outputs;
  for (int32_t i = 0; i < count; i++) made.operands[i].copy = NULL;
  int status = find_shape(&made);
  if (!status) status = prepare(&made, results);
  if (!status) {
    nrt_call memory;
    merge(&made, count);
    if (self->allocates) nrt_call_begin(&memory);
    run_loops(&made);
    status = nb_raise_pending(0, self->function);
    if (self->allocates) nrt_call_end(&memory, status);
  }
  if (!status) store_outputs(&made);
  for (int32_t i = 0; i < count; i++)
    if (made.operands[i].copy) NRT_decref(made.operands[i].copy);
  for (int32_t i = 0; !status && i < self->num_outputs; i++)
    status = as_number(&self->operands[self->num_inputs + i], &results[i]);
  for (int32_t i = 0; status && i < self->num_outputs; i++) dso_release(&results[i]);
  return status;
}

int nb_ufunc_call(const nb_ufunc *loops, int32_t count, int exact_first, const char *signatures,
                  const dso_any *args, dso_any *results) {
  int32_t chosen = nb_ufunc_choose(loops, count, exact_first, args);
  if (chosen < 0) return nb_refuse_all(loops->function, args, loops->num_inputs, signatures, 0);
  return run(&loops[chosen], args, results);
}
