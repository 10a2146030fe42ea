/* Tensors as arguments, by DLPack's C exchange API, which PyTorch's tensors offer. */
#ifndef DSO_PACKER_PYTHON_CALL_EXCHANGE_H
#define DSO_PACKER_PYTHON_CALL_EXCHANGE_H

#include "python/call/convert.h"
#include "python/call/torch.h"

struct exchange {
  PyTypeObject *type; /* owned, never released */
  int (*describe)(void *object, DLTensor *tensor);
  struct requires_grad requires_grad;
};

enum { MAX_EXCHANGES = 16 };
extern struct exchange exchanges[MAX_EXCHANGES];
extern int num_exchanges;

/* Return the cached API of a type, or NULL. */
static inline const struct exchange *exchange_of(const PyTypeObject *type) {
  for (int i = 0; i < num_exchanges; i++)
    if (exchanges[i].type == type) return &exchanges[i];
  return NULL;
}

/* Find and cache the API of the object's type; NULL without an exception if it has none. */
const struct exchange *exchange_find(PyObject *object);

/* Convert a tensor: 0, -1 with an exception set, or 1 if it must be converted in another way. */
int argument_exchange(struct call_frame *frame, Py_ssize_t index, PyObject *object,
                      const struct exchange *exchange);

#endif
