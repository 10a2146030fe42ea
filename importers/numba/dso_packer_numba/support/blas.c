/* Products and norms by a BLAS library. */
#include "blas.h"

#include <complex.h>

DECLARE(gemm, (const char *, const char *, const blas_int *, const blas_int *, const blas_int *,
               const void *, const void *, const blas_int *, const void *, const blas_int *,
               const void *, void *, const blas_int *, size_t, size_t))
DECLARE(gemv, (const char *, const blas_int *, const blas_int *, const void *, const void *,
               const blas_int *, const void *, const blas_int *, const void *, void *,
               const blas_int *, size_t))

#define VECTORS (const blas_int *, const void *, const blas_int *, const void *, const blas_int *)
extern float BLAS(sdot) VECTORS;
extern double BLAS(ddot) VECTORS;
extern float complex BLAS(cdotu) VECTORS;
extern float complex BLAS(cdotc) VECTORS;
extern double complex BLAS(zdotu) VECTORS;
extern double complex BLAS(zdotc) VECTORS;

#define VECTOR (const blas_int *, const void *, const blas_int *)
extern float BLAS(snrm2) VECTOR;
extern double BLAS(dnrm2) VECTOR;
extern float BLAS(scnrm2) VECTOR;
extern double BLAS(dznrm2) VECTOR;

OWN int numba_xxgemm(char kind, char trans_a, char trans_b, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                     const void *alpha, const void *a, ptrdiff_t lda, const void *b, ptrdiff_t ldb,
                     const void *beta, void *c, ptrdiff_t ldc);
OWN int numba_xxgemv(char kind, char trans, ptrdiff_t m, ptrdiff_t n, const void *alpha,
                     const void *a, ptrdiff_t lda, const void *x, const void *beta, void *y);
OWN int numba_xxdot(char kind, char conjugate, ptrdiff_t n, const void *x, const void *y,
                    void *result);
OWN int numba_xxnrm2(char kind, ptrdiff_t n, const void *x, ptrdiff_t stride, void *result);

/* c = alpha * a * b + beta * c */
int numba_xxgemm(char kind, char trans_a, char trans_b, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k,
                 const void *alpha, const void *a, ptrdiff_t lda, const void *b, ptrdiff_t ldb,
                 const void *beta, void *c, ptrdiff_t ldc) {
  blas_int rows = (blas_int)m, columns = (blas_int)n, inner = (blas_int)k;
  blas_int step_a = (blas_int)lda, step_b = (blas_int)ldb, step_c = (blas_int)ldc;
  if (!is_kind(kind)) return FAILED;
  CALL(kind, gemm,
       (&trans_a, &trans_b, &rows, &columns, &inner, alpha, a, &step_a, b, &step_b, beta, c,
        &step_c, 1, 1));
  return 0;
}

/* y = alpha * a * x + beta * y */
int numba_xxgemv(char kind, char trans, ptrdiff_t m, ptrdiff_t n, const void *alpha, const void *a,
                 ptrdiff_t lda, const void *x, const void *beta, void *y) {
  blas_int rows = (blas_int)m, columns = (blas_int)n, step = (blas_int)lda, one = 1;
  if (!is_kind(kind)) return FAILED;
  CALL(kind, gemv, (&trans, &rows, &columns, alpha, a, &step, x, &one, beta, y, &one, 1));
  return 0;
}

int numba_xxdot(char kind, char conjugate, ptrdiff_t n, const void *x, const void *y,
                void *result) {
  blas_int size = (blas_int)n, one = 1;
  switch (kind) {
    case 's': *(float *)result = BLAS(sdot)(&size, x, &one, y, &one); return 0;
    case 'd': *(double *)result = BLAS(ddot)(&size, x, &one, y, &one); return 0;
    case 'c':
      *(float complex *)result =
          conjugate ? BLAS(cdotc)(&size, x, &one, y, &one) : BLAS(cdotu)(&size, x, &one, y, &one);
      return 0;
    case 'z':
      *(double complex *)result =
          conjugate ? BLAS(zdotc)(&size, x, &one, y, &one) : BLAS(zdotu)(&size, x, &one, y, &one);
      return 0;
    default: return FAILED;
  }
}

int numba_xxnrm2(char kind, ptrdiff_t n, const void *x, ptrdiff_t stride, void *result) {
  blas_int size = (blas_int)n, step = (blas_int)stride;
  switch (kind) {
    case 's': *(float *)result = BLAS(snrm2)(&size, x, &step); return 0;
    case 'd': *(double *)result = BLAS(dnrm2)(&size, x, &step); return 0;
    case 'c': *(float *)result = BLAS(scnrm2)(&size, x, &step); return 0;
    case 'z': *(double *)result = BLAS(dznrm2)(&size, x, &step); return 0;
    default: return FAILED;
  }
}
