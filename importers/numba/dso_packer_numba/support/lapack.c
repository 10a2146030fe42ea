/* Factorisations and linear equations by a LAPACK library. */
#include "blas.h"

#include <stdlib.h>

typedef const blas_int *in;

DECLARE(getrf, (in, in, void *, in, blas_int *, blas_int *))
DECLARE(getri, (in, void *, in, blas_int *, void *, in, blas_int *))
DECLARE(potrf, (const char *, in, void *, in, blas_int *, size_t))
DECLARE(gesv, (in, in, void *, in, blas_int *, void *, in, blas_int *))
DECLARE(geqrf, (in, in, void *, in, void *, void *, in, blas_int *))
DECLARE_REAL(orgqr, (in, in, in, void *, in, const void *, void *, in, blas_int *))
DECLARE_COMPLEX(ungqr, (in, in, in, void *, in, const void *, void *, in, blas_int *))

OWN int numba_xxgetrf(char kind, ptrdiff_t m, ptrdiff_t n, void *a, ptrdiff_t lda,
                      pivot_int *pivots);
OWN int numba_ez_xxgetri(char kind, ptrdiff_t n, void *a, ptrdiff_t lda, const pivot_int *pivots);
OWN int numba_xxpotrf(char kind, char uplo, ptrdiff_t n, void *a, ptrdiff_t lda);
OWN int numba_xgesv(char kind, ptrdiff_t n, ptrdiff_t nrhs, void *a, ptrdiff_t lda,
                    pivot_int *pivots, void *b, ptrdiff_t ldb);
OWN int numba_ez_geqrf(char kind, ptrdiff_t m, ptrdiff_t n, void *a, ptrdiff_t lda, void *tau);
OWN int numba_ez_xxgqr(char kind, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, void *a, ptrdiff_t lda,
                       const void *tau);

/* ---- Pivots: the library's integers may be wider than in Numba's arrays */

static blas_int *make_pivots(ptrdiff_t count) {
  return malloc(sizeof(blas_int) * (size_t)(count > 0 ? count : 1));
}

static void store_pivots(pivot_int *to, blas_int *from, ptrdiff_t count) {
  for (ptrdiff_t i = 0; i < count; i++) to[i] = (pivot_int)from[i];
  free(from);
}

int numba_xxgetrf(char kind, ptrdiff_t m, ptrdiff_t n, void *a, ptrdiff_t lda, pivot_int *pivots) {
  blas_int rows = (blas_int)m, columns = (blas_int)n, step = (blas_int)lda, info = 0;
  ptrdiff_t count = m < n ? m : n;
  blas_int *own = is_kind(kind) ? make_pivots(count) : NULL;
  if (own == NULL) return FAILED;
  CALL(kind, getrf, (&rows, &columns, a, &step, own, &info));
  store_pivots(pivots, own, info < 0 ? 0 : count);
  return outcome(info);
}

int numba_xgesv(char kind, ptrdiff_t n, ptrdiff_t nrhs, void *a, ptrdiff_t lda, pivot_int *pivots,
                void *b, ptrdiff_t ldb) {
  blas_int size = (blas_int)n, columns = (blas_int)nrhs, step_a = (blas_int)lda;
  blas_int step_b = (blas_int)ldb, info = 0;
  blas_int *own = is_kind(kind) ? make_pivots(n) : NULL;
  if (own == NULL) return FAILED;
  CALL(kind, gesv, (&size, &columns, a, &step_a, own, b, &step_b, &info));
  store_pivots(pivots, own, info < 0 ? 0 : n);
  return outcome(info);
}

/* The inverse, from the factors of numba_xxgetrf. */
static int invert(char kind, blas_int n, void *a, blas_int lda, blas_int *pivots) {
  double first[2] = {0, 0};
  blas_int size = QUERY, info = 0;
  CALL(kind, getri, (&n, a, &lda, pivots, first, &size, &info));
  if (info < 0) return FAILED;
  size = optimal(kind, first);
  void *work = malloc(kind_size(kind) * (size_t)size);
  if (work == NULL) return FAILED;
  CALL(kind, getri, (&n, a, &lda, pivots, work, &size, &info));
  free(work);
  return outcome(info);
}

int numba_ez_xxgetri(char kind, ptrdiff_t n, void *a, ptrdiff_t lda, const pivot_int *pivots) {
  blas_int *own = is_kind(kind) ? make_pivots(n) : NULL;
  if (own == NULL) return FAILED;
  for (ptrdiff_t i = 0; i < n; i++) own[i] = (blas_int)pivots[i];
  int status = invert(kind, (blas_int)n, a, (blas_int)lda, own);
  free(own);
  return status;
}

/* ---- Cholesky */

int numba_xxpotrf(char kind, char uplo, ptrdiff_t n, void *a, ptrdiff_t lda) {
  blas_int size = (blas_int)n, step = (blas_int)lda, info = 0;
  if (!is_kind(kind)) return FAILED;
  CALL(kind, potrf, (&uplo, &size, a, &step, &info, 1));
  return outcome(info);
}

/* ---- QR: reflectors, then the columns of Q */

int numba_ez_geqrf(char kind, ptrdiff_t m, ptrdiff_t n, void *a, ptrdiff_t lda, void *tau) {
  blas_int rows = (blas_int)m, columns = (blas_int)n, step = (blas_int)lda;
  blas_int size = QUERY, info = 0;
  double first[2] = {0, 0};
  if (!is_kind(kind)) return FAILED;
  CALL(kind, geqrf, (&rows, &columns, a, &step, tau, first, &size, &info));
  if (info < 0) return FAILED;
  size = optimal(kind, first);
  void *work = malloc(kind_size(kind) * (size_t)size);
  if (work == NULL) return FAILED;
  CALL(kind, geqrf, (&rows, &columns, a, &step, tau, work, &size, &info));
  free(work);
  return outcome(info);
}

static blas_int form_q(char kind, blas_int m, blas_int n, blas_int k, void *a, blas_int lda,
                       const void *tau, void *work, blas_int size) {
  blas_int info = 0;
  if (is_real(kind)) CALL_REAL(kind, orgqr, (&m, &n, &k, a, &lda, tau, work, &size, &info));
  else CALL_COMPLEX(kind, ungqr, (&m, &n, &k, a, &lda, tau, work, &size, &info));
  return info;
}

int numba_ez_xxgqr(char kind, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, void *a, ptrdiff_t lda,
                   const void *tau) {
  blas_int rows = (blas_int)m, columns = (blas_int)n, count = (blas_int)k, step = (blas_int)lda;
  double first[2] = {0, 0};
  if (!is_kind(kind)) return FAILED;
  if (form_q(kind, rows, columns, count, a, step, tau, first, QUERY) < 0) return FAILED;
  blas_int size = optimal(kind, first);
  void *work = malloc(kind_size(kind) * (size_t)size);
  if (work == NULL) return FAILED;
  blas_int info = form_q(kind, rows, columns, count, a, step, tau, work, size);
  free(work);
  return outcome(info);
}
