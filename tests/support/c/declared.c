/* Declared functions, written by hand as the wrappers of packer are: handles, structs, several
 * results, keyword arguments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dso_packer.h"

#define FACTS(name, text) \
  DSO_EXPORT const char __packer_fn_##name[] = "packer-function 1\nabi safe_call\n" text
#define FUNCTION(name) \
  DSO_EXPORT int __tvm_ffi_##name(void *handle, const dso_any *args, int32_t num_args, \
                                  dso_any *result)
#define UNUSED (void)handle, (void)args, (void)num_args, (void)result

static int fail(const char *text) { return dso_raise("TypeError", text); }

/* ---- Handles */

struct counter {
  int64_t value;
  struct counter *parent;
};

/* Atomic, because calls run without the GIL. */
static _Atomic int64_t num_open;

static int give(dso_any *result, void *pointer) {
  *result = dso_pointer(pointer);
  return 0;
}

static struct counter *pointer_of(const dso_any *value) {
  return value->type_index == DSO_OPAQUE_PTR ? value->v_ptr : NULL;
}

FACTS(counter_new, "type counter *(int64_t start)\nparams start:i64\nresult @counter\n"
                   "free counter_free\n");
FUNCTION(counter_new) {
  UNUSED;
  if (args[0].v_int64 < 0) return give(result, NULL);
  struct counter *made = calloc(1, sizeof *made);
  made->value = args[0].v_int64;
  num_open++;
  return give(result, made);
}

FACTS(counter_free, "type void(counter *c)\nparams c:@counter\nresult void\n");
FUNCTION(counter_free) {
  UNUSED;
  struct counter *counter = pointer_of(&args[0]);
  if (counter == NULL) return 0;
  if (counter->value == 13) return dso_raise("ValueError", "counter 13 cannot be released");
  num_open--;
  free(counter);
  return 0;
}

FACTS(counter_next, "type int64_t(counter *c)\nparams c:@counter\nresult i64\n");
FUNCTION(counter_next) {
  UNUSED;
  struct counter *counter = pointer_of(&args[0]);
  *result = dso_int(counter != NULL ? counter->value++ : -1);
  return 0;
}

/* A child belongs to its parent. */
FACTS(counter_child, "type counter *(counter *c)\nparams c:@counter\nresult @counter\n"
                     "free counter_free\nlifetime c\n");
FUNCTION(counter_child) {
  UNUSED;
  struct counter *made = calloc(1, sizeof *made);
  made->parent = pointer_of(&args[0]);
  num_open++;
  return give(result, made);
}

/* A pointer into the counter, which its handle does not release. */
FACTS(counter_item, "type counter *(counter *c)\nparams c:@counter\nresult @counter\n"
                    "lifetime c\n");
FUNCTION(counter_item) { UNUSED; return give(result, args[0].v_ptr); }

FACTS(counter_item_of, "type counter *(counter *c, counter *owner)\nresult @counter\n"
                       "params c:@counter owner:@counter\ndefault owner null\nlifetime owner\n");
FUNCTION(counter_item_of) { UNUSED; return give(result, args[0].v_ptr); }

FACTS(between, "type int(int from, int to)\nparams from:i32 to:i32\nresult i32\n");
FUNCTION(between) { UNUSED; *result = dso_int(args[1].v_int64 - args[0].v_int64); return 0; }

FACTS(num_open, "type int64_t(void)\nparams \nresult i64\n");
FUNCTION(num_open) {
  UNUSED;
  *result = dso_int(num_open);
  return 0;
}

FACTS(other_use, "type int(other *o)\nparams o:@other\nresult i32\n");
FUNCTION(other_use) { UNUSED; *result = dso_int(1); return 0; }

FACTS(other_new, "type other *(void)\nresult @other\n");
FUNCTION(other_new) { UNUSED; return give(result, &num_open); }

FACTS(any_pointer, "type void *(void)\nresult *void\n");
FUNCTION(any_pointer) {
  UNUSED;
  static struct counter counter = {.value = 40};
  return give(result, &counter);
}

FACTS(address, "type int64_t(void *p)\nparams p:*void\nresult i64\n");
FUNCTION(address) {
  UNUSED;
  *result = dso_int(args[0].type_index == DSO_DLTENSOR_PTR
                        ? (int64_t)(intptr_t)((DLTensor *)args[0].v_ptr)->data
                        : (int64_t)(intptr_t)args[0].v_ptr);
  return 0;
}

FACTS(no_release, "type counter *(void)\nresult @counter\nfree missing\n");
FUNCTION(no_release) { UNUSED; return give(result, &num_open); }

/* call_with(c, f): call f with the handle while this call uses it. */
FACTS(call_with, "type int64_t(counter *c, void (*f)(void *))\nparams c:@counter f:fn\nresult i64\n");
FUNCTION(call_with) {
  UNUSED;
  dso_function_object *function = args[1].v_ptr;
  dso_any pointer = dso_pointer(args[0].v_ptr);
  return function->safe_call(function, &pointer, 1, result);
}

/* ---- Several results */

static int give_array(const dso_any *items, int32_t count, dso_any *result) {
  dso_object *function;
  if (dso_find("ffi.Array", &function) != 0) return -1;
  return ((dso_function_object *)(void *)function)->safe_call(function, items, count, result);
}

FACTS(open_both, "type int(int64_t n, double *mean, counter **c)\nparams n:i64\n"
                 "out mean:f64 c:@counter\nresult i32\nfree counter_free\n");
FUNCTION(open_both) {
  UNUSED;
  dso_any items[3] = {dso_int(7), dso_float(2.5), dso_pointer(NULL)};
  if (args[0].v_int64 > 0) {
    struct counter *made = calloc(1, sizeof *made);
    num_open++;
    items[2] = dso_pointer(made);
  }
  return give_array(items, 3, result);
}

FACTS(texts, "type void(const char **a, const char **b)\nparams \nout a:str b:str\nresult void\n");
FUNCTION(texts) {
  UNUSED;
  dso_any items[2] = {dso_string("short"), dso_string("a longer text")};
  return give_array(items, 2, result);
}

/* ---- Structs and complex numbers */

FACTS(square, "type double _Complex(double _Complex z)\nparams z:c128\nresult c128\n");
FUNCTION(square) {
  UNUSED;
  if (args[0].type_index != DSO_ARRAY) return fail("square: expected an array");
  const dso_any *parts = *(const dso_any **)((char *)args[0].v_ptr + sizeof(dso_object));
  double real = parts[0].v_float64, imaginary = parts[1].v_float64;
  dso_any items[2] = {dso_float(real * real - imaginary * imaginary),
                      dso_float(2 * real * imaginary)};
  return give_array(items, 2, result);
}

#define POINT "struct point 16 8 x:f64@0 n:i32@8\n"
#define LINE POINT "struct line 40 8 from:{point}@0 to:{point}@16 tags:i16[4]@32\n"

FACTS(line_of, LINE "type struct line(struct point p)\nparams p:{point}\nresult {line}\n");
FUNCTION(line_of) {
  UNUSED;
  if (args[0].type_index != DSO_ARRAY) return fail("line_of: expected an array");
  const dso_any *fields = *(const dso_any **)((char *)args[0].v_ptr + sizeof(dso_object));
  dso_any to[2] = {dso_float(2 * fields[0].v_float64), dso_int(2 * fields[1].v_int64)};
  dso_any tags[4] = {dso_int(1), dso_int(2), dso_int(3), dso_int(4)}, line[3] = {{0}};
  int status = give_array(fields, 2, &line[0]) || give_array(to, 2, &line[1]) ||
               give_array(tags, 4, &line[2]) || give_array(line, 3, result);
  for (int i = 0; i < 3; i++) dso_release(&line[i]);
  return status ? -1 : 0;
}

struct record {
  double x;
  int32_t n;
  float scale[2];
  const float *data;
  const char *name;
  struct counter *counter;
};

static void *bytes_of(const dso_any *value) {
  if (value->type_index == DSO_OPAQUE_PTR) return value->v_ptr;
  const dso_byte_array *bytes = value->v_ptr;
  if (value->type_index == DSO_BYTE_ARRAY_PTR) return (void *)(uintptr_t)bytes->data;
  return value->type_index == DSO_DLTENSOR_PTR ? ((DLTensor *)value->v_ptr)->data : NULL;
}

#define RECORD \
  "struct record 48 8 x:f64@0 n:i32@8 scale:f32[2]@12 data:&f32@24 name:str@32 counter:@counter@40\n"

FACTS(update, RECORD "type int(struct record *r)\nparams r:*{record}\nresult i32\n");
FUNCTION(update) {
  UNUSED;
  struct record *record = bytes_of(&args[0]);
  if (record == NULL) return fail("update: expected a struct");
  record->x += record->data != NULL ? record->data[0] : 0;
  record->n = record->name != NULL ? (int32_t)strlen(record->name) : -1;
  record->scale[1] = 0.5f;
  if (record->counter != NULL) record->counter->value += 100;
  if (record->n == 3) record->name = "renamed";
  *result = dso_int(record->n);
  return 0;
}

FACTS(two, RECORD "struct two 16 8 first:*{record}@0 second:*{record}@8\n"
                  "type int(struct two *p)\nparams p:*{two}\nresult i32\n");
FUNCTION(two) { UNUSED; return 0; }

/* Call f while this call uses the record. */
FACTS(update_during, RECORD "type int(const struct record *r, void (*f)(void))\n"
                            "params r:&{record} f:fn\nresult i32\n");
FUNCTION(update_during) {
  UNUSED;
  dso_function_object *function = args[1].v_ptr;
  return function->safe_call(function, NULL, 0, result);
}

FACTS(total, POINT "type double(const struct point *p)\nparams p:&{point}\nresult f64\n");
FUNCTION(total) {
  UNUSED;
  const double *x = bytes_of(&args[0]);
  if (x == NULL) return fail("total: expected a struct");
  int32_t n;
  memcpy(&n, x + 1, sizeof n);
  *result = dso_float(*x + n);
  return 0;
}

FACTS(grow, POINT "type void(struct point *p)\nparams p:*{point}\nresult void\n");
FUNCTION(grow) {
  UNUSED;
  double *x = bytes_of(&args[0]);
  if (x == NULL) return fail("grow: expected a struct");
  *x += 1;
  return 0;
}

/* ---- Text, buffers and keyword arguments */

FACTS(count_texts, "type int64_t(const char *const *names, int64_t n)\nparams names:strs[n] n:i64\n"
                   "result i64\n");
FUNCTION(count_texts) {
  UNUSED;
  if (args[0].type_index != DSO_ARRAY) return fail("count_texts: expected an array");
  *result = dso_int(*(const int64_t *)((char *)args[0].v_ptr + sizeof(dso_object) + sizeof(void *)));
  return 0;
}

FACTS(fill, "type void(char *buf, int64_t n)\nparams buf:*char n:i64\nresult void\n");
FUNCTION(fill) {
  UNUSED;
  memset(((DLTensor *)args[0].v_ptr)->data, 'a', (size_t)args[1].v_int64);
  return 0;
}

FACTS(nbytes, "type int64_t(const void *data)\nparams data:&void\nresult i64\n");
FUNCTION(nbytes) {
  UNUSED;
  *result = dso_int(args[0].type_index == DSO_BYTE_ARRAY_PTR
                        ? (int64_t)((dso_byte_array *)args[0].v_ptr)->size
                        : ((DLTensor *)args[0].v_ptr)->shape[0]);
  return 0;
}

/* Its wrapper fills trailing arguments. */
FACTS(scale, "type double(double x, double by, int64_t power, double offset)\n"
             "params x:f64 by:f64 power:i64 offset:f64\nresult f64\n"
             "default by 2.0\ndefault power 1\ndefault offset 0.5\ndoc Scale a number.\n");
FUNCTION(scale) {
  UNUSED;
  double values[4] = {0, 2, 1, 0.5};
  for (int32_t i = 0; i < num_args && i < 4; i++)
    values[i] = args[i].type_index == DSO_INT ? (double)args[i].v_int64 : args[i].v_float64;
  *result = dso_float(values[0] * values[1] * values[2] + values[3]);
  return 0;
}

FACTS(open_file, "type int(const char *path)\nparams path:str\nresult i32\n");
FUNCTION(open_file) { UNUSED; return dso_raise("OSError", args[0].v_c_str); }
