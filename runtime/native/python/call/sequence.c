/* Tuples and lists as arguments: array objects of owned items.
 *
 * The array owns its items, because the called code may keep it. A sequence that is an item of
 * several others becomes one array: the dict `*arrays` maps id -> (sequence, address of the array).
 * `*arrays` is NULL before the first nested array. */
#include "python/call/convert.h"
#include "python/exception.h"
#include "vm/object.h"

static dso_object *find_array(PyObject *arrays, PyObject *sequence) {
  PyObject *id = arrays ? PyLong_FromVoidPtr(sequence) : NULL;
  PyObject *known = id ? PyDict_GetItemWithError(arrays, id) : NULL;
  Py_XDECREF(id);
  return known != NULL ? PyLong_AsVoidPtr(PyTuple_GET_ITEM(known, 1)) : NULL;
}

static int add_array(PyObject **arrays, PyObject *sequence, const dso_array_object *array) {
  if (*arrays == NULL) *arrays = PyDict_New();
  PyObject *id = *arrays ? PyLong_FromVoidPtr(sequence) : NULL;
  PyObject *known =
      id ? Py_BuildValue("(ON)", sequence, PyLong_FromVoidPtr((void *)(uintptr_t)array)) : NULL;
  int status = known ? PyDict_SetItem(*arrays, id, known) : -1;
  Py_XDECREF(id);
  Py_XDECREF(known);
  return status;
}

static int fill_array(dso_array_object *array, struct call_frame *frame, Py_ssize_t index,
                      PyObject *sequence, PyObject **arrays) {
  const struct param *param = callee_param(frame->callee, index);
  int takes_any = frame_takes_any(frame, index) || (param != NULL && param->kind == CODE_STRUCT);
  for (Py_ssize_t i = 0; i < array->size && i < PySequence_Fast_GET_SIZE(sequence); i++)
    if (convert_item(sequence, PySequence_Fast_GET_ITEM(sequence, i), arrays, takes_any,
                     &array->items[i]) != 0)
      return PyErr_ExceptionMatches(PyExc_MemoryError)
                 ? -1
                 : raise_argument_error(frame, index, PyExc_TypeError,
                                        "item %zd of a %s cannot be passed", i,
                                        Py_TYPE(sequence)->tp_name);
  return 0;
}

static int make_array(struct call_frame *frame, Py_ssize_t index, PyObject *object,
                      PyObject **arrays) {
  dso_array_object *array = array_object_new(PySequence_Fast_GET_SIZE(object));
  if (array == NULL) return as_status(raise_no_memory());
  frame_hold(frame, HOLD_OBJECT)->object = &array->object;
  frame_pass(frame, index, DSO_ARRAY, array);
  if (Py_EnterRecursiveCall(" while converting a tuple") != 0) return -1;
  int status = fill_array(array, frame, index, object, arrays);
  Py_LeaveRecursiveCall();
  if (status == 0 && frame->arrays != NULL) status = add_array(arrays, object, array);
  return status;
}

int argument_sequence(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  PyObject *arrays = NULL;
  if (frame->arrays != NULL) {
    dso_object *known = find_array(*frame->arrays, object);
    if (known != NULL) return frame_pass(frame, index, DSO_ARRAY, known);
    return PyErr_Occurred() ? -1 : make_array(frame, index, object, frame->arrays);
  }
  int status = make_array(frame, index, object, &arrays);
  Py_XDECREF(arrays);
  return status;
}
