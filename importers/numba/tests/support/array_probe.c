/* Arrays that a wrapper gives back: each function returns 0, or the line that failed. */
#include <stdio.h>
#include <string.h>

#include "array.h"

#define CHECK(condition) \
  if (!(condition)) return __LINE__

static const DLDataType FLOAT64 = {2, 64, 1};
static int destroyed;
static void count(void *data, size_t size, void *info) {
  (void)data, (void)size, (void)info;
  destroyed++;
}

static nb_array *array_of(void *room, nrt_meminfo *meminfo, double *data, int64_t stride) {
  nb_array *array = room;
  *array = (nb_array){.meminfo = meminfo, .nitems = 3, .itemsize = 8, .data = data};
  array->dims[0] = 3;
  array->dims[1] = stride;
  return array;
}

/* The tensor has the only reference; its last release destroys the memory. */
int owned_memory(void) {
  int64_t room[16];
  dso_any result = {0};
  destroyed = 0;
  nrt_meminfo *meminfo = NRT_MemInfo_alloc_dtor(48, count);
  double *data = meminfo->data;
  for (int i = 0; i < 6; i++) data[i] = i;
  CHECK(nb_give_array(&result, array_of(room, meminfo, data + 5, -16), 1, FLOAT64, NULL, 0) == 0);
  DLTensor *tensor = dso_tensor_of(&result);
  CHECK(tensor->strides[0] == -2 && tensor->shape[0] == 3 && tensor->data == data + 5);
  CHECK(meminfo->refct == 1 && destroyed == 0);
  dso_object_retain(result.v_ptr);
  dso_object_release(result.v_ptr);
  CHECK(destroyed == 0);
  dso_object_release(result.v_ptr);
  CHECK(destroyed == 1);
  return 0;
}

/* A view of an argument: the tensor retains a Tensor object, and copies other memory. */
int memory_of_an_argument(void) {
  int64_t room[16];
  dso_any first = {0}, view = {0}, copy = {0};
  destroyed = 0;
  nrt_meminfo *meminfo = NRT_MemInfo_alloc_dtor(24, count);
  double *data = meminfo->data;
  data[0] = 1, data[1] = 2, data[2] = 3;
  CHECK(nb_give_array(&first, array_of(room, meminfo, data, 8), 1, FLOAT64, NULL, 0) == 0);
  nb_array *again = array_of(room, NULL, data, 8);
  again->dims[0] = 2, again->data = data + 1;
  CHECK(nb_give_array(&view, again, 1, FLOAT64, &first, 1) == 0);
  CHECK(nb_give_array(&copy, again, 1, FLOAT64, NULL, 0) == 0);
  CHECK(dso_tensor_of(&view)->data == data + 1);
  double *copied = dso_tensor_of(&copy)->data;
  CHECK(copied != data + 1 && copied[0] == 2 && copied[1] == 3);
  dso_object_release(first.v_ptr);
  CHECK(destroyed == 0);
  dso_object_release(view.v_ptr);
  CHECK(destroyed == 1 && copied[1] == 3);
  dso_object_release(copy.v_ptr);
  return 0;
}

/* The field of a record: 8 bytes of every 12. */
int strides_between_elements(void) {
  int64_t room[16];
  dso_any result = {0};
  nrt_meminfo *meminfo = NRT_MemInfo_alloc(36);
  char *data = meminfo->data;
  for (int i = 0; i < 3; i++) memcpy(data + 12 * i, &(double){i}, 8);
  nb_array *array = array_of(room, meminfo, (double *)(void *)data, 12);
  CHECK(nb_give_array(&result, array, 1, FLOAT64, NULL, 0) == 0);
  double *copied = dso_tensor_of(&result)->data;
  CHECK(copied != (double *)(void *)data && copied[2] == 2);
  dso_object_release(result.v_ptr);
  return 0;
}

static char raised[2][256];
static void note(const char *kind, const char *message) {
  snprintf(raised[0], sizeof raised[0], "%s", kind);
  snprintf(raised[1], sizeof raised[1], "%s", message);
}

int errors(void) {
  nb_exception one = {"ZeroDivisionError", "division by zero", "mean", "geo.py", 12};
  nb_exception nowhere = {"IndexError", "range", "mean", "", 0};
  nb_exception none = {"IndexError", "", "mean", "geo.py", 13};
  __TVMFFIErrorSetRaisedFromCStr = note;
  CHECK(nb_raise(&one) == -1 && strcmp(raised[0], "ZeroDivisionError") == 0);
  CHECK(strcmp(raised[1], "division by zero; raised by mean (geo.py:12)") == 0);
  CHECK(nb_raise(&nowhere) == -1 && strcmp(raised[1], "range; raised by mean") == 0);
  CHECK(nb_raise(&none) == -1 && strcmp(raised[1], "raised by mean (geo.py:13)") == 0);
  return 0;
}
