/* Functions of elements: broadcasting, and the loops over what the inner loop leaves. */
#include "universal.h"

#include <string.h>

typedef struct {
  char *data;
  int64_t steps[NB_MOST_DIMS]; /* along the dimensions of the loops, in bytes; 0 if broadcast */
  int64_t core_steps[NB_MOST_CORE];
  double number[2]; /* the value of a scalar */
} operand;

typedef struct {
  const nb_universal *self;
  const dso_any *args;
  int32_t ndim; /* of the loops */
  int64_t shape[NB_MOST_DIMS];
  int64_t core[NB_MOST_CORE]; /* -1 if unknown */
  operand operands[NB_MOST_OPERANDS];
} plan;

/* ---- Types */

static int is_number(const dso_any *value) {
  return dso_is_integer(value) || value->type_index == DSO_FLOAT;
}

static int is_complex(const dso_any *value) {
  const dso_sequence *array = dso_sequence_of(value);
  return array && array->size == 2 && is_number(&array->items[0]) && is_number(&array->items[1]);
}

static int is_signed(const dso_any *value, int bits) {
  int64_t high = (int64_t)(UINT64_MAX >> (65 - bits));
  return dso_is_integer(value) && !dso_is_beyond_int64(value) && value->v_int64 >= -high - 1 &&
         value->v_int64 <= high;
}

static int is_unsigned(const dso_any *value, int bits) {
  return dso_is_integer(value) && (value->v_int64 >= 0 || dso_is_beyond_int64(value)) &&
         (uint64_t)value->v_int64 <= UINT64_MAX >> (64 - bits);
}

static int fits_number(const nb_operand *as, const dso_any *value) {
  if (as->num_core > 0) return 0;
  switch (as->code) {
    case DSO_DT_BOOL: return value->type_index == DSO_BOOL;
    case DSO_DT_INT: return is_signed(value, as->bits);
    case DSO_DT_UINT: return is_unsigned(value, as->bits);
    case DSO_DT_FLOAT: return is_number(value);
    default: return is_number(value) || is_complex(value);
  }
}

static int fits(const nb_operand *as, const dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  if (!tensor) return fits_number(as, value);
  return dso_is_on_cpu(tensor) && dso_has_dtype(tensor, as->code, as->bits) &&
         tensor->ndim >= as->num_core && tensor->ndim - as->num_core <= NB_MOST_DIMS &&
         dso_address_of(tensor) % as->align == 0;
}

int nb_universal_fits(const nb_universal *self, const dso_any *args) {
  for (int32_t i = 0; i < self->num_inputs; i++)
    if (!fits(&self->operands[i], &args[i])) return 0;
  return 1;
}

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

static void store_number(const nb_operand *as, const dso_any *value, operand *out) {
  double parts[2] = {0, 0};
  uint64_t bits = 0;
  if (as->code == DSO_DT_FLOAT || as->code == DSO_DT_COMPLEX) {
    (void)nb_read_complex(value, parts);
    float singles[2] = {(float)parts[0], (float)parts[1]};
    int is_single = as->bits == (as->code == DSO_DT_FLOAT ? 32 : 64);
    memcpy(out->number, is_single ? (void *)singles : parts, as->bits / 8u);
  } else {
    bits = (uint64_t)value->v_int64; /* little-endian: the low bytes come first */
    memcpy(out->number, &bits, sizeof bits);
  }
  out->data = (char *)out->number;
}

static int64_t step_of(const DLTensor *tensor, int32_t axis, int64_t itemsize) {
  int64_t step = itemsize;
  if (tensor->strides) return tensor->strides[axis] * itemsize;
  for (int32_t i = tensor->ndim - 1; i > axis; i--) step *= tensor->shape[i];
  return step;
}

/* Join the extents of one tensor to those of the loops; -1 if they differ. */
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
  const nb_universal *function = self->self;
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
  int64_t itemsize = as->bits / 8;
  out->data = (char *)dso_address_of(tensor);
  for (int32_t i = 0; i < outer; i++)
    if (tensor->shape[i] != 1 || self->shape[skipped + i] == 1)
      out->steps[skipped + i] = step_of(tensor, i, itemsize);
  for (int32_t i = 0; i < as->num_core; i++)
    out->core_steps[i] = step_of(tensor, outer + i, itemsize);
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

/* An array that the caller passes for an output has the shape of the loops. */
static int use_output(plan *self, const nb_operand *as, const dso_any *value, operand *out) {
  const DLTensor *tensor = dso_tensor_of(value);
  if (!tensor || nb_is_readonly(value) || !fits(as, value))
    return refuse(self, "expected a writable output of the signature's type");
  int is_same = tensor->ndim == self->ndim + as->num_core;
  for (int32_t i = 0; is_same && i < self->ndim; i++) is_same = tensor->shape[i] == self->shape[i];
  if (!is_same || join(self, as, tensor))
    return refuse(self, "expected an output of the shape of the result");
  find_steps(self, as, tensor, out);
  return 0;
}

static int prepare(plan *self, dso_any *results) {
  const nb_universal *function = self->self;
  for (int32_t i = 0; i < function->num_inputs; i++) {
    const DLTensor *tensor = dso_tensor_of(&self->args[i]);
    if (tensor) find_steps(self, &function->operands[i], tensor, &self->operands[i]);
    else store_number(&function->operands[i], &self->args[i], &self->operands[i]);
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
  const nb_universal *function = self->self;
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

int nb_universal_run(const nb_universal *self, const dso_any *args, dso_any *results) {
  plan made; /* what is not used is not set: it is large */
  made.self = self;
  made.args = args;
  made.ndim = 0;
  int32_t count = self->num_inputs + self->num_outputs;
  int status = find_shape(&made);
  if (!status) status = prepare(&made, results);
  if (!status) {
    nrt_call memory;
    merge(&made, count);
    if (self->allocates) nrt_call_begin(&memory);
    run_loops(&made);
    status = nb_raise_noted(0, self->function);
    if (self->allocates) nrt_call_end(&memory, status);
  }
  for (int32_t i = 0; !status && i < self->num_outputs; i++)
    status = as_number(&self->operands[self->num_inputs + i], &results[i]);
  for (int32_t i = 0; status && i < self->num_outputs; i++) dso_release(&results[i]);
  return status;
}
