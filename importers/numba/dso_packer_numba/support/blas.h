/* blas.h: the names and integers of a BLAS or LAPACK library with Fortran's interface.
 *
 * The compiler gets what differs between libraries:
 *     -DNB_BLAS_PREFIX=scipy_ -DNB_BLAS_SUFFIX=_64_    dgemm is scipy_dgemm_64_; dgemm_ by default
 *     -DNB_BLAS_INT=int64_t                            its integers; int32_t by default
 *     -DNB_PIVOT_INT=int64_t                           the pivots in Numba's arrays; int32_t
 *
 * Kinds of elements: s, d, c, z, for float, double, and complex numbers of both. */
#ifndef DSO_PACKER_NUMBA_BLAS_H
#define DSO_PACKER_NUMBA_BLAS_H

#include <stddef.h>
#include <stdint.h>

#ifndef NB_BLAS_PREFIX
#define NB_BLAS_PREFIX
#endif
#ifndef NB_BLAS_SUFFIX
#define NB_BLAS_SUFFIX _
#endif
#ifndef NB_BLAS_INT
#define NB_BLAS_INT int32_t
#endif
#ifndef NB_PIVOT_INT
#define NB_PIVOT_INT int32_t
#endif

typedef NB_BLAS_INT blas_int;
typedef NB_PIVOT_INT pivot_int;

#define NB_JOIN_(prefix, name, suffix) prefix##name##suffix
#define NB_JOIN(prefix, name, suffix) NB_JOIN_(prefix, name, suffix)
#define BLAS(name) NB_JOIN(NB_BLAS_PREFIX, name, NB_BLAS_SUFFIX)

#ifndef NB_VISIBLE /* for tests */
#define OWN __attribute__((visibility("hidden")))
#else
#define OWN
#endif

/* Declare a routine for every kind; `real` and `complex` may have other names or parameters. */
#define DECLARE_REAL(routine, parameters)  \
  extern void BLAS(s##routine) parameters; \
  extern void BLAS(d##routine) parameters;
#define DECLARE_COMPLEX(routine, parameters) \
  extern void BLAS(c##routine) parameters;   \
  extern void BLAS(z##routine) parameters;
#define DECLARE(routine, parameters) \
  DECLARE_REAL(routine, parameters)  \
  DECLARE_COMPLEX(routine, parameters)

/* Call the routine of the kind. */
#define CALL_REAL(kind, routine, arguments)        \
  do {                                             \
    if ((kind) == 's') BLAS(s##routine) arguments; \
    else BLAS(d##routine) arguments;               \
  } while (0)
#define CALL_COMPLEX(kind, routine, arguments)     \
  do {                                             \
    if ((kind) == 'c') BLAS(c##routine) arguments; \
    else BLAS(z##routine) arguments;               \
  } while (0)
#define CALL(kind, routine, arguments)                      \
  do {                                                      \
    if (is_real(kind)) CALL_REAL(kind, routine, arguments); \
    else CALL_COMPLEX(kind, routine, arguments);            \
  } while (0)

static inline int is_real(char kind) { return kind == 's' || kind == 'd'; }
static inline int is_kind(char kind) { return is_real(kind) || kind == 'c' || kind == 'z'; }

/* The size of an element, and of its real part. */
static inline size_t real_size(char kind) {
  return kind == 's' || kind == 'c' ? sizeof(float) : sizeof(double);
}
static inline size_t kind_size(char kind) { return real_size(kind) * (is_real(kind) ? 1 : 2); }

/* The size of a workspace, which a query stored as a number of this kind. */
static inline blas_int optimal(char kind, const void *stored) {
  return kind == 's' || kind == 'c' ? (blas_int) * (const float *)stored
                                    : (blas_int) * (const double *)stored;
}

/* An argument -1 asks for the size of the workspace; the results of the functions here: an error of
 * LAPACK above 0, and -1 for arguments that it refuses or without memory. */
enum { QUERY = -1, FAILED = -1 };

static inline int outcome(blas_int info) { return info < 0 ? FAILED : (int)info; }

#endif
