/* Tensors of types that offer DLPack's C exchange API, as PyTorch's does. */
#ifndef DSO_PACKER_PYTHON_CALL_EXCHANGE_H
#define DSO_PACKER_PYTHON_CALL_EXCHANGE_H

#include "python/call/convert.h"
#include "python/call/torch.h"

struct exchange {
  PyTypeObject *type; /* a reference, for good */
  int (*describe)(void *object, DLTensor *tensor);
  struct requires_grad requires_grad;
};

enum { MAX_EXCHANGES = 16 };
extern struct exchange exchanges[MAX_EXCHANGES];
extern int num_exchanges;

/* The API of a type that was met before, or NULL. */
static inline const struct exchange *exchange_of(const PyTypeObject *type) {
  for (int i = 0; i < num_exchanges; i++)
    if (exchanges[i].type == type) return &exchanges[i];
  return NULL;
}

/* The API that the object's type itself offers, or NULL without an exception. */
const struct exchange *exchange_find(PyObject *object);

/* Pass a tensor: 0, -1 with an exception set, or 1: `__dlpack__` has to serve. */
int argument_exchange(struct call_frame *frame, Py_ssize_t index, PyObject *object,
                      const struct exchange *exchange);

#endif
