/* Keyword arguments and defaults: they are put in the order of the parameters. */
#include "python/call/keywords.h"

#include <string.h>

#include "python/exception.h"

static int refuse_missing(const struct callee *callee, int index) {
  return raise_format(PyExc_TypeError, "%U: missing argument '%s'; declared as %U", callee->name,
                      callee->facts.params[index].name,
                      callee->signature != NULL ? callee->signature : callee->name);
}

/* Find a parameter whose name is a keyword of Python ("from_"); -1 with an exception set. The
 * message has near names, so Python makes it. */
static int find_in_python(PyObject *function, PyObject *name) {
  PyObject *module = PyImport_ImportModule("runtime.signature"); /* imported at first use */
  PyObject *found =
      module ? PyObject_CallMethod(module, "find_keyword", "OO", function, name) : NULL;
  int index = found != NULL ? (int)PyLong_AsLong(found) : -1;
  Py_XDECREF(found);
  Py_XDECREF(module);
  return index;
}

/* Store each keyword argument at the position of its parameter. */
static int place(PyObject *function, const struct callee *callee, PyObject *keywords,
                 PyObject *const *values, PyObject **objects) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords); i++) {
    PyObject *name = PyTuple_GET_ITEM(keywords, i);
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(name, &length);
    if (text == NULL) PyErr_Clear(); /* lone surrogates: no parameter has them */
    int index = text != NULL ? facts_find(&callee->facts, text, (size_t)length) : -1;
    if (index < 0 && (index = find_in_python(function, name)) < 0) return -1;
    if (objects[index] != NULL)
      return raise_format(PyExc_TypeError, "%U: argument %R given twice", callee->name, name);
    objects[index] = values[i];
  }
  return 0;
}

/* Return the default of each parameter, or Ellipsis; parsed at the first use. */
static PyObject *find_defaults(PyObject *function, const struct callee *callee) {
  struct callee_lazy *lazy = callee->lazy;
  if (lazy->defaults != NULL) return lazy->defaults;
  PyObject *module = PyImport_ImportModule("runtime.signature");
  PyObject *made = module ? PyObject_CallMethod(module, "defaults_of", "O", function) : NULL;
  Py_XDECREF(module);
  return lazy_keep(&lazy->defaults, made);
}

/* Fill gaps before the last given argument by defaults; the function itself fills those after
 * it. */
static int fill_gaps(PyObject *function, const struct callee *callee, PyObject **objects,
                     Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) {
    if (objects[i] != NULL) continue;
    PyObject *defaults = callee->facts.num_defaults > 0 ? find_defaults(function, callee) : NULL;
    if (defaults == NULL && PyErr_Occurred()) return -1;
    objects[i] = defaults != NULL ? PyTuple_GET_ITEM(defaults, i) : Py_Ellipsis;
    if (objects[i] == Py_Ellipsis) return refuse_missing(callee, (int)i);
  }
  return 0;
}

static int has_default(const struct facts *facts, Py_ssize_t index) {
  for (int i = 0; i < facts->num_defaults; i++)
    if (strcmp(facts->defaults[i].name, facts->params[index].name) == 0) return 1;
  return 0;
}

static Py_ssize_t last_given(const struct callee *callee, PyObject *const *objects) {
  Py_ssize_t count = callee->facts.num_params;
  while (count > 0 && objects[count - 1] == NULL && has_default(&callee->facts, count - 1)) count--;
  return count;
}

Py_ssize_t keywords_place(PyObject *function, const struct callee *callee, PyObject *const *given,
                          Py_ssize_t count, PyObject *keywords, PyObject **objects) {
  if (!callee->facts.has_params)
    return raise_format(PyExc_TypeError, "%U: expected positional arguments only, found %R",
                        callee->name, PyTuple_GET_ITEM(keywords, 0));
  if (count > callee->facts.num_params)
    return raise_format(PyExc_TypeError, "%U: expected %d arguments, found %zd", callee->name,
                        callee->facts.num_params, count + PyTuple_GET_SIZE(keywords));
  for (Py_ssize_t i = 0; i < callee->facts.num_params; i++)
    objects[i] = i < count ? given[i] : NULL;
  if (place(function, callee, keywords, given + count, objects) != 0) return -1;
  Py_ssize_t total = last_given(callee, objects);
  return fill_gaps(function, callee, objects, total) == 0 ? total : -1;
}

/* ---- Functions without declared types */

static PyObject *tuple_of(PyObject *const *objects, Py_ssize_t count) {
  PyObject *tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple != NULL && i < count; i++)
    PyTuple_SET_ITEM(tuple, i, Py_NewRef(objects[i]));
  return tuple;
}

PyObject *keywords_order(PyObject *function, PyObject *const *given, Py_ssize_t count,
                         PyObject *keywords) {
  PyObject *first = tuple_of(given, count);
  PyObject *named = tuple_of(given + count, PyTuple_GET_SIZE(keywords));
  PyObject *module = first && named ? PyImport_ImportModule("runtime.signature") : NULL;
  PyObject *ordered =
      module ? PyObject_CallMethod(module, "in_order", "OOOO", function, first, keywords, named)
             : NULL;
  Py_XDECREF(module);
  Py_XDECREF(named);
  Py_XDECREF(first);
  return ordered;
}
