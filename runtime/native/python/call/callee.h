/* What is known about one callable symbol; parsed once, then shared by its Function objects. */
#ifndef DSO_PACKER_PYTHON_CALL_CALLEE_H
#define DSO_PACKER_PYTHON_CALL_CALLEE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "dso_abi.h"
#include "library/facts.h"

struct target {
  dso_safe_call address;
  void *handle;       /* the first argument of every call; NULL for safe-call symbols */
  dso_object *object; /* the Function object behind it, retained, or NULL: it is a symbol */
  PyObject *name;
  PyObject *signature; /* str, or NULL without facts */
  PyObject *doc;       /* str, or NULL */
  char *text;          /* the facts' text, which `facts` points into */
  struct facts facts;
};

/* Make the target of `name`, without code yet; fact_text may be NULL. On bad facts returns NULL
 * with *wrong saying what; on other trouble NULL with an exception set and *wrong NULL. */
struct target *target_new(PyObject *name, const uint8_t *fact_text, size_t nbytes,
                          const char **wrong);

/* Let it call the function at `code`, in the one ABI or the other; or a Function object, whose
 * reference it takes over. */
void target_call_safe(struct target *target, const uint8_t *code);
void target_call_packed(struct target *target, const uint8_t *code);
void target_call_object(struct target *target, dso_object *object);
void target_free(struct target *target);

/* A dict of targets by name owns them. Put one in: returns it, or NULL, for NULL too, with an
 * exception set if there is a reason. Find one: NULL likewise. */
struct target *target_keep(PyObject *targets, PyObject *name, struct target *target);
struct target *target_kept(PyObject *targets, PyObject *name);

/* The parameter at `index`, or NULL without facts or beyond them. */
static inline const struct param *target_param(const struct target *target, Py_ssize_t index) {
  return index < target->facts.num_params ? &target->facts.params[index] : NULL;
}

/* Whether the facts say that the function writes through this argument ("*f32"). */
static inline int target_writes(const struct target *target, Py_ssize_t index) {
  const struct param *param = target_param(target, index);
  return param != NULL && param->code[0] == '*';
}

#endif
