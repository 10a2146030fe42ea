/* What is known about one callable symbol; parsed once, then shared by its Function objects. */
#ifndef DSO_PACKER_NATIVE_TARGET_H
#define DSO_PACKER_NATIVE_TARGET_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "../include/dso_abi.h"
#include "facts.h"

struct target {
  dso_safe_call address;
  dso_object *handle; /* the Function object, retained; NULL for exports */
  PyObject *name;
  PyObject *signature; /* str, or NULL without facts */
  PyObject *doc;       /* str, or NULL */
  char *text;          /* the facts' text, which `facts` points into */
  struct facts facts;
};

/* Make the target of `name` at `code`; fact_text may be NULL. On bad facts returns NULL with
 * *wrong saying what; on other trouble NULL with an exception set and *wrong NULL. */
struct target *target_new(PyObject *name, const uint8_t *code, const uint8_t *fact_text,
                          size_t nbytes, const char **wrong);
void target_free(struct target *target);

/* The parameter at `index`, or NULL without facts or beyond them. */
static inline const struct param *target_param(const struct target *target, Py_ssize_t index) {
  return index < target->facts.num_params ? &target->facts.params[index] : NULL;
}

#endif
