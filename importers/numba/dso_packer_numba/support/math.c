/* Functions of numbers, with the results that Numba's have. */
#include <math.h>
#include <stdint.h>

/* The same bits on every level of the processor. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

typedef struct {
  double real, imag;
} complex128;
typedef struct {
  float real, imag;
} complex64;

/* ---- Division. A divisor of 0 was excluded by the caller. */

int64_t numba_sdiv(int64_t a, int64_t b);
int64_t numba_srem(int64_t a, int64_t b);
uint64_t numba_udiv(uint64_t a, uint64_t b);
uint64_t numba_urem(uint64_t a, uint64_t b);
int64_t numba_sdiv(int64_t a, int64_t b) { return a / b; }
int64_t numba_srem(int64_t a, int64_t b) { return a % b; }
uint64_t numba_udiv(uint64_t a, uint64_t b) { return a / b; }
uint64_t numba_urem(uint64_t a, uint64_t b) { return a % b; }

/* On Windows the x87 flags are cleared before fmod: on other systems no function is set. */
static void (*clear_flags)(void);
void numba_set_fnclex(void (*function)(void));
double numba_fixed_fmod(double x, double y);
float numba_fixed_fmodf(float x, float y);

void numba_set_fnclex(void (*function)(void)) { clear_flags = function; }

double numba_fixed_fmod(double x, double y) {
  if (clear_flags) clear_flags();
  return fmod(x, y);
}

float numba_fixed_fmodf(float x, float y) {
  if (clear_flags) clear_flags();
  return fmodf(x, y);
}

/* ---- Exponents. Zeros, infinities and NaN are their own results, with the exponent 0. */

double numba_frexp(double x, int *exponent);
float numba_frexpf(float x, int *exponent);
double numba_ldexp(double x, int exponent);
float numba_ldexpf(float x, int exponent);

double numba_frexp(double x, int *exponent) {
  *exponent = 0;
  return isfinite(x) && x != 0 ? frexp(x, exponent) : x;
}

float numba_frexpf(float x, int *exponent) {
  *exponent = 0;
  return isfinite(x) && x != 0 ? frexpf(x, exponent) : x;
}

double numba_ldexp(double x, int exponent) {
  return isfinite(x) && x != 0 && exponent != 0 ? ldexp(x, exponent) : x;
}

float numba_ldexpf(float x, int exponent) {
  return isfinite(x) && x != 0 && exponent != 0 ? ldexpf(x, exponent) : x;
}

/* ---- The power of complex numbers: Python's, but NaN where Python raises ZeroDivisionError */

void numba_cpow(const complex128 *a, const complex128 *b, complex128 *out);
void numba_cpowf(const complex64 *a, const complex64 *b, complex64 *out);

void numba_cpow(const complex128 *a, const complex128 *b, complex128 *out) {
  if (b->real == 0 && b->imag == 0) {
    *out = (complex128){1, 0};
  } else if (a->real == 0 && a->imag == 0) {
    double value = b->imag != 0 || b->real < 0 ? (double)NAN : 0;
    *out = (complex128){value, value};
  } else {
    double length = hypot(a->real, a->imag), angle = atan2(a->imag, a->real);
    double size = pow(length, b->real), phase = angle * b->real;
    if (b->imag != 0) {
      size /= exp(angle * b->imag);
      phase += b->imag * log(length);
    }
    *out = (complex128){size * cos(phase), size * sin(phase)};
  }
}

void numba_cpowf(const complex64 *a, const complex64 *b, complex64 *out) {
  complex128 wide_a = {(double)a->real, (double)a->imag};
  complex128 wide_b = {(double)b->real, (double)b->imag}, wide;
  numba_cpow(&wide_a, &wide_b, &wide);
  /* The real part of r + i * I: NaN beside an infinite i, and 0 for -0. */
  *out = (complex64){(float)wide.real + 0.0F * (float)wide.imag, (float)wide.imag};
}

/* ---- Functions of libm under names of Numba */

#define OF_LIBM(name, function, type) \
  type name(type x);                  \
  type name(type x) { return function(x); }
OF_LIBM(numba_gamma, tgamma, double)
OF_LIBM(numba_gammaf, tgammaf, float)
OF_LIBM(numba_lgamma, lgamma, double)
OF_LIBM(numba_lgammaf, lgammaf, float)
OF_LIBM(numba_erf, erf, double)
OF_LIBM(numba_erff, erff, float)
OF_LIBM(numba_erfc, erfc, double)
OF_LIBM(numba_erfcf, erfcf, float)

double numba_nextafter(double a, double b);
float numba_nextafterf(float a, float b);
double numba_nextafter(double a, double b) { return nextafter(a, b); }
float numba_nextafterf(float a, float b) { return nextafterf(a, b); }

/* ---- Conversions: negative numbers wrap */

uint64_t numba_fptoui(double x);
uint64_t numba_fptouif(float x);
uint64_t numba_fptoui(double x) { return (uint64_t)(int64_t)x; }
uint64_t numba_fptouif(float x) { return (uint64_t)(int64_t)x; }
