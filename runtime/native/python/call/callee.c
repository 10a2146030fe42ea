#include "python/call/callee.h"

#include <string.h>

#include "python/exception.h"
#include "abi/heap.h"
#include "abi/object.h"
#include "library/packed.h"

void target_free(struct target *target) {
  if (target->object != NULL) object_release(target->object);
  Py_XDECREF(target->name);
  Py_XDECREF(target->signature);
  Py_XDECREF(target->doc);
  free(target->facts.params);
  PyMem_Free(target->text);
  PyMem_Free(target);
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

static const char *copy_text(struct target *target, const uint8_t *bytes, size_t nbytes) {
  if (memchr(bytes, 0, nbytes) != bytes + nbytes - 1)
    return "expected text that ends with its only NUL";
  PyObject *decoded = PyUnicode_DecodeUTF8((const char *)bytes, (Py_ssize_t)nbytes - 1, NULL);
  if (decoded == NULL) {
    int is_damaged = PyErr_ExceptionMatches(PyExc_UnicodeDecodeError);
    PyErr_Clear();
    return is_damaged ? "expected UTF-8 text" : HEAP_NO_MEMORY;
  }
  Py_DECREF(decoded);
  target->text = PyMem_Malloc(nbytes);
  if (target->text == NULL) return HEAP_NO_MEMORY;
  memcpy(target->text, bytes, nbytes);
  return facts_parse(target->text, &target->facts);
}

static int make_strings(struct target *target) {
  const struct facts *facts = &target->facts;
  if (facts->type != NULL && !(target->signature = signature_of(facts->type, target->name)))
    return -1;
  if (facts->doc != NULL && !(target->doc = PyUnicode_FromString(facts->doc))) return -1;
  return 0;
}

struct target *target_new(PyObject *name, const uint8_t *fact_text, size_t nbytes,
                          const char **wrong) {
  struct target *target = PyMem_Calloc(1, sizeof *target);
  *wrong = NULL;
  if (target == NULL) return raise_no_memory();
  target->name = Py_NewRef(name);
  if (fact_text != NULL) *wrong = copy_text(target, fact_text, nbytes);
  if (*wrong == NULL && make_strings(target) == 0) return target;
  if (*wrong == HEAP_NO_MEMORY) *wrong = raise_no_memory();
  target_free(target);
  return NULL;
}

void target_call_safe(struct target *target, const uint8_t *code) {
  memcpy(&target->address, &code, sizeof code); /* ISO C has no cast from data to function */
}

void target_call_packed(struct target *target, const uint8_t *code) {
  target->address = packed_call;
  target->handle = (void *)(uintptr_t)code;
}

void target_call_object(struct target *target, dso_object *object) {
  target->address = ((dso_function_object *)(void *)object)->safe_call;
  target->handle = target->object = object;
}

/* ---- The dict of targets */

static const char CAPSULE[] = "runtime._core.target";

static void free_in(PyObject *capsule) { target_free(PyCapsule_GetPointer(capsule, CAPSULE)); }

struct target *target_keep(PyObject *targets, PyObject *name, struct target *target) {
  PyObject *capsule = target ? PyCapsule_New(target, CAPSULE, free_in) : NULL;
  if (capsule == NULL) {
    if (target != NULL) target_free(target);
    return NULL;
  }
  int status = PyDict_SetItem(targets, name, capsule);
  Py_DECREF(capsule);
  return status == 0 ? target : NULL;
}

struct target *target_kept(PyObject *targets, PyObject *name) {
  PyObject *capsule = PyDict_GetItemWithError(targets, name);
  return capsule != NULL ? PyCapsule_GetPointer(capsule, CAPSULE) : NULL;
}
