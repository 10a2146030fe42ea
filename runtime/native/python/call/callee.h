/* What is known about one callable symbol; parsed once, then shared by its Function objects. */
#ifndef DSO_PACKER_PYTHON_CALL_CALLEE_H
#define DSO_PACKER_PYTHON_CALL_CALLEE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "dso_abi.h"
#include "library/facts.h"

struct callee {
  dso_safe_call address;
  void *handle;       /* the first argument of every call; NULL for safe-call symbols */
  dso_object *object; /* the Function object behind it, retained, or NULL: it is a symbol */
  PyObject *name;
  PyObject *signature; /* str, or NULL without facts */
  PyObject *doc;       /* str, or NULL */
  char *text;          /* the facts' text, which `facts` points into */
  struct facts facts;
};

/* Make the callee of `name`, without code yet; fact_text may be NULL. On bad facts returns NULL
 * with *wrong saying what; on other trouble NULL with an exception set and *wrong NULL. */
struct callee *callee_new(PyObject *name, const uint8_t *fact_text, size_t nbytes,
                          const char **wrong);

/* Let it call the function at `code`, in the one ABI or the other; or a Function object, whose
 * reference it takes over. */
void callee_call_safe(struct callee *callee, const uint8_t *code);
void callee_call_packed(struct callee *callee, const uint8_t *code);
void callee_call_object(struct callee *callee, dso_object *object);
void callee_free(struct callee *callee);

/* A dict of callees by name owns them. Put one in: returns it, or NULL, for NULL too, with an
 * exception set if there is a reason. Find one: NULL likewise. */
struct callee *callee_keep(PyObject *callees, PyObject *name, struct callee *callee);
struct callee *callee_kept(PyObject *callees, PyObject *name);

/* The parameter at `index`, or NULL without facts or beyond them. */
static inline const struct param *callee_param(const struct callee *callee, Py_ssize_t index) {
  return index < callee->facts.num_params ? &callee->facts.params[index] : NULL;
}

/* Whether the facts say that the function writes through this argument ("*f32"). */
static inline int callee_writes(const struct callee *callee, Py_ssize_t index) {
  const struct param *param = callee_param(callee, index);
  return param != NULL && param->code[0] == '*';
}

#endif
