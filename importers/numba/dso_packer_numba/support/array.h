/* array.h: what a wrapper of a Numba function gives back: arrays and errors. */
#ifndef DSO_PACKER_NUMBA_ARRAY_H
#define DSO_PACKER_NUMBA_ARRAY_H

#include "dso_abi.h"
#include "nrt.h"

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

/* An array of Numba in memory: after `data` the extents, then as many strides in
 * bytes. */
typedef struct {
  nrt_meminfo *meminfo; /* NULL: memory of the caller, or a constant */
  void *parent;
  int64_t nitems;
  int64_t itemsize;
  void *data;
  int64_t dims[]; /* shape[ndim], strides[ndim] */
} nb_array;

/* Store the array as a Tensor object that owns the reference to its MemInfo, which is taken over
 * also on failure. An array without MemInfo is memory of an argument: the Tensor then retains that
 * argument's Tensor, and of other arguments and constants it is a copy. So is an array with strides
 * that are not multiples of its element size. Returns 0, or -1 with a MemoryError raised. */
int nb_give_array(dso_any *result, const nb_array *array, int32_t ndim, DLDataType dtype,
                  const dso_any *args, int32_t num_args);

/* An exception of compiled code; the record is made while packing. */
typedef struct nb_exception {
  const char *kind; /* the name of the Python class */
  const char *text; /* str() of the exception; "" if it has no arguments */
  const char *function;
  const char *file; /* without its folder */
  int32_t line;     /* 0 if it is unknown */
} nb_exception;

/* Raise it as "<text>; raised by <function> (<file>:<line>)", without a place that is unknown.
 * Returns -1. */
int nb_raise(const nb_exception *exception);

#ifndef NB_VISIBLE
#pragma GCC visibility pop
#endif

#endif
