/* The functions of Python beside objects that compiled code calls. There is no interpreter, and no lock. */
#include <stdio.h>
#include <stdlib.h>

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

void numba_gil_ensure(int *state);
void numba_gil_release(const int *state);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *state);
_Noreturn void Py_FatalError(const char *text);
int numba_fatal_error(void);
void numba_gdb_breakpoint(void);

/* Kernels of parallel loops take the lock and release it again. */
void numba_gil_ensure(int *state) { *state = 0; }
void numba_gil_release(const int *state) { (void)state; }
void *PyEval_SaveThread(void) { return NULL; }
void PyEval_RestoreThread(void *state) { (void)state; }

/* Where Numba ends the process: BLAS or LAPACK refused arguments that Numba itself made. */
_Noreturn void Py_FatalError(const char *text) {
  (void)fprintf(stderr, "fatal error in a function compiled by Numba: %s\n", text);
  abort();
}

int numba_fatal_error(void) { Py_FatalError("a call of BLAS or LAPACK failed"); }

/* A place for a debugger's breakpoint. */
void numba_gdb_breakpoint(void) { __asm__ volatile(""); }
