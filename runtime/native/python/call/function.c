/* Function: its call (convert, invoke, convert the result) and its attributes. */
#include "python/call/function.h"

#include <string.h>

#include "python/call/handle.h"
#include "python/call/kept.h"
#include "python/call/keywords.h"
#include "python/exception.h"
#include "python/library.h"
#include "abi/raised.h"

enum { STACK_ARGS = 16 };

typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  const struct callee *callee;
  PyObject *library, *owner;
} Function;

/* The common results, None and int, are converted inline. */
static inline PyObject *make_result(const struct call_frame *frame, const dso_any *result) {
  if (result->type_index == DSO_NONE) Py_RETURN_NONE;
  if (result->type_index == DSO_INT && result->small_len != DSO_UNSIGNED)
    return PyLong_FromLong(result->v_int64);
  return convert_result(frame, result);
}

/* Call the code. No Python object is used between SaveThread and RestoreThread. */
static inline PyObject *invoke(const struct call_frame *frame, int32_t count) {
  const struct callee *callee = frame->callee;
  dso_any result = {.type_index = DSO_NONE};
  uint64_t raised = raised_count();
  PyThreadState *state = callee->facts.gil_keep ? NULL : PyEval_SaveThread();
  int status = callee->address(callee->handle, frame->args, count, &result);
  if (state != NULL) PyEval_RestoreThread(state);
  if (status != 0) return raise_call_error(callee, status, raised);
  return make_result(frame, &result);
}

/* Release what the arguments hold. Handles, the common case, have nothing to free, so an exception
 * stays set. Not inline: calls without it are the ones to be fast. */
Py_NO_INLINE static PyObject *end_call(struct call_frame *frame, PyObject *value) {
  if (frame->needs_release == RELEASE_HANDLES) {
    for (int i = 0; i < frame->num_holds; i++)
      if (frame->holds[i].kind == HOLD_HANDLE) handle_end_use(frame->holds[i].handle);
    return value;
  }
  if (frame->needs_release & FINISH) value = frame_finish(frame, value);
  frame_release(frame);
  return value;
}

/* Keep arguments, and close the handles that the function releases; 0, or -1 with an exception set. */
Py_NO_INLINE static int begin_call(struct call_frame *frame) {
  int status = frame->needs_release & KEEP ? arguments_keep(frame) : 0;
  if (frame->needs_release & CLOSE) {
    if (status == 0) argument_close_released(frame);
    else argument_reopen(frame);
  }
  return status;
}

static inline PyObject *convert_and_invoke(struct call_frame *frame, PyObject *const *objects,
                                           Py_ssize_t count) {
  PyObject *value = NULL;
  int is_ready = frame->callee->facts.free == NULL || handle_find_release(frame->function) != NULL;
  if (is_ready && (count == 0 || convert_arguments(frame, objects, count) == 0)) {
    if (!(frame->needs_release & (CLOSE | KEEP)) || begin_call(frame) == 0)
      value = invoke(frame, (int32_t)count);
  } else if (frame->needs_release & CLOSE) argument_reopen(frame);
  return frame->needs_release ? end_call(frame, value) : value;
}

static inline PyObject *call_with_stack(Function *self, PyObject *const *objects,
                                        Py_ssize_t count) {
  dso_any args[STACK_ARGS];
  struct hold holds[STACK_ARGS];
  struct call_frame frame = {
      .callee = self->callee, .function = (PyObject *)self, .args = args, .holds = holds};
  return convert_and_invoke(&frame, objects, count);
}

Py_NO_INLINE static PyObject *call_with_heap(Function *self, PyObject *const *objects,
                                             Py_ssize_t count) {
  struct call_frame frame = {.callee = self->callee, .function = (PyObject *)self};
  PyObject *value = NULL;
  if (count > INT32_MAX) return raise_no_memory();
  frame.args = PyMem_New(dso_any, (size_t)count);
  frame.holds = PyMem_New(struct hold, (size_t)count);
  if (frame.args != NULL && frame.holds != NULL) value = convert_and_invoke(&frame, objects, count);
  else raise_no_memory();
  PyMem_Free(frame.args);
  PyMem_Free(frame.holds);
  return value;
}

/* Without declared types: Python puts the arguments in order. */
static PyObject *call_with_names(Function *self, PyObject *const *given, Py_ssize_t count,
                                 PyObject *keywords) {
  PyObject *ordered = keywords_order((PyObject *)self, given, count, keywords);
  if (ordered == NULL) return NULL;
  PyObject *value = PyObject_Call((PyObject *)self, ordered, NULL);
  Py_DECREF(ordered);
  return value;
}

Py_NO_INLINE static PyObject *call_with_keywords(Function *self, PyObject *const *given,
                                                 Py_ssize_t count, PyObject *keywords) {
  PyObject *stack[STACK_ARGS], **objects = stack, *value = NULL;
  int num_params = self->callee->facts.num_params;
  if (self->callee->names != NULL) return call_with_names(self, given, count, keywords);
  if (num_params > STACK_ARGS) objects = PyMem_New(PyObject *, (size_t)num_params);
  if (objects == NULL) return raise_no_memory();
  Py_ssize_t total =
      keywords_place((PyObject *)self, self->callee, given, count, keywords, objects);
  if (total >= 0) value = self->vectorcall((PyObject *)self, objects, (size_t)total, NULL);
  if (objects != stack) PyMem_Free(objects);
  return value;
}

static PyObject *function_call(PyObject *object, PyObject *const *objects, size_t nargsf,
                               PyObject *keywords) {
  Function *self = (Function *)object;
  Py_ssize_t count = PyVectorcall_NARGS(nargsf);
  if (keywords != NULL && PyTuple_GET_SIZE(keywords) > 0)
    return call_with_keywords(self, objects, count, keywords);
  if (count > STACK_ARGS) return call_with_heap(self, objects, count);
  return call_with_stack(self, objects, count);
}

PyObject *function_new(const struct callee *callee, PyObject *library, PyObject *owner) {
  Function *self = PyObject_GC_New(Function, &Function_Type);
  if (self == NULL) return NULL;
  self->vectorcall = function_call;
  self->callee = callee;
  self->library = Py_NewRef(library);
  self->owner = Py_NewRef(owner);
  PyObject_GC_Track(self);
  return (PyObject *)self;
}

const struct callee *function_callee(PyObject *function) { return ((Function *)function)->callee; }

PyObject *function_library(PyObject *function) { return ((Function *)function)->library; }

/* The collector may have cleared the owner. */
PyObject *function_owner(PyObject *function) {
  PyObject *owner = ((Function *)function)->owner;
  return owner ? owner : Py_None;
}

static int function_traverse(Function *self, visitproc visit, void *arg) {
  Py_VISIT(self->library);
  Py_VISIT(self->owner);
  return 0;
}

/* The library is kept, because a cleared function's attributes can still be read. */
static int function_clear(Function *self) {
  Py_CLEAR(self->owner);
  return 0;
}

static void function_dealloc(Function *self) {
  PyObject_GC_UnTrack(self);
  Py_XDECREF(self->owner);
  Py_DECREF(self->library);
  PyObject_GC_Del(self);
}

static PyObject *or_none(PyObject *object) { return Py_NewRef(object ? object : Py_None); }

static PyObject *function_name(Function *self, void *Py_UNUSED(closure)) {
  return Py_NewRef(self->callee->name);
}

/* The module of a function of bytecode writes it when it is read: a model's record has the types,
 * and no call needs them. */
static PyObject *function_signature(Function *self, void *Py_UNUSED(closure)) {
  const struct callee *callee = self->callee;
  if (callee->names == NULL || self->owner == NULL) return or_none(callee->signature);
  return PyObject_CallMethod(self->owner, "signature", "O", callee->name);
}

static PyObject *function_repr(Function *self) {
  PyObject *signature = function_signature(self, NULL);
  if (signature == NULL) return NULL;
  PyObject *text = signature == Py_None
                       ? PyUnicode_FromFormat("<Function %U>", self->callee->name)
                       : PyUnicode_FromFormat("<Function %U: %S>", self->callee->name, signature);
  Py_DECREF(signature);
  return text;
}

/* Call the library's function <kind><name> (TVM FFI: __tvm_ffi__doc_f, __tvm_ffi__metadata_f) and
 * return its text, or None if there is no such function. It runs code of the library, so it is
 * called only if the attribute is read. */
static PyObject *ask_library(Function *self, const char *kind) {
  if (!Py_IS_TYPE(self->library, &Library_Type)) Py_RETURN_NONE;
  PyObject *function =
      PyObject_CallMethod(self->library, "function", "NO",
                          PyUnicode_FromFormat("%s%U", kind, self->callee->name), Py_None);
  if (function == NULL || function == Py_None) return function;
  PyObject *text = PyObject_CallNoArgs(function);
  Py_DECREF(function);
  return text;
}

/* Without a doc it is the C declaration, so that help() shows it. */
static PyObject *function_doc(Function *self, void *Py_UNUSED(closure)) {
  if (self->callee->doc != NULL) return Py_NewRef(self->callee->doc);
  PyObject *doc = ask_library(self, "_doc_");
  if (doc != Py_None) return doc;
  Py_DECREF(doc);
  return function_signature(self, NULL);
}

/* An inspect.Signature, or None without metadata. */
static PyObject *function_inspect(Function *self, void *Py_UNUSED(closure)) {
  const char *maker = self->callee->names != NULL ? "signature_of_names" : "signature_of";
  if (!self->callee->facts.has_params && self->callee->names == NULL) Py_RETURN_NONE;
  PyObject *module = PyImport_ImportModule("runtime.signature"); /* imported at first use */
  PyObject *signature = module ? PyObject_CallMethod(module, maker, "O", self) : NULL;
  Py_XDECREF(module);
  return signature;
}

static PyObject *pairs(const struct param *params, int count) {
  PyObject *list = PyList_New(count);
  for (int i = 0; list != NULL && i < count; i++) {
    PyObject *pair = Py_BuildValue("(ss)", params[i].name, params[i].code);
    if (pair == NULL) Py_CLEAR(list);
    else PyList_SET_ITEM(list, i, pair);
  }
  return list;
}

static PyObject *function_declared(Function *self, void *Py_UNUSED(closure)) {
  const struct facts *facts = &self->callee->facts;
  return Py_BuildValue("(NzNNN)", pairs(facts->params, facts->num_params), facts->result,
                       pairs(facts->outs, facts->num_outs),
                       pairs(facts->defaults, facts->num_defaults),
                       pairs(facts->structs, facts->num_structs));
}

static PyObject *function_names(Function *self, void *Py_UNUSED(closure)) {
  return or_none(self->callee->names);
}

static PyObject *function_metadata(Function *self, void *Py_UNUSED(closure)) {
  return ask_library(self, "_metadata_");
}

static PyObject *function_get_owner(Function *self, void *Py_UNUSED(closure)) {
  return or_none(self->owner);
}

static PyGetSetDef function_getset[] = {
    {"name", (getter)function_name, NULL, "The name that it was looked up by.", NULL},
    {"__name__", (getter)function_name, NULL, NULL, NULL},
    {"signature", (getter)function_signature, NULL,
     "The C declaration; of a function of bytecode its inputs and outputs; or None.", NULL},
    {"__doc__", (getter)function_doc, NULL, NULL, NULL},
    {"__signature__", (getter)function_inspect, NULL, NULL, NULL},
    {"_declared", (getter)function_declared, NULL,
     "(params, result, outs, defaults, structs): pairs of names and codes.", NULL},
    {"_names", (getter)function_names, NULL,
     "The names of the parameters, of a function without declared types; or None.", NULL},
    {"metadata", (getter)function_metadata, NULL,
     "The library's description of the types (TVM FFI), as JSON text, or None.", NULL},
    {"owner", (getter)function_get_owner, NULL, "The module that the function keeps alive.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* pickle and copy: the module and the name. */
static PyObject *function_reduce(Function *self, PyObject *Py_UNUSED(none)) {
  PyObject *module = PyImport_ImportModule("runtime.interchange"); /* imported at first use */
  PyObject *reduced = module ? PyObject_CallMethod(module, "reduce_function", "O", self) : NULL;
  Py_XDECREF(module);
  return reduced;
}

static PyMethodDef function_methods[] = {
    {"__reduce__", (PyCFunction)function_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Function_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.Function",
    .tp_basicsize = sizeof(Function),
    .tp_vectorcall_offset = offsetof(Function, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_repr = (reprfunc)function_repr,
    .tp_traverse = (traverseproc)function_traverse,
    .tp_clear = (inquiry)function_clear,
    .tp_dealloc = (destructor)function_dealloc,
    .tp_getset = function_getset,
    .tp_methods = function_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_DISALLOW_INSTANTIATION,
};
