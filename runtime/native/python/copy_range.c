/* Copy bytes from file to file, for `packer export`. */
#define _GNU_SOURCE /* fallocate */
#include "python/copy_range.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "python/exception.h"
#include "abi/heap.h"

/* Fits a core's cache. Larger pieces were sometimes slower, because the kernel then allocates
 * larger pages. */
enum { PIECE = 64 << 10 };

/* Pieces end at multiples of their size in the output, so that each piece fills whole pages. */
static int64_t copy_through(char *buffer, int source, int64_t at, int output, int64_t to,
                            int64_t nbytes) {
  int64_t done = 0;
  while (done < nbytes) {
    int64_t room = PIECE - (to + done) % PIECE, left = nbytes - done;
    ssize_t read = pread(source, buffer, (size_t)(left < room ? left : room), at + done);
    ssize_t written = read > 0 ? pwrite(output, buffer, (size_t)read, to + done) : 0;
    if (written <= 0) break;
    done += written;
  }
  return done;
}

PyObject *core_copy_range(PyObject *core, PyObject *args) {
  int source, output;
  long long at, to, nbytes;
  (void)core;
  if (!PyArg_ParseTuple(args, "iLiLL:copy_range", &source, &at, &output, &to, &nbytes)) return NULL;
  char *buffer = heap_new(PIECE);
  if (buffer == NULL) return raise_no_memory();
  Py_BEGIN_ALLOW_THREADS
  nbytes = copy_through(buffer, source, at, output, to, nbytes);
  Py_END_ALLOW_THREADS
  free(buffer);
  return PyLong_FromLongLong(nbytes);
}

PyObject *core_reserve(PyObject *core, PyObject *args) {
  int output;
  long long to, nbytes;
  (void)core;
  if (!PyArg_ParseTuple(args, "iLL:reserve", &output, &to, &nbytes)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  int is_reserved = fallocate(output, 0, to, nbytes) == 0;
  (void)is_reserved; /* only a hint */
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}
