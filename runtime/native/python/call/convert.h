/* The conversion of a call: Python objects to safe-call values, and values to Python objects.
 *
 * The steps of one call, in order:
 *
 *   1. function.c    puts a frame on the stack (call_frame.h) and calls convert_arguments.
 *   2. argument.c    chooses the conversion of each object, by the table at its top. It converts
 *                    numbers, text, tensors, devices and callables itself.
 *   3. ndarray.c     converts NumPy arrays,
 *      exchange.c    other arrays with DLPack's C exchange API,
 *      array.c       other arrays, by the buffer protocol or `__dlpack__`,
 *      sequence.c    tuples and lists,
 *      module_argument.c  Modules,
 *      handle.c      handles,
 *      by_code.c     what the parameter's code decides: structs, complex numbers, strings.
 *   4. function.c    calls the code, without the GIL unless the function is declared to keep it.
 *   5. value.c       converts the result; results.c those whose code decides.
 *   6. call_frame.c  releases the holds of the arguments.
 *
 * For a callback, callback_call.c converts the arguments by value.c and the result by
 * owned_value.c. */
#pragma once

#include "python/call/call_frame.h"

/* ---- Arguments: each function returns 0, or -1 with an exception set */

/* Convert `count` objects to the arguments of a frame. On success and on failure the caller must
 * call frame_release after the call if needs_release is set. */
int convert_arguments(struct call_frame *frame, PyObject *const *objects, Py_ssize_t count);

/* numpy.ndarray; NULL if NumPy is not imported yet or if its struct is unknown. */
extern PyTypeObject *ndarray_type;

/* Return true if `type` is numpy.ndarray and its struct is known; then sets ndarray_type. The
 * struct is tested only once, at the first array. */
int ndarray_recognise(PyTypeObject *type);

/* Convert an object of exactly ndarray_type. */
int argument_ndarray(struct call_frame *frame, Py_ssize_t index, PyObject *object);

/* Convert an object by DLPack's C exchange API. Returns 1 if that is not possible. */
int argument_exchange(struct call_frame *frame, Py_ssize_t index, PyObject *object);

/* Convert an array by the buffer protocol, or by its `__dlpack__` method. */
int argument_buffer(struct call_frame *frame, Py_ssize_t index, PyObject *object);
int argument_dlpack(struct call_frame *frame, Py_ssize_t index, PyObject *object, PyObject *method);

/* Convert a tuple or list. */
int argument_sequence(struct call_frame *frame, Py_ssize_t index, PyObject *object);

/* Convert a callable to a function: the object that a library returned, or a new callback object. */
int argument_callable(struct call_frame *frame, Py_ssize_t index, PyObject *object);

/* Convert a Module, which is callable too. */
int argument_module(struct call_frame *frame, Py_ssize_t index, PyObject *object);
int callable_is_module(PyObject *object);

/* Convert an object by the code of its parameter. Returns 1 if the object's own type decides. */
int argument_by_code(struct call_frame *frame, Py_ssize_t index, PyObject *object);

/* Convert text for a pointer to wchar_t, char16_t or char32_t. Returns 1 for pointers to others. */
int argument_wide_text(struct call_frame *frame, Py_ssize_t index, PyObject *object);

/* Return true if the function fills bytes: it writes through a pointer to 8-bit integers, void or a
 * struct. refuse_constant refuses a str or bytes for such a parameter; always -1. */
int callee_fills_bytes(const struct callee *callee, Py_ssize_t index);
int refuse_constant(struct call_frame *frame, Py_ssize_t index, const char *type);

/* Call an array's `__dlpack__`: method(max_version=(1, 0)), or method() if the producer does not
 * accept the keyword (DLPack 0.x). NULL with an exception set. */
PyObject *array_call_dlpack(PyObject *method);

/* ---- Owned values */

/* Convert a result of `callable` to a value that owns its data; 0, or -1 with an exception set. */
int convert_owned(PyObject *callable, PyObject *object, dso_any *value);

/* Convert an item of a sequence likewise; `arrays` is that of sequence.c. With `takes_any` the
 * sequence is passed to a function that chooses by the types of its arguments. */
int convert_item(PyObject *callable, PyObject *object, PyObject **arrays, int takes_any,
                 dso_any *value);

/* ---- Values to Python objects */

/* The origin of a value, for messages and for the references that the Python object must keep. All
 * borrowed. */
struct source {
  PyObject *callable; /* the value is its result or its argument */
  PyObject *function; /* the Function whose call is running, or NULL */
  int32_t argument;
  int is_result;
};

/* Convert a borrowed value to a Python object; NULL with an exception set. */
PyObject *convert_value(const struct source *source, const dso_any *value);

/* A long holds an int64_t, and PyLong_FromLong is faster than PyLong_FromLongLong. */
_Static_assert(sizeof(long) == sizeof(int64_t), "a 64-bit machine");

/* Convert the result of a Function by its declared codes; NULL with an exception set. */
PyObject *convert_by_code(const struct call_frame *frame, const dso_any *result);

/* Make the named tuple, the handle or the complex number of a struct's fields or bytes, by the code.
 * The maker is stored with the function. */
PyObject *make_struct(PyObject *function, const char *code, Py_ssize_t length, PyObject *fields);

/* Convert the result of a Function and release it; NULL with an exception set. */
PyObject *convert_result(const struct call_frame *frame, const dso_any *result);
