/* Functions of libm under the names that Numba's compiler also has for them. */
#include <math.h>

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

#define UNARY(name)                                 \
  double numba_##name(double x);                    \
  float numba_##name##f(float x);                   \
  double numba_##name(double x) { return name(x); } \
  float numba_##name##f(float x) { return name##f(x); }
#define BINARY(name)                                             \
  double numba_##name(double x, double y);                       \
  float numba_##name##f(float x, float y);                       \
  double numba_##name(double x, double y) { return name(x, y); } \
  float numba_##name##f(float x, float y) { return name##f(x, y); }

UNARY(sin)
UNARY(cos)
UNARY(tan)
UNARY(sinh)
UNARY(cosh)
UNARY(tanh)
UNARY(asin)
UNARY(acos)
UNARY(atan)
UNARY(asinh)
UNARY(acosh)
UNARY(atanh)
UNARY(exp)
UNARY(expm1)
UNARY(sqrt)
UNARY(fabs)
UNARY(floor)
UNARY(ceil)
UNARY(log)
UNARY(log10)
UNARY(log1p)
UNARY(round)
UNARY(trunc)
BINARY(pow)
BINARY(fmod)
BINARY(atan2)
