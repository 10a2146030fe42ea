/* Eigenvalues, singular values and least squares by a LAPACK library. Each routine is called twice:
 * first to ask for the sizes of its workspaces. */
#include "blas.h"

#include <stdlib.h>

typedef const blas_int *in;
typedef const char *job;

DECLARE_REAL(geev, (job, job, in, void *, in, void *, void *, void *, in, void *, in, void *, in,
                    blas_int *, size_t, size_t))
DECLARE_COMPLEX(geev, (job, job, in, void *, in, void *, void *, in, void *, in, void *, in, void *,
                       blas_int *, size_t, size_t))
DECLARE_REAL(syevd, (job, job, in, void *, in, void *, void *, in, blas_int *, in, blas_int *,
                     size_t, size_t))
DECLARE_COMPLEX(heevd, (job, job, in, void *, in, void *, void *, in, void *, in, blas_int *, in,
                        blas_int *, size_t, size_t))
DECLARE_REAL(gesdd, (job, in, in, void *, in, void *, void *, in, void *, in, void *, in,
                     blas_int *, blas_int *, size_t))
DECLARE_COMPLEX(gesdd, (job, in, in, void *, in, void *, void *, in, void *, in, void *, in, void *,
                        blas_int *, blas_int *, size_t))
DECLARE_REAL(gelsd, (in, in, in, void *, in, void *, in, void *, const void *, blas_int *, void *,
                     in, blas_int *, blas_int *))
DECLARE_COMPLEX(gelsd, (in, in, in, void *, in, void *, in, void *, const void *, blas_int *,
                        void *, in, void *, blas_int *, blas_int *))

OWN int numba_ez_rgeev(char kind, char left, char right, ptrdiff_t n, void *a, ptrdiff_t lda,
                       void *wr, void *wi, void *vl, ptrdiff_t ldvl, void *vr, ptrdiff_t ldvr);
OWN int numba_ez_cgeev(char kind, char left, char right, ptrdiff_t n, void *a, ptrdiff_t lda,
                       void *w, void *vl, ptrdiff_t ldvl, void *vr, ptrdiff_t ldvr);
OWN int numba_ez_xxxevd(char kind, char vectors, char uplo, ptrdiff_t n, void *a, ptrdiff_t lda,
                        void *w);
OWN int numba_ez_gesdd(char kind, char vectors, ptrdiff_t m, ptrdiff_t n, void *a, ptrdiff_t lda,
                       void *s, void *u, ptrdiff_t ldu, void *vt, ptrdiff_t ldvt);
OWN int numba_ez_gelsd(char kind, ptrdiff_t m, ptrdiff_t n, ptrdiff_t nrhs, void *a, ptrdiff_t lda,
                       void *b, ptrdiff_t ldb, void *s, double rcond, ptrdiff_t *rank);

/* ---- Workspaces: of elements, of real numbers, of integers */

struct work {
  blas_int size, real_size, int_size; /* QUERY: ask for the size */
  void *elements, *reals;
  blas_int *integers;
  double first[2], first_real; /* what a query stores */
  blas_int first_integer;
};

static void begin(struct work *work) {
  *work = (struct work){.size = QUERY, .real_size = QUERY, .int_size = QUERY};
  work->elements = work->first;
  work->reals = &work->first_real;
  work->integers = &work->first_integer;
}

static void *room(blas_int count, size_t size) {
  return malloc(size * (size_t)(count > 0 ? count : 1));
}

static void end(const struct work *work) {
  free(work->elements);
  free(work->reals);
  free(work->integers);
}

/* Allocate what the query asked for; `reals` and `integers` are counts that the caller knows. */
static int allocate(struct work *work, char kind, blas_int reals, blas_int integers) {
  work->size = optimal(kind, work->first);
  work->real_size = reals;
  work->int_size = integers;
  work->elements = room(work->size, kind_size(kind));
  work->reals = room(reals, real_size(kind));
  work->integers = room(integers, sizeof(blas_int));
  if (work->elements != NULL && work->reals != NULL && work->integers != NULL) return 0;
  end(work);
  return FAILED;
}

/* ---- Eigenvalues */

int numba_ez_rgeev(char kind, char left, char right, ptrdiff_t n, void *a, ptrdiff_t lda, void *wr,
                   void *wi, void *vl, ptrdiff_t ldvl, void *vr, ptrdiff_t ldvr) {
  blas_int size = (blas_int)n, step = (blas_int)lda, step_l = (blas_int)ldvl;
  blas_int step_r = (blas_int)ldvr, info = 0;
  struct work work;
  if (!is_real(kind)) return FAILED;
  begin(&work);
  for (int pass = 0; pass < 2; pass++) {
    CALL_REAL(kind, geev,
              (&left, &right, &size, a, &step, wr, wi, vl, &step_l, vr, &step_r, work.elements,
               &work.size, &info, 1, 1));
    if (pass == 0 && (info < 0 || allocate(&work, kind, 0, 0) != 0)) return FAILED;
  }
  end(&work);
  return outcome(info);
}

int numba_ez_cgeev(char kind, char left, char right, ptrdiff_t n, void *a, ptrdiff_t lda, void *w,
                   void *vl, ptrdiff_t ldvl, void *vr, ptrdiff_t ldvr) {
  blas_int size = (blas_int)n, step = (blas_int)lda, step_l = (blas_int)ldvl;
  blas_int step_r = (blas_int)ldvr, info = 0;
  struct work work;
  if (!is_kind(kind) || is_real(kind)) return FAILED;
  begin(&work);
  for (int pass = 0; pass < 2; pass++) {
    CALL_COMPLEX(kind, geev,
                 (&left, &right, &size, a, &step, w, vl, &step_l, vr, &step_r, work.elements,
                  &work.size, work.reals, &info, 1, 1));
    if (pass == 0 && (info < 0 || allocate(&work, kind, 2 * size, 0) != 0)) return FAILED;
  }
  end(&work);
  return outcome(info);
}

/* Of symmetric and Hermitian matrices. */
int numba_ez_xxxevd(char kind, char vectors, char uplo, ptrdiff_t n, void *a, ptrdiff_t lda,
                    void *w) {
  blas_int size = (blas_int)n, step = (blas_int)lda, info = 0;
  struct work work;
  if (!is_kind(kind)) return FAILED;
  begin(&work);
  for (int pass = 0; pass < 2; pass++) {
    if (is_real(kind))
      CALL_REAL(kind, syevd,
                (&vectors, &uplo, &size, a, &step, w, work.elements, &work.size, work.integers,
                 &work.int_size, &info, 1, 1));
    else
      CALL_COMPLEX(kind, heevd,
                   (&vectors, &uplo, &size, a, &step, w, work.elements, &work.size, work.reals,
                    &work.real_size, work.integers, &work.int_size, &info, 1, 1));
    blas_int reals = pass == 0 ? optimal(kind, work.reals) : 0;
    if (pass == 0 && (info < 0 || allocate(&work, kind, reals, work.first_integer) != 0))
      return FAILED;
  }
  end(&work);
  return outcome(info);
}

/* ---- Singular values */

static blas_int least(blas_int a, blas_int b) { return a < b ? a : b; }
static blas_int most(blas_int a, blas_int b) { return a > b ? a : b; }

int numba_ez_gesdd(char kind, char vectors, ptrdiff_t m, ptrdiff_t n, void *a, ptrdiff_t lda,
                   void *s, void *u, ptrdiff_t ldu, void *vt, ptrdiff_t ldvt) {
  blas_int rows = (blas_int)m, columns = (blas_int)n, step = (blas_int)lda;
  blas_int step_u = (blas_int)ldu, step_v = (blas_int)ldvt, info = 0;
  blas_int small = least(rows, columns), large = most(rows, columns);
  /* LAPACK's documentation of LRWORK for zgesdd with vectors; without them it needs less. */
  blas_int reals = small * most(5 * small + 7, 2 * large + 2 * small + 1);
  struct work work;
  if (!is_kind(kind)) return FAILED;
  begin(&work);
  for (int pass = 0; pass < 2; pass++) {
    if (is_real(kind))
      CALL_REAL(kind, gesdd,
                (&vectors, &rows, &columns, a, &step, s, u, &step_u, vt, &step_v, work.elements,
                 &work.size, work.integers, &info, 1));
    else
      CALL_COMPLEX(kind, gesdd,
                   (&vectors, &rows, &columns, a, &step, s, u, &step_u, vt, &step_v, work.elements,
                    &work.size, work.reals, work.integers, &info, 1));
    if (pass == 0 && (info < 0 || allocate(&work, kind, reals, 8 * small) != 0)) return FAILED;
  }
  end(&work);
  return outcome(info);
}

/* ---- Least squares */

int numba_ez_gelsd(char kind, ptrdiff_t m, ptrdiff_t n, ptrdiff_t nrhs, void *a, ptrdiff_t lda,
                   void *b, ptrdiff_t ldb, void *s, double rcond, ptrdiff_t *rank) {
  blas_int rows = (blas_int)m, columns = (blas_int)n, sides = (blas_int)nrhs;
  blas_int step_a = (blas_int)lda, step_b = (blas_int)ldb, found = 0, info = 0;
  float rcond_float = (float)rcond;
  const void *limit = real_size(kind) == sizeof(float) ? (const void *)&rcond_float : &rcond;
  struct work work;
  if (!is_kind(kind)) return FAILED;
  begin(&work);
  for (int pass = 0; pass < 2; pass++) {
    if (is_real(kind))
      CALL_REAL(kind, gelsd,
                (&rows, &columns, &sides, a, &step_a, b, &step_b, s, limit, &found, work.elements,
                 &work.size, work.integers, &info));
    else
      CALL_COMPLEX(kind, gelsd,
                   (&rows, &columns, &sides, a, &step_a, b, &step_b, s, limit, &found,
                    work.elements, &work.size, work.reals, work.integers, &info));
    blas_int reals = pass == 0 && !is_real(kind) ? optimal(kind, work.reals) : 0;
    if (pass == 0 && (info < 0 || allocate(&work, kind, reals, work.first_integer) != 0))
      return FAILED;
  }
  end(&work);
  *rank = (ptrdiff_t)found;
  return outcome(info);
}
