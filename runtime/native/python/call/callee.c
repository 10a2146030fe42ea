/* Callees: made from a name and metadata, and stored in a dict by name. */
#include "python/call/callee.h"

#include <stdlib.h>
#include <string.h>

#include "python/exception.h"
#include "abi/object.h"
#include "library/packed.h"

static void free_lazy(struct callee *callee) {
  struct callee_lazy *lazy = callee->lazy;
  for (int i = 0; i < callee->facts.num_params; i++) Py_XDECREF(lazy->kinds[i]);
  Py_XDECREF(lazy->defaults);
  Py_XDECREF(lazy->make_result);
  PyMem_Free(lazy);
}

void callee_free(struct callee *callee) {
  if (callee->object != NULL) object_release(callee->object);
  Py_XDECREF(callee->name);
  Py_XDECREF(callee->signature);
  Py_XDECREF(callee->doc);
  Py_XDECREF(callee->names);
  if (callee->lazy != NULL) free_lazy(callee);
  facts_free(&callee->facts);
  free(callee->text);
  PyMem_Free(callee);
}

/* "void(int x)" and "f" -> "void f(int x)"; "const char *(int x)" -> "const char *f(int x)". */
static PyObject *signature_of(const char *type, PyObject *name) {
  const char *paren = strchr(type, '(');
  Py_ssize_t length = paren - type;
  while (length > 0 && type[length - 1] == ' ') length--;
  PyObject *result = PyUnicode_FromStringAndSize(type, length);
  if (result == NULL) return NULL;
  const char *space = length > 0 && type[length - 1] == '*' ? "" : " ";
  PyObject *signature = PyUnicode_FromFormat("%U%s%U%s", result, space, name, paren);
  Py_DECREF(result);
  return signature;
}

PyObject *code_kind_name(const char *code) {
  size_t length;
  const char *name = code_name(code, &length);
  PyObject *kind = name ? PyUnicode_FromStringAndSize(name, (Py_ssize_t)length) : NULL;
  if (kind != NULL) PyUnicode_InternInPlace(&kind);
  return kind;
}

static int make_lazy(struct callee *callee) {
  const struct facts *facts = &callee->facts;
  struct callee_lazy *lazy =
      PyMem_Calloc(1, sizeof *lazy + (size_t)facts->num_params * sizeof *lazy->kinds);
  callee->lazy = lazy;
  if (lazy == NULL) return as_status(raise_no_memory());
  lazy->releases = -1;
  for (int i = 0; i < facts->num_params; i++) {
    lazy->kinds[i] = code_kind_name(facts->params[i].code);
    if (lazy->kinds[i] == NULL && PyErr_Occurred()) return -1;
  }
  return 0;
}

static int make_strings(struct callee *callee) {
  const struct facts *facts = &callee->facts;
  if (facts->type != NULL && !(callee->signature = signature_of(facts->type, callee->name)))
    return -1;
  if (facts->doc != NULL && !(callee->doc = PyUnicode_FromString(facts->doc))) return -1;
  return callee->text != NULL ? make_lazy(callee) : 0;
}

static void set_code(struct callee *callee, const struct found_function *found) {
  if (found->is_packed) {
    callee->address = packed_call;
    callee->handle = (void *)(uintptr_t)found->code;
  } else {
    memcpy(&callee->address, &found->code, sizeof found->code); /* ISO C has no cast to code */
  }
}

struct callee *callee_new(PyObject *name, struct found_function *found) {
  struct callee *callee = PyMem_Calloc(1, sizeof *callee);
  if (callee == NULL) {
    if (found != NULL) found_function_free(found);
    return raise_no_memory();
  }
  callee->name = Py_NewRef(name);
  if (found != NULL) {
    set_code(callee, found);
    callee->text = found->text;
    callee->facts = found->facts;
  }
  if (make_strings(callee) == 0) return callee;
  callee_free(callee);
  return NULL;
}

void callee_call_object(struct callee *callee, dso_object *object) {
  callee->address = ((dso_function_object *)(void *)object)->safe_call;
  callee->handle = callee->object = object;
}

struct callee *callee_of_object(PyObject *name, PyObject *params, dso_object *object) {
  if (object == NULL) return raise_no_memory();
  struct callee *callee = callee_new(name, NULL);
  if (callee == NULL) {
    object_release(object);
    return NULL;
  }
  callee->names = Py_NewRef(params);
  callee_call_object(callee, object);
  return callee;
}

/* ---- The dict of callees */

static const char CAPSULE[] = "runtime._core.callee";

static void free_in(PyObject *capsule) { callee_free(PyCapsule_GetPointer(capsule, CAPSULE)); }

struct callee *callee_add(PyObject *callees, PyObject *name, struct callee *callee) {
  PyObject *capsule = callee ? PyCapsule_New(callee, CAPSULE, free_in) : NULL;
  if (capsule == NULL) {
    if (callee != NULL) callee_free(callee);
    return NULL;
  }
  int status = PyDict_SetItem(callees, name, capsule);
  Py_DECREF(capsule);
  return status == 0 ? callee : NULL;
}

struct callee *callee_find(PyObject *callees, PyObject *name) {
  PyObject *capsule = PyDict_GetItemWithError(callees, name);
  return capsule != NULL ? PyCapsule_GetPointer(capsule, CAPSULE) : NULL;
}
