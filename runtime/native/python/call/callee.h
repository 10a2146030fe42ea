/* Callees: the code and metadata of one function, parsed once and shared by its Functions. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "dso_abi.h"
#include "library/found_function.h"

/* Filled at the first use, except `kinds`. */
struct callee_lazy {
  PyObject *defaults;           /* tuple: the value of each parameter, or Ellipsis; or NULL */
  PyObject *make_result;        /* Python callable for a result with structs, or NULL */
  const struct callee *release; /* the function that facts.free names, or NULL */
  int releases;                 /* a function names this one as `free`: 1, or 0; -1 until asked */
  PyObject *kinds[];            /* the handle's kind of each parameter, interned, or NULL */
};

/* Store what was made, unless another thread was first; return what is stored, borrowed. */
static inline PyObject *lazy_keep(PyObject **place, PyObject *made) {
  if (*place == NULL) *place = made;
  else Py_XDECREF(made);
  return *place;
}

struct callee {
  dso_safe_call address;
  void *handle;       /* the first argument of every call; NULL for safe-call symbols */
  dso_object *object; /* owned: the Function object to call; NULL for a symbol */
  PyObject *name;
  PyObject *signature; /* str, or NULL without metadata */
  PyObject *doc;       /* str, or NULL */
  PyObject *names;     /* tuple: the parameters, of a function without declared types; or NULL */
  char *text;          /* owned, by malloc: the text that `facts` points into */
  struct facts facts;
  struct callee_lazy *lazy; /* owned; NULL without metadata */
};

/* Make the callee of `name`. It takes over what was found, whose code may be NULL; without it the
 * callee has neither code nor metadata. NULL with an exception set. */
struct callee *callee_new(PyObject *name, struct found_function *found);

/* Set the code: a Function object, whose reference the callee takes over. */
void callee_call_object(struct callee *callee, dso_object *object);

/* Make the callee of a Function object, whose reference it takes over, with the names of its parameters.
 * NULL with an exception set, also if there was no memory for `object`. */
struct callee *callee_of_object(PyObject *name, PyObject *params, dso_object *object);
void callee_free(struct callee *callee);

/* A dict of callees by name owns them. callee_add adds one and returns it; if `callee` is NULL, or
 * on an error, it returns NULL. callee_find finds one. Either NULL may come with an exception
 * set. */
struct callee *callee_add(PyObject *callees, PyObject *name, struct callee *callee);
struct callee *callee_find(PyObject *callees, PyObject *name);

/* Return the declared parameter at `index`, or NULL. */
static inline const struct param *callee_param(const struct callee *callee, Py_ssize_t index) {
  return index < callee->facts.num_params ? &callee->facts.params[index] : NULL;
}

/* Return the kind that a parameter's code names, borrowed, or NULL. */
static inline PyObject *callee_kind(const struct callee *callee, Py_ssize_t index) {
  return index < callee->facts.num_params ? callee->lazy->kinds[index] : NULL;
}

/* Return the kind that a code names, interned; NULL, possibly with an exception set, if none. */
PyObject *code_kind_name(const char *code);

/* Return true if the function is declared to write through this argument ("*f32"). */
static inline int callee_writes(const struct callee *callee, Py_ssize_t index) {
  const struct param *param = callee_param(callee, index);
  return param != NULL && param->code[0] == '*';
}
